"""What pyrevm takes and how it refuses the rest: hex text for addresses, ints of a width, bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusevm.evm.keccak import keccak256

ADDRESS_DIGITS = 40


def address_of(text: Any, name: str) -> bytes:
    """Hex text of 20 bytes, with or without 0x."""
    if not isinstance(text, str):
        raise TypeError(f"argument '{name}': '{type(text).__name__}' object cannot be converted to 'PyString'")
    digits = text.removeprefix("0x")
    if len(digits) != ADDRESS_DIGITS:
        raise TypeError("invalid string length")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        place = next(place for place, digit in enumerate(digits) if digit not in "0123456789abcdefABCDEF")
        raise TypeError(f"invalid character {digits[place]!r} at position {place}") from None


def checksummed(address: bytes) -> str:
    """EIP-55."""
    digits = address.hex()
    digest = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(mark, 16) >= 8 else digit for digit, mark in zip(digits, digest, strict=False)
    )


def number_of(value: Any, name: str, bits: int = 256) -> int:
    if not isinstance(value, int):
        raise TypeError(f"argument '{name}': '{type(value).__name__}' object cannot be interpreted as an integer")
    if value < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if value >> bits:
        raise OverflowError("int too big to convert")
    return int(value)


def optional_number(value: Any, name: str, default: int = 0, bits: int = 256) -> int:
    return default if value is None else number_of(value, name, bits)


def bytes_of(value: Any, name: str) -> bytes:
    """Bytes, or an iterable of small ints."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"argument '{name}': Can't extract `{type(value).__name__}` to `Vec`")
    return bytes(value)


def word_of(value: Any, name: str) -> bytes:
    """32 bytes."""
    found = bytes_of(value, name)
    if len(found) != 32:
        raise TypeError("could not convert slice to array")
    return found
