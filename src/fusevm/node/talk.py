"""What a node prints: requests, transactions with their calls by name, reverts, console.log and blocks."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from fusevm.chain.forms import data
from fusevm.chain.sealed import SealedBlock
from fusevm.machine.console import CONSOLE, readable
from fusevm.rpc.debug import timed, trace_call
from fusevm.rpc.describe import call_text, described, shortened
from fusevm.rpc.session import Session
from fusevm.values import to_bytes

Json = dict[str, Any]
PARAMETERS, EVENTS, FAILURES, TRACES = 1, 2, 3, 4  # from this verbosity on
OWN = ("fusevm_describeBlock",)  # the page asks for each block
MARK = CONSOLE.lstrip(b"\0")  # what code has that calls the console
MAX_WAITING = 10_000  # texts that wait to be printed
DRAIN_SECONDS = 1.0
MAX_LINES = 500  # of one trace
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


class Printer:
    """Prints in a thread of its own: nobody waits for whoever reads it. What is too much is left out, and counted."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._left_out = write, 0
        self._waiting: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="fusevm-print", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        try:
            if self._left_out:
                self._waiting.put_nowait(f"fusevm: {self._left_out} messages are left out: they were not read in time")
                self._left_out = 0
            self._waiting.put_nowait(text)
        except queue.Full:
            self._left_out += 1

    def _run(self) -> None:
        with suppress(OSError, ValueError):  # nobody reads any more
            while (text := self._waiting.get()) is not None:
                self._write(text)

    def close(self) -> None:
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(DRAIN_SECONDS)


