"""Regions as object code, in a form that can be kept on disk and sent from one process to another."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("<III")  # words of the schedule, entries, bytes of object code
_ENTRY = struct.Struct("<II")  # pc, word


class Compiled(NamedTuple):
    """Object code, with a handler for each entry, and the entries' places in a schedule of `words` words."""

    words: int
    entries: tuple[tuple[int, int], ...]  # pc, and the word index
    code: bytes

    def packed(self) -> bytes:
        head = _HEADER.pack(self.words, len(self.entries), len(self.code))
        return head + b"".join([_ENTRY.pack(*entry) for entry in self.entries]) + self.code

    @staticmethod
    def unpacked(data: bytes) -> Compiled:
        """Raises ValueError if the data is not from `packed`."""
        if len(data) < _HEADER.size:
            raise ValueError("regions are cut short")
        words, count, size = _HEADER.unpack_from(data)
        start = _HEADER.size + count * _ENTRY.size
        if len(data) != start + size:
            raise ValueError("regions are cut short")
        return Compiled(words, tuple(_ENTRY.iter_unpack(data[_HEADER.size : start])), data[start:])


def handler_name(pc: int) -> str:
    """The name of the handler that enters the region at that pc."""
    return f"region_{pc:x}"
