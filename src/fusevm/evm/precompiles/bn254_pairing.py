"""The optimal ate pairing of bn254 on plain integers: G2 on the twist, the field of p^12 and the pairing's product.

With u the curve's parameter, p(u) the field's modulus and r(u) the group's order, the pairing of P and Q is
    (f(6u+2, Q)(P) · l(T, π(Q))(P) · l(T + π(Q), -π²(Q))(P)) ^ ((p^12 - 1) / r),   T = [6u+2] Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import mul as product

from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.evm.precompiles.contract import Pause, no_pause

U = 4965661367192848881

Fp2 = tuple[int, int]  # a + b i with i² = -1
G2 = tuple[Fp2, Fp2]  # affine, on the twist y² = x³ + 3 / ξ with ξ = 9 + i
Fp12 = Sequence[int]  # coefficients of 1, w, …, w^11 with w^12 = 18 w^6 - 82, so that w^6 = ξ

ONE: Fp12 = (1, *[0] * 11)


# The field of p² and the twist over it.


def _mul2(a: Fp2, b: Fp2) -> Fp2:
    real, imaginary = a[0] * b[0], a[1] * b[1]
    return (real - imaginary) % P, ((a[0] + a[1]) * (b[0] + b[1]) - real - imaginary) % P


def _sub2(a: Fp2, b: Fp2) -> Fp2:
    return (a[0] - b[0]) % P, (a[1] - b[1]) % P


def _inverse2(a: Fp2) -> Fp2:
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, P)
    return a[0] * norm % P, -a[1] * norm % P


def _power2(a: Fp2, exponent: int) -> Fp2:
    result = (1, 0)
    for bit in bin(exponent)[2:]:
        result = _mul2(result, result)
        if bit == "1":
            result = _mul2(result, a)
    return result


_XI = (9, 1)
_TWIST_B = _mul2((3, 0), _inverse2(_XI))
_PSI_X = _power2(_XI, (P - 1) // 3)
_PSI_Y = _power2(_XI, (P - 1) // 2)


def on_twist(point: G2) -> bool:
    x, y = point
    return _sub2(_mul2(y, y), _mul2(_mul2(x, x), x)) == _TWIST_B


def _psi(point: G2) -> G2:
    """The Frobenius map π of the curve, seen on the twist."""
    (x, x_i), (y, y_i) = point
    return _mul2((x, -x_i), _PSI_X), _mul2((y, -y_i), _PSI_Y)


def _negative(point: G2) -> G2:
    x, (y, y_i) = point
    return x, (-y % P, -y_i % P)


def _slope(left: G2, right: G2) -> Fp2 | None:
    """Of the chord or the tangent; None if it is vertical."""
    (x1, y1), (x2, y2) = left, right
    if x1 != x2:
        return _mul2(_sub2(y2, y1), _inverse2(_sub2(x2, x1)))
    if y1 != y2 or y1 == (0, 0):
        return None
    a, b = _mul2(x1, x1)
    return _mul2((3 * a, 3 * b), _inverse2((2 * y1[0], 2 * y1[1])))


def _sum_with_slope(left: G2, right: G2, slope: Fp2) -> G2:
    (x1, y1), (x2, _) = left, right
    x = _sub2(_sub2(_mul2(slope, slope), x1), x2)
    return x, _sub2(_mul2(slope, _sub2(x1, x)), y1)


def _sum(left: G2 | None, right: G2 | None) -> G2 | None:
    if left is None or right is None:
        return right if left is None else left
    slope = _slope(left, right)
    return None if slope is None else _sum_with_slope(left, right, slope)


_LOOP = bin(6 * U + 2)[3:]  # the digits after the leading one


def in_subgroup(point: G2) -> bool:
    """Whether [6u+2] Q + ψ(Q) - ψ²(Q) + ψ³(Q) = 0, which holds exactly for the points of order r.

    ψ solves X² - tX + p = 0 on the whole twist, so the norm N of 6u+2 + X - X² + X³ in that ring annihilates every Q
    that passes; the twist has r (2p - r) points, r divides N, and N shares no factor with 2p - r.
    """
    total: G2 | None = point
    for bit in _LOOP:
        total = _sum(total, total)
        if bit == "1":
            total = _sum(total, point)
    psi = _psi(point)
    psi2 = _psi(psi)
    return _sum(_sum(total, psi), _sum(_negative(psi2), _psi(psi2))) is None


# The field of p^12.


def _reduced(c: Sequence[int]) -> Fp12:
    """23 coefficients to 12, by w^12 = 18 w^6 - 82 and w^18 = 242 w^6 - 1476."""
    low = [(c[k] - 82 * c[k + 12] - 1476 * c[k + 18]) % P for k in range(5)]
    high = [(c[k + 6] + 18 * c[k + 12] + 242 * c[k + 18]) % P for k in range(5)]
    return (*low, (c[5] - 82 * c[17]) % P, *high, (c[11] + 18 * c[17]) % P)


def _mul(a: Fp12, b: Fp12) -> Fp12:
    back = b[::-1]
    low = [sum(map(product, a, back[11 - k :])) for k in range(12)]
    return _reduced(low + [sum(map(product, a[k:], back)) for k in range(1, 12)])


def _power(a: Fp12, exponent: int) -> Fp12:
    result = a
    for bit in bin(exponent)[3:]:
        result = _mul(result, result)
        if bit == "1":
            result = _mul(result, a)
    return result


def _conjugate(a: Fp12) -> Fp12:
    """a^(p^6), which takes w to -w; the inverse, once a^(p^6 + 1) = 1."""
    return tuple(-c if k % 2 else c for k, c in enumerate(a))


@cache
def _frobenius_rows() -> list[Fp12]:
    """Row k: what each of 1^p, w^p, …, (w^11)^p gives to the coefficient of w^k."""
    w_to_p = _power((0, 1, *[0] * 10), P)
    images: list[Fp12] = [ONE]
    while len(images) < 12:
        images.append(_mul(images[-1], w_to_p))
    return list(zip(*images, strict=True))


def _frobenius(a: Fp12, times: int) -> Fp12:
    for _ in range(times):
        a = tuple(sum(map(product, a, row)) % P for row in _frobenius_rows())
    return a


def _inverse(a: Fp12) -> Fp12:
    """Through the norms to the fields of p^6 and p²; the latter's elements are x + y w^6 = (x + 9y) + y i."""
    bar = _conjugate(a)
    sixth = _mul(a, bar)
    others = _mul(_frobenius(sixth, 2), _frobenius(sixth, 4))
    norm = _mul(sixth, others)
    real, imaginary = _inverse2((norm[0] + 9 * norm[6], norm[6]))
    scale = (real - 9 * imaginary, 0, 0, 0, 0, 0, imaginary, 0, 0, 0, 0, 0)
    return _mul(_mul(bar, others), scale)


