"""The group G1 of bn254, y² = x³ + 3, as native code: Jacobian coordinates (X / Z², Y / Z³), Z = 0 for infinity."""

from __future__ import annotations

from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.native.lang import bswap, exported, fill, load, local, native, outlined, ptr, store, u64, u256
from fusevm.native.runtime.crypto.bn254_field import (
    ONE,
    fp_add,
    fp_double,
    fp_inverse,
    fp_mul,
    fp_read,
    fp_square,
    fp_sub,
    fp_write,
    montgomery,
    to_montgomery,
)

THREE = montgomery(3)
POINT = 64  # bytes of an affine point
Y, Z = 32, 64
JACOBIAN_LIMBS = 12

VALID, NOT_CANONICAL, NOT_ON_CURVE, NOT_ON_TWIST, NOT_IN_SUBGROUP = range(5)


@native
def g1_read(data: ptr, out: ptr) -> u64:
    """An affine point in Montgomery form from its 64 bytes, infinity as zeros; whether it is one."""
    x = fp_read(data)
    y = fp_read(data + Y)
    if x >= P or y >= P:
        return NOT_CANONICAL
    x = to_montgomery(x)
    y = to_montgomery(y)
    store(out, 0, x)
    store(out, Y, y)
    if (x | y) == 0:
        return VALID
    if fp_square(y) != fp_add(fp_mul(fp_square(x), x), THREE):
        return NOT_ON_CURVE
    return VALID


@native
def is_infinity(affine: ptr) -> u64:
    return u64((load(u256, affine) | load(u256, affine, Y)) == 0)


@native
def g1_set(point: ptr, affine: ptr) -> None:
    """From affine coordinates."""
    one: u256 = ONE
    store(point, 0, load(u256, affine))
    store(point, Y, load(u256, affine, Y))
    store(point, Z, one)
    if is_infinity(affine):
        fill(point, 0, 96)


@outlined
def g1_double(point: ptr) -> None:
    x = load(u256, point)
    y = load(u256, point, Y)
    yy = fp_square(y)
    s = fp_double(fp_double(fp_mul(x, yy)))
    xx = fp_square(x)
    m = fp_add(fp_double(xx), xx)
    x3 = fp_sub(fp_square(m), fp_double(s))
    fourth = fp_double(fp_double(fp_double(fp_square(yy))))
    store(point, Z, fp_double(fp_mul(y, load(u256, point, Z))))
    store(point, 0, x3)
    store(point, Y, fp_sub(fp_mul(m, fp_sub(s, x3)), fourth))


@outlined
def g1_add_affine(point: ptr, affine: ptr) -> None:
    """Adds a point that is not infinity."""
    z = load(u256, point, Z)
    if z == 0:
        g1_set(point, affine)
        return
    x = load(u256, point)
    y = load(u256, point, Y)
    zz = fp_square(z)
    h = fp_sub(fp_mul(load(u256, affine), zz), x)
    r = fp_sub(fp_mul(load(u256, affine, Y), fp_mul(zz, z)), y)
    if h == 0:
        if r == 0:
            g1_double(point)
        else:
            fill(point, 0, 96)
        return
    hh = fp_square(h)
    hhh = fp_mul(hh, h)
    v = fp_mul(x, hh)
    x3 = fp_sub(fp_sub(fp_square(r), hhh), fp_double(v))
    store(point, 0, x3)
    store(point, Y, fp_sub(fp_mul(r, fp_sub(v, x3)), fp_mul(y, hhh)))
    store(point, Z, fp_mul(z, h))


@native
def g1_write(out: ptr, point: ptr) -> None:
    z = load(u256, point, Z)
    if z == 0:
        fill(out, 0, POINT)
        return
    inverse = fp_inverse(z)
    square = fp_square(inverse)
    fp_write(out, fp_mul(load(u256, point), square))
    fp_write(out + Y, fp_mul(load(u256, point, Y), fp_mul(square, inverse)))


@exported
def bn254_add(data: ptr, out: ptr) -> u64:
    """The sum of two points of 64 bytes each; VALID or what is wrong with one."""
    left = local(u64, 8)
    right = local(u64, 8)
    total = local(u64, JACOBIAN_LIMBS)
    status = g1_read(data, left)
    if status == VALID:
        status = g1_read(data + POINT, right)
    if status != VALID:
        return status
    g1_set(total, left)
    if not is_infinity(right):
        g1_add_affine(total, right)
    g1_write(out, total)
    return VALID


@exported
def bn254_mul(data: ptr, out: ptr) -> u64:
    """A point of 64 bytes times a number of 32."""
    point = local(u64, 8)
    total = local(u64, JACOBIAN_LIMBS)
    status = g1_read(data, point)
    if status != VALID:
        return status
    fill(total, 0, 96)
    scalar = bswap(load(u256, data, POINT))
    if not is_infinity(point):
        left: u64 = 256
        while left != 0:
            left -= 1
            if load(u256, total, Z) != 0:  # infinity until the first bit that is set
                g1_double(total)
            if u64(scalar >> 255) != 0:
                g1_add_affine(total, point)
            scalar = scalar << 1
    g1_write(out, total)
    return VALID
