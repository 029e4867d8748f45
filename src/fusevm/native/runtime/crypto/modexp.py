"""Modular exponentiation of any size as native code: limbs of 64 bits, the lowest first; schoolbook products, and
Knuth's division with a reciprocal of the modulus' two top limbs.

The modulus is normalised: its top bit is set. For a power modulo m, callers use m·2^s instead, and reduce once
more at the end. Rows of a product or a division can be done in parts, so that the clock can be checked in between.
"""

from __future__ import annotations

from fusevm.native.lang import (
    Struct,
    copy,
    exported,
    fill,
    inlined,
    load,
    local,
    native,
    outlined,
    ptr,
    specialised,
    store,
    u8,
    u64,
    u128,
    u256,
    unlikely,
)
from fusevm.native.runtime.division import limb_reciprocal, limb_step, pair_reciprocal, pair_step

LIMB = 8  # bytes
WINDOW = 4  # bits of the exponent taken at once, where it is long
MOST = 0xFFFF_FFFF_FFFF_FFFF


class Power(Struct):
    """An exponentiation in work."""

    limbs: u64  # of the modulus, two at least; and of everything reduced by it
    reciprocal: u64
    modulus: ptr
    table: ptr  # powers of the base, from 0 to 2^window - 1
    product: ptr  # twice the limbs
    result: ptr
    exponent: ptr  # bytes, the highest first
    size: u64
    done: u64  # bytes
    window: u64  # bits: 1 or WINDOW
    started: u64  # whether a digit other than zero was met


@inlined
def add_product(to: ptr, at: u64, x: u64, y: u64, carry: u64) -> u64:
    """Adds x·y and the carry to the limb there; the new carry."""
    s = u128(x) * u128(y) + u128(load(u64, to, at)) + u128(carry)
    store(to, at, u64(s))
    return u64(s >> 64)


@inlined
def subtract_product(to: ptr, at: u64, x: u64, y: u64, borrow: u64) -> u64:
    s = u128(x) * u128(y) + u128(borrow)
    limb = load(u64, to, at)
    store(to, at, limb - u64(s))
    return u64(s >> 64) + u64(limb < u64(s))


@outlined
def add_row(to: ptr, a: ptr, y: u64, size: u64) -> u64:
    """to += a·y over `size` bytes; the carry."""
    carry: u64 = 0
    at: u64 = 0
    while at + 4 * LIMB <= size:
        for k in range(4):
            carry = add_product(to, at + LIMB * k, load(u64, a, at + LIMB * k), y, carry)
        at += 4 * LIMB
    while at < size:
        carry = add_product(to, at, load(u64, a, at), y, carry)
        at += LIMB
    return carry


@outlined
def subtract_row(to: ptr, a: ptr, y: u64, size: u64) -> u64:
    borrow: u64 = 0
    at: u64 = 0
    while at + 4 * LIMB <= size:
        for k in range(4):
            borrow = subtract_product(to, at + LIMB * k, load(u64, a, at + LIMB * k), y, borrow)
        at += 4 * LIMB
    while at < size:
        borrow = subtract_product(to, at, load(u64, a, at), y, borrow)
        at += LIMB
    return borrow


@exported
def modexp_multiply(out: ptr, a: ptr, b: ptr, limbs: u64, start: u64, stop: u64) -> None:
    """Rows of a·b, of as many limbs each; out, zero before the first row, takes twice as many."""
    while start < stop:
        carry = add_row(out + LIMB * start, b, load(u64, a, LIMB * start), LIMB * limbs)
        store(out, LIMB * (start + limbs), carry)
        start += 1


@native
def add_back(to: ptr, modulus: ptr, limbs: u64) -> None:
    """The quotient's limb was one too large."""
    carry = add_row(to, modulus, 1, LIMB * limbs)
    store(to, LIMB * limbs, load(u64, to, LIMB * limbs) + carry)


