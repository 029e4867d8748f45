"""Stack traces of calls that fail: which function reverted, on which line, and who had called it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.chain.result import Result
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.frame import Frame as Running
from fusevm.reference.hooks import Hooks
from fusevm.tracing.errors import revert_text
from fusevm.tracing.requests import TracedMachine, hooked
from fusevm.tracing.sources.contracts import Sources
from fusevm.tracing.sources.files import SourcePlace
from fusevm.tracing.sources.running import ActiveFunction, FunctionStack, entry_of

TRAIL = 64  # instructions
_JUMPS = (BY_NAME["JUMP"].byte, BY_NAME["JUMPI"].byte)


class TraceLine(NamedTuple):
    function: str
    place: SourcePlace | None
    note: str = ""  # what Vyper says of a check that failed

    @property
    def line(self) -> int:
        return 0 if self.place is None else self.place.line

    @property
    def text(self) -> str:
        """Of the line in the source."""
        return "" if self.place is None else self.place.file.line(self.place.line)

    def __str__(self) -> str:
        where = "no source" if self.place is None else str(self.place)
        return f"at {self.function} ({where})" + (f": {self.note}" if self.note else "")


@dataclass(slots=True)
class StackTrace:
    """Why a call failed, and the functions that were running, the innermost first."""

    reason: str
    lines: list[TraceLine] = field(default_factory=list)

    def __str__(self) -> str:
        shown = [self.reason]
        for line in self.lines:
            shown.append(f"    {line}")
        if self.lines and self.lines[0].text:
            shown.insert(2, f"        {self.lines[0].text}")
        return "\n".join(shown)


def stack_trace(machine: TracedMachine, run: Callable[[], Result], sources: Sources) -> StackTrace | None:
    """Of what `run` runs on the machine; None if it succeeds."""
    watcher = _FailureWatcher(sources)
    with hooked(machine, Hooks(watcher=watcher)):
        result = run()
    if result.ok:
        return None
    return StackTrace(reason_of(result, sources), watcher.lines)


def reason_of(result: Result, sources: Sources) -> str:
    """In one line; errors that a contract declares by their names and arguments."""
    error = sources.error_in(result.output) if result.failure is None else None
    return f"reverted: {error!r}" if error is not None else result.error or "failed"


class _Open:
    __slots__ = ("cause", "entry", "functions", "pc", "trail")

    def __init__(self, functions: FunctionStack, entry: ActiveFunction) -> None:
        self.functions = functions
        self.entry = entry
        self.cause: list[TraceLine] = []  # of the last call it made, where that has failed
        self.pc = 0  # of the instruction that runs
        self.trail: deque[int] = deque(maxlen=TRAIL)  # the last ones that have a place


class _FailureWatcher:
    """Follows the functions of every frame. When a call fails because one inside it has, both are in the trace."""

    watched = frozenset(range(256))

    def __init__(self, sources: Sources) -> None:
        self.lines: list[TraceLine] = []
        self._sources = sources
        self._open: list[_Open] = []

    def enter(self, frame: Running) -> None:
        message = frame.message
        if not message.depth:  # whatever an earlier call left when it was broken off
            self._open.clear()
        known = self._sources.of_code(message.code)
        self._open.append(_Open(FunctionStack(known), entry_of(message, known, self._sources)))

    def leave(self, frame: Running) -> None:
        ended = self._open.pop()
        lines: list[TraceLine] = []
        if not frame.succeeded:
            lines = [*ended.cause, *_lines(ended, _named_by(frame.output, self._sources))]
        if self._open:
            self._open[-1].cause = lines
        else:
            self.lines = lines

    def before(self, frame: Running, byte: int) -> None:
        now = self._open[-1]
        now.pc = frame.pc - 1
        if now.functions.known is not None and now.pc in now.functions.known.map.places:
            now.trail.append(now.pc)

    def after(self, frame: Running, byte: int, called: Running | None) -> None:
        if byte in _JUMPS:
            now = self._open[-1]
            now.functions.jumped(now.pc, frame.pc)

    def failed(self, frame: Running, byte: int) -> None:
        pass


def _named_by(output: bytes, sources: Sources) -> str | None:
    """What the statement that reverted must say: the name of its error, or its message."""
    signature = sources.signature_of(output[:4]) if len(output) >= 4 else None
    return signature.partition("(")[0] if signature is not None else revert_text(output)


def _lines(ended: _Open, named: str | None) -> list[TraceLine]:
    """The functions of one frame that failed. Code without a place of its own is part of what jumped to it."""
    functions = ended.functions
    if functions.known is None:
        return [TraceLine(ended.entry.name, None)]
    places, notes = functions.known.map.places, functions.known.map.errors
    found: list[TraceLine] = []
    failed = _failed_at(ended, places, named)
    for at in (failed, *(caller.jump for caller in reversed(functions.callers))):
        place = None if at is None else places.get(at)
        function = None if place is None else place.function
        if place is None or function is None:
            continue
        repeats = bool(found) and found[-1].function == function.name
        if repeats and (found[-1].line == place.line or place.start <= function.body):
            continue
        found.append(TraceLine(function.name, place))
    note = notes.get(ended.pc) or notes.get(-1 if failed is None else failed, "")
    if found and not note.startswith("user "):  # which the reason says
        found[0] = found[0]._replace(note=note)
    return found or [TraceLine(ended.entry.name, None)]


def _failed_at(ended: _Open, places: dict[int, SourcePlace], named: str | None) -> int | None:
    """The last instruction that has a place.

    Optimisers let reverts share their last instructions: of the last places, the one that names the error is it.
    """
    if named:
        naming = [at for at in reversed(ended.trail) if named in places[at].text]
        if naming:
            return min(naming, key=lambda at: places[at].end - places[at].start)
    return ended.trail[-1] if ended.trail else None
