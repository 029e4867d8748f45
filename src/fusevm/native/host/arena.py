"""Address space reserved once and paid for only where it is touched."""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import suppress


class Arena:
    """A zeroed region of memory at a fixed address, optionally aligned; in `huge` pages where the system has them."""

    def __init__(self, size: int, align: int = 1, *, huge: bool = False) -> None:
        self.size = size
        length = size + (align if align > 1 else 0)
        if sys.platform == "win32":
            self.map = mmap.mmap(-1, length)
        else:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
            self.map = mmap.mmap(-1, length, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        if huge and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system without them
                self.map.madvise(mmap.MADV_HUGEPAGE)
        self._anchor = ctypes.c_char.from_buffer(self.map)
        start = ctypes.addressof(self._anchor)
        self.skip = -start % align
        self.address = start + self.skip

    def read(self, offset: int, size: int) -> bytes:
        start = self.skip + offset
        return self.map[start : start + size]

    def view(self, address: int, size: int) -> memoryview:
        """The bytes in place, not copied."""
        start = self.skip + address - self.address
        return memoryview(self.map)[start : start + size]

    def write(self, offset: int, data: bytes) -> None:
        start = self.skip + offset
        self.map[start : start + len(data)] = data

    def give_back(self, start: int) -> None:
        """Returns the pages from an offset on to the machine, where it takes them; nothing there is needed any more."""
        if hasattr(self.map, "madvise"):
            first = -(-(self.skip + start) // mmap.PAGESIZE) * mmap.PAGESIZE
            if first < len(self.map):
                self.map.madvise(mmap.MADV_DONTNEED, first, len(self.map) - first)

    def clear(self) -> None:
        self.write(0, bytes(self.size))
