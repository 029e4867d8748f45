"""The curve of Ethereum's signatures: keys, signing, and whose key has signed.

coincurve does it where it is installed. Where it is not (it has no wheel for Python 3.14), the functions that end in
`_plainly` do; they take milliseconds, not always equally long, and so are for keys that guard nothing. Native code,
once loaded, recovers senders. All of them give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fusevm.evm.keccak import keccak256

FIELD = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
SEVEN = 7  # y² = x³ + 7
Point = tuple[int, int]
GENERATOR: Point = (
    0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798,
    0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8,
)
_Jacobian = tuple[int, int, int]  # (X / Z², Y / Z³); Z = 0 for infinity
_INFINITY: _Jacobian = (1, 1, 0)


# -- what the rest of the project calls


def public_key(secret: bytes) -> bytes:
    """Of a 32-byte key: both coordinates, 64 bytes. ValueError for what is not a key."""
    library = _coincurve()
    if library is None:
        return public_key_plainly(secret)
    encoded: bytes = library.PrivateKey(secret).public_key.format(compressed=False)
    return encoded[1:]


def address_of_key(secret: bytes) -> bytes:
    return keccak256(public_key(secret))[12:]


def sign(digest: bytes, secret: bytes) -> tuple[int, int, int]:
    """y_parity, r and s, s being the lower of the two that hold; the same for the same hash and key (RFC 6979)."""
    library = _coincurve()
    if library is None:
        return sign_plainly(digest, secret)
    signature = library.PrivateKey(secret).sign_recoverable(digest, hasher=None)
    return signature[64], int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")


def recover(digest: bytes, r: int, s: int, parity: int) -> bytes | None:
    """The public key that signed; None where none can have: no point has that r, or the key would be infinity."""
    library = _coincurve()
    if library is None:
        return recover_plainly(digest, r, s, parity)
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((parity,))
    try:
        key = library.PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except ValueError:
        return None
    encoded: bytes = key.format(compressed=False)
    return encoded[1:]


def recover_address(digest: bytes, r: int, s: int, parity: int) -> bytes | None:
    """Whose key signed; None where no key can have. By native code where that is loaded."""
    if _native:
        return _native[0](digest, r, s, parity)
    key = recover(digest, r, s, parity)
    return None if key is None else keccak256(key)[12:]


Recovering = Callable[[bytes, int, int, int], bytes | None]
_native: list[Recovering] = []  # at most one


def use_native(function: Recovering) -> None:
    """From now on this function recovers addresses: native code can be had, and is quicker."""
    _native[:] = [function]


@cache
def _coincurve() -> Any:
    try:
        import coincurve
    except ImportError:
        return None
    return coincurve


# -- the same in Python


def public_key_plainly(secret: bytes) -> bytes:
    point = _sum_of_products([(_scalar(secret), GENERATOR)])
    assert point is not None  # a key is not a multiple of the order
    return _encoded(point)


def sign_plainly(digest: bytes, secret: bytes) -> tuple[int, int, int]:
    key, message = _scalar(secret), int.from_bytes(digest, "big")
    for nonce in _nonces(message % ORDER, key):
        point = _sum_of_products([(nonce, GENERATOR)])
        assert point is not None
        x, y = point
        r = x % ORDER
        s = pow(nonce, -1, ORDER) * (message + r * key) % ORDER
        parity = y & 1 | (x >= ORDER) << 1
        if r and s:
            break
    return (parity ^ 1, r, ORDER - s) if s > ORDER // 2 else (parity, r, s)


def recover_plainly(digest: bytes, r: int, s: int, parity: int) -> bytes | None:
    """The key Q with s·R = z·G + r·Q, R being the point that r and the parity of its y are of."""
    if parity not in (0, 1) or not 0 < r < ORDER or not 0 < s < ORDER:
        return None
    y = square_root(r**3 + SEVEN)
    if y is None:
        return None
    if y & 1 != parity:
        y = FIELD - y
    inverse, z = pow(r, -1, ORDER), int.from_bytes(digest, "big")
    key = _sum_of_products([(-z * inverse % ORDER, GENERATOR), (s * inverse % ORDER, (r, y))])
    return None if key is None else _encoded(key)


def square_root(square: int) -> int | None:
    """In the field, whose order is 3 modulo 4."""
    root = pow(square, (FIELD + 1) // 4, FIELD)
    return root if (root * root - square) % FIELD == 0 else None


def _scalar(secret: bytes) -> int:
    number = int.from_bytes(secret, "big")
    if not 0 < number < ORDER:
        raise ValueError("secret: a key is a number above zero and below the curve's order")
    return number


def _encoded(point: Point) -> bytes:
    return point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def _nonces(message: int, key: int) -> Iterator[int]:
    """RFC 6979, section 3.2, with SHA-256."""
    import hmac  # loaded when used

    v, k = b"\1" * 32, bytes(32)
    signed = key.to_bytes(32, "big") + message.to_bytes(32, "big")
    for separator in (b"\0", b"\1"):
        k = hmac.digest(k, v + separator + signed, "sha256")
        v = hmac.digest(k, v, "sha256")
    while True:
        v = hmac.digest(k, v, "sha256")
        number = int.from_bytes(v, "big")
        if 0 < number < ORDER:
            yield number
        k = hmac.digest(k, v + b"\0", "sha256")
        v = hmac.digest(k, v, "sha256")


def _sum_of_products(terms: list[tuple[int, Point]]) -> Point | None:
    """Numbers times points, all bits of one place together (Shamir's trick); None for infinity."""
    total = _INFINITY
    for place in reversed(range(256)):
        total = double(total)
        for number, point in terms:
            if number >> place & 1:
                total = add(total, point)
    return affine(total)


def double(point: _Jacobian) -> _Jacobian:
    x, y, z = point
    s, m = 4 * x * y * y, 3 * x * x
    x3 = (m * m - 2 * s) % FIELD
    return x3, (m * (s - x3) - 8 * y**4) % FIELD, 2 * y * z % FIELD


def add(point: _Jacobian, other: Point) -> _Jacobian:
    x, y, z = point
    if z == 0:
        return *other, 1
    zz = z * z % FIELD
    h, r = (other[0] * zz - x) % FIELD, (other[1] * zz * z - y) % FIELD
    if h == 0:
        return _INFINITY if r else double(point)
    hh = h * h % FIELD
    v = x * hh % FIELD
    x3 = (r * r - hh * h - 2 * v) % FIELD
    return x3, (r * (v - x3) - y * hh * h) % FIELD, z * h % FIELD


def affine(point: _Jacobian) -> Point | None:
    x, y, z = point
    if z == 0:
        return None
    inverse = pow(z, -1, FIELD)
    return x * inverse**2 % FIELD, y * inverse**3 % FIELD
