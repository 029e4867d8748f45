"""Frames that halt while they are recorded: led to the instruction that really fails, and ended there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fusevm.chain.outcome import Status
from fusevm.evm.bytecode import instructions
from fusevm.evm.halts import HaltReason
from fusevm.evm.opcodes import BY_NAME, opcodes_of
from fusevm.native.host import note_codec
from fusevm.native.host.counting import JUMPI, Counting, Of, ScheduleMarks
from fusevm.native.host.diagnosis import section_of
from fusevm.native.host.exact import Cells, ExactCode
from fusevm.native.host.tables import NativeLimit
from fusevm.native.host.views import view_at
from fusevm.native.layout import STACK_ALIGN, WORD, NativeFrame
from fusevm.native.layout import Status as Native
from fusevm.native.runtime.notes import METER_SIZE, Meter
from fusevm.reference.instructions import table_of
from fusevm.schedule.build import Schedule, Unit
from fusevm.schedule.sections import Section

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

# Failures that leave no doubt about their reason. Of others, and of creations, the reference tier is asked.
CLEAR = {
    Native.INVALID_JUMP: HaltReason.INVALID_JUMP,
    Native.INVALID_OPCODE: HaltReason.INVALID_OPCODE,
    Native.OUT_OF_GAS: HaltReason.OUT_OF_GAS,
    Native.REFILL: HaltReason.OUT_OF_GAS,
}
HALTS = frozenset(
    (
        Native.REFILL,
        Native.OUT_OF_GAS,
        Native.STACK,
        Native.INVALID_JUMP,
        Native.INVALID_OPCODE,
        Native.STATIC_WRITE,
        Native.RETURNDATA,
    )
)
AT_SECTION = (Native.REFILL, Native.STACK)  # found before the instruction was paid for
HEADERS = ("SECTION", "GASSECTION")
_JUMPS = frozenset((BY_NAME["JUMP"].byte, JUMPI))
_CREATIONS = frozenset((BY_NAME["CREATE"].byte, BY_NAME["CREATE2"].byte))


def _nowhere(_code: bytes, _pc: int) -> int:
    return 0


class FailedInRegion(NativeLimit):
    """A region pays for its blocks, and for memory, before they need it: only a run without regions can tell what
    happened before it failed."""


class _Lead(NamedTuple):
    """From a place in a schedule to exact code."""

    ip: int
    gas: int  # that the section has charged from there on
    of: Of
    section: Section
    pc: int


class Halting:
    """Of one engine."""

    def __init__(self, engine: NativeEngine, counting: Counting, note: Callable[[bytes], None]) -> None:
        self._engine = engine
        self._tables = engine.tables
        self._counting = counting
        self._note = note
        self.exact = ExactCode()
        self._leads: dict[tuple[int, int, bool], _Lead] = {}  # by code, ip, and whether a section ran out of gas
        self._generation = -1  # of schedules, for which they are good
        self.meters = 0  # where they are; 0 where gas is not measured

    def goes_on(self, status: int) -> bool:
        """Whether native code can continue: in exact code, or with the caller of a frame that has halted."""
        depth = self._tables.depth()
        view = self._tables.views[depth]
        if status == Native.PROBE:  # exact code is not written further than this
            view.ip = self._exact((ctypes.string_at(view.code, view.code_size), self._engine.codes.fork), view.pc)
            return True
        if status not in HALTS or (status == Native.REFILL and view.reserve):
            return False
        if view.ip in self.exact:
            return self._halted(depth, view, status)
        if not view.ip:
            raise FailedInRegion(f"a region at depth {depth}")
        codes = self._engine.codes
        if self._generation != codes.generation:
            self._leads.clear()
            self._generation = codes.generation
        key = view.code, view.ip, status == Native.REFILL
        lead = self._leads.get(key)
        if lead is None:
            of = ctypes.string_at(view.code, view.code_size), codes.fork
            schedule, unit = self._engine.halts.place(of[0], view, 0 if status == Native.REFILL else 1)
            if unit is None:
                return False
            if unit.sequence == ("BADJUMP",):
                self._jumped_nowhere(of, depth, view, unit)
                return False
            lead = self._leads[key] = self._led_from(of, unit, schedule)
        self._follow(lead, depth, view)
        return True

    def forget(self) -> None:
        """Only between calls: other schedules are in use from now on."""
        self._leads.clear()
        self.exact.forget()

    def make_room(self) -> None:
        """Only between calls."""
        if self.exact.is_crowded:
            self.forget()

    def _led_from(self, of: Of, unit: Unit, schedule: Schedule) -> _Lead:
        first, section = unit.tokens[0], section_of(unit, schedule)
        gas = 0 if first.name in HEADERS else section.gas - _gas_before(of, section.pc, first.pc)
        return _Lead(self._exact(of, first.pc), gas, of, section, first.pc)

    def _exact(self, of: Of, pc: int) -> int:
        """Exact code from an instruction on."""
        marks = self._engine.codes.marks
        tally: Cells = _nowhere
        metered: Cells = _nowhere
        if marks is not None:
            counts = marks(of[1])
            assert isinstance(counts, ScheduleMarks)
            tally, metered = counts.exact, counts.meter
        return self.exact.place(*of, pc, self._engine.codes.handlers, tally, metered)

    def _follow(self, lead: _Lead, depth: int, view: NativeFrame) -> None:
        """The frame is as before the unit; it continues in exact code."""
        if self.meters and (meter := self._meter(depth)).place:
            self._counting.subtract(meter.place, view.gas + view.reserve)
            meter.place = 0
        if self._engine.codes.marks is not None:
            self._counting.stopped(lead.of, lead.section.pc, lead.section.steps, lead.pc)
        view.gas += lead.gas
        view.load_limit = max(view.memory_size - 31, 0)
        view.ip = lead.ip

    def _jumped_nowhere(self, of: Of, depth: int, view: NativeFrame, unit: Unit) -> None:
        if self._engine.codes.marks is None:
            return
        pc = next(each.pc for each in instructions(*of, unit.tokens[0].pc) if each.byte in _JUMPS)
        self._counting.jumped_nowhere(of, pc)
        self._take_rest(of, depth, view, pc, 0)

    def _take_rest(self, of: Of, depth: int, view: NativeFrame, pc: int, unpaid: int) -> None:
        """The instruction that halts a frame takes all its gas."""
        if self.meters and not self._meter(depth).place:
            self._counting.took(of, pc, view.gas + view.reserve - unpaid)

    def _halted(self, depth: int, view: NativeFrame, status: int) -> bool:
        """At an instruction of exact code. False: Python has to end the frame, or must be asked why it halted."""
        of, pc = (ctypes.string_at(view.code, view.code_size), self._engine.codes.fork), view.pc
        byte = of[0][pc] if pc < len(of[0]) else 0
        price = table_of(of[1])[byte].gas
        paid = status not in AT_SECTION
        self._take_rest(of, depth, view, pc, 0 if paid else price)
        reason = self._reason(of, view, status, byte, price)
        if reason is None or not depth or view.in_python:
            view.gas += price if paid else 0
            view.ip = 0  # the frame is as the instruction found it
            return False
        self._note(note_codec.ended(Status.HALT, 0, reason, pc))
        if self._engine.native.halt_noted(self._tables.address):
            raise self._engine.world.error or NativeLimit("a frame that halted cannot be ended natively")
        return True

    def _reason(self, of: Of, view: NativeFrame, status: int, byte: int, price: int) -> HaltReason | None:
        """Why, if that is clear."""
        op = opcodes_of(of[1])[byte]
        if op is None or op.variants or byte in _CREATIONS:
            return HaltReason.INVALID_OPCODE if op is None else None
        if status == Native.STACK:
            if (view.sp - view.sp % STACK_ALIGN) + WORD * op.pops > view.sp:
                return HaltReason.STACK_UNDERFLOW
            short = view.gas + view.reserve < price
            return HaltReason.OUT_OF_GAS if short else HaltReason.STACK_OVERFLOW
        return CLEAR.get(status)

    # -- gas

    def _meter(self, depth: int) -> Meter:
        return view_at(Meter, self.meters + depth * METER_SIZE)

    def begin(self, depth: int, gas: int) -> None:
        if self.meters:
            own = self._meter(depth)
            own.place, own.given = 0, gas

    def end(self, depth: int, left: int) -> None:
        """As `end_meter` in `runtime/notes.py`, for a frame that Python ends."""
        if not self.meters:
            return
        own = self._meter(depth)
        if own.place:
            self._counting.subtract(own.place, left)
            own.place = 0
        if depth and (caller := self._meter(depth - 1)).place:
            self._counting.subtract(caller.place, own.given - left)


def _gas_before(of: Of, start: int, pc: int) -> int:
    """What the instructions of a section before one of them cost."""
    gas = 0
    for each in instructions(*of, start):
        if each.pc >= pc:
            break
        gas += each.op.gas_at(of[1]) if each.op else 0
    return gas
