"""The CBOR map that compilers append to code, with its length in the last two bytes."""

from __future__ import annotations

_SMALLEST, _LARGEST = 3, 200
_MAP, _MAP_END = 0xA1, 0xA8  # the first byte of a CBOR map of one to eight pairs
_TEXT, _TEXT_END = 0x60, 0x78  # the first byte of its first key, a short text


def metadata_of(code: bytes) -> bytes:
    """The metadata at the end of code, empty if there is none."""
    if len(code) < 2:
        return b""
    size = int.from_bytes(code[-2:], "big")
    if not _SMALLEST <= size <= min(_LARGEST, len(code) - 2):
        return b""
    tail = code[-size - 2 :]
    return tail if _MAP <= tail[0] <= _MAP_END and _TEXT < tail[1] < _TEXT_END else b""
