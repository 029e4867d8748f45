"""MULMOD by a modulus that comes again: what its division needs is kept, in the engine, or in the code where the
modulus is a literal. In the subset of `lang`.

Möller and Granlund's division of two limbs by one, with limbs of 256 bits: two products in place of a division limb by
limb. The reciprocal takes as long as such a division, so it is computed when a modulus has come PROVEN times in a row.
Two kinds are quicker. Where one factor has 64 bits and the other is below the modulus, the quotient has 64 bits too:
one step, by a short reciprocal. And where the divisor is 2^256 - c for a c of 64 bits (secp256k1, curve 25519,
2^256 - 1), 2^256 leaves c, so that the upper half of a product is multiplied by c and added to the lower one.
"""

from __future__ import annotations

from fusevm.native.lang import clz, inlined, load, outlined, ptr, select, store, u64, u128, u256, u320, u512, unlikely
from fusevm.native.layout import WORD, Engine, Modulus, NativeFrame
from fusevm.native.runtime.division import (
    LIMB,
    add_low_product,
    add_row,
    add_row_at,
    add_rows_at,
    long_product,
    mulmod,
    mulmod_by_pair,
    pair_reciprocal,
    quad_step,
    times_limb,
)

ENTRIES = 1 << 4
SHIFT = 60  # of a word of 64 bits, for the number of an entry
MIX = 0x9E37_79B9_7F4A_7C15  # the golden ratio's bits: neighbours fall apart
ENTRY_SIZE = Modulus.byte_size()
NEGATED, RECIPROCAL = Modulus.offset("negated"), Modulus.offset("reciprocal")
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
def shifted_rest(x: u256, m: u256, known: Modulus) -> u256:
    """x mod m, shifted as the divisor is. The quotient has one limb, so a short reciprocal will do."""
    n = u320(x) << u320(known.shift & 63)
    if x >= m:
        n = quad_step(u256(n >> 64), u64(n), known.divisor, known.limb) >> 64
    return u256(n)


@inlined
def mulmod_short(x: u256, y: u64, m: u256, known: Modulus) -> u256:
    """(x · y) mod m, for a y of one limb."""
    product = times_limb(shifted_rest(x, m, known), y)
    rest = u256(quad_step(u256(product >> 64), u64(product), known.divisor, known.limb) >> 64)
    return rest >> u256(known.shift & 63)


@inlined
def at_most_once(rest: u256, known: Modulus) -> u256:
    """What the divisor leaves of a word below twice the divisor, that hardly ever is not below it."""
    if unlikely(u64(rest >> 192) >= u64(known.divisor >> 192)):  # noqa: SIM102 -- `and` would be no second branch
        if rest >= known.divisor:
            rest -= known.divisor
    return rest


@inlined
def rest_by_reciprocal(product: u512, known: Modulus) -> u256:
    """What the divisor leaves of a product whose upper half is below it."""
    high = u256(product >> 256)
    reciprocal = known + RECIPROCAL
    estimate = add_rows_at(reciprocal, high, add_row_at(reciprocal, u64(high), u256(product)))
    rest = add_low_product(known + NEGATED, u256(estimate >> 256) + high, u256(product) + known.negated)
    rest += select(rest > u256(estimate), known.divisor, u256(0))  # as often as not: no branch could be foreseen
    return at_most_once(rest, known)


@inlined
def rest_by_complement(product: u512, known: Modulus) -> u256:
    """What the divisor, 2^256 - c, leaves of a product."""
    c = known.complement
    row = add_row(u256(product >> 256), c, u256(product))
    above = u256(u128(u64(row >> 256)) * u128(c))
    rest = u256(row) + above
    rest += select(rest < above, u256(c), u256(0))
    return at_most_once(rest, known)


@inlined
def mulmod_known(x: u256, y: u256, m: u256, known: Modulus) -> u256:
    """(x · y) mod m, for an m of four limbs."""
    if unlikely(u64(x >> 192) == 0):  # noqa: SIM102 -- as above
        if x >> 64 == 0:
            return mulmod_short(y, u64(x), m, known)
    if unlikely(u64(y >> 192) == 0):  # noqa: SIM102
        if y >> 64 == 0:
            return mulmod_short(x, u64(y), m, known)
    if unlikely(u64(x >> 192) >= u64(m >> 192)):  # noqa: SIM102 -- as above
        if x >= m:  # one of the factors must be below m
            other = x
            x = y
            y = other
            if x >= m:
                x = shifted_rest(x, m, known) >> u256(known.shift & 63)
    product = long_product(x << u256(known.shift & 63), y)
    if known.complement != 0:
        return rest_by_complement(product, known) >> u256(known.shift & 63)
    return rest_by_reciprocal(product, known) >> u256(known.shift & 63)


@outlined
def note(known: Modulus, m: u256) -> None:
    """A modulus of two or four limbs has come once more."""
    if known.modulus != m:
        known.modulus = m
        known.uses = 0
    known.uses += 1
    if known.uses == PROVEN:
        if m >> 128 == 0:
            known.shift = clz(u64(m >> 64)) & 63
            known.divisor = m << u256(known.shift)
            known.limb = pair_reciprocal(u128(known.divisor))
            return
        known.shift = clz(u64(m >> 192)) & 63
        known.divisor = m << u256(known.shift)
        known.reciprocal = wide_reciprocal(known.divisor)
        known.limb = pair_reciprocal(u128(known.divisor >> 128))
        known.negated = -known.divisor
        known.complement = select(known.negated >> 64 == 0, u64(known.negated), u64(0))


@outlined
def mulmod_known_pair(x: u256, y: u256, known: Modulus) -> u256:
    """By a modulus of two limbs."""
    return mulmod_by_pair(x, y, known.shift, u128(known.divisor), known.limb)


@inlined
def mulmod_kept(frame: NativeFrame, x: u256, y: u256, m: u256) -> u256:
    """(x · y) mod m, zero if m is zero. Kept is what moduli of four limbs, such as those of curves, and of two need."""
    number = ((u64(m) ^ u64(m >> 192)) * MIX) >> SHIFT
    known = Modulus(Engine(frame.engine).moduli + number * ENTRY_SIZE)
    if unlikely(known.modulus != m or known.uses != PROVEN):
        if m == 0:
            return 0
        if m >> 192 != 0 or (m >> 128 == 0 and m >> 64 != 0):
            note(known, m)
        return mulmod(x, y, m)
    if unlikely(u64(m >> 192) == 0):
        return mulmod_known_pair(x, y, known)
    return mulmod_known(x, y, m, known)


@outlined
def mulmod_again(frame: NativeFrame, x: u256, y: u256, m: u256) -> u256:
    """The same where words are values, as in regions."""
    return mulmod_kept(frame, x, y, m)


@inlined
def mulmod_on_stack(frame: NativeFrame, top: ptr) -> None:
    """MULMOD of the three words below `top`, where the stack ends; the result is left in the lowest of them."""
    at = top - 3 * WORD
    store(at, 0, mulmod_kept(frame, load(u256, at, 2 * WORD), load(u256, at, WORD), load(u256, at)))