# The pairing.


def _times_line(f: Fp12, slope: Fp2, at: G2, x: int, y: int) -> Fp12:
    """f times the line through `at` with that slope, at (x, y): y - λ x w + (λ x_T - y_T) w³."""
    a, a_i = -slope[0] * x, -slope[1] * x
    b, b_i = _sub2(_mul2(slope, at[0]), at[1])
    terms = ((1, (a - 9 * a_i) % P), (3, (b - 9 * b_i) % P), (7, a_i % P), (9, b_i))  # i = w^6 - 9
    total = [c * y for c in f] + [0] * 11
    for shift, factor in terms:
        for k, c in enumerate(f, shift):
            total[k] += c * factor
    return _reduced(total)


def _miller(pairs: list[tuple[tuple[int, int], G2]], pause: Pause = no_pause) -> Fp12:
    """The product of all pairs' Miller functions; they share the squarings."""
    f, sums = ONE, [q for _, q in pairs]

    def add(others: list[G2]) -> None:
        # Points of order r meet no vertical line here: the multiples in between are neither 0 nor ± the point added.
        nonlocal f
        for k, ((x, y), _) in enumerate(pairs):
            pause()
            slope = _slope(sums[k], others[k])
            assert slope is not None
            f = _times_line(f, slope, sums[k], x, y)
            sums[k] = _sum_with_slope(sums[k], others[k], slope)

    for bit in _LOOP:
        f = _mul(f, f)
        add(list(sums))
        if bit == "1":
            add([q for _, q in pairs])
    add([_psi(q) for _, q in pairs])
    add([_negative(_psi(_psi(q))) for _, q in pairs])
    return f


def _final_power(f: Fp12) -> Fp12:
    """f^((p^12 - 1) / r) = (f^((p^6 - 1) (p² + 1)))^(l0 + l1 p + l2 p² + p³), where

    l2 = 6u² + 1,  l1 = -(36u³ + 18u² + 12u) + 1,  l0 = -(36u³ + 18u² + 12u) - (12u² + 6u) - 2.
    """
    f = _mul(_conjugate(f), _inverse(f))
    f = _mul(_frobenius(f, 2), f)
    u1 = _power(f, U)
    u2 = _power(u1, U)
    u3 = _power(u2, U)
    common = _power(_mul(_mul(_power(u3, 6), _power(u2, 3)), _power(u1, 2)), 6)
    rest = _mul(_power(_mul(_power(u2, 2), u1), 6), _power(f, 2))
    l0 = _conjugate(_mul(common, rest))
    l1 = _mul(_conjugate(common), f)
    l2 = _mul(_power(u2, 6), f)
    return _mul(_mul(l0, _frobenius(l1, 1)), _mul(_frobenius(l2, 2), _frobenius(f, 3)))


def product_is_one(pairs: list[tuple[tuple[int, int] | None, G2 | None]], pause: Pause = no_pause) -> bool:
    """Whether the pairings of valid points multiply to one. A pair with a point at infinity counts as one."""
    finite = [(p, q) for p, q in pairs if p is not None and q is not None]
    return not finite or _final_power(_miller(finite, pause)) == ONE
