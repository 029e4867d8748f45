"""Regions as object code, in a form that can be kept on disk and sent from one process to another."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("<III")  # words of the schedule, entries, bytes of object code
_ENTRY = struct.Struct("<II")  # pc, word


class Compiled(NamedTuple):
    """Object code, with a handler for each entry; where the entries are in a schedule of so many words."""

    words: int
    entries: tuple[tuple[int, int], ...]  # pc, and the word that stands there
    code: bytes

    def packed(self) -> bytes:
        head = _HEADER.pack(self.words, len(self.entries), len(self.code))
        return head + b"".join([_ENTRY.pack(*entry) for entry in self.entries]) + self.code

    @staticmethod
    def unpacked(data: bytes) -> Compiled:
        """Raises ValueError where that is not what `packed` made."""
        if len(data) < _HEADER.size:
            raise ValueError("regions are cut short")
        words, count, size = _HEADER.unpack_from(data)
        start = _HEADER.size + count * _ENTRY.size
        if len(data) != start + size:
            raise ValueError("regions are cut short")
        return Compiled(words, tuple(_ENTRY.iter_unpack(data[_HEADER.size : start])), data[start:])


def handler_name(pc: int) -> str:
    """Of the handler that enters the region at that place."""
    return f"region_{pc:x}"
