"""MULMOD by a modulus that comes again: its reciprocal is kept, in the engine, or in the code where the modulus is a
literal. In the subset of `lang`.

Möller and Granlund's division of two limbs by one, with limbs of 256 bits: two products in place of a division limb by
limb. The reciprocal takes as long as such a division, so it is computed when a modulus has come PROVEN times in a row.
Where one factor has 64 bits and the other is below the modulus, so has the quotient: one step, by a short reciprocal.
"""

from __future__ import annotations

from fusevm.native.lang import clz, inlined, outlined, select, u64, u128, u256, u320, unlikely
from fusevm.native.layout import Engine, Modulus, NativeFrame
from fusevm.native.runtime.division import LIMB, long_product, mulmod, pair_reciprocal, quad_step, times_limb

ENTRIES = 1 << 4
SHIFT = 60  # of a word of 64 bits, for the number of an entry
MIX = 0x9E37_79B9_7F4A_7C15  # the golden ratio's bits: neighbours fall apart
ENTRY_SIZE = Modulus.byte_size()
PROVEN = 4
ONES = (1 << 256) - 1


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
def shifted_rest(x: u256, m: u256, d: u256, limb: u64, count: u64) -> u256:
    """x mod m, shifted as d is: m by so many bits. The quotient has one limb, so a short reciprocal will do."""
    n = u320(x) << u320(count & 63)
    if x >= m:
        n = quad_step(u256(n >> 64), u64(n), d, limb) >> 64
    return u256(n)


@inlined
def mulmod_short(x: u256, y: u64, m: u256, d: u256, limb: u64, count: u64) -> u256:
    """(x · y) mod m, for a y of one limb."""
    product = times_limb(shifted_rest(x, m, d, limb, count), y)
    return u256(quad_step(u256(product >> 64), u64(product), d, limb) >> 64) >> u256(count & 63)


@inlined
def mulmod_known(x: u256, y: u256, m: u256, d: u256, reciprocal: u256, limb: u64, count: u64) -> u256:
    """(x · y) mod m, for an m of four limbs: d is m shifted by so many bits, and both reciprocals are of d."""
    if x >> 64 == 0:
        return mulmod_short(y, u64(x), m, d, limb, count)
    if y >> 64 == 0:
        return mulmod_short(x, u64(y), m, d, limb, count)
    product = long_product(shifted_rest(x, m, d, limb, count), y, 0)  # its upper half is below the divisor
    high = u256(product >> 256)
    estimate = long_product(reciprocal, high, u256(product))
    rest = u256(product) - (u256(estimate >> 256) + high + 1) * d
    rest = select(rest > u256(estimate), rest + d, rest)  # as often as not: no branch could be foreseen
    if unlikely(rest >= d):
        rest -= d
    return rest >> u256(count & 63)


@inlined
def mulmod_ones(x: u256, y: u256) -> u256:
    """(x · y) mod (2^256 - 1): the halves' sum, since 2^256 leaves one. Contracts divide products of 512 bits so."""
    product = long_product(x, y, 0)
    high = u256(product >> 256)
    total = u256(product) + high
    total += u256(total < high)
    return select(total == ONES, u256(0), total)


@outlined
def mulmod_again(frame: NativeFrame, x: u256, y: u256, m: u256) -> u256:
    """As `mulmod`; for moduli of four limbs, which are those of elliptic curves."""
    if m >> 192 == 0:
        return mulmod(x, y, m)
    if m == ONES:
        return mulmod_ones(x, y)
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
        known.limb = pair_reciprocal(u128(known.divisor >> 128))
    return mulmod_known(x, y, m, known.divisor, known.reciprocal, known.limb, known.shift)
