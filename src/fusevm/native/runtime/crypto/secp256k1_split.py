"""Numbers that points of secp256k1 are multiplied by, as native code: in halves, and those in signed digits.

The curve has the endomorphism (x, y) → (BETA·x, y), which multiplies by LAMBDA; both are cube roots of one, modulo the
field's and the group's order. So k·Q = k₁·Q + k₂·(LAMBDA·Q) wherever k = k₁ + k₂·LAMBDA, and of the pairs (k₁, k₂) that
give k one has halves of 128 bits (Gallant, Lambert and Vanstone): the point is doubled half as often.
"""

from __future__ import annotations

from math import isqrt

from fusevm.evm.secp256k1 import FIELD as P
from fusevm.evm.secp256k1 import GENERATOR, add, affine, double
from fusevm.evm.secp256k1 import ORDER as N
from fusevm.native.lang import ctz, inlined, native, ptr, select, store, u8, u64, u256, u512
from fusevm.native.runtime.crypto.inverse import shifted_right

HALF = 1 << 255
DIGITS = 136  # bytes for those of a half, at most 129
SHIFT = 384  # of the quotients by N that are multiplied instead of dividing


def _cube_root_of_one(modulus: int) -> int:
    """The lesser of the two that are not one."""
    root = next(found for base in range(2, 99) if (found := pow(base, (modulus - 1) // 3, modulus)) != 1)
    return min(root, modulus - 1 - root)


def _multiplied(number: int) -> tuple[int, int] | None:
    total = (1, 1, 0)
    for bit in f"{number:b}":
        total = double(total)
        if bit == "1":
            total = add(total, GENERATOR)
    return affine(total)


def _endomorphism() -> tuple[int, int]:
    """BETA and LAMBDA that belong together."""
    beta, root = _cube_root_of_one(P), _cube_root_of_one(N)
    image = (beta * GENERATOR[0] % P, GENERATOR[1])
    return beta, next(each for each in (root, N - 1 - root) if _multiplied(each) == image)


def _basis() -> tuple[tuple[int, int], tuple[int, int]]:
    """Two short pairs (a, b) with a + b·LAMBDA = 0 modulo N: Euclid's algorithm, stopped half way."""
    rows = [(N, 0), (LAMBDA, 1)]
    while rows[-1][0] > isqrt(N):
        (a, b), (c, d) = rows[-2:]
        rows.append((a % c, b - a // c * d))
    (a, b), (c, d) = rows[-2:]
    rows.append((a % c, b - a // c * d))
    long, short, after = ((a, -b) for a, b in rows[-3:])
    return short, min(long, after, key=lambda pair: max(map(abs, pair)))


BETA, LAMBDA = _endomorphism()
(A1, B1), (A2, B2) = _basis()
WRAP = (1 << 256) - 1
MINUS_A1, MINUS_A2, MINUS_B1, MINUS_B2 = (-each & WRAP for each in (A1, A2, B1, B2))
G1 = ((B2 << SHIFT) + N // 2) // N
G2 = ((-B1 << SHIFT) + N // 2) // N


@inlined
def quotient(k: u256, g: u256) -> u256:
    """k·g / 2^SHIFT, rounded."""
    product = u512(k) * u512(g)
    return u256(product >> SHIFT) + (u256(product >> SHIFT - 1) & 1)


@native
def split(k: u256, halves: ptr) -> u64:
    """The halves of a number below N, both made positive; bit 0 and bit 1 of the result say which of them was not.

    (k, 0) less the nearest sum of whole multiples of the basis. The halves are short, so it is enough to know them
    modulo 2^256.
    """
    c1 = quotient(k, G1)
    c2 = quotient(k, G2)
    k1 = k + c1 * MINUS_A1 + c2 * MINUS_A2
    k2 = c1 * MINUS_B1 + c2 * MINUS_B2
    store(halves, 0, select(k1 >= HALF, 0 - k1, k1))
    store(halves, 32, select(k2 >= HALF, 0 - k2, k2))
    return u64(k1 >= HALF) | u64(k2 >= HALF) << 1


@native
def write_digits(half: u256, width: u64, digits: ptr) -> u64:
    """A half in digits of so many bits with their sign, each odd or zero; how many there are.

    A digit is a byte, the top bit for less than zero. Any `width` digits in a row have at most one that is not zero.
    """
    place: u64 = 0
    top: u64 = 1 << width
    while half != 0:
        zeros = ctz(u64(half) | 1 << 63)
        half = shifted_right(half, zeros)
        place += zeros
        if u64(half) & 1 == 0:
            continue
        digit = u64(half) & top - 1
        half -= u256(digit)
        if digit >= top >> 1:
            half += u256(top)
            digit -= top
        store(digits, place, u8(digit))
    return place + 1