class Talk:
    """Tells a printer what a session is asked and does. On the chain's thread, but for requests that others answer."""

    def __init__(
        self,
        session: Session,
        say: Callable[[str], None],
        *,
        verbosity: int = 0,
        consoles: bool = True,
        color: bool = False,
        as_json: bool = False,
    ) -> None:
        self.session, self._say = session, say
        self._verbosity, self._consoles, self._color, self._json = verbosity, consoles, color, as_json
        known = () if session.upstream is not None else session.dev.chain.state.items()
        self._writes = any(MARK in account.code for _, account in known)  # whether code may call the console

    # -- requests

    def asked(self, request: Any) -> None:
        if not self.session.logs or not isinstance(request, Mapping):
            return
        method, params = str(request.get("method")), request.get("params") or []
        if method in OWN:
            return
        with_params = self._verbosity >= PARAMETERS and bool(params)
        self._writes = self._writes or ("setCode" in method and MARK.hex() in json.dumps(params).lower())
        if self._json:
            self._event("request", {"method": method, **({"params": params} if with_params else {})})
        else:
            self._print(plain(method + (f" {shortened(json.dumps(params))}" if with_params else "")))

    def answered(self, request: Any, answer: Mapping[str, Any] | None) -> None:
        """Errors are told, and what a call has written to the console."""
        if not self.session.logs or answer is None:
            return
        if self._consoles and self._writes and request.get("method") == "eth_call":
            with suppress(Exception):  # the call itself was answered
                form, *more = request["params"]
                tree = trace_call(self.session, form, more[0] if more else None, {"tracer": "callTracer"})
                for line in _written(tree):
                    self._console(line)
        if "error" in answer:
            error = answer["error"]
            if self._json:
                self._event("error", {"method": request.get("method"), **error})
            else:
                self._print(self._in(RED, f"    Error: {plain(str(error['message']))}"))

    def _console(self, line: str) -> None:
        if self._json:
            self._event("console", {"text": line})
        else:
            self._print(f"    console.log: {plain(line)}")

    # -- blocks

    def block(self, block: SealedBlock) -> None:
        if not self.session.logs:
            return
        self._writes = self._writes or any(MARK in signed.data for signed in block.transactions)
        form = described(self.session, block)
        trees = self._trees(block, form["transactions"])
        for each, tree in zip(form["transactions"], trees, strict=False):
            self._transaction(each, tree)
        kept = {name: form[name] for name in ("number", "hash", "timestamp", "gasUsed", "baseFee", "count")}
        if self._json:
            self._event("block", kept)
            return
        time = datetime.fromtimestamp(min(form["timestamp"], 2**37), UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
        self._print(f"    Block Number: {form['number']}\n    Block Hash: {form['hash']}\n    Block Time: {time}\n")

    def _trees(self, block: SealedBlock, listed: Sequence[Json]) -> list[Json | None]:
        """The calls of each transaction, where they are told or tell more: the block runs again for it."""
        wanted = self._verbosity >= TRACES or (self._consoles and self._writes)
        if not listed or not (wanted or any(not each["succeeded"] for each in listed)):
            return [None] * len(listed)
        with suppress(Exception), timed(self.session):
            traced = self.session.dev.chain.trace_block(block.hash, tracer="callTracer")
            return [each["result"] for each in traced]
        return [None] * len(listed)

    def _transaction(self, form: Json, tree: Json | None) -> None:
        lines = list(_written(tree)) if tree is not None and self._consoles else []
        error = form["error"]
        if error and tree is not None and tree.get("error") not in (None, "execution reverted"):
            error = tree["error"]  # it halted: there is no reason that it gives
        level = TRACES if form["succeeded"] else FAILURES
        trace = list(self._trace(tree)) if tree is not None and self._verbosity >= level else []
        if self._json:
            more: Json = {"console": lines, **({"trace": tree} if trace else {})}
            self._event("transaction", {**form, "error": error, **more})
            return
        for line in lines:
            self._console(line)
        told = [f"    Transaction: {form['hash']}"]
        if form["call"] == "creation":
            told.append(f"    Contract created: {form['to']}")
        else:
            told.append(f"    Call: {plain(form['call'])} on {form['to']}")
        if form["value"] != "0":
            told.append(f"    Value: {form['value']} wei")
        told.append(f"    Gas used: {form['gasUsed']}")
        if error:
            told.append(self._in(RED, f"    Error: {plain(error)}"))
        if self._verbosity >= EVENTS:
            told += [f"    Event: {plain(each)}" for each in form["events"]]
        self._print("\n".join(["", *told, *(f"      {line}" for line in trace), ""]))

    def _trace(self, tree: Json) -> Iterator[str]:
        waiting, count = [(tree, 0)], 0
        while waiting:
            frame, depth = waiting.pop()
            count += 1
            if count > MAX_LINES:
                yield "… debug_traceTransaction has the rest"
                return
            payload = frame.get("input", "0x")
            creates = frame["type"].startswith("CREATE")
            call = (
                f"{(len(payload) - 2) // 2} bytes of init code"
                if creates
                else call_text(self.session.abi, to_bytes(payload))
            )
            ending = frame.get("revertReason") or frame.get("error")
            line = f"{'  ' * depth}[{int(frame.get('gasUsed', '0x0'), 16)}] {frame['type']} {frame.get('to')}: {call}"
            line = plain(f"{line} → {ending}" if ending else line)
            yield self._in(RED if ending else GREEN, line)
            waiting += [(each, depth + 1) for each in reversed(frame.get("calls", []))]

    # -- words

    def _event(self, kind: str, fields: Json) -> None:
        with suppress(TypeError, ValueError):
            self._say(json.dumps({"event": kind, **fields}))

    def _print(self, text: str) -> None:
        self._say(text)

    def _in(self, color: str, text: str) -> str:
        return f"{color}{text}{PLAIN}" if self._color else text


def _written(tree: Json) -> Iterator[str]:
    """What the calls of a tree have written to the console, in their order."""
    waiting = [tree]
    while waiting:
        frame = waiting.pop()
        if frame.get("to") == data(CONSOLE):
            yield readable(to_bytes(frame["input"]))
        waiting += reversed(frame.get("calls", []))


def plain(text: str) -> str:
    """Without what a terminal obeys: a contract chooses its texts."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
