"""The fields of p², p^6 and p^12 over bn254's as native code: towers of coefficients in memory, each 32 bytes.

    Fp2 = Fp[i] / (i² + 1),  Fp6 = Fp2[v] / (v³ - ξ),  Fp12 = Fp6[w] / (w² - v),  ξ = 9 + i
Results may be written over operands: operands are read first.
"""

from __future__ import annotations

from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.native.lang import copy, fill, inlined, load, local, native, outlined, ptr, store, u64, u256
from fusevm.native.runtime.crypto.bn254_field import (
    ONE,
    fp_add,
    fp_double,
    fp_inverse,
    fp_mul,
    fp_negative,
    fp_sub,
    montgomery,
    product,
)

FP = 32
FP2, FP6, FP12 = 2 * FP, 6 * FP, 12 * FP
FP2_LIMBS, FP6_LIMBS, FP12_LIMBS = FP2 // 8, FP6 // 8, FP12 // 8


# -- p² -------------------------------------------------------------------------------------------------------------


@outlined
def fp2_mul(out: ptr, a: ptr, b: ptr) -> None:
    """Karatsuba: (a0 + a1)(b0 + b1) - a0 b0 - a1 b1 is the imaginary part. `product` takes sums as they are."""
    a0 = load(u256, a)
    a1 = load(u256, a, FP)
    b0 = load(u256, b)
    b1 = load(u256, b, FP)
    real = product(a0, b0)
    imaginary = product(a1, b1)
    both = product(a0 + a1, b0 + b1)
    store(out, 0, fp_sub(real, imaginary))
    store(out, FP, fp_sub(fp_sub(both, real), imaginary))


@outlined
def fp2_square(out: ptr, a: ptr) -> None:
    """(a0 + a1)(a0 - a1) and 2 a0 a1."""
    a0 = load(u256, a)
    a1 = load(u256, a, FP)
    real = product(a0 + a1, fp_sub(a0, a1))
    store(out, FP, product(a0 + a0, a1))
    store(out, 0, real)


@outlined
def fp2_scale(out: ptr, a: ptr, factor: u256) -> None:
    """Times a number of Fp."""
    store(out, 0, product(load(u256, a), factor))
    store(out, FP, product(load(u256, a, FP), factor))


@outlined
def fp2_add(out: ptr, a: ptr, b: ptr) -> None:
    store(out, 0, fp_add(load(u256, a), load(u256, b)))
    store(out, FP, fp_add(load(u256, a, FP), load(u256, b, FP)))


@outlined
def fp2_sub(out: ptr, a: ptr, b: ptr) -> None:
    store(out, 0, fp_sub(load(u256, a), load(u256, b)))
    store(out, FP, fp_sub(load(u256, a, FP), load(u256, b, FP)))


@native
def fp2_double(out: ptr, a: ptr) -> None:
    fp2_add(out, a, a)


@native
def fp2_negative(out: ptr, a: ptr) -> None:
    store(out, 0, fp_negative(load(u256, a)))
    store(out, FP, fp_negative(load(u256, a, FP)))


@native
def fp2_conjugate(out: ptr, a: ptr) -> None:
    store(out, 0, load(u256, a))
    store(out, FP, fp_negative(load(u256, a, FP)))


@inlined
def nine_times(x: u256) -> u256:
    return fp_add(fp_double(fp_double(fp_double(x))), x)


@outlined
def fp2_times_xi(out: ptr, a: ptr) -> None:
    """(9 + i)(a0 + a1 i)"""
    a0 = load(u256, a)
    a1 = load(u256, a, FP)
    store(out, 0, fp_sub(nine_times(a0), a1))
    store(out, FP, fp_add(nine_times(a1), a0))


@native
def fp2_inverse(out: ptr, a: ptr) -> None:
    a0 = load(u256, a)
    a1 = load(u256, a, FP)
    norm = fp_inverse(fp_add(fp_mul(a0, a0), fp_mul(a1, a1)))
    store(out, 0, fp_mul(a0, norm))
    store(out, FP, fp_negative(fp_mul(a1, norm)))


@native
def fp2_is_zero(a: ptr) -> u64:
    return u64((load(u256, a) | load(u256, a, FP)) == 0)


@native
def fp2_equal(a: ptr, b: ptr) -> u64:
    return u64(((load(u256, a) ^ load(u256, b)) | (load(u256, a, FP) ^ load(u256, b, FP))) == 0)


@native
def fp2_set(out: ptr, real: u256, imaginary: u256) -> None:
    store(out, 0, real)
    store(out, FP, imaginary)


# -- p^6 ------------------------------------------------------------------------------------------------------------


@outlined
def fp6_add(out: ptr, a: ptr, b: ptr) -> None:
    for k in range(3):
        fp2_add(out + FP2 * k, a + FP2 * k, b + FP2 * k)


@outlined
def fp6_sub(out: ptr, a: ptr, b: ptr) -> None:
    for k in range(3):
        fp2_sub(out + FP2 * k, a + FP2 * k, b + FP2 * k)


