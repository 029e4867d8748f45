"""Recovers the signer natively; `evm/secp256k1.py` is the readable version."""

from __future__ import annotations

from fusevm.evm.secp256k1 import GENERATOR, SEVEN, Point, affine
from fusevm.evm.secp256k1 import ORDER as N
from fusevm.evm.secp256k1 import add as add_plainly
from fusevm.evm.secp256k1 import double as double_plainly
from fusevm.native.lang import (
    Table,
    bswap,
    copy,
    exported,
    fill,
    inlined,
    load,
    local,
    native,
    ptr,
    select,
    store,
    u8,
    u64,
    u256,
)
from fusevm.native.runtime.crypto.secp256k1_curve import (
    AFFINE,
    JACOBIAN,
    MULTIPLES,
    WINDOW,
    Y,
    Z,
    add,
    double,
    odd_multiples,
)
from fusevm.native.runtime.crypto.secp256k1_field import (
    fp_add,
    fp_inverse,
    fp_mul,
    fp_negative,
    fp_root,
    fp_square,
    scalar_inverse,
    scalar_mul,
)
from fusevm.native.runtime.crypto.secp256k1_split import BETA, DIGITS, split, write_digits
from fusevm.native.runtime.keccak import keccak256_word

INPUT = 128  # bytes that the contract reads
ADDRESS = (1 << 160) - 1
G_WINDOW = 8
WIDTHS = (G_WINDOW, G_WINDOW, WINDOW, WINDOW)  # of digits, by half


def _odd_multiples_of_g() -> list[int]:
    """x and y of 1, 3, 5, … times the generator."""
    twice = affine(double_plainly((*GENERATOR, 1)))
    assert twice is not None
    point: Point | None = GENERATOR
    found: list[int] = []
    for _ in range(1 << G_WINDOW - 2):
        assert point is not None
        found += point
        point = affine(add_plainly((*point, 1), twice))
    return found


OF_G = Table(u256, _odd_multiples_of_g())


@inlined
def add_signed(total: ptr, x: u256, y: u256, negative: u64) -> None:
    add(total, x, select(negative != 0, fp_negative(y), y))


@inlined
def multiple(digit: u64) -> u64:
    """Which of the odd multiples a digit asks for: 0 for 1 and -1, 1 for 3 and -3."""
    return select(digit > 127, 256 - digit, digit) >> 1


@native
def linear(g: u256, k: u256, x: u256, y: u256, total: ptr) -> None:
    """g times the generator and k times another point: four halves, digit by digit together (Strauss)."""
    halves = local(u256, 4)
    digits = local(u8, 4 * DIGITS)
    table = local(u64, MULTIPLES * 8)
    images = local(u256, MULTIPLES)  # x of the multiples of LAMBDA·point
    signs = split(g, halves) | split(k, halves + 64) << 2
    fill(digits, 0, 4 * DIGITS)
    place: u64 = 0
    for half in range(4):
        count = write_digits(halves[half], WIDTHS[half], digits + half * DIGITS)
        place = select(count > place, count, place)
    z = odd_multiples(x, y, table)
    for i in range(MULTIPLES):
        images[i] = fp_mul(load(u256, table, i * AFFINE), BETA)
    scale = fp_square(z)  # brings the generator's multiples to where the point's are
    scale_image = fp_mul(scale, BETA)
    scale_y = fp_mul(scale, z)
    fill(total, 0, JACOBIAN)
    while place != 0:
        place -= 1
        double(total)
        for half in range(2):
            digit = u64(load(u8, digits, place + half * DIGITS))
            if digit != 0:
                at = multiple(digit) * 2
                by = scale if half == 0 else scale_image
                add_signed(total, fp_mul(OF_G[at], by), fp_mul(OF_G[at + 1], scale_y), digit >> 7 ^ signs >> half & 1)
        for half in range(2, 4):
            digit = u64(load(u8, digits, place + half * DIGITS))
            if digit != 0:
                at = multiple(digit)
                by = load(u256, table, at * AFFINE) if half == 2 else images[at]
                add_signed(total, by, load(u256, table, at * AFFINE + Y), digit >> 7 ^ signs >> half & 1)
    store(total, Z, fp_mul(load(u256, total, Z), z))


@exported
def ecrecover(data: ptr, size: u64, out: ptr) -> u64:
    """The signer's address as a word, from hash, v, r and s of 32 bytes each; its size, or 0 for a bad signature.

    s·R = z·G + r·Q, where R is the point whose abscissa is r and Q the key: Q = (-z/r)·G + (s/r)·R.
    """
    given = local(u256, 4)
    fill(given, 0, INPUT)
    copy(given, data, select(size < INPUT, size, INPUT))
    v = bswap(given[1])
    r = bswap(given[2])
    s = bswap(given[3])
    if (v != 27) & (v != 28) or r == 0 or r >= N or s == 0 or s >= N:
        return 0
    square = fp_add(fp_mul(fp_square(r), r), SEVEN)
    y = fp_root(square)
    if fp_square(y) != square:
        return 0
    if u64(y) & 1 != u64(v) - 27:
        y = fp_negative(y)
    inverse = scalar_inverse(r)
    z = scalar_mul(bswap(given[0]), inverse)
    key = local(u256, 3)
    linear(select(z == 0, z, N - z), scalar_mul(s, inverse), r, y, key)
    if key[2] == 0:
        return 0
    inverse = fp_inverse(key[2])
    square = fp_square(inverse)
    store(given, 0, bswap(fp_mul(key[0], square)))
    store(given, 32, bswap(fp_mul(key[1], fp_mul(square, inverse))))
    store(out, 0, bswap(keccak256_word(given, 64) & ADDRESS))
    return 32
