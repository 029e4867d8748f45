"""The field of secp256k1 and its group's order as native code, in the subset of `lang`: numbers below P, or below N.

Only public data comes here (signatures and hashes), so how long something takes may depend on it.
"""

from __future__ import annotations

from fusevm.evm.secp256k1 import FIELD as P
from fusevm.evm.secp256k1 import ORDER as N
from fusevm.native.lang import inlined, load, local, outlined, ptr, select, specialised, u64, u128, u256
from fusevm.native.runtime.crypto.inverse import almost_inverse
from fusevm.native.runtime.division import mulmod

LIMBS = 4
FOLD = 2**256 - P  # what 2^256 is modulo P: 33 bits
LEFT = 511  # `fp_inverse` divides by a power of two: by this one, after multiplying


@inlined
def fp_add(x: u256, y: u256) -> u256:
    total = x + y
    less = total + FOLD  # total - P, modulo 2^256
    return select((total < x) | (less < total), less, total)


@inlined
def fp_sub(x: u256, y: u256) -> u256:
    difference = x - y
    return select(x < y, difference - FOLD, difference)


@inlined
def fp_double(x: u256) -> u256:
    return fp_add(x, x)


@inlined
def fp_negative(x: u256) -> u256:
    return fp_sub(0, x)


@inlined
def reduced(t: ptr) -> u256:
    """Eight limbs modulo P: high·2^256 + low = high·FOLD + low, and what that has above 2^256 once more."""
    limbs = local(u64, 2 * LIMBS)
    for j in range(2 * LIMBS):
        limbs[j] = load(u64, t, 8 * j)
    carry: u64 = 0
    for j in range(LIMBS):
        s = u128(limbs[LIMBS + j]) * u128(FOLD) + u128(limbs[j]) + u128(carry)
        limbs[j] = u64(s)
        carry = u64(s >> 64)
    low = u256(limbs[0]) | u256(limbs[1]) << 64 | u256(limbs[2]) << 128 | u256(limbs[3]) << 192
    total = low + u256(u128(carry) * u128(FOLD))
    less = total + FOLD  # where the sum has passed 2^256 too: then it is small, and stays below P
    return select((total < low) | (less < total), less, total)


@outlined
def fp_mul(x: u256, y: u256) -> u256:
    a = local(u64, LIMBS)
    t = local(u64, 2 * LIMBS)
    for j in range(LIMBS):
        a[j] = u64(x >> 64 * j)
        t[j] = 0
    for i in range(LIMBS):
        b = u64(y >> 64 * i)
        carry: u64 = 0
        for j in range(LIMBS):
            s = u128(a[j]) * u128(b) + u128(t[i + j]) + u128(carry)
            t[i + j] = u64(s)
            carry = u64(s >> 64)
        t[i + LIMBS] = carry
    return reduced(t)


@outlined
def fp_square(x: u256) -> u256:
    """Products of different limbs are counted twice, so they are added up first and doubled together."""
    a = local(u64, LIMBS)
    t = local(u64, 2 * LIMBS)
    for j in range(LIMBS):
        a[j] = u64(x >> 64 * j)
        t[j] = 0
    t[2 * LIMBS - 1] = 0
    for i in range(LIMBS - 1):
        carry: u64 = 0
        for j in range(i + 1, LIMBS):
            s = u128(a[i]) * u128(a[j]) + u128(t[i + j]) + u128(carry)
            t[i + j] = u64(s)
            carry = u64(s >> 64)
        t[i + LIMBS] = carry
    top: u64 = 0  # the bit that doubling a limb hands to the next
    carry = 0
    for i in range(LIMBS):
        square = u128(a[i]) * u128(a[i])
        low = t[2 * i]
        high = t[2 * i + 1]
        s = u128(low << 1 | top) + u128(u64(square)) + u128(carry)
        t[2 * i] = u64(s)
        s = u128(high << 1 | low >> 63) + (square >> 64) + (s >> 64)
        t[2 * i + 1] = u64(s)
        carry = u64(s >> 64)
        top = high >> 63
    return reduced(t)


@outlined
def fp_inverse(x: u256) -> u256:
    """Of a number other than zero."""
    k = local(u64, 1)
    s = almost_inverse(x, P, k)
    power: u256 = 1
    if k[0] == LEFT - 256:
        s = fp_mul(s, FOLD)  # 2^256
    else:
        s = fp_mul(s, power << u256(LEFT - k[0]))
    return fp_mul(s, DIVIDED)


@inlined
def scalar_mul(x: u256, y: u256) -> u256:
    return mulmod(x, y, N)


DIVIDED = pow(2, -LEFT, P)
scalar_inverse = specialised(
    fp_inverse, "scalar_inverse", P=N, fp_mul=scalar_mul, FOLD=2**256 - N, DIVIDED=pow(2, -LEFT, N)
)


@inlined
def squared(x: u256, times: u64) -> u256:
    while times != 0:
        x = fp_square(x)
        times -= 1
    return x


@outlined
def fp_root(x: u256) -> u256:
    """A square root of a square: x^((P + 1) / 4), P being 3 modulo 4.

    In binary the exponent is 223 ones, a zero, 22 ones, four zeros, two ones, two zeros. Each name says how many ones
    its exponent is made of.
    """
    ones_2 = fp_mul(fp_square(x), x)
    ones_3 = fp_mul(fp_square(ones_2), x)
    ones_6 = fp_mul(squared(ones_3, 3), ones_3)
    ones_9 = fp_mul(squared(ones_6, 3), ones_3)
    ones_11 = fp_mul(squared(ones_9, 2), ones_2)
    ones_22 = fp_mul(squared(ones_11, 11), ones_11)
    ones_44 = fp_mul(squared(ones_22, 22), ones_22)
    ones_88 = fp_mul(squared(ones_44, 44), ones_44)
    ones_176 = fp_mul(squared(ones_88, 88), ones_88)
    ones_220 = fp_mul(squared(ones_176, 44), ones_44)
    ones_223 = fp_mul(squared(ones_220, 3), ones_3)
    found = fp_mul(squared(ones_223, 23), ones_22)
    return squared(fp_mul(squared(found, 6), ones_2), 2)
