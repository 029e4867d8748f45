"""Regions as object code, in a form that can be kept on disk and sent from one process to another."""

from __future__ import annotations

import struct
from typing import NamedTuple

LARGEST = 49_152  # bytes of code that has regions
HOT = 0.003  # sections are hot that ran so often, relative to the one that ran most
_HEADER = struct.Struct("<IIII")  # words of the schedule, entries, hot sections, bytes of object code
_ENTRY = struct.Struct("<II")  # pc, word
_PC = struct.Struct("<I")


class Compiled(NamedTuple):
    """Object code, with a handler for each entry, and the entries' places in a schedule of `words` words."""

    words: int
    entries: tuple[tuple[int, int], ...]  # pc, and the word index
    code: bytes
    profile: tuple[int, ...] = ()  # the sections that were hot when it was requested, by their pc

    def packed(self) -> bytes:
        head = _HEADER.pack(self.words, len(self.entries), len(self.profile), len(self.code))
        entries, profile = (_ENTRY.pack(*entry) for entry in self.entries), (_PC.pack(pc) for pc in self.profile)
        return head + b"".join([*entries, *profile]) + self.code

    @staticmethod
    def unpacked(data: bytes) -> Compiled:
        """Raises ValueError if the data is not from `packed`."""
        if len(data) < _HEADER.size:
            raise ValueError("regions are cut short")
        words, count, hot, size = _HEADER.unpack_from(data)
        middle = _HEADER.size + count * _ENTRY.size
        start = middle + hot * _PC.size
        if len(data) != start + size:
            raise ValueError("regions are cut short")
        profile = tuple(pc for (pc,) in _PC.iter_unpack(data[middle:start]))
        return Compiled(words, tuple(_ENTRY.iter_unpack(data[_HEADER.size : middle])), data[start:], profile)


def handler_name(pc: int) -> str:
    """The name of the handler that enters the region at that pc."""
    return f"region_{pc:x}"
