"""Recording natively: what native code notes, what Python adds to it, and frames that halt led to the very instruction.

Native code notes what it does in a buffer (`runtime/notes.py`). Frames that Python begins and ends, and all that halt,
are noted here. The buffer's content is decoded when somebody looks at the recording.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

from fusevm.chain.outcome import EngineLimit, Status
from fusevm.evm.forks import Fork
from fusevm.native.emit.build import STORAGE, noted_sequence
from fusevm.native.host import note_codec
from fusevm.native.host.arena import Arena
from fusevm.native.host.counting import Counting, ScheduleMarks
from fusevm.native.host.halting import Halting
from fusevm.native.host.kept_schedules import ScheduleStore
from fusevm.native.host.tables import DEPTH
from fusevm.native.host.views import packed
from fusevm.native.layout import FRAME_MEMORY, WORD, Engine
from fusevm.native.runtime.notes import METER_SIZE
from fusevm.reference.frame import Frame as Running
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions import Instruction
from fusevm.reference.instructions.environment import to_address
from fusevm.schedule.build import Handlers
from fusevm.schedule.sections import TELLING
from fusevm.tracing.recording import Frame, FrameKind, Recording, Wanted
from fusevm.tracing.unbegun import Before, unbegun

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

BUFFER = 1 << 22  # bytes of notes that are taken at once
MOST = 1 << 30  # bytes of notes of one call from outside
_NOTE_SIZE, _NOTE_SIZE_AT = packed(Engine, "note_size"), Engine.offset("note_size")
_NOTED = packed(Engine, "note_size note_limit noted_logs noted_key")
CALLING = {kind.value: kind for kind in note_codec.KINDS}
KECCAK = frozenset(("KECCAK256",))
NONE: frozenset[str] = frozenset()


def noted_handlers(handlers: Handlers, wanted: Wanted) -> Handlers:
    """The handlers of which those note that must; a handler that fails has noted nothing.

    No loops: gas taken in bulk hides where a frame halts.
    """
    names = TELLING | (STORAGE if wanted.storage else NONE) | (KECCAK if wanted.keccak else NONE)
    plain = (sequence for sequence in handlers.addresses if not any(name.endswith("!") for name in sequence))
    noted = {sequence: handlers.addresses.get(noted_sequence(sequence, names)) for sequence in plain}
    return Handlers({sequence: address for sequence, address in noted.items() if address}, loops=False)


class Recorder:
    """What one engine records, for one recording after another."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine
        self._tables = tables = engine.tables
        self._handlers = engine.handlers
        self._notes = Arena(BUFFER + tables.caps.logs + FRAME_MEMORY + (1 << 16))
        self._meters = Arena(DEPTH * METER_SIZE)
        tables.shared.notes, tables.shared.note_limit = self._notes.address, BUFFER
        engine.questions.take_notes = self._take
        engine.halts.everywhere = True
        self._chunks: list[bytes] = []
        self._size = 0  # bytes of them
        self.logs = b""  # that the call has left
        self._counting = Counting()
        self._halting = Halting(engine, self._counting, self.note)
        self._recording: Recording | None = None
        self._wanted: Wanted | None = None
        self._counted: weakref.WeakSet[Recording] = weakref.WeakSet()
        self._logged = 0  # bytes of logs before a frame ended
        self._before: Before | None = None  # the call that Python is doing
        self.hooks: Hooks | None = None  # for a run on the reference tier, if it comes to that

    # -- a call from outside

    def start(self, hooks: Hooks, recording: Recording) -> None:
        """Before a call: for which recording it is."""
        self.hooks = hooks
        if recording is not self._recording:
            self._switch(recording)
        elif self._counting.is_crowded:
            self._take_counts()
            self._want(recording.wanted)

    def _switch(self, recording: Recording) -> None:
        self._take_counts()
        self._recording = recording
        if recording.wanted != self._wanted:
            self._want(recording.wanted)
        if self._engine.codes.marks is not None and recording not in self._counted:
            self._counted.add(recording)
            recording.on_counting(partial(self._take_counts_of, recording))
        self._halting.exact.make_room()
        self.drop()

    def finish(self) -> None:
        """A call has ended: its notes are the recording's."""
        (size,) = _NOTE_SIZE.unpack_from(self._tables.engine, _NOTE_SIZE_AT)
        recording, chunks = self._recording, self._chunks
        if recording is not None and recording.wanted.calls and (size or chunks):
            recording.add_later(note_codec.decoded, [self.logs, *chunks, self._notes.read(0, size)])
        self.drop()

    def drop(self) -> None:
        """Nothing is noted: for the next call, or because one never was or runs elsewhere."""
        _NOTED.pack_into(self._tables.engine, _NOTE_SIZE_AT, 0, BUFFER, 0, bytes(WORD))
        self._chunks, self._size, self.logs = [], 0, b""

    def _want(self, wanted: Wanted) -> None:
        """Other schedules from now on."""
        self._wanted = wanted
        engine, shared = self._engine, self._tables.shared
        self._halting.exact.forget()
        self._counting.forget()
        shared.wants_logs = wanted.logs
        shared.meters = self._meters.address if wanted.gas else 0
        self._halting.meters = shared.meters
        marks = partial(self._marks, gas=wanted.gas) if wanted.coverage or wanted.gas else None
        handlers = noted_handlers(self._handlers, wanted)
        store = ScheduleStore(engine.native, handlers)
        engine.codes.record(store, handlers, marks, regions=not any(wanted[2:]))

    def _marks(self, fork: Fork, gas: bool) -> ScheduleMarks:
        return ScheduleMarks(self._counting, fork, gas=gas)

    def _take_counts(self) -> None:
        if self._recording is not None and self._engine.codes.marks is not None:
            self._counting.take(self._recording)

    def _take_counts_of(self, recording: Recording) -> None:
        if recording is self._recording:
            self._take_counts()

    # -- notes

    def _take(self) -> None:
        """The buffer is full."""
        shared = self._tables.shared
        self._chunks.append(self._notes.read(0, shared.note_size))
        self._size += shared.note_size
        shared.note_size = 0
        if self._size > MOST:
            raise EngineLimit(f"recording: more than {MOST >> 30} GiB of events in one call; record less of it")

    def note(self, raw: bytes) -> None:
        """Adds what Python has seen, after the logs that came before."""
        shared = self._tables.shared
        start, end = shared.noted_logs, shared.log_size
        shared.noted_logs = end
        if end != start and shared.wants_logs:
            raw = note_codec.logged(end) + raw
        if shared.note_size + len(raw) > BUFFER:
            self._take()
        if len(raw) > BUFFER:
            self._chunks.append(raw)
            return
        self._notes.write(shared.note_size, raw)
        shared.note_size += len(raw)

    # -- what Python does

    def done(self, running: Running, name: str, instruction: Instruction) -> Running | None:
        """Does an instruction that native code does not: a call, a creation or SELFDESTRUCT."""
        message, operands = running.message, list(running.stack)
        balance = running.state.account(message.address).balance
        before = self._before = Before.of(CALLING[name], running) if name in CALLING else None
        event = instruction(running)
        if event is running:
            heir = to_address(operands[-1])
            self.note(note_codec.destroyed(message.depth + 1, running.pc - 1, message.address, heir, balance))
        elif event is None and before is not None:
            frame = unbegun(running, before)
            self.note(note_codec.begun(frame))
            self.note(note_codec.ended(frame.status, frame.gas - frame.gas_used, frame.failure))
        return event

    def begin(self, running: Running) -> None:
        """A frame that Python has made."""
        message, before = running.message, self._before
        kind, pc, delegate = FrameKind.CREATE if message.creates else FrameKind.CALL, None, None
        if message.depth and before is not None:
            kind, pc = before.kind, before.pc
        if running.context.rules.delegation and not message.creates:
            delegate = running.state.delegate_of(message.code_address)
        frame = Frame(
            kind,
            message.caller,
            message.address,
            message.code_address,
            message.value,
            message.gas,
            message.code if message.creates else message.data,
            message.depth,
            pc,
            message.static,
            delegate,
        )
        self.note(note_codec.begun(frame))
        self._halting.begin(message.depth, message.gas)

    def ending(self) -> None:
        """A frame that Python knows is about to end: its logs may be undone."""
        self.note(b"")
        self._logged = self._tables.shared.log_size

    def end(self, running: Running, *, ran: bool, failed: bool) -> None:
        """It has ended. `ran` says whether it had code, `failed` whether that halted."""
        shared = self._tables.shared
        mark, shared.noted_logs = shared.log_size, shared.log_size
        if mark < self._logged and shared.wants_logs:
            self.note(note_codec.undone(mark, self._tables.logs.read(mark, self._logged - mark)))
        depth = running.message.depth
        status, reason, pc = Status.SUCCESS, None, None
        if running.error is not None:
            status, reason = Status.HALT, running.error.reason
        elif running.reverted:
            status = Status.REVERT
        if ran and status is not Status.SUCCESS:
            pc = running.pc - 1 if failed else self._tables.views[depth].pc
        self.note(note_codec.ended(status, running.gas, reason, pc, running.output))
        if ran:
            self._halting.end(depth, running.gas)

    def goes_on(self, status: int) -> bool:
        """Native code has come back; whether it can go on, in the same frame or its caller, without Python's frames."""
        return self._halting.goes_on(status)
