"""Division, remainder, ADDMOD, MULMOD and EXP on 256-bit words as native code, in the subset of `lang`.

Divisors must not be zero. LLVM's own division of wide words goes bit by bit; here it goes limb by limb, with the
reciprocals of Möller and Granlund ("Improved division by invariant integers"): once the reciprocal of a normalised
divisor (its top bit set) is known, a limb of quotient costs two multiplications and a correction. Two results travel
as one wide word, remainder above quotient; LLVM takes the halves apart again.
"""

from __future__ import annotations

from fusevm.native.lang import (
    clz,
    ctz,
    inlined,
    load,
    local,
    outlined,
    ptr,
    select,
    specialised,
    u64,
    u128,
    u192,
    u256,
    u320,
    u512,
    unlikely,
    x86_add_low_row,
    x86_add_row,
    x86_divide,
)
from fusevm.native.processor import target

LIMB = 0xFFFF_FFFF_FFFF_FFFF

# Does the processor divide 128 by 64 bits in few cycles? Ice Lake and Zen 3 brought that, and AES on long vectors.
FAST_DIVIDER = target().is_x86 and "+vaes" in target().features.split(",")

# Does the processor add along two flags? Broadwell and Zen brought that.
TWO_CARRIES = target().is_x86 and {"+adx", "+bmi2"} <= set(target().features.split(","))


# -- limbs: one or two words of 64 bits -----------------------------------------------------------------------------


@inlined
def high_product(x: u64, y: u64) -> u64:
    return u64(u128(x) * u128(y) >> 64)


@inlined
def plain_reciprocal(d: u64) -> u64:
    """(2^128 - 1) / d - 2^64, for a normalised d, in plain arithmetic: LLVM folds it where d is known."""
    # 11, 21, 34 and 65 bits, the last step exact: each doubles the precision of the one before.
    above = (d >> 24) + 1
    v = ((1 << 19) - 3 * (1 << 8)) // (d >> 55)
    v = (v << 11) - (v * v * above >> 40) - 1
    v = (v << 13) + (v * ((1 << 60) - v * above) >> 47)
    error = ((v >> 1) & -(d & 1)) - v * ((d >> 1) + (d & 1))
    v = (v << 31) + (high_product(v, error) >> 1)
    return v - u64((u128(v) * u128(d) + u128(d)) >> 64) - d


@inlined
def reciprocal(d: u64) -> u64:
    if FAST_DIVIDER:
        return u64(x86_divide(~d, LIMB, d))
    return plain_reciprocal(d)


@inlined
def limb_shift(d: u64) -> u64:
    """How far a divisor of one limb must be shifted for `limb_step`."""
    if FAST_DIVIDER:
        return 0
    return clz(d)


@inlined
def limb_reciprocal(d: u64) -> u64:
    if FAST_DIVIDER:
        return 0
    return reciprocal(d)


@inlined
def limb_step(high: u64, low: u64, d: u64, v: u64) -> u128:
    """(high, low) / d for high < d: remainder and quotient."""
    if FAST_DIVIDER:
        return x86_divide(high, low, d)
    return plain_step(high, low, d, v)


@inlined
def plain_step(high: u64, low: u64, d: u64, v: u64) -> u128:
    estimate = u128(v) * u128(high) + (u128(high) << 64 | u128(low))
    q = u64(estimate >> 64) + 1
    r = low - q * d
    if r > u64(estimate):
        q -= 1
        r += d
    if unlikely(r >= d):
        q += 1
        r -= d
    return u128(r) << 64 | u128(q)


@inlined
def pair_reciprocal(d: u128) -> u64:
    """(2^192 - 1) / d - 2^64, for a normalised d of two limbs."""
    d1 = u64(d >> 64)
    d0 = u64(d)
    v = reciprocal(d1)
    p = d1 * v + d0
    if p < d0:
        v -= 1
        if p >= d1:
            v -= 1
            p -= d1
        p -= d1
    t = u128(v) * u128(d0)
    p += u64(t >> 64)
    if p < u64(t >> 64):
        v -= 1
        if unlikely((u128(p) << 64 | u128(u64(t))) >= d):
            v -= 1
    return v


@inlined
def pair_step(high: u128, low: u64, d: u128, v: u64) -> u192:
    """(high, low) / d for high < d, two limbs each: remainder and quotient."""
    u2 = u64(high >> 64)
    estimate = u128(v) * u128(u2) + high
    q = u64(estimate >> 64)
    r1 = u64(high) - q * u64(d >> 64)
    r = (u128(r1) << 64 | u128(low)) - u128(u64(d)) * u128(q) - d
    q += 1
    if u64(r >> 64) >= u64(estimate):
        q -= 1
        r += d
    if unlikely(r >= d):
        q += 1
        r -= d
    return u192(r) << 64 | u192(q)