@exported
def modexp_reduce(u: ptr, modulus: ptr, limbs: u64, reciprocal: u64, start: u64, stop: u64) -> None:
    """Rows of the division of u by the modulus, from `start` down to `stop`: row j clears limb j + limbs.

    The limbs from the first row's down must be less than the modulus, so that a limb holds each digit of the quotient.
    """
    d = u128(load(u64, modulus, LIMB * (limbs - 1))) << 64 | u128(load(u64, modulus, LIMB * (limbs - 2)))
    while start > stop:
        start -= 1
        at: ptr = u + LIMB * start
        top: ptr = at + LIMB * limbs
        high = u128(load(u64, top)) << 64 | u128(load(u64, top - LIMB))
        q: u64 = MOST
        if high < d:
            q = u64(pair_step(high, load(u64, top - 2 * LIMB), d, reciprocal))
        borrow = subtract_row(at, modulus, q, LIMB * limbs)
        rest = load(u64, top) - borrow
        store(top, 0, rest)
        while unlikely(rest != 0):
            add_back(at, modulus, limbs)
            rest = load(u64, top)


@exported
def modexp_reciprocal(modulus: ptr, limbs: u64) -> u64:
    high = load(u64, modulus, LIMB * (limbs - 1))
    return pair_reciprocal(u128(high) << 64 | u128(load(u64, modulus, LIMB * (limbs - 2))))


@native
def multiply_modulo(power: Power, out: ptr, a: ptr, b: ptr) -> None:
    limbs = power.limbs
    product: ptr = power.product
    fill(product, 0, 2 * LIMB * limbs)
    modexp_multiply(product, a, b, limbs, 0, limbs)
    modexp_reduce(product, power.modulus, limbs, power.reciprocal, limbs, 0)
    copy(out, product, LIMB * limbs)


@exported
def modexp_prepare(power: Power) -> None:
    """The base's powers, of which the first is there already."""
    size = LIMB * power.limbs
    at: ptr = power.table + 2 * size
    end: ptr = power.table + (size << power.window)
    while at != end:
        multiply_modulo(power, at, at - size, power.table + size)
        at += size


@native
def take_digit(power: Power, digit: u64) -> None:
    """result = result^(2^window) · base^digit"""
    size = LIMB * power.limbs
    entry: ptr = power.table + size * digit
    if power.started == 0:
        if digit != 0:
            copy(power.result, entry, size)
            power.started = 1
        return
    turns = power.window
    while turns != 0:
        multiply_modulo(power, power.result, power.result, power.result)
        turns -= 1
    if digit != 0:
        multiply_modulo(power, power.result, power.result, entry)


@exported
def modexp_advance(power: Power, most: u64) -> u64:
    """Takes in the exponent's next bytes; whether some are left."""
    end = power.done + most
    if end > power.size:
        end = power.size
    mask = (u64(1) << power.window) - 1
    while power.done < end:
        byte = u64(load(u8, power.exponent, power.done))
        shift: u64 = 8
        while shift != 0:
            shift -= power.window
            take_digit(power, byte >> shift & mask)
        power.done += 1
    return u64(end < power.size)


# -- moduli of one and two limbs ------------------------------------------------------------------------------------


@inlined
def limb_multiply(x: u64, y: u64, d: u64, v: u64) -> u64:
    s = u128(x) * u128(y)
    return u64(limb_step(u64(s >> 64), u64(s), d, v) >> 64)


@inlined
def pair_multiply(x: u128, y: u128, d: u128, v: u64) -> u128:
    s = u256(x) * u256(y)
    rest = pair_step(u128(s >> 128), u64(s >> 64), d, v)
    return u128(pair_step(u128(rest >> 64), u64(s), d, v) >> 64)


Number = u64  # what `modexp_limb` works on, and below `modexp_pair`
reciprocal_of, multiply = limb_reciprocal, limb_multiply


@exported
def modexp_limb(base: ptr, exponent: ptr, size: u64, modulus: ptr, result: ptr) -> None:
    """result becomes result^(256^size) · base^exponent, all below the normalised modulus."""
    d = load(Number, modulus)
    v = reciprocal_of(d)
    table = local(Number, 1 << WINDOW)
    table[0] = 1
    entry: u64 = 1
    while entry < 1 << WINDOW:
        table[entry] = multiply(table[entry - 1], load(Number, base), d, v)
        entry += 1
    total = load(Number, result)
    at: u64 = 0
    while at < size:
        shift: u64 = 8
        while shift != 0:
            shift -= WINDOW
            for _ in range(WINDOW):
                total = multiply(total, total, d, v)
            digit = u64(load(u8, exponent, at)) >> shift & 15
            total = multiply(total, table[digit], d, v)
        at += 1
    store(result, 0, total)


modexp_pair = specialised(
    modexp_limb, "modexp_pair", Number=u128, reciprocal_of=pair_reciprocal, multiply=pair_multiply
)
