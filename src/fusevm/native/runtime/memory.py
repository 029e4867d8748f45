"""Gas, memory growth, hashes and copies. In the subset of `lang`.

Functions that can run out of gas take the gas and return what is left; FAILED, as a negative number, says there was
not enough. Gas is granted in slices, so what is missing may still be in the frame's reserve.
"""

from __future__ import annotations

from fusevm.evm.gas import copy_cost, exponent_cost, growth_cost, keccak_cost, words_of
from fusevm.native.lang import (
    bswap,
    clz,
    copy,
    fill,
    inlined,
    load,
    native,
    outlined,
    ptr,
    slt,
    store,
    u8,
    u64,
    u128,
    u256,
    unlikely,
)
from fusevm.native.layout import FRAME_MEMORY, Engine, NativeFrame
from fusevm.native.runtime.hashes import hash_of

FAILED = (1 << 64) - 1  # less than zero as a signed number: out of gas
CAPPED = (1 << 64) - 2  # one of the engine's own limits
BROKEN = (1 << 64) - 3  # a callback failed
STATIC = (1 << 64) - 4  # a write in a static call
BOUNDS = (1 << 64) - 5  # past the end of return data

HUGE = 1 << 42  # no offset or size from here on can be paid for, not even with all of 64 bits of gas
SHORT = 1 << 32  # words of memory whose price 64 bits hold
AHEAD = 1 << 9  # bytes of memory that are zeroed before they are asked for, at most
HASHED_IN_SLICE = 1 << 19  # words: 0.04 s


@inlined
def charge(frame: NativeFrame, gas: u64, amount: u64) -> u64:
    """The gas left, from the reserve if need be."""
    if unlikely(gas < amount):
        missing = amount - gas
        if missing > frame.reserve:
            return FAILED
        frame.reserve -= missing
        return 0
    return gas - amount


@inlined
def hasten(frame: NativeFrame, gas: u64, words: u64) -> u64:
    """Ends the slice, its gas going back to the reserve, once much was hashed: that takes longer than its gas."""
    engine = Engine(frame.engine)
    engine.hashed += words
    if unlikely(engine.hashed > HASHED_IN_SLICE):
        engine.hashed = 0
        frame.reserve += gas
        return 0
    return gas


@inlined
def clamp(word: u256) -> u64:
    """An offset or size as 64 bits; what does not fit is huge in any case."""
    if unlikely((word >> 64) != 0):
        return HUGE
    low = u64(word)
    if unlikely(low > HUGE):
        return HUGE
    return low


@outlined
def zero_ahead(frame: NativeFrame, size: u64) -> u64:
    """Zeroes memory up to a size and some more, which is soon asked for; 0 where there is no room for it."""
    engine = Engine(frame.engine)
    ahead = size
    if ahead > AHEAD:
        ahead = AHEAD
    if u64(frame.memory) + size + ahead > u64(engine.memory_light):
        ahead = 0
        if u64(frame.memory) + size > u64(engine.memory_light):
            if size > FRAME_MEMORY or u64(frame.memory) + size > u64(engine.memory_end):
                return 0
            engine.heavy = 1
    start = frame.zeroed
    if start < frame.memory_size:
        start = frame.memory_size
    fill(frame.memory + start, 0, size + ahead - start)
    frame.zeroed = size + ahead
    return 1


@native
def grow(frame: NativeFrame, gas: u64, offset: u64, size: u64) -> u64:
    """Pays for memory up to offset + size and clears what is new."""
    if size == 0:
        return gas
    end = offset + size
    if end <= frame.memory_size:
        return gas
    if end >= HUGE:
        return FAILED
    words = words_of(end)
    price: u64 = 0
    if unlikely(words >= SHORT):
        cost = growth_cost(u128(frame.memory_size >> 5), u128(words))
        if (cost >> 64) != 0:
            return FAILED
        price = u64(cost)
    else:
        price = growth_cost(frame.memory_size >> 5, words)
    gas = charge(frame, gas, price)
    if slt(gas, 0):
        return gas
    new_size = words << 5
    if unlikely(new_size > frame.zeroed) and zero_ahead(frame, new_size) == 0:
        return CAPPED
    frame.memory_size = new_size
    frame.load_limit = new_size - 31
    return gas


