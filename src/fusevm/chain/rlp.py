"""Recursive length prefix: how Ethereum serialises what it hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Item: TypeAlias = "bytes | Sequence[Item]"


def encode(item: Item) -> bytes:
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < 0x80:
            return item
        return _header(len(item), 0x80) + item
    body = b"".join(map(encode, item))
    return _header(len(body), 0xC0) + body


def _header(length: int, base: int) -> bytes:
    if length < 56:
        return bytes((base + length,))
    size = natural(length)
    return bytes((base + 55 + len(size),)) + size


def natural(value: int) -> bytes:
    """The shortest big-endian bytes of a number: none for zero."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")
