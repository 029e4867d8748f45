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

    __slots__ = ("_last", "_parts", "_room", "_size")

    def __init__(self, parts: Iterable[Part] = (), room: memoryview | None = None) -> None:
        """In the place of parts there may be `room`: memory that is filled before any other is taken."""
        self._parts: list[Part] = list(parts)  # which nobody changes any more; other columns may have them too
        self._last = bytearray()  # what comes after them and may grow
        self._size = sum(map(len, self._parts))
        self._room = room  # then all that there is so far is at its beginning

    def __len__(self) -> int:
        return self._size

    def add(self, data: Part) -> None:
        """More bytes, copied."""
        size = len(data)
        if self._room is not None and self._size + size <= len(self._room):
            self._room[self._size : self._size + size] = data
        else:
            self._leave_room()
            self._last += data
        self._size += size

    @property
    def free(self) -> memoryview | None:
        """What is left of the room, for somebody to write to who then says how much it was (`grow`)."""
        return None if self._room is None else self._room[self._size :]

    def grow(self, size: int) -> None:
        """So many bytes were written to what was free."""
        self._size += size

    def _leave_room(self) -> None:
        """What comes next is elsewhere."""
        if self._room is not None and self._size:
            self._parts.append(self._room[: self._size])
        self._room = None

    def adopt(self, part: Part) -> None:
        """Appends bytes without copying: they must not change any more."""
        self.parts().append(part)
        self._size += len(part)

    def extend(self, other: Column) -> None:
        """Appends everything that another column has."""
        self.parts().extend(other.parts())
        self._size += len(other)

    def parts(self) -> list[Part]:
        self._leave_room()
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
