"""BLAKE2b's compression function (RFC 7693) as native code, over the input of EIP-152."""

from __future__ import annotations

from fusevm.evm.precompiles.blake2f import IV, ROTATIONS, SIGMA
from fusevm.native.lang import bswap, exported, load, local, outlined, ptr, rotl, store, u8, u32, u64

TURN = len(SIGMA)  # the permutations of the message repeat after so many rounds
# The words that each of the eight mixings of a round works on: columns, then diagonals.
MIXED = tuple((k, 4 + (k + s) % 4, 8 + (k + 2 * s) % 4, 12 + (k + 3 * s) % 4) for s in range(2) for k in range(4))
LEFT = tuple(64 - count for count in ROTATIONS)
# Where the input has the chaining value, the message, the offsets and the final flag.
CHAIN, MESSAGE, OFFSETS, FINAL = 4, 68, 196, 212


@exported
def blake2_begin(data: ptr, state: ptr) -> None:
    """The 16 words to be mixed."""
    for k in range(8):
        store(state, 8 * k, load(u64, data, CHAIN + 8 * k))
        word: u64 = IV[k]
        store(state, 64 + 8 * k, word)
    for k in range(2):
        store(state, 96 + 8 * k, load(u64, state, 96 + 8 * k) ^ load(u64, data, OFFSETS + 8 * k))
    if load(u8, data, FINAL) != 0:
        store(state, 112, ~load(u64, state, 112))


@outlined
def blake2_rounds(data: ptr, state: ptr, first: u64, count: u64) -> None:
    """Rounds from `first` on."""
    v = local(u64, 16)
    m = local(u64, 16)
    for k in range(16):
        v[k] = load(u64, state, 8 * k)
        m[k] = load(u64, data, MESSAGE + 8 * k)
    at = first % TURN
    while count != 0:
        for turn in range(TURN):
            if count != 0 and at == turn:
                for k in range(8):
                    a = v[MIXED[k][0]]
                    b = v[MIXED[k][1]]
                    c = v[MIXED[k][2]]
                    d = v[MIXED[k][3]]
                    a += b + m[SIGMA[turn][2 * k]]
                    d = rotl(d ^ a, LEFT[0])
                    c += d
                    b = rotl(b ^ c, LEFT[1])
                    a += b + m[SIGMA[turn][2 * k + 1]]
                    d = rotl(d ^ a, LEFT[2])
                    c += d
                    b = rotl(b ^ c, LEFT[3])
                    v[MIXED[k][0]] = a
                    v[MIXED[k][1]] = b
                    v[MIXED[k][2]] = c
                    v[MIXED[k][3]] = d
                count -= 1
                at += 1
        at = 0
    for k in range(16):
        store(state, 8 * k, v[k])


@exported
def blake2_end(data: ptr, state: ptr, out: ptr) -> None:
    """The new chaining value: the old one and both halves of what was mixed."""
    for k in range(8):
        store(out, 8 * k, load(u64, data, CHAIN + 8 * k) ^ load(u64, state, 8 * k) ^ load(u64, state, 64 + 8 * k))


@exported
def blake2_compress(data: ptr, out: ptr) -> None:
    state = local(u64, 16)
    blake2_begin(data, state)
    blake2_rounds(data, state, 0, u64(bswap(load(u32, data))))
    blake2_end(data, state, out)
