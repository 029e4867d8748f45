"""Loops at run time: how often one will run, whether all of it can be paid now, and what an early exit gets back.

The operands after a handler's address are `schedule.loops.operands.LoopOperands`.
"""

from __future__ import annotations

from fusevm.native.lang import Struct, inlined, load, native, ptr, select, slt, u64, u256
from fusevm.native.layout import STACK_ALIGN, NativeFrame
from fusevm.native.runtime.memory import FAILED, charge
from fusevm.schedule.loops.operands import (
    HALF_MASK,
    HIGH,
    MIRRORED,
    QUARTER_MASK,
    RELATIONS,
    ROOM,
    SIGNED,
    LoopOperands,
)

LESS, EQUAL, DIFFERENT = RELATIONS["LT"], RELATIONS["EQ"], RELATIONS["NE"]
KINDS = MIRRORED - 1  # a relation without MIRRORED and SIGNED
SIGN = 1 << 255
ALL_ONES = (1 << 256) - 1
MOST_GAS = 6_000_000  # charged at once: hashing takes 15 ns per unit of it, and the clock must be checked
MOST_TRIPS = 1 << 27


class Operands(Struct):
    """`LoopOperands` in memory."""

    check: u64
    places: u64
    each: u64
    once: u64
    step: u64
    addend: u64
    limit: u256


if Operands.names() != LoopOperands._fields:
    raise TypeError(f"a loop's handler reads {Operands.names()}, a schedule has {LoopOperands._fields}")
TARGET = Operands.byte_size()  # where an entry has its target


@native
def loop_trips(relation: u64, x: u256, bound: u256, step: u64) -> u64:
    """How often x, x + step, … passes the test before it first fails; FAILED where that is not worked out."""
    if (relation & SIGNED) != 0:
        x = x ^ SIGN
        bound = bound ^ SIGN
    if (relation & MIRRORED) != 0:
        x = x ^ ALL_ONES
        bound = bound ^ ALL_ONES
    kind = relation & KINDS
    if kind == EQUAL:
        if x == bound:
            return 1
        return 0
    down = slt(step, 0)
    size = select(down, u64(0) - step, step)
    if kind == DIFFERENT:
        distance = bound - x
        if down:
            distance = x - bound
        if (distance >> 63) != 0:
            return FAILED
        if size == 1:
            return u64(distance)
        if u64(distance) % size != 0:
            return FAILED
        return u64(distance) // size
    if x > bound or (x == bound and kind == LESS):
        return 0
    if down:
        if (x >> 63) != 0:
            return FAILED
        count = u64(x) // size + 1
        last = x - u256(count) * u256(size)
        if last > bound or (last == bound and kind == LESS):
            return count
        return FAILED
    distance = bound - x
    if kind == LESS:
        distance -= 1
    if (distance >> 63) != 0:
        return FAILED
    if size == 1:  # x + count is at most bound + 1
        if bound == ALL_ONES and kind != LESS:
            return FAILED
        return u64(distance) + 1
    count = u64(distance) // size + 1
    if x + u256(count) * u256(size) < x:
        return FAILED
    return count


@inlined
def widened(number: u64) -> u256:
    """A signed number as a word."""
    wide = u256(number)
    if slt(number, 0):
        wide = wide | (ALL_ONES - ((1 << 64) - 1))
    return wide


@inlined
def trips_ahead(sp: ptr, operands: Operands) -> u64:
    places = operands.places
    x = load(u256, sp - (places & HALF_MASK)) + widened(operands.addend)
    limit = operands.limit
    if (places >> HIGH) != 0:
        limit = limit + load(u256, sp - (places >> HIGH))
    return loop_trips(operands.check >> HIGH, x, limit, operands.step)


@native
def enter_loop(frame: NativeFrame, gas: u64, sp: ptr, operands: Operands) -> u64:
    """The gas left when the whole loop is paid for; FAILED, and nothing done, where it must run plainly."""
    bounds = operands.check
    height = (u64(sp) & (STACK_ALIGN - 1)) >> 5
    if height - (bounds & QUARTER_MASK) > ((bounds >> ROOM) & QUARTER_MASK):
        return FAILED
    trips = trips_ahead(sp, operands)
    if trips >= MOST_TRIPS:
        return FAILED
    each = operands.each
    once = operands.once
    cost = trips * (each & HALF_MASK) + (once & HALF_MASK)
    most = cost + (trips + 1) * (each >> HIGH) + (once >> HIGH)  # the last test, which fails, has its share
    if most > MOST_GAS or most > gas + frame.reserve:
        return FAILED
    return charge(frame, gas, cost)


@native
def leave_loop(frame: NativeFrame, gas: u64, sp: ptr, operands: Operands) -> u64:
    """Gives back what was paid for iterations that will not run: to the reserve, or a slice would never end."""
    back = trips_ahead(sp, operands) * operands.each + operands.once
    if slt(back, 0):
        return gas + back
    frame.reserve += back
    return gas
