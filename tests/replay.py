"""The same requests to anvil and to this node, and where their answers differ.

`replay.txt` has the requests: a line is a method and its parameters as JSON, with `name =` before it where a later line
takes something of the answer: `"$name"`, `"$name.field"`. `docs/node.md` lists the differences that stay.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs" / "node.md"
TIMESTAMP = 1_800_000_000  # of both nodes' first block; a second from block to block
WAIT_SECONDS = 10.0

Ask = Callable[[str, list[Any]], dict[str, Any]]  # the result or the error of a request, as JSON-RPC has them
_LINE = re.compile(r"(?:(\w+) = )?(\w+)(?: (.*))?")
_NAME = re.compile(r"\$(\w+)((?:\.\w+)*)")


@dataclass(frozen=True)
class Request:
    line: int
    name: str | None
    method: str
    params: tuple[Any, ...]

    def __str__(self) -> str:
        return " ".join([self.method, *map(json.dumps, self.params)])


def requests() -> list[Request]:
    found = []
    for number, line in enumerate((FOLDER / "replay.txt").read_text("utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            read = _LINE.fullmatch(line)
            assert read is not None, f"replay.txt: {number}: {line!r} is not a request"
            found.append(Request(number, read[1], read[2], tuple(_values(read[3] or ""))))
    return found


def _values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:]


class Player:
    """One node, what it has answered, and its hashes of blocks under names that both nodes share."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._answers = ask, dict[str, Any]()
        self._hashes: dict[str, str] = {}

    def play(self, request: Request) -> Any:
        answer = self._ask(request.method, [self._filled(each) for each in request.params])
        found = answer["result"] if "error" not in answer else {"error": answer["error"]}
        if request.name is not None:
            self._answers[request.name] = found
        if "send" in request.method.lower() and isinstance(found, str) and self._result("anvil_getAutomine"):
            self._await(found)
        self._learn()
        return self._named(found)

    def _result(self, method: str, *params: Any) -> Any:
        return self._ask(method, list(params)).get("result")

    def _await(self, transaction: str) -> None:
        """Where blocks are made at once they are made soon after the answer; a gap in nonces makes none."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self._result("eth_getTransactionReceipt", transaction) is None and time.monotonic() < deadline:
            if self._result("txpool_status") == {"pending": "0x0", "queued": "0x1"}:
                return
            time.sleep(0.01)

    def _learn(self) -> None:
        """Hashes follow from what both nodes choose at random: they are compared by the block they name."""
        head = self._result("eth_getBlockByNumber", "latest", False)
        while head is not None and head["hash"] not in self._hashes:
            self._hashes[head["hash"]] = f"block {int(head['number'], 16)}"
            head = self._result("eth_getBlockByHash", head["parentHash"], False)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if isinstance(value, str) and (read := _NAME.fullmatch(value)):
            found = self._answers[read[1]]
            for part in read[2].split(".")[1:]:
                found = found[int(part)] if part.isdigit() else found[part]
            return found
        return value

    def _named(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._named(name): self._named(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._named(each) for each in value]
        if isinstance(value, str):
            for text, name in self._hashes.items():
                value = value.replace(text, name)
        return value


ABSENT = "nothing"


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ: the path of names, and what stands there."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and ("error" in theirs) == ("error" in ours):
        if path == ".error" and theirs["code"] == ours["code"]:
            path = f".error({ours['code']})"
        for name in sorted({*theirs, *ours}):
            yield from differences(theirs.get(name, ABSENT), ours.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for one, other in zip(theirs, ours, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif theirs != ours:
        yield path.removeprefix(".") or "result", theirs, ours


@dataclass(frozen=True)
class Known:
    """A difference that stays: of some requests, at a path; `*` is any text in both."""

    requests: tuple[str, ...]
    path: str

    def covers(self, request: Request, path: str) -> bool:
        return any(_fits(str(request), each) for each in self.requests) and _fits(path, self.path)


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def known_differences() -> list[Known]:
    """The table of docs/node.md, section "Differences that stay"."""
    section = PAGE.read_text("utf-8").partition("## Differences that stay")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| `(.+?)` \|", section, re.MULTILINE)
    return [Known(tuple(re.findall(r"`(.+?)`", asked)), path) for asked, path in rows]