@inlined
def times_limb(x: u256, limb: u64) -> u320:
    even = u256(u128(u64(x >> 128)) * u128(limb)) << 128 | u256(u128(u64(x)) * u128(limb))
    odd = u256(u128(u64(x >> 192)) * u128(limb)) << 128 | u256(u128(u64(x >> 64)) * u128(limb))
    return u320(even) + (u320(odd) << 64)


@inlined
def quad_step(rest: u256, low: u64, d: u256, v: u64) -> u320:
    """(rest, low) / d for rest < d, d normalised: remainder and quotient. The top limbs guess, one too high at most."""
    if unlikely(rest >> 128 == d >> 128):
        return u320(((rest - d) << 64 | u256(low)) + d) << 64 | u320(u64(LIMB))
    guess = pair_step(u128(rest >> 128), u64(rest >> 64), u128(d >> 128), v)
    q = u64(guess)
    above = u256(guess >> 64) << 128 | u256(u64(rest)) << 64 | u256(low)
    product = u256(q) * u256(u128(d))
    r = above - product
    if unlikely(above < product):
        q -= 1
        r += d
    return u320(r) << 64 | u320(q)


# -- words: 256 bits ------------------------------------------------------------------------------------------------


@inlined
def divide_by_limb(x: u256, d: u64) -> u512:
    """Remainder and quotient for a divisor of one limb."""
    s = limb_shift(d)
    d <<= s
    v = limb_reciprocal(d)
    n = u320(x) << u320(s & 63)
    q: u256 = 0
    r = u64(n >> 128)
    if x >> 128 != 0:
        step = limb_step(u64(n >> 256), u64(n >> 192), d, v)
        q = u256(u64(step)) << 64
        step = limb_step(u64(step >> 64), r, d, v)
        q |= u256(u64(step))
        r = u64(step >> 64)
    if u128(r) << 64 | u128(u64(n >> 64)) >= u128(d):
        step = limb_step(r, u64(n >> 64), d, v)
        q = q << 64 | u256(u64(step))
        r = u64(step >> 64)
    else:  # a quotient limb of zero, the commonest
        q <<= 64
        r = u64(n >> 64)
    step = limb_step(r, u64(n), d, v)
    return u512(u64(step >> 64) >> s) << 256 | u512(q << 64 | u256(u64(step)))


@inlined
def divide_by_pair(x: u256, d: u128) -> u512:
    """Remainder and quotient for a divisor of two limbs."""
    s = clz(d)
    d <<= s
    v = pair_reciprocal(d)
    n = u320(x) << u320(s & 63)
    q: u256 = 0
    r = u128(n >> 64)
    if x >> 128 != 0:
        r = u128(n >> 128)
        if x >> 192 != 0:
            step = pair_step(u128(n >> 192), u64(n >> 128), d, v)
            q = u256(u64(step)) << 64
            r = u128(step >> 64)
        step = pair_step(r, u64(n >> 64), d, v)
        q = (q | u256(u64(step))) << 64
        r = u128(step >> 64)
    step = pair_step(r, u64(n), d, v)
    return u512(u128(step >> 64) >> s) << 256 | u512(q | u256(u64(step)))


@inlined
def divide_pairs(x: u128, d: u128) -> u512:
    """Remainder and quotient of two limbs by two, where the processor divides fast.

    The quotient of x / 2 by the top 64 bits of d, shifted back, is too high by one at most ("Hacker's Delight", 9-5).
    """
    s = clz(u64(d >> 64))
    half = x >> 1
    q = u64(limb_step(u64(half >> 64), u64(half), u64((d << u128(s)) >> 64), 0)) >> (63 - s)
    q -= u64(q != 0)
    r = x - d * u128(q)
    if r >= d:
        q += 1
        r -= d
    return u512(r) << 256 | u512(q)


@inlined
def divide_by_quad(x: u256, d: u256) -> u512:
    """Remainder and quotient for a divisor of three or four limbs; three are taken as four, the lowest zero."""
    short = d >> 192 == 0
    d = select(short, d << 64, d)
    s = clz(u64(d >> 192)) & 63
    d <<= u256(s)
    v = pair_reciprocal(u128(d >> 128))
    n = u320(x) << u320(s)
    step = quad_step(u256(n >> 64), u64(n), d, v)
    q = u256(u64(step))
    r = u256(step >> 64)
    if short:
        step = quad_step(r, 0, d, v)
        q = q << 64 | u256(u64(step))
        r = u256(step >> 64) >> 64
    return u512(r >> u256(s)) << 256 | u512(q)


