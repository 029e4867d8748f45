"""Loops at run time: how often one will run, whether all of it can be paid now, and what an early exit gets back.

Operands, as `fuse.loop_schedule` lays them out behind a handler's address:

    0   words needed, room above them (16 bits each), the relation (from bit 32)
    8   how far below the stack pointer the counter is, and the bound (32 bits each; 0: the bound is a literal)
    16  gas of an iteration, and what else it may be charged at most (32 bits each)
    24  gas up to the test, and what may be charged once (32 bits each); for an early exit what is left, signed
    32  step, signed        40  what is added to the counter, signed        48  the bound, or what is added to it
"""

from __future__ import annotations

from fusevm.native.lang import inlined, load, native, ptr, select, slt, u64, u256
from fusevm.native.layout import STACK_ALIGN, Frame
from fusevm.native.runtime.memory import FAILED, charge

LESS, EQUAL, DIFFERENT = 0, 2, 3
MIRRORED, SIGNED = 4, 8
SIGN = 1 << 255
ALL_ONES = (1 << 256) - 1
MOST_GAS = 6_000_000  # charged at once: hashing takes 15 ns per unit of it, and the clock must be looked at
MOST_TRIPS = 1 << 27
LOW = (1 << 32) - 1
TARGET = 80


@native
def loop_trips(relation: u64, x: u256, bound: u256, step: u64) -> u64:
    """How often x, x + step, … passes the test before it first fails; FAILED where that is not worked out."""
    if (relation & SIGNED) != 0:
        x = x ^ SIGN
        bound = bound ^ SIGN
    if (relation & MIRRORED) != 0:
        x = x ^ ALL_ONES
        bound = bound ^ ALL_ONES
    kind = relation & 3
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
def trips_ahead(sp: ptr, operands: ptr) -> u64:
    places = load(u64, operands, 8)
    x = load(u256, sp - (places & LOW)) + widened(load(u64, operands, 40))
    bound = load(u256, operands, 48)
    if (places >> 32) != 0:
        bound = bound + load(u256, sp - (places >> 32))
    return loop_trips(load(u64, operands, 0) >> 32, x, bound, load(u64, operands, 32))


@native
def enter_loop(frame: Frame, gas: u64, sp: ptr, operands: ptr) -> u64:
    """The gas left when the whole loop is paid for; FAILED, and nothing done, where it must run plainly."""
    bounds = load(u64, operands, 0)
    height = (u64(sp) & (STACK_ALIGN - 1)) >> 5
    if height - (bounds & 0xFFFF) > ((bounds >> 16) & 0xFFFF):
        return FAILED
    trips = trips_ahead(sp, operands)
    if trips >= MOST_TRIPS:
        return FAILED
    each = load(u64, operands, 16)
    once = load(u64, operands, 24)
    cost = trips * (each & LOW) + (once & LOW)
    most = cost + (trips + 1) * (each >> 32) + (once >> 32)  # the last test, which fails, has its share
    if most > MOST_GAS or most > gas + frame.reserve:
        return FAILED
    return charge(frame, gas, cost)


@native
def leave_loop(frame: Frame, gas: u64, sp: ptr, operands: ptr) -> u64:
    """Gives back what was paid for iterations that will not run: to the reserve, or a slice would never end."""
    back = trips_ahead(sp, operands) * load(u64, operands, 16) + load(u64, operands, 24)
    if slt(back, 0):
        return gas + back
    frame.reserve += back
    return gas
