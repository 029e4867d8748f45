"""Point evaluation (EIP-4844): checks a KZG proof that the blob polynomial of a commitment has p(z) = y."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, require_length

BLS_MODULUS = 0x73EDA753_299D7D48_3339D808_09A1D805_53BDA402_FFFE5BFE_FFFFFFFF_00000001
FIELD_ELEMENTS_PER_BLOB = 4_096

# tau * G2 of the public trusted setup, compressed: of the whole setup a proof of one point needs only this.
_TAU_G2 = bytes.fromhex(
    "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d2914e5870cb452d2afaaab24f3499f72"
    "185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
)
_LENGTH = 192
_VERSION = b"\x01"
_INFINITY = b"\xc0" + bytes(47)
_INFINITY_FLAG = 0x40
_OUTPUT = FIELD_ELEMENTS_PER_BLOB.to_bytes(32, "big") + BLS_MODULUS.to_bytes(32, "big")


def point_evaluation(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    """From versioned hash, z, y (32 bytes each), commitment and proof (48 bytes each): the field's two constants."""
    require_length(data, _LENGTH)
    versioned_hash, commitment, proof = data[:32], bytes(data[96:144]), bytes(data[144:])
    if _VERSION + hashlib.sha256(commitment).digest()[1:] != versioned_hash:
        raise PrecompileFailure("the versioned hash is not the commitment's")
    z, y = _scalar(data[32:64], "z"), _scalar(data[64:96], "y")
    if not _proved(_point(commitment, "commitment"), z, y, _point(proof, "proof")):
        raise PrecompileFailure("the proof does not hold")
    return _OUTPUT


def _proved(commitment: Any, z: Any, y: Any, proof: Any) -> bool:
    """e(C - y G1, G2) = e(proof, tau G2 - z G2), as e(C - y G1 + z proof, -G2) e(proof, tau G2) = 1:

    multiplying in G1 takes a third of the time it takes in G2.
    """
    from py_arkworks_bls12381 import GT, G1Point

    claim = commitment + G1Point.multiexp_unchecked([G1Point(), proof], [-y, z])
    holds: bool = GT.pairing_check([claim, proof], [_minus_g2(), _tau_g2()])
    return holds


def _scalar(word: bytes, name: str) -> Any:
    from py_arkworks_bls12381 import Scalar

    number = int.from_bytes(word, "big")
    if number >= BLS_MODULUS:
        raise PrecompileFailure(f"{name} is not below the field's modulus")
    return Scalar(number)


def _point(encoded: bytes, name: str) -> Any:
    """A point of G1's subgroup from its one canonical encoding; the library accepts junk after the infinity flag."""
    from py_arkworks_bls12381 import G1Point

    if encoded[0] & _INFINITY_FLAG and encoded != _INFINITY:
        raise PrecompileFailure(f"{name}: invalid encoding of the point at infinity")
    try:
        return G1Point.from_compressed_bytes(encoded)
    except ValueError as error:
        raise PrecompileFailure(f"{name}: not a point of G1") from error


@cache
def _minus_g2() -> Any:
    from py_arkworks_bls12381 import G2Point

    return -G2Point()


@cache
def _tau_g2() -> Any:
    from py_arkworks_bls12381 import G2Point

    return G2Point.from_compressed_bytes(_TAU_G2)
