"""The curve y² = x³ + 3 called alt_bn128 or bn254 (EIP-196, EIP-197, repriced by EIP-1108): add, multiply, pair.

A point is its x and y, 32 bytes each and below the field's modulus; the point at infinity is all zeros.
"""

from __future__ import annotations

from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.gas import linear_cost
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, padded

FIELD_MODULUS = 21888242871839275222246405745257275088696311157297823662689037894645226208583

_POINT = 64
_PAIR = 192

Point = tuple[int, int] | None  # affine; None is the point at infinity


def add_gas(data: bytes, fork: Fork) -> int:
    return rules_of(fork).bn254_add


def mul_gas(data: bytes, fork: Fork) -> int:
    return rules_of(fork).bn254_mul


def pairing_gas(data: bytes, fork: Fork) -> int:
    rules = rules_of(fork)
    return linear_cost(rules.bn254_pairing, rules.bn254_pair, len(data) // _PAIR)


def add(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    return _encoded(sum_of(_g1(padded(data, 0, _POINT)), _g1(padded(data, _POINT, _POINT))))


def mul(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    scalar = int.from_bytes(padded(data, _POINT, 32), "big")
    return _encoded(multiple(_g1(padded(data, 0, _POINT)), scalar))


def pairing(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    """One, as a word, if the product of the pairings of all (G1, G2) pairs is one; so it is of no pairs."""
    from fusevm.evm.precompiles.bn254_pairing import product_is_one

    require_pairs(data)
    points = []
    for start in range(0, len(data), _PAIR):
        pause()
        pair = data[start : start + _PAIR]
        points.append((_g1(pair[:_POINT]), _g2(pair[_POINT:])))
    return int(product_is_one(points, pause)).to_bytes(32, "big")


def require_pairs(data: bytes) -> None:
    if len(data) % _PAIR:
        raise PrecompileFailure(f"invalid input length: {len(data)} bytes, not a multiple of {_PAIR}")


def _coordinates(data: bytes) -> list[int]:
    numbers = [int.from_bytes(data[start : start + 32], "big") for start in range(0, len(data), 32)]
    if max(numbers) >= FIELD_MODULUS:
        raise PrecompileFailure("invalid coordinate: not below the field's modulus")
    return numbers


def _g1(data: bytes) -> Point:
    x, y = _coordinates(data)
    if x == y == 0:
        return None
    if (y * y - x * x * x - 3) % FIELD_MODULUS:
        raise PrecompileFailure("invalid G1 point: not on the curve")
    return x, y


def _g2(data: bytes) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Coordinates of G2 are a + b i, written b first."""
    from fusevm.evm.precompiles.bn254_pairing import in_subgroup, on_twist

    x_imaginary, x, y_imaginary, y = _coordinates(data)
    if x == x_imaginary == y == y_imaginary == 0:
        return None
    point = (x, x_imaginary), (y, y_imaginary)
    if not on_twist(point):
        raise PrecompileFailure("invalid G2 point: not on the curve")
    if not in_subgroup(point):
        raise PrecompileFailure("invalid G2 point: not in the subgroup")
    return point


def _encoded(point: Point) -> bytes:
    x, y = point or (0, 0)
    return x.to_bytes(32, "big") + y.to_bytes(32, "big")


def sum_of(left: Point, right: Point) -> Point:
    if left is None or right is None:
        return right if left is None else left
    (x1, y1), (x2, y2) = left, right
    if x1 != x2:
        slope = (y2 - y1) * pow(x2 - x1, -1, FIELD_MODULUS)
    elif y1 == y2:  # never zero: the curve's order is odd
        slope = 3 * x1 * x1 * pow(2 * y1, -1, FIELD_MODULUS)
    else:
        return None
    x = (slope * slope - x1 - x2) % FIELD_MODULUS
    return x, (slope * (x1 - x) - y1) % FIELD_MODULUS


def multiple(point: Point, scalar: int) -> Point:
    """Doubles and adds in Jacobian coordinates, (X / Z², Y / Z³), so that one inversion does."""
    if point is None:
        return None
    x, y, z = 1, 1, 0
    for bit in bin(scalar)[2:]:
        x, y, z = _doubled(x, y, z)
        if bit == "1":
            x, y, z = _plus_affine(x, y, z, point)
    if z == 0:
        return None
    inverse = pow(z, -1, FIELD_MODULUS)
    square = inverse * inverse % FIELD_MODULUS
    return x * square % FIELD_MODULUS, y * square * inverse % FIELD_MODULUS


def _doubled(x: int, y: int, z: int) -> tuple[int, int, int]:
    yy = y * y % FIELD_MODULUS
    s = 4 * x * yy
    m = 3 * x * x % FIELD_MODULUS
    x3 = (m * m - 2 * s) % FIELD_MODULUS
    return x3, (m * (s - x3) - 8 * yy * yy) % FIELD_MODULUS, 2 * y * z % FIELD_MODULUS


def _plus_affine(x: int, y: int, z: int, point: tuple[int, int]) -> tuple[int, int, int]:
    x2, y2 = point
    if z == 0:
        return x2, y2, 1
    zz = z * z % FIELD_MODULUS
    h = (x2 * zz - x) % FIELD_MODULUS
    r = (y2 * zz * z - y) % FIELD_MODULUS
    if h == 0:
        return (1, 1, 0) if r else _doubled(x, y, z)
    hh = h * h % FIELD_MODULUS
    v = x * hh % FIELD_MODULUS
    x3 = (r * r - h * hh - 2 * v) % FIELD_MODULUS
    return x3, (r * (v - x3) - y * h * hh) % FIELD_MODULUS, z * h % FIELD_MODULUS
