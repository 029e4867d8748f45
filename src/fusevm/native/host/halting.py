"""Frames that halt: led to the instruction that really fails, in exact code, and ended there.

Native code finds that a block must fail before anything in it is done, and a region fails at an anchor, from which all
can be repeated. Either way the frame is as some instruction found it. It continues in exact code from there: for a
recording any frame, otherwise the first, whose reason and place a call's result shows.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from fusevm.chain.outcome import Status
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.opcodes import BY_NAME, opcodes_of
from fusevm.native.host import note_codec
from fusevm.native.host.counting import Counting, Of
from fusevm.native.host.exact import ExactCode
from fusevm.native.host.poison import UseAfterFree
from fusevm.native.host.replay import done_again
from fusevm.native.host.tables import NativeLimit
from fusevm.native.host.views import view_at
from fusevm.native.layout import STACK_ALIGN, WORD, NativeFrame
from fusevm.native.layout import Status as Native
from fusevm.native.runtime.notes import METER_SIZE, Meter
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import table_of
from fusevm.schedule.build import ScheduleUnit
from fusevm.schedule.sections import Section

if TYPE_CHECKING:
    from fusevm.native.host.engine import NativeEngine

REASONS = {
    Native.REFILL: HaltReason.OUT_OF_GAS,
    Native.OUT_OF_GAS: HaltReason.OUT_OF_GAS,
    Native.STACK: HaltReason.STACK_UNDERFLOW,
    Native.INVALID_JUMP: HaltReason.INVALID_JUMP,
    Native.INVALID_OPCODE: HaltReason.INVALID_OPCODE,
    Native.STATIC_WRITE: HaltReason.STATIC_WRITE,
    Native.RETURNDATA: HaltReason.RETURNDATA_OUT_OF_BOUNDS,
}
# Failures that leave no doubt about their reason. Of others, and of creations, the reference tier is asked.
CLEAR = frozenset((Native.INVALID_JUMP, Native.INVALID_OPCODE, Native.OUT_OF_GAS, Native.REFILL))
AT_SECTION = (Native.REFILL, Native.STACK)  # found before the instruction was paid for
HEADERS = ("SECTION", "GASSECTION")
_CREATIONS = frozenset((BY_NAME["CREATE"].byte, BY_NAME["CREATE2"].byte))
_TRUE = (1).to_bytes(WORD, "little")


class _Lead(NamedTuple):
    """From a place in a schedule to exact code."""

    ip: int
    gas: int  # that the section has charged from there on
    of: Of
    section: Section
    pc: int
    restores: bool  # whether the condition of a JUMPI was popped


class Halting:
    """Of one engine."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine
        self._tables = engine.tables
        self.exact = ExactCode(engine.tables.exact)
        self._leads: dict[tuple[int, int, bool], _Lead] = {}  # by code, ip, and whether a section ran out of gas
        self._generation = -1  # of schedules, for which they are good
        self._calls = -1  # before the last one that failed
        self.watch: Callable[[int, NativeFrame], None] | None = None  # is shown what regions leave where they fail
        # of a recording
        self.note: Callable[[bytes], None] | None = None
        self.counting: Counting | None = None
        self.meters = 0  # where they are; 0 where gas is not measured

    def goes_on(self, status: int) -> bool:
        """Whether native code can continue: in exact code, or with the caller of a frame that has halted."""
        depth = self._tables.depth()
        view = self._tables.views[depth]
        if status == Native.PROBE and view.ip in self.exact:  # it is not written further than this
            self._engine.world.look_at_clock()
            view.ip = self._exact(self._of(depth, view), view.pc)
            return True
        if status not in REASONS or (status == Native.REFILL and view.reserve):
            return False
        if view.ip in self.exact:
            return self._halted(depth, view, status)
        if not view.ip and self.watch is not None:
            self._engine.materialise(depth)
            self.watch(depth, view)
        if depth and self.note is None:
            return False
        if self._calls != self._engine.world.calls:
            self._calls = self._engine.world.calls
            if self.exact.is_crowded:
                self.forget()
        if not view.ip:  # a region
            self._continue(view, self._exact(self._of(depth, view), view.pc))
            return True
        lead = self._lead(depth, view, status)
        if lead is None:
            return False
        self._follow(lead, depth, view)
        return True

    def forget(self) -> None:
        """Only between calls: other schedules are in use from now on."""
        self._leads.clear()
        self.exact.forget()

    def _of(self, depth: int, view: NativeFrame) -> Of:
        message, fork = self._engine.message, self._engine.codes.fork
        return (ctypes.string_at(view.code, view.code_size) if depth else message.code), fork

    def _lead(self, depth: int, view: NativeFrame, status: int) -> _Lead | None:
        codes = self._engine.codes
        if self._generation != codes.generation:
            self._leads.clear()
            self._generation = codes.generation
        key = view.code, view.ip, status == Native.REFILL
        lead = self._leads.get(key)
        if lead is None:
            of = self._of(depth, view)
            units, index = self._units(of[0], view, 0 if status == Native.REFILL else 1)
            if index < len(units):
                lead = self._leads[key] = self._led_from(of, units[index], section_of(units, index))
        return lead

    def _units(self, code: bytes, view: NativeFrame, words_before: int) -> tuple[list[ScheduleUnit], int]:
        """The units of a frame's schedule, and which one is `words_before` words before its ip; their number: none."""
        at, codes = (view.ip - view.schedule) // 8 - words_before, self._engine.codes
        schedule = codes.schedule_with(code, view.jumps)
        if schedule.twin and at >= schedule.twin:
            at -= schedule.twin
        units = codes.units(schedule, at)
        index = bisect_left(units, at, key=attrgetter("at"))  # there may be ten thousand, in order
        return units, index if index < len(units) and units[index].at == at else len(units)

    def _led_from(self, of: Of, unit: ScheduleUnit, section: Section) -> _Lead:
        first = unit.tokens[0]
        gas = 0 if first.name in HEADERS else section.gas - _gas_before(of, section.pc, first.pc)
        restores = unit.sequence == ("BADJUMP",) and first.name != "JUMP@"
        return _Lead(self._exact(of, first.pc), gas, of, section, first.pc, restores)

    def _exact(self, of: Of, pc: int) -> int:
        """Exact code from an instruction on."""
        maker = self._engine.codes.maker
        marks = None if maker.marks is None else maker.marks(of[1])
        return self.exact.place(*of, pc, maker.handlers, marks)

    def _follow(self, lead: _Lead, depth: int, view: NativeFrame) -> None:
        """The frame is as before the unit; it continues in exact code."""
        if self.counting is not None:
            if self.meters and (meter := self._meter(depth)).place:
                self.counting.subtract(meter.place, view.gas + view.reserve)
                meter.place = 0
            if self._engine.codes.maker.marks is not None:
                self.counting.stopped(lead.of, lead.section.pc, lead.section.steps, lead.pc)
        if lead.restores:
            ctypes.memmove(view.sp, _TRUE, WORD)
            view.sp += WORD
        view.gas += lead.gas
        self._continue(view, lead.ip)

    def _continue(self, view: NativeFrame, ip: int) -> None:
        view.load_limit = max(view.memory_size - 31, 0)
        view.ip = ip

    def _halted(self, depth: int, view: NativeFrame, status: int) -> bool:
        """At an instruction of exact code. False: Python has to end the frame, or must be asked why it halted."""
        of, pc = self._of(depth, view), view.pc
        byte = of[0][pc] if pc < len(of[0]) else 0
        price = table_of(of[1])[byte].gas
        paid = status not in AT_SECTION
        if self.counting is not None and self.meters and not self._meter(depth).place:  # it takes all the gas there is
            self.counting.took(of, pc, view.gas + view.reserve - (0 if paid else price))
        reason = self._reason(of, view, status, byte, price)
        if self.note is None or reason is None or not depth or view.in_python:
            if paid and status != Native.INVALID_OPCODE:  # what is not an instruction has no price
                view.gas += price
            view.ip = 0  # the frame is as the instruction found it
            return False
        self.note(note_codec.ended(Status.HALT, 0, reason, pc))
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
        return REASONS[status] if status in CLEAR else None

    # -- frames that Python ends

    def halt(self, frame: Frame, view: NativeFrame, status: int) -> BaseException:
        """What to raise for a status native code failed with."""
        world = self._engine.world
        if world.error is not None:
            return world.error
        if status == Native.PROBE:
            return UseAfterFree("native code entered a schedule that was freed")
        if status not in REASONS:
            return NativeLimit(f"over one of the native engine's limits: {self._tables.caps}")
        halt = ExceptionalHalt(REASONS[status])
        if view.ip or (frame.message.depth and self.note is None):  # of callees only recordings show it
            return halt
        world.learn()
        return done_again(frame, view, halt, world.slot_at)

    def pc_at_end(self, code: bytes, view: NativeFrame) -> int:
        """Of a frame that has returned: after its last instruction."""
        if view.ip in self.exact:
            return view.pc + 1
        units, index = self._units(code, view, 1)
        return units[index].tokens[-1].pc + 1 if index < len(units) else 0

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
        assert self.counting is not None
        own = self._meter(depth)
        if own.place:
            self.counting.subtract(own.place, left)
            own.place = 0
        if depth and (caller := self._meter(depth - 1)).place:
            self.counting.subtract(caller.place, own.given - left)


def section_of(units: list[ScheduleUnit], index: int) -> Section:
    """The section that a unit is in. A bad jump's own place is after all sections."""
    pc = units[index].tokens[0].pc
    while (section := units[index].section) is None or section.pc > pc:
        index -= 1
    return section


def _gas_before(of: Of, start: int, pc: int) -> int:
    """What the instructions of a section before one of them cost. There may be ten thousand."""
    (code, fork), gas = of, 0
    prices, opcodes = [entry.gas for entry in table_of(fork)], opcodes_of(fork)
    sizes = [1 if op is None else 1 + op.immediate for op in opcodes]
    while start < pc:
        gas += prices[code[start]]
        start += sizes[code[start]]
    return gas
