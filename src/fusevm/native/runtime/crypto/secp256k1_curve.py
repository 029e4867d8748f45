"""The group of secp256k1, y² = x³ + 7, as native code: Jacobian coordinates (X / Z², Y / Z³), Z = 0 for infinity."""

from __future__ import annotations

from fusevm.native.lang import fill, inlined, load, local, native, outlined, ptr, store, u64, u256
from fusevm.native.runtime.crypto.secp256k1_field import fp_add, fp_double, fp_mul, fp_square, fp_sub

AFFINE, JACOBIAN = 64, 96  # bytes of a point
Y, Z = 32, 64
WINDOW = 5  # bits of a digit, with its sign: what the odd multiples of a point are for
MULTIPLES = 1 << WINDOW - 2  # 1, 3, 5, … times the point


@outlined
def double(point: ptr) -> None:
    """Of infinity, infinity."""
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
def add(point: ptr, x2: u256, y2: u256) -> u256:
    """Adds a point in affine coordinates, not infinity; by what Z was multiplied, if neither point was special."""
    x = load(u256, point)
    y = load(u256, point, Y)
    z = load(u256, point, Z)
    if z == 0:
        put(point, x2, y2)
        return u256(1)
    zz = fp_square(z)
    h = fp_sub(fp_mul(x2, zz), x)
    r = fp_sub(fp_mul(y2, fp_mul(zz, z)), y)
    if h == 0:
        if r == 0:
            double(point)
        else:
            fill(point, 0, JACOBIAN)
        return u256(1)
    hh = fp_square(h)
    hhh = fp_mul(hh, h)
    v = fp_mul(x, hh)
    x3 = fp_sub(fp_sub(fp_square(r), hhh), fp_double(v))
    store(point, 0, x3)
    store(point, Y, fp_sub(fp_mul(r, fp_sub(v, x3)), fp_mul(y, hhh)))
    store(point, Z, fp_mul(z, h))
    return h


@inlined
def put(point: ptr, x: u256, y: u256) -> None:
    one: u256 = 1
    store(point, 0, x)
    store(point, Y, y)
    store(point, Z, one)


@inlined
def rescale(affine: ptr, factor: u256) -> None:
    """The same point, with Z multiplied by a factor."""
    square = fp_square(factor)
    store(affine, 0, fp_mul(load(u256, affine), square))
    store(affine, Y, fp_mul(load(u256, affine, Y), fp_mul(square, factor)))


@native
def odd_multiples(x: u256, y: u256, table: ptr) -> u256:
    """1, 3, 5, … times a point, as pairs (X, Y) that all have one Z, which is returned: nothing is inverted.

    To points with one Z the formulas for affine ones apply: (X, Y) is a point of y² = x³ + 7·Z⁶, to which (x, y) goes
    as (x·Z², y·Z³), and no formula has the 7. So twice the point is affine there if its own Z is taken, and is added
    again and again. The Z of each sum is a multiple of the one before; backwards, all get the last one's.
    """
    point = local(u64, JACOBIAN // 8)
    factors = local(u256, MULTIPLES)
    put(point, x, y)
    double(point)
    twice_x = load(u256, point)
    twice_y = load(u256, point, Y)
    first_z = load(u256, point, Z)
    store(table, 0, x)
    store(table, Y, y)
    rescale(table, first_z)
    put(point, load(u256, table), load(u256, table, Y))
    number: u64 = 1
    while number < MULTIPLES:
        factors[number] = add(point, twice_x, twice_y)  # of an odd multiple: never the same point, nor its opposite
        store(table, number * AFFINE, load(u256, point))
        store(table, number * AFFINE + Y, load(u256, point, Y))
        number += 1
    factor: u256 = 1
    number = MULTIPLES - 1
    while number != 0:
        factor = fp_mul(factor, factors[number])
        number -= 1
        rescale(table + number * AFFINE, factor)
    return fp_mul(first_z, load(u256, point, Z))
