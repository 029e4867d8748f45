"""MULMOD by a modulus that comes again: its reciprocal is kept, in the engine, or in the code where the modulus is a
literal. In the subset of `lang`.

Möller and Granlund's division of two limbs by one, with limbs of 256 bits: two products in place of a division limb by
limb. The reciprocal takes as long as such a division, so it is computed when a modulus has come PROVEN times in a row.
"""

from __future__ import annotations

from fusevm.native.lang import clz, inlined, outlined, select, u64, u128, u256, u320, u512, unlikely
from fusevm.native.layout import Engine, Modulus, NativeFrame
from fusevm.native.runtime.division import LIMB, mulmod, pair_reciprocal, quad_step, urem

ENTRIES = 1 << 4
SHIFT = 60  # of a word of 64 bits, for the number of an entry
MIX = 0x9E37_79B9_7F4A_7C15  # the golden ratio's bits: neighbours fall apart
ENTRY_SIZE = Modulus.byte_size()
PROVEN = 4


@outlined
def wide_reciprocal(d: u256) -> u256:
    """(2^512 - 1) / d - 2^256, for a normalised d: the quotient of what is left of 2^512 - 1 by d."""
    v = pair_reciprocal(u128(d >> 128))
    rest = ~d
    found: u256 = 0
    for _ in range(4):
        step = quad_step(rest, LIMB, d, v)
        found = found << 64 | u256(u64(step))
        rest = u256(step >> 64)
    return found


@inlined
def times_limb(x: u256, limb: u64) -> u320:
    even = u256(u128(u64(x >> 128)) * u128(limb)) << 128 | u256(u128(u64(x)) * u128(limb))
    odd = u256(u128(u64(x >> 192)) * u128(limb)) << 128 | u256(u128(u64(x >> 64)) * u128(limb))
    return u320(even) + (u320(odd) << 64)


@inlined
def long_product(x: u256, y: u256) -> u512:
    """x · y, row by row: LLVM's own product of such words takes the upper halves for what they might be."""
    row = times_limb(x, u64(y))
    low = u64(row)
    row = times_limb(x, u64(y >> 64)) + (row >> 64)
    found = u128(u64(row)) << 64 | u128(low)
    row = times_limb(x, u64(y >> 128)) + (row >> 64)
    third = u64(row)
    row = times_limb(x, u64(y >> 192)) + (row >> 64)
    return u512(row) << 192 | u512(third) << 128 | u512(found)


@inlined
def mulmod_known(x: u256, y: u256, m: u256, d: u256, reciprocal: u256, count: u64) -> u256:
    """(x · y) mod m, for an m of four limbs and the reciprocal of d, which is m shifted by so many bits."""
    if x >= m:
        x = urem(x, m)
    shift = u256(count & 63)
    product = long_product(x << shift, y)  # its upper half is below the divisor
    estimate = long_product(reciprocal, u256(product >> 256)) + product
    rest = u256(product) - (u256(estimate >> 256) + 1) * d
    rest = select(rest > u256(estimate), rest + d, rest)  # as often as not: no branch could be foreseen
    if unlikely(rest >= d):
        rest -= d
    return rest >> shift


@outlined
def mulmod_again(frame: NativeFrame, x: u256, y: u256, m: u256) -> u256:
    """As `mulmod`; for moduli of four limbs, which are those of elliptic curves."""
    if m >> 192 == 0:
        return mulmod(x, y, m)
    number = ((u64(m) ^ u64(m >> 192)) * MIX) >> SHIFT
    known = Modulus(Engine(frame.engine).moduli + number * ENTRY_SIZE)
    if known.modulus != m:
        known.modulus = m
        known.uses = 0
    if known.uses < PROVEN:
        known.uses += 1
        if known.uses < PROVEN:
            return mulmod(x, y, m)
        known.shift = clz(u64(m >> 192)) & 63
        known.divisor = m << u256(known.shift)
        known.reciprocal = wide_reciprocal(known.divisor)
    return mulmod_known(x, y, m, known.divisor, known.reciprocal, known.shift)
