"""Running messages on native code: frames on a trampoline, Python for everything that native code does not implement.

Native code runs a frame until it ends, needs Python for an instruction (SYNC), or has used up its slice of gas. An
instruction executed by Python is the reference tier's own, on a frame whose memory is the native one; so the two tiers
cannot differ in what they share.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.opcodes import BY_BYTE
from fusevm.native.emit.build import library
from fusevm.native.host.callbacks import Callbacks
from fusevm.native.host.carryover import TransactionCarryover, read_carryover
from fusevm.native.host.choice import NEW_SIZE, TierChoice
from fusevm.native.host.code_cache import CodeCache
from fusevm.native.host.environment import write_environment
from fusevm.native.host.halting import Halting
from fusevm.native.host.handover import resume_natively
from fusevm.native.host.logs import NativeLogs
from fusevm.native.host.memory import NativeMemory
from fusevm.native.host.precompiles import execute_without_code, run_precompile
from fusevm.native.host.recorder import Recorder
from fusevm.native.host.settings import PREPARED, Setting
from fusevm.native.host.tables import CHANGE_SIZE, FRAME_SIZE, Caps, NativeLimit, tables_that_fit
from fusevm.native.host.views import packed, packed_whole
from fusevm.native.host.warm_tables import WarmTables
from fusevm.native.host.world import NativeWorld
from fusevm.native.host.writeback import PendingStorage
from fusevm.native.layout import HELD, WORD, Call, Engine, NativeFrame
from fusevm.native.layout import Status as Native
from fusevm.native.runtime.notes import FEW_LOGS
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import INSTRUCTIONS
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.reference.trampoline import begin, end, outcome_of, resume
from fusevm.schedule.build import Handlers, address_of

if TYPE_CHECKING:
    from fusevm.native.host.all_regions import Regions
    from fusevm.tracing.recording import Recording

SHORT_SLICE = 2_000_000  # while blocks are counted
REPORTED_AFTER = 1e-4  # seconds of calls that are reported together
SLICE = 10_000_000  # gas between two checks of the clock and of signals: 0.05 s for the slowest of instructions

Probe = Callable[[int, NativeFrame], None]  # depth and native frame

_REVERT = Native.REVERT
_SUCCESS, _REVERTED = Status.SUCCESS, Status.REVERT
_ZERO = bytes(WORD)
GIVEN = packed_whole(
    Call, "engine rest gas reserve data_size account static blank fresh keep address caller origin value"
)  # fmt: skip
ENDED = packed(Engine, "gas_left output_offset output_size change_count log_size refund dirty_count heavy")
_FRAME_HEAD = packed(NativeFrame, "gas reserve data data_size account static blank address caller value")


class NativeEngine:
    """One thread's arenas, tables and schedules."""

    def __init__(
        self, setting: Setting = PREPARED, *, caps: Caps | None = None, regions: Regions | None = None
    ) -> None:
        """`regions`: how they are compiled before code runs, where not all are."""
        if setting.regions and regions is None:
            from fusevm.native.host.all_regions import Regions

            regions = Regions()
        self.native = native = library()
        self.tables = tables = tables_that_fit(caps or Caps(), native.enter)
        self.codes = CodeCache(tables, native, setting, regions)
        self.world = NativeWorld(tables, native)
        self.callbacks = Callbacks(self.world, tables, self.codes)  # held while native code may ask
        self.codes.has_time_limit = lambda: self.world.context.deadline is not None
        self.halting = Halting(self)
        self.choice = TierChoice(go_on=partial(resume_natively, self))
        self.warm = WarmTables(tables, native, self.codes, self.world, on=not setting.compared)
        self.probe: Probe | None = None  # called at every section's start, if there are probes
        self.reruns = 0  # calls that ran from the start elsewhere, because this engine could not hold what they need
        self.frames: list[Frame] = []  # those Python knows, by depth
        self.serials: list[int] = []
        self.message: Message
        self.context: Context | None = None
        self.call, self.run = native.call, native.run
        self.recorder: Recorder | None = None
        if setting.recorded:
            self.call, self.run = native.call_noted, native.run_noted
            self.recorder = Recorder(self)
        self.parts = self.warm, self.codes, self.world, tables, tables.engine, self.call
        self._timed, self._started = -1, 0.0  # the call that is timed, and since when
        self._looked = self._noted = 0.0  # when its time was last reported, and how much of it
        self._unreported = 0.0  # seconds of calls that the policy of tiers does not know yet
        self._described: object = None
        self.block_version = -1
        self.spare: NativeEngine | None = None  # for calls made while this one runs, as a provider of block hashes may

    @property
    def busy(self) -> bool:
        return self.world.busy

    @property
    def handlers(self) -> Handlers:
        return self.codes.maker.handlers

    # -- a call from outside

    def execute(
        self, message: Message, state: State, context: Context, status: int | None = None, started: float = 0.0
    ) -> Outcome:
        """Runs a message; on the reference tier, from the start, where native code cannot hold what it needs.

        Native code may have begun to run it, and returned a status.
        """
        started, codes, call = started or time.perf_counter(), self.codes, self.world.calls
        try:
            outcome = self._executed(message, state, context, status)
        finally:
            if codes.tiered and codes.in_use:  # what runs plainly must know for how long
                codes.tally()
        if codes.hot_code.policy is not None:
            seconds = time.perf_counter() - started
            noted = self._noted if self._timed >= call else 0.0
            self.report(message.code, message.data, seconds, message.gas - outcome.gas_left, noted)
        if outcome.created is not None and len(outcome.output) > NEW_SIZE and not context.carries:
            codes.expect(outcome.output)
            self.warm.expect(outcome.created, state, context)
        return outcome

    def _executed(self, message: Message, state: State, context: Context, status: int | None) -> Outcome:
        if not message.code:
            return self._execute_without_code(message, state, context)
        if state.pending is not None:
            state.settle()
        entries = len(state.journal)
        try:
            if context is not self.context or context.block.version != self.block_version:
                self.bind(context)
            if message.code_address in self.world.precompiles and message.runs_precompile:
                return self._execute_without_code(message, state, context)
            if not message.value or message.creates:
                return self._execute_code(message, state, context, status)
            mark = state.mark()
            state.transfer(message.caller, message.address, message.value)
            outcome = self._execute_code(message, state, context, None)
            if outcome.status is not _SUCCESS:
                state.revert(mark)
            return outcome
        except NativeLimit:
            self.reruns += 1
            self.codes.needs_sweep = True
            state.undo_to_length(entries)
            hooks = None if self.recorder is None else self.recorder.leave()
            return execute_reference(message, state, context, hooks)

    def record(self, recording: Recording, message: Message, state: State, context: Context) -> Outcome:
        """Runs a message on an engine that records."""
        recorder = self.recorder
        assert recorder is not None
        recorder.start(recording, message.gas)
        return recorder.around(self.execute, message, state, context)

    def report(
        self, code: bytes, data: bytes, seconds: float, gas: int, noted: float = 0.0, earlier: float = 0.0
    ) -> None:
        """Tells the policy of tiers of a call (`TierPolicy.worked`): of short ones, the last says what they were."""
        policy = self.codes.hot_code.policy
        self._unreported += earlier
        if policy and (self._unreported + seconds >= REPORTED_AFTER or policy.window or policy.trial):
            earlier, self._unreported = self._unreported, 0.0
            self.codes.hot_code.worked((code, data[:4]), seconds, gas, noted, earlier)
        else:
            self._unreported += seconds - noted

    def _execute_code(self, message: Message, state: State, context: Context, status: int | None) -> Outcome:
        world, warm, keeps = self.world, self.warm, False
        carries, left = context.carries, None
        self.message = message
        self.frames.clear()
        self.serials.clear()
        try:
            if carries:
                self.tables.shared.carries = bool(state.transient)
            if status is None:
                keeps = not (message.creates or carries)
                keeps = keeps and warm.holds_for(state, context, message.caller, message.address)
                good = keeps and state is warm.state and state.version == warm.version and not self.codes.needs_sweep
                fresh = not good and warm.begin(state, good=keeps)
                warm.state = None  # until the call has ended well
                world.prepare(state)
                world.busy = True
            world.take_over(state)
            if message.creates:
                self.native.forget_all(self.tables.address)
                self.tables.shared.origin = int.from_bytes(context.origin, "big")
                outcome = self.drive(Frame(message, state, context), None)
            else:  # Python makes a frame of its own only if it is needed
                if status is None:
                    status = self._call(message, state, context, fresh)
                if status <= _REVERT:
                    if carries and status != _REVERT:
                        left = read_carryover(self.tables, world)
                        self.native.commit(self.tables.address)
                    gas_left, offset, size, *changes = ENDED.unpack_from(self.tables.engine)
                    output = self.tables.memory.read(offset, size) if size else b""
                    accounts, heavy = changes[-2:]
                    keeps = keeps and not (accounts or heavy or world.changed)
                    self._write_back(state, *changes)
                    if keeps:
                        warm.keep(state)
                    return Outcome(_REVERTED if status == _REVERT else _SUCCESS, gas_left, output)
                outcome = self.drive(None, status)
            left = self.leave(state, outcome, carries=carries)
            return outcome
        finally:
            world.end(state)
            if carries:
                self.tables.shared.carries = 0
            if left is not None:
                left.apply(state)

    def leave(self, state: State, outcome: Outcome, *, carries: bool) -> TransactionCarryover | None:
        """A message has ended: its changes are the state's, and what the transaction carries on is returned."""
        left = None
        if outcome.status is _SUCCESS:
            if carries:
                left = read_carryover(self.tables, self.world)
            self.native.commit(self.tables.address)
        self._write_back(state, *ENDED.unpack_from(self.tables.engine)[3:])
        return left

    def _call(self, message: Message, state: State, context: Context, fresh: bool) -> int:
        gas, data, code, address = message.gas, message.data, message.code, message.address
        now = gas if gas < SLICE else SLICE
        blank = self.world.is_blank(state.account(address))
        value = message.value.to_bytes(WORD, "little") if message.value else _ZERO
        keep = HELD if context.carries else 1
        rest = self.codes.first_frame(code)
        given = GIVEN.pack(
            self.tables.address, address_of(rest), now, gas - now, len(data), self.world.number(address),
            message.static, blank, fresh, keep, address, message.caller, context.origin, value,
        )  # fmt: skip
        if self.recorder is not None and context.rules.delegation:
            delegate = state.delegate_of(address)
            if delegate is not None:
                self.tables.shared.first_delegate = int.from_bytes(delegate, "big")
                status = self.call(given, data)
                self.tables.shared.first_delegate = 0
                return status
        return self.call(given, data)

    def bind(self, context: Context) -> None:
        """Tells native code about the block and the transaction, unless it knows already."""
        block = context.block
        described = (
            block.version, context.fork, context.gas_price, context.blob_hashes, context.memory_limit, context.rules
        )  # fmt: skip
        if described != self._described:
            self._described = self.context = None  # until native code has all of it
            self._describe(context)
            self._described = described
        if self.world.precompiles is not context.precompiles:
            self.warm.drop()
        self.world.bind(context)
        self.context, self.block_version = context, block.version

    def _describe(self, context: Context) -> None:
        self.codes.bind(context.fork)
        shared = self.tables.shared
        self.tables.limit_memory(context.memory_limit)
        write_environment(self.tables, context)
        hashes = [each[::-1].ljust(WORD, b"\0") for each in context.blob_hashes]
        self._blob_hashes = b"".join(hashes)  # held while native code reads it
        shared.blob_hashes, shared.blob_count = address_of(self._blob_hashes), len(context.blob_hashes)

    def _write_back(self, state: State, changes: int, logs: int, refund: int, accounts: int, heavy: int) -> None:
        """Leaves what changed natively to the state: storage, logs, refund, accounts."""
        if changes:
            state.remake()
            state.pending = PendingStorage(self.changed_slots(changes), self.warm, ends_transaction=False)
        if refund:
            state.add_refund(refund - (1 << 64) if refund >> 63 else refund)
        if logs:
            raw = self.tables.logs.read(0, logs)
            state.add_logs(NativeLogs(raw))
            if self.recorder is not None and logs > FEW_LOGS:
                self.recorder.buffer.keep_logs(raw)
        if accounts or self.world.changed:
            self.world.settle()
        if heavy:
            self.native.forget_all(self.tables.address)
            self.tables.give_back()

    def changed_slots(self, count: int) -> list[bytes]:
        """The changed slots that are ready, and those left to commit."""
        tables, shared = self.tables, self.tables.shared
        found = [tables.changes.read(0, count * CHANGE_SIZE)]
        while shared.committed < shared.journal_count:
            self.native.commit(tables.address)
            found.append(tables.changes.read(0, shared.change_count * CHANGE_SIZE))
        return found

    # -- frames

    def drive(self, entering: Frame | None, status: int | None, base: int = 0) -> Outcome:
        """The reference tier's trampoline, with native code running the frames, and making some itself.

        Starts with a frame to enter, or with the status that native code has just returned, if any; ends with the
        frame at depth `base`.
        """
        frames, recorder = self.frames, self.recorder
        while True:
            entered = entering is None
            if entering is not None:
                frame, entering = entering, None
                frames.append(frame)
                self.serials.append(0)
                if recorder is not None:
                    recorder.begin(frame)
                if not begin(frame, run_precompile):
                    self._enter(frame)
                    continue
            else:
                try:
                    event = self._run(status)
                except ExceptionalHalt as halt:
                    event = frames[-1]
                    event.halt(halt)
                status = None
                if event is not frames[-1]:
                    entering = event
                    continue
                frame = event
            frames.pop()
            self.serials.pop()
            failed = frame.error is not None
            if recorder is not None:
                recorder.ending()
            end(frame)
            if recorder is not None:
                recorder.end(frame, ran=entered, failed=failed)
            self.world.learn()
            if frame.error is not None and not failed and not frames:  # its code cannot be kept
                frame.pc = self.halting.pc_at_end(frame.message.code, self.tables.views[0])
            self.tables.shared.epoch += 1
            if len(frames) == base:
                return outcome_of(frame)
            resume(frames[-1], frame)
            self.give_back(frames[-1], returned=True)

    def _run(self, status: int | None) -> Frame:
        """Runs until a frame Python knows ends (it is returned) or calls (the callee's frame is)."""
        run, address = self.run, self.tables.address
        while True:
            if status is None:
                status = run(address)
            if status > Native.SYNC and self.halting.goes_on(status):
                status = None
                continue
            depth = self.tables.depth()
            view = self.tables.views[depth]
            if depth + 1 != len(self.frames) or view.serial != self.serials[depth]:
                self.materialise(depth)
            frame = self.frames[depth]
            if status == Native.SYNC:
                event = self._sync(frame, view)
                if event is not None:
                    return event
            elif status == Native.REFILL:
                self._refill(frame, view)
            elif status == Native.PROBE and self.probe is not None:
                self.probe(depth, view)
            elif status <= Native.REVERT:
                frame.gas = view.gas + view.reserve
                frame.reverted = status == Native.REVERT
                if status != Native.STOP and view.output_size:
                    offset = view.output_offset
                    frame.output = frame.read(offset, view.output_size)
                return frame
            else:
                raise self.halting.halt(frame, view, status)
            status = None

    def _enter(self, frame: Frame) -> None:
        """Makes the native frame of one that Python began."""
        message, tables = frame.message, self.tables
        depth, shared = message.depth, tables.shared
        start = 0
        if depth:
            parent = tables.views[depth - 1]
            parent.zeroed = 0  # the new frame writes there
            start = parent.memory + parent.memory_size - tables.memory.address
        frame.memory = NativeMemory(tables.memory, start, tables.views[depth])  # type: ignore[assignment]
        shared.serial = self.serials[depth] = shared.serial + 1
        marks = shared.journal_count, shared.log_size, shared.refund
        schedule = self.codes.schedule(message.code, on_disk=not message.creates)
        rest = self.codes.records.frame_rest(schedule, schedule.entry, depth, start, marks, shared.serial)
        tables.frames.write(depth * FRAME_SIZE, self.frame_head(message) + rest)
        shared.frame = tables.frames.address + depth * FRAME_SIZE
        self.world.undo_to(*marks)
        shared.epoch += 1

    def frame_head(self, message: Message) -> bytes:
        """A frame's fields before `ip`."""
        gas, data, now = message.gas, message.data, min(message.gas, SLICE)
        blank = self.world.is_blank(self.world.state.account(message.address))
        return _FRAME_HEAD.pack(
            now, gas - now, address_of(data) if data else 0, len(data), self.world.number(message.address),
            message.static, blank, message.address[::-1], message.caller[::-1], message.value.to_bytes(WORD, "little"),
        )  # fmt: skip

    def materialise(self, depth: int) -> None:
        """Brings the frames Python knows up to date with those native code began and ended."""
        self.world.learn()
        frames, serials, views = self.frames, self.serials, self.tables.views
        known = 0
        while known < min(len(frames), depth + 1) and serials[known] == views[known].serial:
            known += 1
        del frames[known:], serials[known:]
        for at in range(known, depth + 1):
            view = views[at]
            message = self._message_of(view) if at else self.message
            frame = Frame(message, self.world.state, self.world.context)
            frame.memory = NativeMemory(self.tables.memory, view.memory - self.tables.memory.address, view)  # type: ignore[assignment]
            frame.mark = self.world.state.mark()
            marks = view.journal_mark, view.log_mark, view.refund_mark
            self.world.undo_to(*marks)
            view.in_python = 1
            frames.append(frame)
            serials.append(view.serial)
        for at in range(max(known - 1, 0), depth):  # these are in calls that native code began
            frame, view = frames[at], views[at]
            frame.gas = view.gas + view.reserve
            frame.stack = []
            frame.return_range = (view.call_offset, view.call_size)

    def _message_of(self, view: NativeFrame) -> Message:
        """The message of a frame that native code began."""
        return Message(
            caller=view.caller.to_bytes(20, "big"),
            address=view.address.to_bytes(20, "big"),
            code=ctypes.string_at(view.code, view.code_size),
            data=ctypes.string_at(view.data, view.data_size),
            value=view.value,
            depth=view.depth,
            static=bool(view.static),
            creates=bool(view.creates),
            code_address=self.world.addresses[view.code_account],
        )

    def _sync(self, frame: Frame, view: NativeFrame) -> Frame | None:
        """Does one instruction in Python, on the native stack and memory."""
        op = BY_BYTE[frame.code[view.pc]]
        frame.pc = view.pc + 1
        frame.gas = view.gas + view.reserve
        view.sp -= WORD * op.pops
        raw = ctypes.string_at(view.sp, WORD * op.pops)
        frame.stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
        self.world.look_at_clock()
        self.world.learn()
        if self.recorder is None:
            event = INSTRUCTIONS[op.name](frame)
        else:
            event = self.recorder.done(frame, op.name, INSTRUCTIONS[op.name])
        self.tables.shared.epoch += 1
        if event is None:
            self.give_back(frame, returned=op.calls)
        return event

    def give_back(self, frame: Frame, *, returned: bool) -> None:
        """Copies Python's results to native code: stack, gas, return data."""
        depth = frame.message.depth
        view = self.tables.views[depth]
        if frame.stack:
            raw = b"".join([word.to_bytes(WORD, "little") for word in frame.stack])
            ctypes.memmove(view.sp, raw, len(raw))
            view.sp += len(raw)
            frame.stack = []
        now = min(frame.gas, SLICE)
        view.gas, view.reserve = now, frame.gas - now
        if returned:
            view.returned, view.returned_size = address_of(frame.returndata), len(frame.returndata)
        self.tables.shared.frame = self.tables.frames.address + depth * FRAME_SIZE

    def _refill(self, frame: Frame, view: NativeFrame) -> None:
        """Grants the next slice of gas, and checks the clock."""
        if not view.reserve:
            raise self.halting.halt(frame, view, Native.REFILL)
        self.world.look_at_clock()
        more = min(view.reserve, SHORT_SLICE if self.codes.hot_code.is_counting else SLICE)
        view.gas += more
        view.reserve -= more
        if self.codes.tiered:
            self._go_faster(frame.message, view)

    def _execute_without_code(self, message: Message, state: State, context: Context) -> Outcome:
        if self.recorder is not None:
            return execute_reference(message, state, context, self.recorder.hooks)
        return execute_without_code(message, state, context)

    def _go_faster(self, message: Message, view: NativeFrame) -> None:
        """Switches code that runs long on a plain schedule to a better one, if possible."""
        now = time.perf_counter()
        if self._timed != self.world.calls:
            self._timed, self._started = self.world.calls, now
            self._looked, self._noted = now, 0.0
        at = (view.ip - view.schedule) // 8
        better = None
        if self.codes.is_worth_fusing(message.code, now - self._started):
            better = self.codes.prepared(message.code, view.jumps, at, on_disk=not message.creates)
        if better is None and not message.creates:
            better = self.codes.hotter(message.code, view.jumps, at, now - self._looked)
            self._noted += now - self._looked
        self._looked = now
        if better is not None:
            view.schedule, view.jumps, view.ip = better
