"""Keccak-256 of short inputs, remembered: a mapping's slots are hashed again and again. In the subset of `lang`.

Direct-mapped, the input compared whole. The place in the table depends on the engine's secrets, so inputs that
displace each other cannot be searched for. Where inputs do not come again, most are not even looked up.
"""

from __future__ import annotations

from fusevm.native.lang import copy, inlined, load, native, ptr, u64, u256, unlikely
from fusevm.native.layout import Engine, Hashed
from fusevm.native.runtime.index import folded
from fusevm.native.runtime.keccak import keccak256_word

SHORTEST, LONGEST = 32, 136  # bytes
ENTRIES = 1 << 11  # a power of two
CREDIT = 256  # misses in a row before it is looked up seldom
GAIN = 8  # misses that a hit makes up for: it saves about as much time as they cost
SELDOM = 16  # a power of two
HEAD = Hashed.byte_size()
ENTRY_SIZE = HEAD + LONGEST


@inlined
def place_of(engine: Engine, data: ptr, size: u64) -> u64:
    """For at least SHORTEST bytes: the last words overlap where their number is not a multiple."""
    hashed = folded(load(u64, data) ^ engine.secret_0, load(u64, data, 8) ^ engine.secret_1 ^ size)
    at: u64 = 16
    while at + 16 <= size:
        hashed = folded(load(u64, data, at) ^ hashed, load(u64, data, at + 8) ^ engine.secret_2)
        at += 16
    hashed = folded(load(u64, data, size - 16) ^ hashed, load(u64, data, size - 8) ^ engine.secret_3)
    return (hashed & (ENTRIES - 1)) * ENTRY_SIZE


@inlined
def is_same(one: ptr, other: ptr, size: u64) -> u64:
    different: u64 = 0
    at: u64 = 0
    while at + 8 <= size:
        different |= load(u64, one, at) ^ load(u64, other, at)
        at += 8
    different |= load(u64, one, size - 8) ^ load(u64, other, size - 8)
    return u64(different == 0)


@inlined
def is_idle(engine: Engine) -> u64:
    """Whether to skip the lookup: there is no table, or it was useless lately, and this is not the SELDOM-th hash."""
    if unlikely(engine.hash_credit == 0):
        engine.hash_skipped += 1
        return u64((engine.hash_skipped & (SELDOM - 1)) != 0)
    return u64(u64(engine.hashes) == 0)


@native
def hash_of(engine: Engine, data: ptr, size: u64) -> u256:
    """As `keccak256_word`."""
    if size < SHORTEST or size > LONGEST or is_idle(engine) != 0:
        return keccak256_word(data, size)
    place: ptr = engine.hashes + place_of(engine, data, size)
    known = Hashed(place)
    if known.size == size and is_same(place + HEAD, data, size) != 0:
        engine.hash_hits += 1
        engine.hash_credit += GAIN
        if engine.hash_credit > CREDIT:
            engine.hash_credit = CREDIT
        return known.word
    engine.hash_misses += 1
    if engine.hash_credit != 0:
        engine.hash_credit -= 1
    word = keccak256_word(data, size)
    known.size = size
    known.word = word
    copy(place + HEAD, data, size)
    return word
