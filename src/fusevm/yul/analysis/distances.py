"""What is known about how far apart two values are: each variable as another one plus a constant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fusevm.yul.syntax.ast import Expression, FunctionCall, Identifier, Literal

_MASK = (1 << 256) - 1
_DEPTH = 500  # how many definitions are followed before giving up


class Offset(NamedTuple):
    """base + distance; the base of a plain number is None."""

    base: str | None
    distance: int


class KnowledgeBase:
    """Reads a table of values. Only `add` and `sub` are followed. After a change of values, call `forget`."""

    def __init__(self, values: Mapping[str, Expression]) -> None:
        self.values = values
        self._offsets: dict[str, Offset] = {}
        self._used_by: dict[str, set[str]] = {}  # by variable, those whose offset was computed from its

    def forget(self, names: Iterable[str]) -> list[str]:
        """The variables have other values now; returns those whose offset is to be asked for again."""
        work = [name for name in names if self._offsets.pop(name, None) is not None]
        for name in work:
            for user in self._used_by.pop(name, ()):
                if self._offsets.pop(user, None) is not None:
                    work.append(user)
        return work

    def offset(self, name: str, depth: int = _DEPTH) -> Offset:
        known = self._offsets.get(name)
        if known is None:
            value = self.values.get(name)
            found = self._offset(name, value, depth - 1) if value is not None and depth else None
            known = self._offsets[name] = found if found is not None else Offset(name, 0)
        return known

    def _offset(self, name: str, value: Expression, depth: int) -> Offset | None:
        """The offset of the variable's value, or of a part of it."""
        if isinstance(value, Literal):
            return Offset(None, value.value)
        if isinstance(value, Identifier):
            self._used_by.setdefault(value.name, set()).add(name)
            return self.offset(value.name, depth)
        if isinstance(value, FunctionCall) and value.function.name in ("add", "sub"):
            left = self._offset(name, value.arguments[0], depth)
            right = self._offset(name, value.arguments[1], depth)
            if left is not None and right is not None:
                return _sum(left, right) if value.function.name == "add" else _difference(left, right)
        return None


def _sum(left: Offset, right: Offset) -> Offset | None:
    distance = (left.distance + right.distance) & _MASK
    if left.base is None:
        return Offset(right.base, distance)
    return Offset(left.base, distance) if right.base is None else None


def _difference(left: Offset, right: Offset) -> Offset | None:
    distance = (left.distance - right.distance) & _MASK
    if left.base == right.base:
        return Offset(None, distance)
    return Offset(left.base, distance) if right.base is None else None