@inlined
def divide(x: u256, y: u256) -> u512:
    if y >> 64 == 0:
        return divide_by_limb(x, u64(y))
    if x < y:
        return u512(x) << 256
    if y >> 128 == 0:
        if FAST_DIVIDER and x >> 128 == 0:
            return divide_pairs(u128(x), u128(y))
        return divide_by_pair(x, u128(y))
    return divide_by_quad(x, y)


@outlined
def udiv_long(x: u256, y: u256) -> u256:
    return u256(divide(x, y))


@outlined
def urem_long(x: u256, y: u256) -> u256:
    return u256(divide(x, y) >> 256)


@inlined
def divide_short(x: u128, d: u64) -> u256:
    """Remainder and quotient of what the processor divides by itself."""
    high = u64(x >> 64)
    q: u64 = 0
    if high >= d:
        q = high // d
        high %= d
    step = limb_step(high, u64(x), d, 0)
    return u256(u64(step >> 64)) << 128 | u256(q) << 64 | u256(u64(step))


@inlined
def udiv(x: u256, y: u256) -> u256:
    """x / y. Most words are small: one machine instruction then."""
    if FAST_DIVIDER:
        if x >> 128 | y >> 64 == 0:
            return u256(u128(divide_short(u128(x), u64(y))))
    elif (x | y) >> 64 == 0:
        return u256(u64(x) // u64(y))
    return udiv_long(x, y)


@inlined
def urem(x: u256, y: u256) -> u256:
    """x mod y."""
    if FAST_DIVIDER:
        if x >> 128 | y >> 64 == 0:
            return divide_short(u128(x), u64(y)) >> 128
    elif (x | y) >> 64 == 0:
        return u256(u64(x) % u64(y))
    return urem_long(x, y)


@inlined
def sdiv(x: u256, y: u256) -> u256:
    """x / y of signed words. Signs are branched on: most words have none, and the division does not wait for them."""
    dividend = x
    divisor = y
    if unlikely((x | y) >> 255 != 0):
        dividend = select(x >> 255 != 0, -x, x)
        divisor = select(y >> 255 != 0, -y, y)
    quotient = udiv(dividend, divisor)
    if unlikely((x ^ y) >> 255 != 0):
        quotient = -quotient
    return quotient


@inlined
def udiv_known(x: u256, d: u64) -> u256:
    """x / d for a constant d: its reciprocal is a constant, too. Only a fast divider is faster."""
    if x >> 64 == 0:
        return u256(u64(x) // d)
    if x >> 128 != 0:
        return udiv_long(x, u256(d))
    s = clz(d)
    v = plain_reciprocal(d << s)
    n = u192(x) << u192(s)
    step = plain_step(u64(n >> 128), u64(n >> 64), d << s, v)
    q = u256(u64(step)) << 64
    return q | u256(u64(plain_step(u64(step >> 64), u64(n), d << s, v)))


# -- modular sums and products, powers ------------------------------------------------------------------------------


@outlined
def addmod(x: u256, y: u256, m: u256) -> u256:
    """(x + y) mod m, without wrapping."""
    total = x + y
    if x >= m or y >= m:
        if total >= x:
            return urem(total, m)
        x = urem(x, m)  # it wrapped: reduced words may still wrap, but at most by one m
        y = urem(y, m)
        total = x + y
    if total < x or total >= m:
        total -= m
    return total


@inlined
def add_row(x: u256, y: u64, start: u256) -> u320:
    """x · y + start."""
    if TWO_CARRIES:
        return x86_add_row(x, y, start)
    return times_limb(x, y) + u320(start)


@inlined
def add_row_at(x: ptr, y: u64, start: u256) -> u320:
    """The same for an x in memory, which then needs no registers."""
    if TWO_CARRIES:
        return x86_add_row(x, y, start)
    return times_limb(load(u256, x), y) + u320(start)


Factor = u256  # what `add_rows` takes, and below `add_rows_at`
add_one = add_row


@inlined
def add_rows(x: Factor, y: u256, row: u320) -> u512:
    """The product of x and y, given that of x and the lowest limb of y, with anything added that leaves it 512 bits."""
    low = u64(row)
    row = add_one(x, u64(y >> 64), u256(row >> 64))
    found = u128(u64(row)) << 64 | u128(low)
    row = add_one(x, u64(y >> 128), u256(row >> 64))
    third = u64(row)
    row = add_one(x, u64(y >> 192), u256(row >> 64))
    return u512(row) << 192 | u512(third) << 128 | u512(found)


add_rows_at = specialised(add_rows, "add_rows_at", Factor=ptr, add_one=add_row_at)


@inlined
def add_low_product(x: ptr, y: u256, start: u256) -> u256:
    """x · y + start for an x in memory, modulo 2^256."""
    if not TWO_CARRIES:
        return load(u256, x) * y + start
    first = x86_add_low_row(x, u64(y), start)
    second = x86_add_low_row(x, u64(y >> 64), u192(first >> 64))
    third = x86_add_low_row(x, u64(y >> 128), u128(second >> 64))
    top = u64(third >> 64) + load(u64, x) * u64(y >> 192)
    return u256(top) << 192 | u256(u64(third)) << 128 | u256(u64(second)) << 64 | u256(u64(first))


@inlined
def long_product(x: u256, y: u256) -> u512:
    """x · y, row by row: LLVM's own product of such words takes the upper halves for what they might be."""
    return add_rows(x, y, times_limb(x, u64(y)))


@inlined
def pair_rest(x: u256, s: u64, d: u128, v: u64) -> u128:
    """What x, shifted by s bits as d was, leaves by a divisor of two limbs."""
    n = u320(x) << u320(s & 63)
    r = u128(n >> 64)
    if x >> 128 != 0:
        r = u128(pair_step(u128(n >> 192), u64(n >> 128), d, v) >> 64)
        r = u128(pair_step(r, u64(n >> 64), d, v) >> 64)
    return u128(pair_step(r, u64(n), d, v) >> 64)


@inlined
def mulmod_by_pair(x: u256, y: u256, s: u64, d: u128, v: u64) -> u256:
    """By a modulus of two limbs: d, shifted by s bits, whose reciprocal is v.

    Neither rest waits for the other, and their product has four limbs.
    """
    product = u256(pair_rest(x, s, d, v)) * u256(pair_rest(y, s, d, v) >> u128(s & 63))
    r = u128(pair_step(u128(product >> 128), u64(product >> 64), d, v) >> 64)
    return u256(u128(pair_step(r, u64(product), d, v) >> 64) >> u128(s & 63))


@inlined
def mulmod_pair(x: u256, y: u256, m: u128) -> u256:
    """For a modulus of two limbs."""
    s = clz(u64(m >> 64))
    d = m << u128(s & 63)
    return mulmod_by_pair(x, y, s, d, pair_reciprocal(d))


@inlined
def mulmod_limb(x: u256, y: u256, m: u64) -> u256:
    """For a modulus of one limb."""
    one = u64(divide_by_limb(x, m) >> 256)
    other = u64(divide_by_limb(y, m) >> 256)
    return u256(divide_by_limb(u256(u128(one) * u128(other)), m) >> 256)


@outlined
def mulmod_brief(x: u256, y: u256, m: u128) -> u256:
    """(x · y) mod m, without wrapping, for an m of one or two limbs."""
    if m >> 64 == 0:
        return mulmod_limb(x, y, u64(m))
    return mulmod_pair(x, y, m)


@outlined
def mulmod_long(x: u256, y: u256, m: u256) -> u256:
    """For an m of three or four limbs."""
    product = long_product(x, y)
    if product >> 256 == 0:
        return urem(u256(product), m)
    return reduce(u256(product >> 256), u256(product), m)


@inlined
def mulmod(x: u256, y: u256, m: u256) -> u256:
    """(x · y) mod m, without wrapping."""
    if m >> 128 == 0:
        return mulmod_brief(x, y, u128(m))
    return mulmod_long(x, y, m)


@inlined
def reduce(high: u256, low: u256, m: u256) -> u256:
    """(high, low) mod m, for an m of three or four limbs."""
    short = m >> 192 == 0
    d = select(short, m << 64, m)
    s = clz(u64(d >> 192)) & 63
    d <<= u256(s)
    v = pair_reciprocal(u128(d >> 128))
    middle = u320(low) << u320(s)
    top = (u320(high) << u320(s)) | u320(u64(middle >> 256))
    limbs = local(u64, 5)  # still to be taken in, and a zero limb if m was raised by one
    for i in range(4):
        limbs[i + 1] = u64(middle >> 64 * i)
    limbs[0] = 0
    left: u64 = 5
    end = select(short, u64(0), u64(1))
    rest = u256(top >> 64)
    if unlikely(top >= u320(d)):
        rest = u256(quad_step(rest, u64(top), d, v) >> 64)
    else:
        rest = u256(top)
    while left != end:
        left -= 1
        rest = u256(quad_step(rest, limbs[left], d, v) >> 64)
    return select(short, rest >> 64, rest) >> u256(s)


@outlined
def power(x: u256, n: u256) -> u256:
    """x to the n, modulo 2^256: by squaring, for as many bits as n has."""
    if x & 1 == 0:
        if n > 255:
            return select(n == 0, u256(1), u256(0))
        if x & (x - 1) == 0 and x != 0:  # a power of two
            shift = ctz(x) * n
            return select(shift > 255, u256(0), u256(1) << (shift & 255))
    result: u256 = 1
    while True:
        if n & 1 != 0:
            result *= x
        n >>= 1
        if n == 0:
            return result
        x *= x