@native
def fp6_negative(out: ptr, a: ptr) -> None:
    for k in range(3):
        fp2_negative(out + FP2 * k, a + FP2 * k)


@native
def fp6_times_v(out: ptr, a: ptr) -> None:
    """v (a0 + a1 v + a2 v²) = ξ a2 + a0 v + a1 v²"""
    last = local(u64, FP2_LIMBS)
    fp2_times_xi(last, a + 2 * FP2)
    copy(out + FP2, a, 2 * FP2)
    copy(out, last, FP2)


@native
def fp2_cross(out: ptr, a: ptr, b: ptr, c: ptr, d: ptr, ac: ptr, bd: ptr) -> None:
    """a d + b c = (a + b)(c + d) - a c - b d"""
    left = local(u64, FP2_LIMBS)
    right = local(u64, FP2_LIMBS)
    fp2_add(left, a, b)
    fp2_add(right, c, d)
    fp2_mul(left, left, right)
    fp2_sub(left, left, ac)
    fp2_sub(out, left, bd)


@outlined
def fp6_mul(out: ptr, a: ptr, b: ptr) -> None:
    """Six products in Fp2 (Karatsuba for each two coefficients)."""
    t0 = local(u64, FP2_LIMBS)
    t1 = local(u64, FP2_LIMBS)
    t2 = local(u64, FP2_LIMBS)
    c0 = local(u64, FP2_LIMBS)
    c1 = local(u64, FP2_LIMBS)
    c2 = local(u64, FP2_LIMBS)
    fp2_mul(t0, a, b)
    fp2_mul(t1, a + FP2, b + FP2)
    fp2_mul(t2, a + 2 * FP2, b + 2 * FP2)
    fp2_cross(c0, a + FP2, a + 2 * FP2, b + FP2, b + 2 * FP2, t1, t2)
    fp2_times_xi(c0, c0)
    fp2_cross(c1, a, a + FP2, b, b + FP2, t0, t1)
    fp2_cross(c2, a, a + 2 * FP2, b, b + 2 * FP2, t0, t2)
    fp2_add(out, c0, t0)
    fp2_times_xi(c0, t2)
    fp2_add(out + FP2, c1, c0)
    fp2_add(out + 2 * FP2, c2, t1)


@outlined
def fp6_mul_sparse(out: ptr, a: ptr, b: ptr) -> None:
    """Times b0 + b1 v: five products in Fp2."""
    t0 = local(u64, FP2_LIMBS)
    t1 = local(u64, FP2_LIMBS)
    t2 = local(u64, FP2_LIMBS)
    c1 = local(u64, FP2_LIMBS)
    fp2_mul(t0, a, b)
    fp2_mul(t1, a + FP2, b + FP2)
    fp2_cross(c1, a, a + FP2, b, b + FP2, t0, t1)
    fp2_mul(t2, a + 2 * FP2, b + FP2)
    fp2_times_xi(t2, t2)
    fp2_add(t0, t0, t2)
    fp2_mul(t2, a + 2 * FP2, b)
    copy(out, t0, FP2)
    copy(out + FP2, c1, FP2)
    fp2_add(out + 2 * FP2, t1, t2)


@native
def fp6_scale(out: ptr, a: ptr, factor: ptr) -> None:
    """Times a number of Fp2."""
    for k in range(3):
        fp2_mul(out + FP2 * k, a + FP2 * k, factor)


@native
def fp2_minus_product(out: ptr, a: ptr, b: ptr, c: ptr) -> None:
    """a - b c"""
    t = local(u64, FP2_LIMBS)
    fp2_mul(t, b, c)
    fp2_sub(out, a, t)


@native
def fp2_plus_product(out: ptr, a: ptr, b: ptr, c: ptr) -> None:
    """a + b c"""
    t = local(u64, FP2_LIMBS)
    fp2_mul(t, b, c)
    fp2_add(out, a, t)


@native
def fp6_inverse(out: ptr, a: ptr) -> None:
    """c / (a0 c0 + ξ (a2 c1 + a1 c2)), c = (a0² - ξ a1 a2, ξ a2² - a0 a1, a1² - a0 a2)"""
    c = local(u64, FP6_LIMBS)
    t = local(u64, FP2_LIMBS)
    fp2_times_xi(t, a + FP2)
    fp2_square(c, a)
    fp2_minus_product(c, c, t, a + 2 * FP2)
    fp2_times_xi(t, a + 2 * FP2)
    fp2_mul(t, t, a + 2 * FP2)
    fp2_minus_product(c + FP2, t, a, a + FP2)
    fp2_square(t, a + FP2)
    fp2_minus_product(c + 2 * FP2, t, a, a + 2 * FP2)
    fp2_mul(t, a + 2 * FP2, c + FP2)
    fp2_plus_product(t, t, a + FP2, c + 2 * FP2)
    fp2_times_xi(t, t)
    fp2_plus_product(t, t, a, c)
    fp2_inverse(t, t)
    fp6_scale(out, c, t)


