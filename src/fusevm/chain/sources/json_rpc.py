"""Questions to a node: JSON-RPC over HTTP, in batches, with timeouts and retries."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from fusevm.chain.sources.source import SourceError, SourceUnavailable
from fusevm.child import renewed_in_child
from fusevm.values import BadValue, shown

Question: TypeAlias = tuple[str, Sequence[Any]]  # a method and its parameters

BATCH = 100  # questions in one request: public nodes refuse more
PAUSE = 0.1  # seconds before the second try; four times as long before each one after
LONGEST_PAUSE = 10.0  # that a node may ask for
_BUSY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_BUSY_CODES = frozenset({429, -32005, -32097})  # request limits, as nodes and providers number them


class NodeError(SourceError):
    """The node answered a question with an error."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class _Busy(Exception):
    """Worth another try, perhaps after a pause that the node asks for."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        self.pause = pause


class JsonRpc:
    """A node. Its connection is kept open, is made again when it broke, and is not pickled."""

    def __init__(self, url: str, *, timeout: float = 30.0, retries: int = 3) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadValue(f"url: expected http://… or https://…, got {shown(url)}")
        self.url, self.timeout, self.retries = url, timeout, retries
        self.host = parts.hostname
        self._secure, self._port = parts.scheme == "https", parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # Paths hold keys: messages show the host alone.
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "fusevm"}
        if parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        self._proxy = _proxy_of(parts.scheme, parts.hostname)
        self._unconnected()

    def _unconnected(self) -> None:
        self._connection: http.client.HTTPConnection | None = None
        self._process = os.getpid()
        self._lock = renewed_in_child(threading.Lock())  # copies of a machine share it, in threads of their own

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_connection", "_process", "_lock")}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._unconnected()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self._close()

    def ask(self, method: str, *parameters: Any) -> Any:
        """The answer to one question. Raises NodeError, or SourceUnavailable."""
        (answer,) = self.ask_all([(method, parameters)])
        return answer

    def ask_all(self, questions: Sequence[Question]) -> list[Any]:
        """The answers in the same order, or an error and none of them."""
        answers: list[Any] = []
        for start in range(0, len(questions), BATCH):
            answers += self._retried(questions[start : start + BATCH])
        return answers

    def _retried(self, questions: Sequence[Question]) -> list[Any]:
        with self._lock:
            for tried in range(self.retries + 1):
                try:
                    return self._asked(questions)
                except (_Busy, OSError, http.client.HTTPException) as error:
                    self._close()
                    last: Exception = error
                if tried < self.retries:
                    asked_for = last.pause if isinstance(last, _Busy) else 0.0
                    time.sleep(min(max(PAUSE * 4**tried, asked_for), LONGEST_PAUSE))
        why = str(last) or type(last).__name__
        raise SourceUnavailable(
            f"{self.name} does not answer {questions[0][0]} ({why}; tried {self.retries + 1} times); "
            "check that the node runs and can be reached, then call again"
        )

    def _asked(self, questions: Sequence[Question]) -> list[Any]:
        bodies = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": list(parameters)}
            for number, (method, parameters) in enumerate(questions)
        ]
        answer = self._posted(json.dumps(bodies if len(bodies) > 1 else bodies[0]).encode())
        if len(questions) > 1 and isinstance(answer, dict):  # a node without batches
            return [self._asked([question])[0] for question in questions]
        found = {
            each.get("id"): each for each in (answer if isinstance(answer, list) else [answer]) if type(each) is dict
        }
        return [self._result(found.get(number), method) for number, (method, _) in enumerate(questions)]

    def _result(self, answer: dict[str, Any] | None, method: str) -> Any:
        if answer is None or ("result" not in answer and "error" not in answer):
            raise NodeError(f"{self.name}: {method}: the answer is not JSON-RPC")
        error = answer.get("error")
        if error is None:
            return answer["result"]
        code, text = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        if code in _BUSY_CODES:
            raise _Busy(str(text))
        raise NodeError(f"{self.name}: {method}: {shown(str(text))}", code if isinstance(code, int) else 0)

    def _posted(self, body: bytes) -> Any:
        if self._process != os.getpid():  # a connection of the process that this one was forked from
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            self._connection = self._connected()
        # A proxy for HTTP is told the whole address; one for HTTPS passes on what it cannot read.
        target = self._path if self._secure or self._proxy is None else self.name + self._path
        self._connection.request("POST", target, body, self._headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.status in _BUSY_STATUS:
            raise _Busy(f"HTTP {response.status}", _seconds(response.getheader("Retry-After")))
        try:
            return json.loads(content)
        except ValueError:
            raise NodeError(f"{self.name}: HTTP {response.status}, and the answer is not JSON") from None

    def _connected(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        if self._proxy is None:
            return kind(self.host, self._port, timeout=self.timeout)
        proxy = urlsplit(self._proxy)
        connection = kind(proxy.hostname or "", proxy.port, timeout=self.timeout)
        if self._secure:
            connection.set_tunnel(self.host, self._port or 443)
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 0.0


def _proxy_of(scheme: str, host: str) -> str | None:
    """The one that the environment names for such addresses; never for a node on this machine."""
    from urllib.request import getproxies, proxy_bypass

    found = getproxies().get(scheme)
    return None if found is None or is_local(host) or proxy_bypass(host) else found


def is_local(host: str) -> bool:
    """Whether it is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
