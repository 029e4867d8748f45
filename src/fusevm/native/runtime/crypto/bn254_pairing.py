"""The optimal ate pairing of bn254 as native code; `evm/precompiles/bn254_pairing.py` is the same to be read.

Points of G2 are on the twist y² = x³ + 3 / ξ over Fp2, in Jacobian coordinates while they are multiplied. A line is
scaled by a number of Fp2 so that nothing is divided: the final power takes such factors to one.
"""

from __future__ import annotations

from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.evm.precompiles.bn254_pairing import U
from fusevm.native.lang import Struct, Table, copy, exported, local, native, outlined, ptr, u64, u256
from fusevm.native.runtime.crypto.bn254_curve import (
    NOT_CANONICAL,
    NOT_IN_SUBGROUP,
    NOT_ON_TWIST,
    POINT,
    VALID,
    g1_read,
    is_infinity,
)
from fusevm.native.runtime.crypto.bn254_field import ONE, fp_negative, fp_read, montgomery, to_montgomery
from fusevm.native.runtime.crypto.bn254_tower import (
    FP,
    FP2,
    FP2_LIMBS,
    FP12_LIMBS,
    fp2_add,
    fp2_conjugate,
    fp2_double,
    fp2_equal,
    fp2_is_zero,
    fp2_minus_product,
    fp2_mul,
    fp2_negative,
    fp2_scale,
    fp2_set,
    fp2_square,
    fp2_sub,
    fp12_conjugate,
    fp12_frobenius,
    fp12_inverse,
    fp12_is_one,
    fp12_mul,
    fp12_mul_line,
    fp12_set_one,
    fp12_square,
    xi_to,
)

PAIR = 192  # bytes of input: a point of G1 and one of G2
G2 = 2 * FP2  # bytes of an affine point
LINE_LIMBS = 3 * FP2_LIMBS


def _signed_digits(number: int) -> list[int]:
    """Digits 0, 1 and -1 of which no two neighbours are other than zero, the highest first."""
    digits = []
    while number:
        digit = 2 - number % 4 if number % 2 else 0
        digits.append(digit)
        number = (number - digit) // 2
    return digits[::-1]


_DIGITS = _signed_digits(6 * U + 2)
LOOP = len(_DIGITS) - 1  # the digits after the leading one
LOOP_DIGITS = Table(u64, [digit % 3 for digit in _DIGITS[1:]])
MINUS_ONE = 2
U_BITS = U.bit_length()

