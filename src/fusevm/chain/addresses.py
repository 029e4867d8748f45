"""The addresses of accounts to come."""

from __future__ import annotations

from fusevm.chain.rlp import encode, natural
from fusevm.evm.keccak import keccak256


def create_address(creator: bytes, nonce: int) -> bytes:
    """CREATE's: fixed by the creator and its nonce."""
    return keccak256(encode([creator, natural(nonce)]))[12:]


def create2_address(creator: bytes, salt: int, initcode: bytes) -> bytes:
    """CREATE2's: fixed by the creator, a salt and the code to run (EIP-1014)."""
    return keccak256(b"\xff" + creator + salt.to_bytes(32, "big") + keccak256(initcode))[12:]