@native
def pay_and_grow(frame: NativeFrame, gas: u64, amount: u64, offset: u64, size: u64) -> u64:
    """Both or neither: who fails for the second must find the reserve as it was, to say how much gas there was."""
    reserve = frame.reserve
    gas = charge(frame, gas, amount)
    if slt(gas, 0):
        return gas
    gas = grow(frame, gas, offset, size)
    if slt(gas, 0):
        frame.reserve = reserve
    return gas


@native
def hash_memory(frame: NativeFrame, gas: u64, offset: u256, size: u256, out: ptr) -> u64:
    """KECCAK256, its dynamic gas included."""
    length = clamp(size)
    start = clamp(offset)
    gas = pay_and_grow(frame, gas, keccak_cost(Engine(frame.engine), length), start, length)
    if slt(gas, 0):
        return gas
    if length == 0:
        start = 0
    store(out, 0, hash_of(Engine(frame.engine), frame.memory + start, length))
    return hasten(frame, gas, words_of(length))


@native
def hash_paid(frame: NativeFrame, gas: u64, start: u64, length: u64, out: ptr) -> u64:
    """KECCAK256 of memory that is allocated and paid for."""
    store(out, 0, hash_of(Engine(frame.engine), frame.memory + start, length))
    return hasten(frame, gas, words_of(length))


@native
def copy_padded(frame: NativeFrame, gas: u64, to: u256, start: u256, size: u256, source: ptr, available: u64) -> u64:
    """CALLDATACOPY and CODECOPY: zeros past the source's end."""
    length = clamp(size)
    target = clamp(to)
    gas = pay_and_grow(frame, gas, copy_cost(Engine(frame.engine), length), target, length)
    if slt(gas, 0):
        return gas
    if length == 0:
        return gas
    begin = clamp(start)
    if begin > available:
        begin = available
    there = available - begin
    if there > length:
        there = length
    if there != 0:
        copy(frame.memory + target, source + begin, there)
    if there != length:
        fill(frame.memory + target + there, 0, length - there)
    return gas


@native
def copy_returned(frame: NativeFrame, gas: u64, to: u256, start: u256, size: u256) -> u64:
    """RETURNDATACOPY: reading past the end halts."""
    if clamp(start) + clamp(size) > frame.returned_size:
        return BOUNDS
    return copy_padded(frame, gas, to, start, size, frame.returned, frame.returned_size)


@native
def copy_memory(frame: NativeFrame, gas: u64, to: u256, start: u256, size: u256) -> u64:
    """MCOPY."""
    length = clamp(size)
    target = clamp(to)
    begin = clamp(start)
    furthest = target
    if begin > target:
        furthest = begin
    gas = pay_and_grow(frame, gas, copy_cost(Engine(frame.engine), length), furthest, length)
    if slt(gas, 0):
        return gas
    if length != 0:
        copy(frame.memory + target, frame.memory + begin, length)
    return gas


@native
def read_data(source: ptr, available: u64, offset: u256) -> u256:
    """CALLDATALOAD: 32 bytes, zeros past the end."""
    start = clamp(offset)
    if start + 32 <= available:
        return bswap(load(u256, source, start))
    if start >= available:
        return u256(0)
    result: u256 = 0
    position: u64 = 0
    while position < 32:
        byte: u64 = 0
        if start + position < available:
            byte = u64(load(u8, source, start + position))
        result = (result << 8) | u256(byte)
        position += 1
    return result


@inlined
def set_output(frame: NativeFrame, gas: u64, offset: u256, size: u256) -> u64:
    """RETURN and REVERT: which part of memory is returned."""
    length = clamp(size)
    start = clamp(offset)
    if length == 0:
        start = 0
    gas = grow(frame, gas, start, length)
    frame.output_offset = start
    frame.output_size = length
    return gas


@inlined
def exponent_gas(frame: NativeFrame, gas: u64, exponent: u256) -> u64:
    engine = Engine(frame.engine)
    return charge(frame, gas, exponent_cost(engine, u64(256) - u64(clz(exponent))))
