"""Bytes that arrive in parts: large parts are kept as they are, and all are joined when read."""

from __future__ import annotations

from collections.abc import Iterable

Part = bytes | bytearray | memoryview


class Column:
    """
    >>> column = Column()
    >>> column.add(b"ab")
    >>> column.adopt(memoryview(b"cd"))
    >>> len(column), bytes(column.whole())
    (4, b'abcd')
    """

    __slots__ = ("_last", "_parts", "_size")

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts: list[Part] = list(parts)  # immutable; may be shared with other columns
        self._last = bytearray()  # what comes after them and may grow
        self._size = sum(map(len, self._parts))

    def __len__(self) -> int:
        return self._size

    def add(self, data: Part) -> None:
        """More bytes, copied."""
        self._last += data
        self._size += len(data)

    def adopt(self, part: Part) -> None:
        """Appends bytes without copying: they must not change any more."""
        self.parts().append(part)
        self._size += len(part)

    def extend(self, other: Column) -> None:
        """Appends everything that another column has."""
        self.parts().extend(other.parts())
        self._size += len(other)

    def parts(self) -> list[Part]:
        if self._last:
            self._parts.append(self._last)
            self._last = bytearray()
        return self._parts

    def whole(self) -> Part:
        """All of it, in one piece."""
        parts = self.parts()
        if len(parts) > 1:
            parts[:] = [b"".join(parts)]
        return parts[0] if parts else b""
