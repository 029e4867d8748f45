"""Recording natively: what native code notes, what Python adds to it, and frames that halt led to the very instruction.

Native code notes what it does in a buffer (`runtime/notes.py`). Frames that Python begins and ends, and all halts,
are noted here. The buffer's content is decoded when the recording is read.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.native.emit.build import STORAGE, noted_handlers
from fusevm.native.host import note_codec
from fusevm.native.host.arena import Arena
from fusevm.native.host.counting import Counting, ScheduleMarks
from fusevm.native.host.note_buffer import NoteBuffer
from fusevm.native.host.tables import DEPTH
from fusevm.native.runtime.notes import FEW_LOGS, METER_SIZE
from fusevm.reference.frame import Frame as Running
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions import Instruction
from fusevm.reference.instructions.environment import to_address
from fusevm.schedule.sections import TELLING
from fusevm.tracing.frames import FrameBefore, begun, unbegun
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.watching import RecordingWatcher

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

MUCH_GAS = 500_000_000  # less does not fill native tables
CALLING = {kind.value: kind for kind in note_codec.KINDS}
KECCAK = frozenset(("KECCAK256",))
NONE: frozenset[str] = frozenset()


def noted_opcodes(wanted: Wanted) -> frozenset[str]:
    return TELLING | (STORAGE if wanted.storage else NONE) | (KECCAK if wanted.keccak else NONE)


class Recorder:
    """What one engine records, for one recording after another."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine
        self._tables = tables = engine.tables
        self._handlers = engine.handlers
        self.buffer = NoteBuffer(tables)
        self.note = self.buffer.note
        self._meters = Arena(DEPTH * METER_SIZE)
        engine.callbacks.take_notes = self.buffer.make_room
        self._alone = False  # whether nothing is counted but the running call
        self._counting = Counting()
        self._halting = halting = engine.halting
        halting.note, halting.counting = self.note, self._counting
        self.recording: Recording | None = None
        self._wanted: Wanted | None = None
        self._known: weakref.WeakSet[Recording] = weakref.WeakSet()  # recordings that ask before they are read
        self._logged = 0  # bytes of logs before a frame ended
        self._before: FrameBefore | None = None  # the call that Python is doing

    @property
    def hooks(self) -> Hooks | None:
        """For a run on the reference tier, if one is needed."""
        return None if self.recording is None else Hooks(watcher=RecordingWatcher(self.recording))

    def around(self, execute: Executor, message: Message, state: State, context: Context) -> Outcome:
        """Runs, or ends, a call that `start` was told of."""
        try:
            outcome = execute(message, state, context)
        except BaseException:
            self.buffer.drop()
            raise
        self.finish()
        return outcome

    # -- a call from outside

    def start(self, recording: Recording, gas: int = 0) -> None:
        """Before a call: for which recording it is. Needed where that changes, or Python makes the first frame."""
        self._alone = gas > MUCH_GAS
        if self._alone:  # it may have to run elsewhere, and what it counted till then must not count
            self.flush()
        if recording is not self.recording:
            self._switch(recording)
        elif self._counting.is_crowded:
            self._wanted = None
            self._switch(recording)
        self.buffer.start()

    def _switch(self, recording: Recording) -> None:
        self.flush()
        recording.flush()  # another engine may have recorded what came before
        self.recording = None  # until all is ready for it: what is interrupted before begins again
        if recording.wanted != self._wanted:
            self._want(recording.wanted)
        if recording not in self._known:
            self._known.add(recording)
            recording.on_reading(partial(self._flush_for, recording))
        self.recording, self.buffer.keeps = recording, recording.wanted.calls

    def finish(self) -> None:
        """A call has ended: its notes are the recording's."""
        self.buffer.finish()
        self._alone = False

    def drop(self) -> None:
        """The call never was."""
        self.buffer.drop()

    def leave(self) -> Hooks | None:
        """The call runs on the reference tier, from the start: with these hooks."""
        if self._alone:
            self._counting.drop()
        self.buffer.drop()
        return self.hooks

    def flush(self) -> None:
        """Between two calls: notes and counts go to the recording, to be decoded lazily."""
        recording, batch = self.recording, self.buffer.taken()
        if recording is None:
            return
        if batch is not None and recording.wanted.calls:
            recording.add_later(note_codec.decoded, batch)
        if self._engine.codes.maker.marks is not None:
            recording.count_later(self._counting.taken())

    def _flush_for(self, recording: Recording) -> None:
        if recording is self.recording and not self._engine.busy:
            self.flush()
            self.recording = None  # which is released when there is no recording

    def _want(self, wanted: Wanted) -> None:
        """Other schedules from now on."""
        self._wanted = None  # until they are in use
        engine, shared = self._engine, self._tables.shared
        self._halting.forget()
        self._counting.forget()
        shared.wants_logs = wanted.logs
        shared.meters = self._meters.address if wanted.gas else 0
        self._halting.meters = shared.meters
        marks = partial(self._marks, gas=wanted.gas) if wanted.coverage or wanted.gas else None
        noted = noted_opcodes(wanted)
        handlers = noted_handlers(self._handlers, noted)
        engine.codes.record(handlers, marks, noted)
        self._wanted = wanted

    def _marks(self, fork: Fork, gas: bool) -> ScheduleMarks:
        return ScheduleMarks(self._counting, fork, gas=gas)

    @property
    def written(self) -> int:
        """Instructions of exact code."""
        return self._halting.exact.written

    # -- what Python does

    def done(self, running: Running, name: str, instruction: Instruction) -> Running | None:
        """Does an instruction that native code does not: a call, a creation or SELFDESTRUCT."""
        message, operands = running.message, list(running.stack)
        balance = running.state.account(message.address).balance
        before = None
        if name in CALLING:  # its static gas is paid already
            price = BY_NAME[name].gas_at(running.context.fork)
            before = FrameBefore.of(CALLING[name], running)._replace(gas=running.gas + price)
        self._before = before
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
        message = running.message
        self.note(note_codec.begun(begun(running, self._before if message.depth else None)))
        self._halting.begin(message.depth, message.gas)

    def ending(self) -> None:
        """A frame that Python knows is about to end: its logs may be undone."""
        self.note(b"")
        self._logged = self._tables.shared.log_size

    def end(self, running: Running, *, ran: bool, failed: bool) -> None:
        """It has ended. `ran` says whether it had code, `failed` whether that halted."""
        shared = self._tables.shared
        depth = running.message.depth
        mark, shared.noted_logs = shared.log_size, shared.log_size
        if not depth and mark <= FEW_LOGS:
            mark = 0
        if mark < self._logged and shared.wants_logs:
            self.note(note_codec.undone(mark, self._tables.logs.read(mark, self._logged - mark)))
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
