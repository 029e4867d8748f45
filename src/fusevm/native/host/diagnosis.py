"""Why a frame halted: native code only knows that it did, so the last few instructions are replayed.

A handler that fails leaves its entry state in the frame. The reference tier runs on from there and says which
instruction failed, and why. Nothing between two handlers is longer than one section, so this is quick.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from operator import attrgetter

from fusevm.chain.state import State
from fusevm.evm.bytecode import instructions
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.opcodes import opcodes_of
from fusevm.native.host.precompiles import run_precompile
from fusevm.native.layout import STACK_ALIGN, WORD, NativeFrame
from fusevm.reference.brief import drive_briefly
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import Entry, refuse, table_of
from fusevm.reference.interpreter import run
from fusevm.reference.trampoline import resume
from fusevm.schedule.build import Schedule, Unit
from fusevm.schedule.sections import Section

PLENTY = 1 << 64  # of gas
EVIDENT = frozenset({("INVALID",), ("JUMP",), ("JUMPI",)})  # handlers that fail for no reason but their own
MOST_JUMPS = 20_000  # of a call that is replayed, and of its own calls; past that, only the stack's height is checked


def diagnose(
    frame: Frame, view: NativeFrame, unit: Unit, schedule: Schedule, halt: ExceptionalHalt, state: State
) -> ExceptionalHalt:
    """The halt as the reference tier reports it; sets the frame's pc. The caller undoes changes of the state.

    The unit is the handler that failed; state, stack and memory are as it found them.
    """
    frame.pc = unit.tokens[0].pc + 1
    twin = _twin(frame, view, unit.tokens[0].pc, state)
    if unit.sequence == ("BADJUMP",):  # all is paid for, hops as well: replay from where the target was pushed
        twin.gas = PLENTY
        if unit.tokens[0].name != "JUMP@":
            twin.stack.append(1)  # a condition that held
    elif unit.tokens[0].name not in ("SECTION", "GASSECTION"):  # the section's gas was taken: give back what is ahead
        twin.gas += _gas_ahead(frame, unit, schedule)
    return _replayed(frame, twin, halt)


def diagnose_region(frame: Frame, view: NativeFrame, halt: ExceptionalHalt, state: State) -> ExceptionalHalt:
    """As `diagnose`, for a region: it leaves the frame as the instruction found it that failed, gas included."""
    frame.pc = view.pc + 1
    return _replayed(frame, _twin(frame, view, view.pc, state), halt)


def _replayed(frame: Frame, twin: Frame, halt: ExceptionalHalt) -> ExceptionalHalt:
    table = table_of(frame.context.fork)
    try:
        while (called := run(twin, table)) is not twin:  # a block's bounds are checked before the calls in it
            if not drive_briefly(called, MOST_JUMPS, run_precompile):
                _fail_for_words(twin, table)
                break
            resume(twin, called)
        # it has not failed, so native code's reason is kept
    except ExceptionalHalt as found:
        frame.pc = twin.pc
        return found
    return halt


def is_evident(frame: Frame, unit: Unit) -> bool:
    """Whether `read_off` applies. For an opcode with variants, gas and stack are checked before its immediate."""
    op = opcodes_of(frame.context.fork)[frame.code[unit.tokens[0].pc]]
    return unit.sequence in EVIDENT and not (op and op.variants)


def read_off(frame: Frame, view: NativeFrame, unit: Unit, halt: ExceptionalHalt) -> ExceptionalHalt:
    """As `diagnose`, if the reason is evident from the words, and everything before it is paid for."""
    twin = Frame(frame.message, frame.state, frame.context)
    frame.pc = twin.pc = unit.tokens[0].pc + 1
    base = max(view.sp - 2 * WORD, view.sp - view.sp % STACK_ALIGN)
    twin.stack = _words(base, view.sp)
    try:
        table_of(frame.context.fork)[frame.code[unit.tokens[0].pc]].instruction(twin)
    except ExceptionalHalt as found:
        return found
    return halt


def _words(start: int, end: int) -> list[int]:
    """Of a native stack."""
    raw = ctypes.string_at(start, end - start)
    return [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]


def _fail_for_words(twin: Frame, table: tuple[Entry, ...]) -> None:
    """Continues after a call, tracking only the stack's height, to the instruction that underflows or overflows."""
    height = len(twin.stack) + 1
    for each in instructions(twin.message.code, twin.context.fork, twin.pc):
        if each.op is None or each.op.name == "JUMPDEST":
            return
        entry = table[each.op.byte]
        if not entry.needs <= height <= entry.room:
            twin.pc, twin.stack = each.pc + 1, [0] * height
            refuse(twin, 0, entry.needs)
        height += each.op.pushes - each.op.pops


def _twin(frame: Frame, view: NativeFrame, pc: int, state: State) -> Frame:
    """The frame as the failed handler found it, at one of its instructions and on memory of its own."""
    twin = Frame(frame.message, state, frame.context)
    twin.static = frame.static
    twin.pc = pc
    twin.gas = view.gas + view.reserve
    base = view.sp - view.sp % STACK_ALIGN
    twin.stack = _words(base, view.sp)
    twin.memory = bytearray(ctypes.string_at(view.memory, view.memory_size))
    twin.returndata = ctypes.string_at(view.returned, view.returned_size)
    return twin


def section_of(unit: Unit, schedule: Schedule) -> Section:
    """The section that contains a unit; a bad jump's own place, after all sections, belongs to the last."""
    units, index = schedule.units, unit_index(schedule.units, unit.at)
    while (section := units[index].section) is None:
        index -= 1
    return section


def unit_index(units: list[Unit], at: int) -> int:
    """Where the unit at a word of the schedule is among them, or the next: there may be ten thousand, in order."""
    return bisect_left(units, at, key=attrgetter("at"))


def _gas_ahead(frame: Frame, unit: Unit, schedule: Schedule) -> int:
    """What the section costs from the unit's first instruction on."""
    section = section_of(unit, schedule)
    after = 0
    for each in instructions(schedule.code, frame.context.fork, section.pc):
        if each.pc >= unit.tokens[0].pc:
            break
        after += each.op.gas_at(frame.context.fork) if each.op else 0
    return section.gas - after
