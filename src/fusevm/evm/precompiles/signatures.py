"""ECDSA: recovery of the signer on secp256k1, verification on P-256 (EIP-7951). A bad signature gives empty output."""

from __future__ import annotations

from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256
from fusevm.evm.precompiles.contract import Pause, no_pause, padded
from fusevm.evm.secp256k1 import ORDER as SECP256K1_ORDER
from fusevm.evm.secp256k1 import recover

P256_ORDER = 0xFFFFFFFF_00000000_FFFFFFFF_FFFFFFFF_BCE6FAAD_A7179E84_F3B9CAC2_FC632551

_P256_LENGTH = 160
_TRUE = (1).to_bytes(32, "big")


def _in_range(number: bytes, order: int) -> bool:
    return 0 < int.from_bytes(number, "big") < order


def ecrecover(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    """The signer's address, from hash, v, r and s of 32 bytes each."""
    message, v, r, s = (padded(data, start, 32) for start in range(0, 128, 32))
    parity = int.from_bytes(v, "big") - 27
    if parity not in (0, 1) or not _in_range(r, SECP256K1_ORDER) or not _in_range(s, SECP256K1_ORDER):
        return b""
    key = recover(message, int.from_bytes(r, "big"), int.from_bytes(s, "big"), parity)
    return keccak256(key)[12:].rjust(32, b"\0") if key else b""


def p256verify(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    """One, as a word, if r and s sign the hash under the key (x, y); hash, r, s, x, y of 32 bytes each."""
    if len(data) != _P256_LENGTH:
        return b""
    message, r, s, key = data[:32], data[32:64], data[64:96], data[96:]
    if not _in_range(r, P256_ORDER) or not _in_range(s, P256_ORDER):
        return b""
    return _TRUE if _p256_signed(message, r, s, key) else b""


def _p256_signed(message: bytes, r: bytes, s: bytes, key: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    signature = utils.encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    try:
        # Rejects (0, 0), coordinates past the field and points off the curve.
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + key)
        public.verify(signature, message, ec.ECDSA(utils.Prehashed(SHA256())))
    except (ValueError, InvalidSignature):
        return False
    return True
