"""Handlers of control flow: sections, jumps, and the ways a frame ends."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from fusevm.native.emit.emitter import I8, I32, I64, I256
from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.opcodes import noted_name
from fusevm.native.emit.state import Handler, Opcode
from fusevm.native.lang import PTR
from fusevm.native.layout import STACK_ALIGN, Status
from fusevm.native.runtime import memory, notes
from fusevm.schedule.threading import HOPPING


def _truth(handler: Handler, value: V) -> ir.Value:
    return handler.build.icmp_unsigned("!=", value.value, ir.Constant(I256, 0))


def section(handler: Handler) -> None:
    """Gas of the section and the stack's bounds: 32 bits of gas, 16 of words needed, 16 of room."""
    build = handler.build
    packed = handler.next_operand(I64)
    cost = build.and_(packed, ir.Constant(I64, 0xFFFFFFFF))
    needs = build.and_(build.lshr(packed, ir.Constant(I64, 32)), ir.Constant(I64, 0xFFFF))
    span = build.lshr(packed, ir.Constant(I64, 48))
    low = build.and_(build.ptrtoint(handler.sp, I64), ir.Constant(I64, STACK_ALIGN - 1))
    height = build.lshr(low, ir.Constant(I64, 5))
    above = build.sub(height, needs)
    handler.fail_if(build.icmp_unsigned(">", above, span), Status.STACK)
    _take(handler, cost)


def count(handler: Handler) -> None:
    """Counts executions, in the schedule itself."""
    place = handler.build.gep(handler.ip, [ir.Constant(I64, 8 * handler.operand)], source_etype=I8)
    handler.operand += 1
    counted = handler.build.add(handler.build.load(place, typ=I64, align=8), ir.Constant(I64, 1))
    handler.build.store(counted, place, align=8)


def tally(handler: Handler) -> None:
    """Counts executions, at the address in the operand."""
    place = handler.next_operand(PTR)
    counted = handler.build.add(handler.build.load(place, typ=I64, align=8), ir.Constant(I64, 1))
    handler.build.store(counted, place, align=8)


def meter(handler: Handler) -> None:
    """What the next instruction takes is added up at the place that the operand says."""
    handler.write_back()
    handler.call(notes.meter, handler.frame, handler.gas, handler.next_operand(PTR))


def unmeter(handler: Handler) -> None:
    handler.write_back()
    handler.call(notes.unmeter, handler.frame, handler.gas)


def at(handler: Handler) -> None:
    """Stores the frame's place, for the case that it fails."""
    handler.set_field("pc", handler.next_operand(I64))


def gas_section(handler: Handler) -> None:
    _take(handler, handler.next_operand(I64))


def _take(handler: Handler, cost: ir.Value) -> None:
    """Charges a section; when the slice is used up, returns to Python, which grants another."""
    build = handler.build
    left = build.sub(handler.gas, cost)
    short = build.icmp_signed("<", left, ir.Constant(I64, 0))
    refill, following = handler.function.append_basic_block("refill"), handler.function.append_basic_block("ok")
    branch = build.cbranch(short, refill, following)
    branch.set_weights([1, 2000])
    build.position_at_end(refill)
    again = build.gep(handler.ip, [ir.Constant(I64, -8)], source_etype=I8)  # this handler again
    handler.set_field("ip", again)
    handler.set_field("sp", handler.sp)
    handler.set_field("gas", handler.gas)
    build.ret(ir.Constant(I64, Status.REFILL))
    build.position_at_end(following)
    handler.gas = left


def jump_static(handler: Handler) -> None:
    target = handler.next_operand(PTR)
    handler.write_back()
    handler.go_on(target)


def _go_either_way(
    handler: Handler, condition: ir.Value, taken: Callable[[], ir.Value], passed: Callable[[], ir.Value]
) -> None:
    """Writes the stack back, and branches to one of two places, each computed on its own edge."""
    handler.write_back()
    blocks = handler.function.append_basic_block("taken"), handler.function.append_basic_block("passed")
    handler.build.cbranch(condition, *blocks)
    for block, place in zip(blocks, (taken, passed), strict=True):
        handler.build.position_at_end(block)
        handler.go_on(place())


