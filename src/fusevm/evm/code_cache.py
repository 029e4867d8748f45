"""What is derived from code and kept for its next run, bounded by bytes rather than by entries: code can be long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")

ENTRY = 256  # bytes a small entry takes beside its content


class CodeMemo(Generic[V]):
    """Remembers a function of code. Once it holds more than `most` bytes it is cleared."""

    __slots__ = ("_function", "_kept", "_most", "_size_of", "size")

    def __init__(self, function: Callable[[bytes], V], size_of: Callable[[V], int], most: int) -> None:
        self._function = function
        self._size_of = size_of
        self._most = most
        self._kept: dict[bytes, V] = {}
        self.size = 0  # in bytes, keys included

    def __contains__(self, code: bytes) -> bool:
        return code in self._kept

    def __call__(self, code: bytes) -> V:
        found = self._kept.get(code)
        if found is None:
            found = self._function(code)
            added = ENTRY + len(code) + self._size_of(found)
            if self.size + added > self._most:
                self.clear()
            self._kept[code] = found
            self.size += added
        return found

    def clear(self) -> None:
        self._kept, self.size = {}, 0