# -- p^12 -----------------------------------------------------------------------------------------------------------


@native
def fp12_set_one(out: ptr) -> None:
    fill(out, 0, FP12)
    one: u256 = ONE
    store(out, 0, one)


@native
def fp12_is_one(a: ptr) -> u64:
    rest: u256 = load(u256, a) ^ ONE
    for k in range(1, 12):
        rest |= load(u256, a, FP * k)
    return u64(rest == 0)


@native
def fp12_join(out: ptr, low: ptr, high: ptr, total: ptr) -> None:
    """a b of a0 b0, a1 b1 and (a0 + a1)(b0 + b1), of which the last two are used up: w² = v."""
    fp6_sub(total, total, low)
    fp6_sub(out + FP6, total, high)
    fp6_times_v(high, high)
    fp6_add(out, low, high)


@outlined
def fp12_mul(out: ptr, a: ptr, b: ptr) -> None:
    t0 = local(u64, FP6_LIMBS)
    t1 = local(u64, FP6_LIMBS)
    left = local(u64, FP6_LIMBS)
    right = local(u64, FP6_LIMBS)
    fp6_mul(t0, a, b)
    fp6_mul(t1, a + FP6, b + FP6)
    fp6_add(left, a, a + FP6)
    fp6_add(right, b, b + FP6)
    fp6_mul(left, left, right)
    fp12_join(out, t0, t1, left)


@outlined
def fp12_square(out: ptr, a: ptr) -> None:
    """(a0 + a1 w)² with two products: (a0 + a1)(a0 + v a1) - (1 + v) a0 a1 and 2 a0 a1."""
    t = local(u64, FP6_LIMBS)
    left = local(u64, FP6_LIMBS)
    right = local(u64, FP6_LIMBS)
    fp6_mul(t, a, a + FP6)
    fp6_add(left, a, a + FP6)
    fp6_times_v(right, a + FP6)
    fp6_add(right, right, a)
    fp6_mul(left, left, right)
    fp6_sub(left, left, t)
    fp6_add(out + FP6, t, t)
    fp6_times_v(t, t)
    fp6_sub(out, left, t)


@outlined
def fp12_mul_line(f: ptr, line: ptr) -> None:
    """f times l0 + (l1 + l3 v) w, the coefficients one after another: 13 products in Fp2."""
    t0 = local(u64, FP6_LIMBS)
    t1 = local(u64, FP6_LIMBS)
    total = local(u64, FP6_LIMBS)
    factor = local(u64, 2 * FP2_LIMBS)
    fp6_scale(t0, f, line)
    fp6_mul_sparse(t1, f + FP6, line + FP2)
    fp6_add(total, f, f + FP6)
    fp2_add(factor, line, line + FP2)
    copy(factor + FP2, line + 2 * FP2, FP2)
    fp6_mul_sparse(total, total, factor)
    fp12_join(f, t0, t1, total)


@native
def fp12_conjugate(out: ptr, a: ptr) -> None:
    """a^(p^6), which takes w to -w."""
    copy(out, a, FP6)
    fp6_negative(out + FP6, a + FP6)


@native
def fp12_inverse(out: ptr, a: ptr) -> None:
    """(a0 - a1 w) / (a0² - v a1²)"""
    norm = local(u64, FP6_LIMBS)
    t = local(u64, FP6_LIMBS)
    fp6_mul(norm, a, a)
    fp6_mul(t, a + FP6, a + FP6)
    fp6_times_v(t, t)
    fp6_sub(norm, norm, t)
    fp6_inverse(norm, norm)
    fp6_negative(t, a + FP6)
    fp6_mul(out, a, norm)
    fp6_mul(out + FP6, t, norm)


def xi_to(exponent: int) -> tuple[int, int]:
    """A power of ξ in Montgomery form, computed by Python."""
    result, base = (1, 0), (9, 1)
    for bit in bin(exponent)[2:]:
        result = ((result[0] ** 2 - result[1] ** 2) % P, 2 * result[0] * result[1] % P)
        if bit == "1":
            real, imaginary = result
            result = ((real * base[0] - imaginary * base[1]) % P, (real * base[1] + imaginary * base[0]) % P)
    return montgomery(result[0]), montgomery(result[1])


# (w^k)^p = ξ^(k (p - 1) / 6) w^k. In memory w's powers are 0, 2, 4, then 1, 3, 5.
FROBENIUS = tuple(xi_to(power * (P - 1) // 6) for power in (0, 2, 4, 1, 3, 5))


@outlined
def fp12_frobenius(out: ptr, a: ptr) -> None:
    """a^p"""
    factor = local(u64, FP2_LIMBS)
    for k in range(6):
        fp2_set(factor, FROBENIUS[k][0], FROBENIUS[k][1])
        fp2_conjugate(out + FP2 * k, a + FP2 * k)
        fp2_mul(out + FP2 * k, out + FP2 * k, factor)
