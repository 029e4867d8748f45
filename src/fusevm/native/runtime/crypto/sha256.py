"""SHA-256 (FIPS 180-4) as native code, in the subset of `lang`."""

from __future__ import annotations

from math import isqrt

from fusevm.native.lang import (
    Table,
    bswap,
    copy,
    exported,
    fill,
    inlined,
    load,
    local,
    outlined,
    ptr,
    rotl,
    select,
    store,
    u8,
    u32,
    u64,
)  # fmt: skip

BLOCK = 64
ROUNDS = 64
LENGTH = BLOCK - 8  # where the last block has the number of bits


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % each for each in found):
            found.append(number)
        number += 1
    return found


def cube_root(number: int) -> int:
    low, high = 0, 1 << number.bit_length() // 3 + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low


# The first 32 bits of the fractional parts of roots: cube roots of 64 primes, square roots of 8.
K = tuple(cube_root(prime << 96) & 0xFFFFFFFF for prime in _primes(ROUNDS))
START = tuple(isqrt(prime << 64) & 0xFFFFFFFF for prime in _primes(8))
CONSTANTS = Table(u32, K)


@inlined
def turned(x: u32, a: u32, b: u32, c: u32) -> u32:
    """The word rotated right by three counts, combined."""
    return rotl(x, 32 - a) ^ rotl(x, 32 - b) ^ rotl(x, 32 - c)


@inlined
def spread(x: u32, a: u32, b: u32, shift: u32) -> u32:
    return rotl(x, 32 - a) ^ rotl(x, 32 - b) ^ x >> shift


@outlined
def sha256_blocks(state: ptr, data: ptr, count: u64) -> None:
    """Hashes `count` blocks. Sixteen rounds per iteration, so that the place of each word is constant."""
    v = local(u32, 8)
    w = local(u32, 16)
    while count != 0:
        for i in range(8):
            v[i] = load(u32, state, 4 * i)
        for i in range(16):
            w[i] = bswap(load(u32, data, 4 * i))
        turn: u64 = 0
        while True:
            for i in range(16):
                a = v[-i % 8]
                b = v[(1 - i) % 8]
                c = v[(2 - i) % 8]
                e = v[(4 - i) % 8]
                f = v[(5 - i) % 8]
                g = v[(6 - i) % 8]
                chosen = g ^ (e & (f ^ g))
                majority = (a & b) | (c & (a | b))
                new = v[(7 - i) % 8] + turned(e, 6, 11, 25) + chosen + CONSTANTS[turn + i] + w[i]
                v[(3 - i) % 8] += new
                v[(7 - i) % 8] = new + turned(a, 2, 13, 22) + majority
            turn += 16
            if turn == ROUNDS:
                break
            for i in range(16):
                w[i] += spread(w[(i + 1) % 16], 7, 18, 3) + w[(i + 9) % 16] + spread(w[(i + 14) % 16], 17, 19, 10)
        for i in range(8):
            store(state, 4 * i, load(u32, state, 4 * i) + v[i])
        data += BLOCK
        count -= 1


@inlined
def padded(last: ptr, rest: ptr, left: u64, bits: u64) -> u64:
    """The last blocks, and how many they are: what is left of the input, a one, zeros, and how many bits it had."""
    end: u8 = 0x80
    fill(last, 0, 2 * BLOCK)
    copy(last, rest, left)
    store(last, left, end)
    more = select(left < LENGTH, u64(1), u64(2))
    store(last, more * BLOCK - 8, bits)
    return more


@exported
def sha256(data: ptr, size: u64, out: ptr) -> u64:
    """The hash, and its size."""
    state = local(u32, 8)
    last = local(u8, 2 * BLOCK)
    for i in range(8):
        state[i] = START[i]
    whole = size // BLOCK
    sha256_blocks(state, data, whole)
    more = padded(last, data + whole * BLOCK, size % BLOCK, bswap(size * 8))
    sha256_blocks(state, last, more)
    for i in range(8):
        store(out, 4 * i, bswap(state[i]))
    return 32
