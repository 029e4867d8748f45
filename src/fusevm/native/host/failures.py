"""What a failure of native code means: an exceptional halt, why and where; or that the engine's limits are reached."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.state import State
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.native.host.codes import Codes
from fusevm.native.host.diagnosis import diagnose, diagnose_region, is_evident, read_off, unit_index
from fusevm.native.host.replay import ReplayState
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.world import NativeWorld
from fusevm.native.layout import NativeFrame, Status
from fusevm.reference.frame import Frame
from fusevm.schedule.build import Schedule, Unit

REASONS = {
    Status.OUT_OF_GAS: HaltReason.OUT_OF_GAS,
    Status.STACK: HaltReason.STACK_UNDERFLOW,
    Status.INVALID_JUMP: HaltReason.INVALID_JUMP,
    Status.INVALID_OPCODE: HaltReason.INVALID_OPCODE,
    Status.STATIC_WRITE: HaltReason.STATIC_WRITE,
    Status.RETURNDATA: HaltReason.RETURNDATA_OUT_OF_BOUNDS,
}


class Halts:
    """Explains failures of one engine's frames."""

    def __init__(self, tables: Tables, codes: Codes, world: NativeWorld) -> None:
        self._tables = tables
        self._codes = codes
        self._world = world
        self.everywhere = False  # whether halts of all frames are explained, not of the first alone
        self.unsure = False  # whether a failure could not be located
        self.watch: Callable[[int, NativeFrame], None] | None = None  # is shown what regions leave where they fail

    def halt(self, frame: Frame, view: NativeFrame, status: int) -> BaseException:
        """What to raise for a status native code failed with."""
        if self._world.error is not None:
            return self._world.error
        if status in REASONS:
            if self.watch is not None and not view.ip:
                self.watch(frame.message.depth, view)
            return self.explained(frame, view, 1, ExceptionalHalt(REASONS[status]))
        return NativeLimit(f"over one of the native engine's limits: {self._tables.caps}")

    def explained(self, frame: Frame, view: NativeFrame, words_before: int, halt: ExceptionalHalt) -> ExceptionalHalt:
        """The halt of a call's first frame, with reason and place; of others only recordings show them."""
        if frame.message.depth and not self.everywhere:
            return halt
        if not view.ip:
            return self._replayed(frame, lambda state: diagnose_region(frame, view, halt, state))
        schedule, unit = self.place(frame.message.code, view, words_before)
        if unit is None:
            return halt
        if schedule.copies and unit.at >= schedule.copies:  # in a fused loop, or at a jump to nowhere
            self.unsure = True  # gas may have been taken in bulk: only a run without that can tell where it ended
            return halt
        if is_evident(frame, unit):
            return read_off(frame, view, unit, halt)
        return self._replayed(frame, lambda state: diagnose(frame, view, unit, schedule, halt, state))

    def _replayed(self, frame: Frame, tell: Callable[[State], ExceptionalHalt]) -> ExceptionalHalt:
        state = frame.state
        self._world.learn()
        mark, ledger = state.mark(), state.ledger
        state.ledger = None  # what the replay does is undone by the state's own journal
        try:
            return tell(ReplayState(state, self._world.slot_at))
        finally:
            state.revert(mark)
            state.ledger = ledger

    def place(self, code: bytes, view: NativeFrame, words_before: int) -> tuple[Schedule, Unit | None]:
        """The schedule of a frame that returned to Python, and the unit `words_before` words before its ip."""
        at = (view.ip - view.schedule) // 8 - words_before
        schedule = self._codes.schedule_with(code, view.jumps)
        if schedule.twin and at >= schedule.twin:
            at -= schedule.twin
        units = self._codes.units(schedule, at)
        index = unit_index(units, at)
        return schedule, units[index] if index < len(units) and units[index].at == at else None
