"""Bytes, addresses and numbers as people write them, checked before they reach the machine."""

from __future__ import annotations

from typing import TypeAlias

BytesLike: TypeAlias = bytes | bytearray | memoryview | str
AddressLike: TypeAlias = bytes | bytearray | str | int


class BadValue(ValueError):
    """One line naming what cannot be read, and why."""


def to_bytes(value: BytesLike, what: str = "data") -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        raise BadValue(f"{what}: expected bytes or hex text, got {type(value).__name__}")
    digits = value.strip().removeprefix("0x").removeprefix("0X")
    for position, digit in enumerate(digits):
        if digit not in "0123456789abcdefABCDEF":
            raise BadValue(f"{what}: {digit!r} at position {position} is no hex digit")
    if len(digits) % 2:
        raise BadValue(f"{what}: an odd number of hex digits ({len(digits)})")
    return bytes.fromhex(digits)


def to_address(value: AddressLike, what: str = "address") -> bytes:
    if isinstance(value, bytes) and len(value) == 20:
        return value
    if isinstance(value, int):
        if not 0 <= value < 1 << 160:
            raise BadValue(f"{what}: {value} is not a 20-byte number")
        return value.to_bytes(20, "big")
    raw = to_bytes(value, what)
    if len(raw) != 20:
        raise BadValue(f"{what}: expected 20 bytes, got {len(raw)}")
    return raw


def to_number(value: int, what: str, bits: int = 256) -> int:
    """The number itself, if it is one the machine can hold."""
    if not isinstance(value, int):
        raise BadValue(f"{what}: expected a number, got {type(value).__name__}")
    if value < 0 or value >> bits:
        raise BadValue(f"{what}: {value} is not a number of {bits} bits")
    return value
