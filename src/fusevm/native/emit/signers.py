"""Senders recovered by native code, as `evm/secp256k1.py` asks for them; until that is loaded, without it."""

from __future__ import annotations

import ctypes

from fusevm.evm import secp256k1
from fusevm.evm.keccak import keccak256
from fusevm.native.emit.crypto import functions, is_ready

FAMILY = "secp256k1"


def recover_address(digest: bytes, r: int, s: int, parity: int) -> bytes | None:
    if not is_ready(FAMILY):
        key = secp256k1.recover(digest, r, s, parity)
        return None if key is None else keccak256(key)[12:]
    data = digest + (27 + parity).to_bytes(32, "big") + r.to_bytes(32, "big") + s.to_bytes(32, "big")
    out = ctypes.create_string_buffer(32)
    return out.raw[12:] if functions(FAMILY)["ecrecover"](data, len(data), out) else None


def install() -> None:
    """Has senders recovered by native code from now on."""
    secp256k1.use_native(recover_address)
