"""Recursive length prefix: how Ethereum serialises what it hashes. Decoding accepts the one canonical form alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Item: TypeAlias = "bytes | Sequence[Item]"

MAX_NESTED = 16  # lists within lists; a block of set-code transactions needs five


class MalformedRLP(ValueError):
    """Bytes that are not the canonical encoding of anything; the message says what and where."""


class Truncated(MalformedRLP):
    """An item that says it is longer than what is left of the input."""


class NotMinimal(MalformedRLP):
    """A length or a single byte that has a shorter encoding."""


class Trailing(MalformedRLP):
    """Bytes after the end of the item."""


_SHORT = [bytes((0x80 + size,)) for size in range(56)]  # how bytes of these sizes begin


def encode(item: Item) -> bytes:
    if isinstance(item, bytes):
        size = len(item)
        if size == 1 and item[0] < 0x80:
            return item
        return (_SHORT[size] if size < 56 else _header(size, 0x80)) + item
    parts: list[bytes] = []
    for each in item:  # most are bytes, and few are long: this runs for every field of every block
        if isinstance(each, bytes):
            size = len(each)
            if size != 1 or each[0] >= 0x80:
                parts.append(_SHORT[size] if size < 56 else _header(size, 0x80))
            parts.append(each)
        else:
            parts.append(encode(each))
    return list_of(b"".join(parts))


def list_of(body: bytes) -> bytes:
    """The list of items that are encoded already, one after the other."""
    return _header(len(body), 0xC0) + body


def _header(length: int, base: int) -> bytes:
    if length < 56:
        return bytes((base + length,))
    size = natural(length)
    return bytes((base + 55 + len(size),)) + size


def natural(value: int) -> bytes:
    """The shortest big-endian bytes of a number: none for zero."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def header_size(first: int) -> int:
    """Of a list whose encoding begins with this byte."""
    return 1 if first <= 0xF7 else first - 0xF6


def number_size(value: int) -> int:
    """How many bytes the encoding of a number of at most 55 bytes has."""
    return 1 if value < 0x80 else 1 + (value.bit_length() + 7) // 8


def decode(data: bytes) -> Item:
    """The item that the bytes encode, lists as Python lists; all bytes must belong to it."""
    item, end = _decode_at(data, 0, len(data), 0)
    if end != len(data):
        raise Trailing(f"rlp: {len(data) - end} bytes after the item, which ends at byte {end}")
    return item


def _decode_at(data: bytes, at: int, limit: int, depth: int) -> tuple[Item, int]:
    """The item at a place, and where it ends; nothing of it is past the limit."""
    start, end, is_list = _extent(data, at, limit)
    if not is_list:
        return data[start:end], end
    if depth == MAX_NESTED:
        raise MalformedRLP(f"rlp: lists nested more than {MAX_NESTED} deep at byte {at}")
    items: list[Item] = []
    while start < end:
        first = data[start]
        stop = start + first - 0x7F
        if 0x80 <= first < 0xB8 and first != 0x81 and stop <= end:  # most items are a few bytes: they are read here
            items.append(data[start + 1 : stop])
            start = stop
        elif first < 0x80:
            items.append(data[start : start + 1])
            start += 1
        else:
            item, start = _decode_at(data, start, end, depth + 1)
            items.append(item)
    return items, end


def _extent(data: bytes, at: int, limit: int) -> tuple[int, int, bool]:
    """Where the content of the item at a place begins and ends, and whether it is a list."""
    if at >= limit:
        raise Truncated(f"rlp: no item at byte {at}, the input ends")
    first = data[at]
    if first < 0x80:
        return at, at + 1, False
    is_list = first >= 0xC0
    length, start = first - (0xC0 if is_list else 0x80), at + 1
    if length > 55:
        size_end = start + length - 55
        if size_end > limit:
            raise Truncated(f"rlp: the length at byte {at} is cut off")
        length = int.from_bytes(data[start:size_end], "big")
        if length < 56 or data[start] == 0:
            raise NotMinimal(f"rlp: the length at byte {at} has a shorter encoding")
        start = size_end
    end = start + length
    if end > limit:
        raise Truncated(f"rlp: {length} bytes announced at byte {at}, {limit - start} are there")
    if not is_list and length == 1 and data[start] < 0x80:
        raise NotMinimal(f"rlp: the byte at {start} is its own encoding")
    return start, end, is_list
