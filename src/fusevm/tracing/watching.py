"""Recording on the reference tier: a watcher of its frames. What other tiers record is held against this."""

from __future__ import annotations

from functools import cache

from fusevm.chain.outcome import Status
from fusevm.evm.opcodes import BY_BYTE, BY_NAME
from fusevm.reference.frame import Frame as Running
from fusevm.reference.instructions.environment import to_address
from fusevm.tracing import recording as recordings
from fusevm.tracing.frames import FrameBefore, begun, unbegun
from fusevm.tracing.recording import (
    CodeCoverage,
    Event,
    FrameKind,
    Keccak,
    LogEvent,
    RecordedFrame,
    Recording,
    StorageRead,
    StorageWrite,
    Wanted,
)
from fusevm.tracing.tree import TreeBuilder

CALLING = {BY_NAME[kind.value].byte: kind for kind in FrameKind if kind is not FrameKind.SELFDESTRUCT}
SELFDESTRUCT, KECCAK256, JUMPI = (BY_NAME[name].byte for name in ("SELFDESTRUCT", "KECCAK256", "JUMPI"))
SLOAD, SSTORE, TLOAD, TSTORE = (BY_NAME[name].byte for name in ("SLOAD", "SSTORE", "TLOAD", "TSTORE"))
LOGS = frozenset(BY_NAME[f"LOG{topics}"].byte for topics in range(5))


@cache
def noted_by(wanted: Wanted) -> frozenset[int]:
    """The opcodes whose events are recorded."""
    return frozenset().union(
        (*CALLING, SELFDESTRUCT) if wanted.calls else (),
        LOGS if wanted.logs else (),
        (SLOAD, SSTORE, TLOAD, TSTORE) if wanted.storage else (),
        (KECCAK256,) if wanted.keccak else (),
    )


class _Open:
    """A frame that runs."""

    __slots__ = ("before", "coverage", "frame", "left", "pc", "spent")

    def __init__(self, frame: RecordedFrame) -> None:
        self.frame = frame
        self.before: FrameBefore | None = None  # its last call
        self.pc: int | None = None  # of the last instruction that was told
        self.left = 0  # gas after it
        self.coverage: CodeCoverage | None = None  # of its code, once something of it ran
        self.spent: dict[int, int] | None = None


class RecordingWatcher:
    """Fills a recording with what the reference tier does."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._wanted = wanted = recording.wanted
        self._noted = noted_by(wanted)
        self.watched = frozenset(range(256)) if wanted.coverage or wanted.gas else self._noted
        self._tree = TreeBuilder()
        self._open: list[_Open] = []
        self._size = 0  # bytes that are held of the running call from outside
        # of the instruction that runs, as it was before
        self._operands: list[int] = []
        self._gas = 0
        self._previous = 0  # the balance, or the value that is about to be overwritten

    # -- frames

    def enter(self, running: Running) -> None:
        message = running.message
        if not message.depth:  # a call before may have been broken off
            self._open.clear()
            self._tree.open.clear()
            self._size = 0
        frame = begun(running, self._open[-1].before if self._open else None)
        self._hold(len(frame.input))
        self._open.append(_Open(frame))
        self._tree.enter(frame)

    def _hold(self, size: int) -> None:
        self._size += size
        if self._size > recordings.MOST:
            raise recordings.RecordingLimit(recordings.MOST)

    def leave(self, running: Running) -> None:
        ended = self._open.pop()
        frame, error = ended.frame, running.error
        frame.gas_used = frame.gas - running.gas
        frame.output = running.output
        self._hold(len(frame.output))
        frame.created = running.created
        if error is not None:
            frame.status, frame.failure = Status.HALT, error.reason
        elif running.reverted:
            frame.status = Status.REVERT
        if not frame.ok and running.pc and running.message.code:
            frame.failed_at = running.pc - 1
        if ended.spent is not None and ended.pc is not None:  # the code of a new contract is paid for at the end
            _add(ended.spent, ended.pc, ended.left - running.gas)
        elif self._open and (caller := self._open[-1]).spent is not None and caller.pc is not None:
            _add(caller.spent, caller.pc, frame.gas_used)  # a precompile
        top = self._tree.leave()
        if top is not None and self._wanted.calls:
            self.recording.add(top)

    # -- instructions

    def before(self, running: Running, byte: int) -> None:
        own = self._open[-1]
        own.pc, self._gas = running.pc - 1, running.gas
        pops = BY_BYTE[byte].pops if byte in BY_BYTE else 0
        self._operands = operands = running.stack[-pops:][::-1] if pops else []
        self._count(own, running)
        if byte not in self._noted or len(operands) < pops:  # or it will fail
            return
        state, address = running.state, running.message.address
        if byte in CALLING:
            own.before = FrameBefore.of(CALLING[byte], running)
        elif byte == SELFDESTRUCT:
            self._previous = state.account(address).balance
        elif byte == SSTORE:
            self._previous = state.storage(address, operands[0])
        elif byte == TSTORE:
            self._previous = state.transient_storage(address, operands[0])

    def after(self, running: Running, byte: int, called: Running | None) -> None:
        own = self._open[-1]
        own.left = running.gas
        if own.spent is not None and own.pc is not None:
            _add(own.spent, own.pc, self._gas - running.gas - (0 if called is None else called.message.gas))
        if byte == JUMPI and own.coverage is not None and own.pc is not None:
            _add(own.coverage.taken if self._operands[1] else own.coverage.passed, own.pc, 1)
        if byte not in self._noted or called is not None:  # `enter` is told of what begins
            return
        event = self._event(running, own, byte)
        self._tree.add(event)

    def failed(self, running: Running, byte: int) -> None:
        own = self._open[-1]
        own.left = 0
        if own.spent is not None and own.pc is not None:
            _add(own.spent, own.pc, self._gas)

    def _count(self, own: _Open, running: Running) -> None:
        wanted, code = self._wanted, running.message.code
        if wanted.coverage:
            if own.coverage is None:
                own.coverage = self.recording.coverage_of(code)
            _add(own.coverage.hits, running.pc - 1, 1)
        if wanted.gas and own.spent is None:
            own.spent = self.recording.gas_of(code)

    def _event(self, running: Running, own: _Open, byte: int) -> Event:
        address, operands = running.message.address, self._operands
        if byte in (SLOAD, TLOAD):
            return StorageRead(address, operands[0], running.stack[-1], byte == TLOAD)
        if byte in (SSTORE, TSTORE):
            return StorageWrite(address, operands[0], operands[1], self._previous, byte == TSTORE)
        if byte == KECCAK256:
            self._hold(operands[1])
            return Keccak(running.read(operands[0], operands[1]), running.stack[-1].to_bytes(32, "big"))
        if byte in LOGS:
            return LogEvent(address, tuple(operands[2:]), running.read(operands[0], operands[1]))
        if byte == SELFDESTRUCT:
            heir, depth = to_address(operands[0]), running.message.depth + 1
            return RecordedFrame(FrameKind.SELFDESTRUCT, address, heir, heir, self._previous, 0, b"", depth, own.pc)
        assert own.before is not None
        frame = unbegun(running, own.before)
        frame.undone = True
        return frame


def _add(counts: dict[int, int], pc: int, count: int) -> None:
    counts[pc] = counts.get(pc, 0) + count