def jumpi_static(handler: Handler) -> None:
    target = handler.next_operand(PTR)
    _go_either_way(handler, _truth(handler, handler.pop()), lambda: target, handler.next_ip)


def jumpi_hopping(handler: Handler) -> None:
    """A JUMPI over hops, which are charged if it is taken; if this slice of gas cannot pay, it runs hop by hop."""
    build = handler.build
    final, hop, cost = handler.next_operand(PTR), handler.next_operand(PTR), handler.next_operand(I64)
    condition = _truth(handler, handler.pop())
    handler.write_back()
    blocks = [handler.function.append_basic_block(name) for name in ("taken", "paid", "hops", "passed")]
    taken, paid, hops, passed = blocks
    build.cbranch(condition, taken, passed)
    build.position_at_end(taken)
    left = build.sub(handler.gas, cost)
    branch = build.cbranch(build.icmp_signed("<", left, ir.Constant(I64, 0)), hops, paid)
    branch.set_weights([1, 2000])
    before = handler.gas
    for block, place, gas in ((hops, hop, before), (passed, None, before), (paid, final, left)):
        build.position_at_end(block)
        handler.gas = gas
        handler.go_on(handler.next_ip() if place is None else place)


def _dynamic_target(handler: Handler, target: V) -> ir.Value:
    build = handler.build
    low = build.trunc(target.value, I64)
    wide = build.icmp_unsigned(">=", target.value, build.zext(handler.field("code_size"), I256))
    handler.fail_if(wide, Status.INVALID_JUMP)
    table = handler.field("jumps", PTR)
    place = build.gep(table, [build.shl(low, ir.Constant(I64, 2))], source_etype=I8)
    number = build.zext(build.load(place, typ=I32, align=4), I64)
    handler.fail_if(build.icmp_unsigned("<", number, ir.Constant(I64, 2)), Status.INVALID_JUMP)  # or not yet written
    offset = build.shl(number, ir.Constant(I64, 3))
    return build.gep(handler.field("schedule", PTR), [offset], source_etype=I8)


def jump(handler: Handler) -> None:
    place = _dynamic_target(handler, handler.pop())  # may fail: the stack must still be as this handler found it
    handler.write_back()
    handler.go_on(place)


def jumpi(handler: Handler) -> None:
    target, condition = handler.pop(), _truth(handler, handler.pop())
    _go_either_way(handler, condition, lambda: _dynamic_target(handler, target), handler.next_ip)


def stop(handler: Handler) -> None:
    handler.set_field("gas", handler.gas)
    handler.build.ret(ir.Constant(I64, Status.STOP))


def _end_with_output(handler: Handler, status: int, *, noted: bool = False) -> None:
    if noted:
        handler.set_field("pc", handler.next_operand(I64))
    offset, size = handler.pop(), handler.pop()
    handler.charged(handler.call(memory.set_output, handler.frame, handler.gas, offset.value, size.value))
    handler.set_field("ip", handler.function.args[0])  # a creation may fail now, and then this is where
    handler.set_field("gas", handler.gas)
    handler.build.ret(ir.Constant(I64, status))


def _fail(handler: Handler, status: int) -> None:
    handler.remember_entry()
    handler.build.ret(ir.Constant(I64, status))


CONTROL: dict[str, Opcode] = {
    "SECTION": section,
    "GASSECTION": gas_section,
    "COUNT": count,
    "TALLY": tally,
    "METER": meter,
    "UNMETER": unmeter,
    "AT": at,
    "JUMP@": jump_static,
    "JUMPI@": jumpi_static,
    HOPPING: jumpi_hopping,
    "JUMP": jump,
    "JUMPI": jumpi,
    "STOP": stop,
    "RETURN": lambda handler: _end_with_output(handler, Status.RETURN),
    "REVERT": lambda handler: _end_with_output(handler, Status.REVERT),
    noted_name("RETURN"): lambda handler: _end_with_output(handler, Status.RETURN, noted=True),
    noted_name("REVERT"): lambda handler: _end_with_output(handler, Status.REVERT, noted=True),
    "INVALID": lambda handler: _fail(handler, Status.INVALID_OPCODE),
    "BADJUMP": lambda handler: _fail(handler, Status.INVALID_JUMP),
}