_NORM_OF_XI = 82  # 3 / ξ = 3 (9 - i) / 82
TWIST_B = tuple(montgomery(part * pow(_NORM_OF_XI, -1, P)) for part in (27, -3))
PSI_X = xi_to((P - 1) // 3)
PSI_Y = xi_to((P - 1) // 2)


class Pair(Struct):
    """A pair in work; its fields are addressed by their offsets."""

    p_x: u256
    p_y: u256
    q_x: u256
    q_x_i: u256
    q_y: u256
    q_y_i: u256
    t_x: u256
    t_x_i: u256
    t_y: u256
    t_y_i: u256
    t_z: u256
    t_z_i: u256
    skips_g1: u64  # the point of G1 is infinity: the line counts as one, the other point is checked all the same
    skips_g2: u64  # the point of G2 is infinity


PAIR_SIZE = Pair.byte_size()
Q, T = Pair.offset("q_x"), Pair.offset("t_x")


@native
def g2_read(data: ptr, out: ptr) -> u64:
    """An affine point of the twist in Montgomery form; its coordinates a + b i are written b first."""
    x_i = fp_read(data)
    x = fp_read(data + FP)
    y_i = fp_read(data + 2 * FP)
    y = fp_read(data + 3 * FP)
    if x >= P or x_i >= P or y >= P or y_i >= P:
        return NOT_CANONICAL
    fp2_set(out, to_montgomery(x), to_montgomery(x_i))
    fp2_set(out + FP2, to_montgomery(y), to_montgomery(y_i))
    if (x | x_i | y | y_i) == 0:
        return VALID
    left = local(u64, FP2_LIMBS)
    right = local(u64, FP2_LIMBS)
    fp2_square(right, out)
    fp2_mul(right, right, out)
    fp2_square(left, out + FP2)
    fp2_sub(left, left, right)
    fp2_set(right, TWIST_B[0], TWIST_B[1])
    if not fp2_equal(left, right):
        return NOT_ON_TWIST
    return VALID


@native
def psi(out: ptr, point: ptr) -> None:
    """The Frobenius map of the curve, seen on the twist."""
    factor = local(u64, FP2_LIMBS)
    fp2_set(factor, PSI_X[0], PSI_X[1])
    fp2_conjugate(out, point)
    fp2_mul(out, out, factor)
    fp2_set(factor, PSI_Y[0], PSI_Y[1])
    fp2_conjugate(out + FP2, point + FP2)
    fp2_mul(out + FP2, out + FP2, factor)


@outlined
def double_step(pair: Pair, line: ptr) -> None:
    """T becomes 2T; the tangent at T times 2 Y Z³: 2 Y Z³ y_P - 3 X² Z² x_P w + (3 X³ - 2 Y²) w³."""
    x: ptr = pair + T
    y: ptr = x + FP2
    z: ptr = x + 2 * FP2
    a = local(u64, FP2_LIMBS)
    b = local(u64, FP2_LIMBS)
    c = local(u64, FP2_LIMBS)
    d = local(u64, FP2_LIMBS)
    zz = local(u64, FP2_LIMBS)
    fp2_square(a, x)
    fp2_square(b, y)
    fp2_square(c, b)
    fp2_square(zz, z)
    fp2_add(d, x, b)
    fp2_square(d, d)
    fp2_sub(d, d, a)
    fp2_sub(d, d, c)
    fp2_double(d, d)  # 4 X Y²
    e = local(u64, FP2_LIMBS)
    fp2_double(e, a)
    fp2_add(e, e, a)  # 3 X²
    fp2_mul(line + 2 * FP2, e, x)
    fp2_double(b, b)
    fp2_sub(line + 2 * FP2, line + 2 * FP2, b)
    fp2_mul(z, z, y)
    fp2_double(z, z)
    fp2_square(x, e)
    fp2_sub(x, x, d)
    fp2_sub(x, x, d)
    fp2_sub(d, d, x)
    fp2_mul(y, e, d)
    fp2_double(c, c)
    fp2_double(c, c)
    fp2_double(c, c)
    fp2_sub(y, y, c)
    fp2_mul(line, z, zz)
    fp2_scale(line, line, pair.p_y)
    fp2_mul(line + FP2, e, zz)
    fp2_scale(line + FP2, line + FP2, fp_negative(pair.p_x))


@outlined
def add_step(pair: Pair, other: ptr, line: ptr) -> None:
    """T becomes T + Q, Q affine; the chord times Z of the sum: Z y_P - R x_P w + (R x_Q - Z y_Q) w³.

    Where T is ±Q, or infinity, Z becomes zero and stays so. Points of the subgroup never meet that: the multiples in
    between are neither 0 nor ±1.
    """
    x: ptr = pair + T
    y: ptr = x + FP2
    z: ptr = x + 2 * FP2
    h = local(u64, FP2_LIMBS)
    r = local(u64, FP2_LIMBS)
    t = local(u64, FP2_LIMBS)
    v = local(u64, FP2_LIMBS)
    fp2_square(t, z)
    fp2_mul(h, other, t)
    fp2_sub(h, h, x)
    fp2_mul(t, t, z)
    fp2_mul(r, other + FP2, t)
    fp2_sub(r, r, y)
    fp2_mul(z, z, h)
    fp2_square(t, h)
    fp2_mul(v, x, t)
    fp2_mul(t, t, h)
    fp2_square(x, r)
    fp2_sub(x, x, t)
    fp2_sub(x, x, v)
    fp2_sub(x, x, v)
    fp2_sub(v, v, x)
    fp2_mul(t, t, y)
    fp2_mul(y, r, v)
    fp2_sub(y, y, t)
    fp2_scale(line, z, pair.p_y)
    fp2_scale(line + FP2, r, fp_negative(pair.p_x))
    fp2_mul(t, r, other)
    fp2_minus_product(line + 2 * FP2, t, z, other + FP2)


@native
def double_and_take_in(f: ptr, pair: Pair) -> None:
    line = local(u64, LINE_LIMBS)
    double_step(pair, line)
    if pair.skips_g1 == 0:
        fp12_mul_line(f, line)


@native
def add_and_take_in(f: ptr, pair: Pair, other: ptr) -> None:
    line = local(u64, LINE_LIMBS)
    add_step(pair, other, line)
    if pair.skips_g1 == 0:
        fp12_mul_line(f, line)


@native
def add_digit(f: ptr, pair: Pair, digit: u64) -> None:
    other = local(u64, 2 * FP2_LIMBS)
    copy(other, pair + Q, G2)
    if digit == MINUS_ONE:
        fp2_negative(other + FP2, other + FP2)
    add_and_take_in(f, pair, other)


@native
def finish_pair(f: ptr, pair: Pair) -> u64:
    """The last two lines, through ψ(Q) and -ψ²(Q); and whether Q is in the subgroup.

    That is whether [6u+2] Q + ψ(Q) - ψ²(Q) + ψ³(Q) = 0, and T is the sum of the first three.
    """
    image = local(u64, 2 * FP2_LIMBS)
    minus = local(u64, 2 * FP2_LIMBS)
    psi(image, pair + Q)
    add_and_take_in(f, pair, image)
    psi(image, image)
    copy(minus, image, FP2)
    fp2_negative(minus + FP2, image + FP2)
    add_and_take_in(f, pair, minus)
    psi(image, image)
    fp2_negative(image + FP2, image + FP2)
    return equals_affine(pair + T, image)


@native
def equals_affine(point: ptr, affine: ptr) -> u64:
    """Whether X = x Z² and Y = y Z³, Z not being zero."""
    z: ptr = point + 2 * FP2
    if fp2_is_zero(z):
        return 0
    power = local(u64, FP2_LIMBS)
    t = local(u64, FP2_LIMBS)
    fp2_square(power, z)
    fp2_mul(t, power, affine)
    if not fp2_equal(t, point):
        return 0
    fp2_mul(power, power, z)
    fp2_mul(t, power, affine + FP2)
    return fp2_equal(t, point + FP2)


@native
def pair_read(data: ptr, pair: Pair) -> u64:
    status = g1_read(data, pair)
    if status == VALID:
        status = g2_read(data + POINT, pair + Q)
    pair.skips_g1 = is_infinity(pair)
    pair.skips_g2 = u64(fp2_is_zero(pair + Q) & fp2_is_zero(pair + Q + FP2))
    copy(pair + T, pair + Q, G2)
    fp2_set(pair + T + G2, ONE, 0)
    return status


@exported
def bn254_miller(data: ptr, count: u64, work: ptr, f: ptr, first: u64) -> u64:
    """f times the Miller functions of `count` pairs, which share the squarings; VALID or what is wrong with one.

    `work` has room for that many pairs. Where this is the first of several parts, f begins as one.
    """
    if first != 0:
        fp12_set_one(f)
    end: ptr = work
    left = count
    while left != 0:
        left -= 1
        pair = Pair(end)
        status = pair_read(data, pair)
        if status != VALID:
            return status
        if pair.skips_g2 == 0:  # a pair with infinity on the twist counts as one
            end += PAIR_SIZE
        data += PAIR
    if end == work:
        return VALID
    product = local(u64, FP12_LIMBS)
    fp12_set_one(product)
    step: u64 = 0
    while step < LOOP:
        fp12_square(product, product)
        digit = LOOP_DIGITS[step]
        at: ptr = work
        while at != end:
            double_and_take_in(product, Pair(at))
            if digit != 0:
                add_digit(product, Pair(at), digit)
            at += PAIR_SIZE
        step += 1
    at = work
    while at != end:
        if not finish_pair(product, Pair(at)):
            return NOT_IN_SUBGROUP
        at += PAIR_SIZE
    fp12_mul(f, f, product)
    return VALID


# -- the final power ------------------------------------------------------------------------------------------------


@native
def power_u(out: ptr, a: ptr) -> None:
    """a^u"""
    result = local(u64, FP12_LIMBS)
    copy(result, a, 8 * FP12_LIMBS)
    left: u64 = U_BITS - 1
    while left != 0:
        left -= 1
        fp12_square(result, result)
        if U >> left & 1 != 0:
            fp12_mul(result, result, a)
    copy(out, result, 8 * FP12_LIMBS)


@native
def power_6(out: ptr, a: ptr) -> None:
    t = local(u64, FP12_LIMBS)
    fp12_square(t, a)
    fp12_mul(t, t, a)
    fp12_square(out, t)


@native
def easy_part(f: ptr) -> None:
    """f^((p^6 - 1)(p² + 1))"""
    t = local(u64, FP12_LIMBS)
    fp12_inverse(t, f)
    fp12_conjugate(f, f)
    fp12_mul(f, f, t)
    fp12_frobenius(t, f)
    fp12_frobenius(t, t)
    fp12_mul(f, f, t)


@exported
def bn254_is_one(f: ptr) -> u64:
    """Whether f^((p^12 - 1) / r) is one, with the exponents l0, l1, l2 of the readable version. f is used up."""
    if fp12_is_one(f):
        return 1
    u1 = local(u64, FP12_LIMBS)
    u2 = local(u64, FP12_LIMBS)
    u3 = local(u64, FP12_LIMBS)
    common = local(u64, FP12_LIMBS)
    t = local(u64, FP12_LIMBS)
    easy_part(f)
    power_u(u1, f)
    power_u(u2, u1)
    power_u(u3, u2)
    power_6(common, u3)
    fp12_square(t, u2)
    fp12_mul(common, common, t)
    fp12_mul(common, common, u2)
    fp12_mul(t, t, u1)  # 2u² + u
    power_6(t, t)
    fp12_square(u1, u1)
    fp12_mul(common, common, u1)
    power_6(common, common)
    fp12_mul(t, t, common)
    fp12_square(u1, f)
    fp12_mul(t, t, u1)
    fp12_conjugate(t, t)  # f^l0
    fp12_conjugate(common, common)
    fp12_mul(common, common, f)
    fp12_frobenius(common, common)  # f^(l1 p)
    fp12_mul(t, t, common)
    power_6(u2, u2)
    fp12_mul(u2, u2, f)
    fp12_frobenius(f, f)
    fp12_mul(u2, u2, f)  # f^(l2 + p), of which the square of the Frobenius map makes f^(l2 p² + p³)
    fp12_frobenius(u2, u2)
    fp12_frobenius(u2, u2)
    fp12_mul(t, t, u2)
    return fp12_is_one(t)
