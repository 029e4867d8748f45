"""Addresses: how they are written, and those of accounts to come."""

from __future__ import annotations

from typing import Any

from fusevm.chain.rlp import encode, natural
from fusevm.evm.keccak import keccak256
from fusevm.values import AddressLike, to_address


class Address(bytes):
    """The 20 bytes of an address. It is bytes and equal to them; printed, it is the hex text of EIP-55.

    >>> address = Address("0x" + "c0" * 20)
    >>> print(address)
    0xC0C0c0c0C0C0c0c0c0C0c0C0C0C0C0C0C0C0c0c0
    >>> address == bytes.fromhex("c0" * 20)
    True
    """

    __slots__ = ()

    def __new__(cls, value: AddressLike) -> Address:
        return super().__new__(cls, to_address(value))

    def __str__(self) -> str:
        return checksummed(self)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Address, (bytes(self),)


def checksummed(address: bytes) -> str:
    """EIP-55: a letter is upper case where the hash of the text has a digit of 8 or more."""
    text = address.hex()
    signs = keccak256(text.encode()).hex()
    return "0x" + "".join(c.upper() if sign >= "8" else c for c, sign in zip(text, signs, strict=False))


def create_address(creator: bytes, nonce: int) -> bytes:
    """CREATE's: fixed by the creator and its nonce."""
    return keccak256(encode([creator, natural(nonce)]))[12:]


def create2_address(creator: bytes, salt: int, initcode: bytes) -> bytes:
    """CREATE2's: fixed by the creator, a salt and the code to run (EIP-1014)."""
    return keccak256(b"\xff" + creator + salt.to_bytes(32, "big") + keccak256(initcode))[12:]
