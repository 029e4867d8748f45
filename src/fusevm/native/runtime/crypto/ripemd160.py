"""RIPEMD-160 as native code, in the subset of `lang`: two lines of five rounds of sixteen steps over the same block."""

from __future__ import annotations

from math import isqrt

from fusevm.native.lang import (
    copy,
    exported,
    fill,
    inlined,
    load,
    local,
    outlined,
    ptr,
    rotl,
    store,
    u8,
    u32,
    u64,
)  # fmt: skip
from fusevm.native.runtime.crypto.sha256 import BLOCK, cube_root, padded

STEPS = 80
START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
# ρ says which word of the block a step of the next round takes, π where the right line begins.
RHO = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)
PI = tuple((9 * i + 5) % 16 for i in range(16))
# Rotation counts of the steps, by round and by the word they take.
TURNS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)
# 2^30 times the square roots of 2, 3, 5, 7 on the left, their cube roots on the right.
ADDED = (
    (0, *(isqrt(prime << 60) for prime in (2, 3, 5, 7))),
    (*(cube_root(prime << 90) for prime in (2, 3, 5, 7)), 0),
)


def _words(first: tuple[int, ...]) -> tuple[int, ...]:
    """Which word each step of a line takes."""
    found = list(first)
    while len(found) < STEPS:
        found += [RHO[word] for word in found[-16:]]
    return tuple(found)


WORDS = (_words(tuple(range(16))), _words(PI))
COUNTS = tuple(tuple(TURNS[step // 16][word] for step, word in enumerate(line)) for line in WORDS)
FUNCTION = tuple(tuple(step // 16 if line == 0 else 4 - step // 16 for step in range(STEPS)) for line in range(2))


@inlined
def mixed(kind: u64, x: u32, y: u32, z: u32) -> u32:
    """One of the five functions, which is known while translating."""
    if kind == 0:
        return x ^ y ^ z
    if kind == 1:
        return z ^ (x & (y ^ z))
    if kind == 2:
        return (x | ~y) ^ z
    if kind == 3:
        return y ^ (z & (x ^ y))
    return x ^ (y | ~z)


@outlined
def ripemd160_blocks(state: ptr, data: ptr, count: u64) -> None:
    """Hashes `count` blocks."""
    v = local(u32, 10)  # five words of each line
    w = local(u32, 16)
    while count != 0:
        for i in range(5):
            v[i] = load(u32, state, 4 * i)
            v[5 + i] = v[i]
        for i in range(16):
            w[i] = load(u32, data, 4 * i)
        for step in range(STEPS):
            for line in range(2):
                b = v[5 * line + (1 - step) % 5]
                c = v[5 * line + (2 - step) % 5]
                found = v[5 * line + -step % 5] + mixed(FUNCTION[line][step], b, c, v[5 * line + (3 - step) % 5])
                found += w[WORDS[line][step]] + ADDED[line][step // 16]
                v[5 * line + -step % 5] = rotl(found, COUNTS[line][step]) + v[5 * line + (4 - step) % 5]
                v[5 * line + (2 - step) % 5] = rotl(c, 10)
        # After 80 steps every word is where it began, and the words of the two lines are added crosswise.
        first = load(u32, state, 4) + v[2] + v[8]
        for i in range(1, 5):
            store(state, 4 * i, load(u32, state, 4 * ((i + 1) % 5)) + v[(i + 2) % 5] + v[5 + (i + 3) % 5])
        store(state, 0, first)
        data += BLOCK
        count -= 1


@exported
def ripemd160(data: ptr, size: u64, out: ptr) -> u64:
    """The hash in the lower 20 of 32 bytes, and how many bytes these are."""
    state = local(u32, 5)
    last = local(u8, 2 * BLOCK)
    for i in range(5):
        state[i] = START[i]
    whole = size // BLOCK
    ripemd160_blocks(state, data, whole)
    more = padded(last, data + whole * BLOCK, size % BLOCK, size * 8)
    ripemd160_blocks(state, last, more)
    fill(out, 0, 12)
    copy(out + 12, state, 20)
    return 32
