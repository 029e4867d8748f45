"""Native memory as the reference tier uses it."""

from __future__ import annotations

from fusevm.native.host.arena import Arena
from fusevm.native.host.tables import NativeLimit
from fusevm.native.layout import FRAME_MEMORY, NativeFrame


class NativeMemory:
    """A frame's memory as the reference tier's instructions expect it: a growing array of bytes."""

    __slots__ = ("_arena", "_start", "_view")

    def __init__(self, arena: Arena, start: int, view: NativeFrame) -> None:
        self._arena = arena
        self._start = start
        self._view = view

    def __len__(self) -> int:
        return self._view.memory_size

    def __getitem__(self, part: slice) -> bytes:
        return self._arena.read(self._start + part.start, min(part.stop, len(self)) - part.start)

    def __setitem__(self, part: slice, data: bytes) -> None:
        self._arena.write(self._start + part.start, data)

    def extend(self, zeros: bytes) -> None:
        size = len(self)
        grown = size + len(zeros)
        if grown > FRAME_MEMORY or self._start + grown > self._arena.size:
            raise NativeLimit(f"{FRAME_MEMORY >> 20} MiB of memory in a frame, {self._arena.size >> 20} in all")
        self._arena.write(self._start + size, zeros)
        self._view.memory_size = grown
        self._view.load_limit = grown - 31
