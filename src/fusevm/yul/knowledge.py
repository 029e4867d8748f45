"""What is known about how far apart two values are: each variable as another one plus a constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fusevm.yul.ast import Expression, FunctionCall, Identifier, Literal

_MASK = (1 << 256) - 1
_WORD = 32
_DEPTH = 500  # how many definitions are followed before giving up


class Offset(NamedTuple):
    """base + distance; the base of a plain number is None."""

    base: str | None
    distance: int


class KnowledgeBase:
    """Reads a table of values. Only `add` and `sub` are followed. Whoever changes or drops a value calls `forget`."""

    def __init__(self, values: Mapping[str, Expression]) -> None:
        self.values = values
        self._offsets: dict[str, Offset] = {}

    def forget(self) -> None:
        self._offsets = {}

    def different(self, left: str, right: str) -> bool:
        """Certainly different."""
        distance = self.distance(left, right)
        return distance is not None and distance != 0

    def different_by_32(self, left: str, right: str) -> bool:
        """Certainly so far apart that words at these addresses don't overlap."""
        distance = self.distance(left, right)
        return distance is not None and _WORD <= distance <= _MASK + 1 - _WORD

    def distance(self, left: str, right: str) -> int | None:
        """left - right, if it is the same whatever the variables hold."""
        one, other = self.offset(left), self.offset(right)
        return (one.distance - other.distance) & _MASK if one.base == other.base else None

    def constant(self, name: str) -> int | None:
        offset = self.offset(name)
        return offset.distance if offset.base is None else None

    def offset(self, name: str, depth: int = _DEPTH) -> Offset:
        known = self._offsets.get(name)
        if known is None:
            value = self.values.get(name)
            found = self._offset(value, depth - 1) if value is not None and depth else None
            known = self._offsets[name] = found if found is not None else Offset(name, 0)
        return known

    def _offset(self, value: Expression, depth: int) -> Offset | None:
        if isinstance(value, Literal):
            return Offset(None, value.value)
        if isinstance(value, Identifier):
            return self.offset(value.name, depth)
        if isinstance(value, FunctionCall) and value.function.name in ("add", "sub"):
            left, right = (self._offset(each, depth) for each in value.arguments)
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
