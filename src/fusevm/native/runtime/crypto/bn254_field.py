"""The field of bn254 as native code, in the subset of `lang`: numbers below P in Montgomery form, x·2^256 mod P."""

from __future__ import annotations

from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.native.lang import bswap, inlined, load, local, native, outlined, ptr, select, store, u64, u128, u256
from fusevm.native.runtime.crypto.inverse import almost_inverse

LIMBS = 4
P_LIMBS = tuple(P >> 64 * i & (1 << 64) - 1 for i in range(LIMBS))
P_INVERSE = pow(-P, -1, 1 << 64)
R = 1 << 256


def montgomery(number: int) -> int:
    """The form a constant has in native code."""
    return number * R % P


ONE = montgomery(1)
R2 = R * R % P
R2_TIMES_16 = R2 * 16 % P


@inlined
def fp_add(x: u256, y: u256) -> u256:
    total = x + y  # P is below 2^254: no carry is lost
    return select(total < P, total, total - P)


@inlined
def fp_sub(x: u256, y: u256) -> u256:
    difference = x - y
    return select(x < y, difference + P, difference)


@inlined
def fp_double(x: u256) -> u256:
    return fp_add(x, x)


@inlined
def fp_negative(x: u256) -> u256:
    return fp_sub(0, x)


@inlined
def product(x: u256, y: u256) -> u256:
    """x·y / 2^256 mod P, for x and y below 2P: one row of the product and one of the reduction after another.

    The sum stays below x + P < 2^256 after each pair of rows, so it never needs a fifth limb.
    """
    a = local(u64, LIMBS)
    t = local(u64, LIMBS)
    for j in range(LIMBS):
        a[j] = u64(x >> 64 * j)
        t[j] = 0
    for i in range(LIMBS):
        b = u64(y >> 64 * i)
        carry: u64 = 0
        for j in range(LIMBS):
            s = u128(a[j]) * u128(b) + u128(t[j]) + u128(carry)
            t[j] = u64(s)
            carry = u64(s >> 64)
        top = carry
        m = t[0] * P_INVERSE
        s = u128(m) * u128(P_LIMBS[0]) + u128(t[0])
        carry = u64(s >> 64)
        for j in range(1, LIMBS):
            s = u128(m) * u128(P_LIMBS[j]) + u128(t[j]) + u128(carry)
            t[j - 1] = u64(s)
            carry = u64(s >> 64)
        t[LIMBS - 1] = top + carry
    total = u256(t[0]) | u256(t[1]) << 64 | u256(t[2]) << 128 | u256(t[3]) << 192
    return select(total < P, total, total - P)


@outlined
def fp_mul(x: u256, y: u256) -> u256:
    return product(x, y)


@inlined
def fp_square(x: u256) -> u256:
    return fp_mul(x, x)


@outlined
def fp_inverse(x: u256) -> u256:
    """Of a number other than zero."""
    # With x = a·2^256, the inverse's form is a^-1·2^256 = s·2^(512 - k), of which the last 2^4 are in the constant.
    k = local(u64, 1)
    s = almost_inverse(x, P, k)
    power: u256 = 1
    return fp_mul(fp_mul(s, power << u256(508 - k[0])), R2_TIMES_16)


@native
def fp_read(data: ptr) -> u256:
    """32 bytes, highest first; not yet in Montgomery form."""
    return bswap(load(u256, data))


@native
def fp_write(out: ptr, x: u256) -> None:
    store(out, 0, bswap(fp_mul(x, 1)))


@inlined
def to_montgomery(x: u256) -> u256:
    return fp_mul(x, R2)
