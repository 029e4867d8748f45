"""Stores by where they write: which of them another access may touch, and which a write overwrites, as sets of bits.

A set of stores is a number with a bit for each, so that sets are copied, joined and compared without walking them.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.yul.analysis.distances import Offset

_WORD = 32
_MASK = (1 << 256) - 1
_FAR = 1 << 44  # distances up to here are found by range, others one by one
_MIDDLE = 1 << 43  # added to distances from a variable: some are negative
_SHIFTS = tuple(range(40, -1, -4))


class StoreOperation(NamedTuple):
    """A range of memory or a slot of storage; None where nothing is known.

    That a store is overwritten is known where the same variables say so, or numbers. That two variables have the same
    unknown value is not made use of, as in solc's step.
    """

    start: Offset | None
    length: Offset | None
    name: str = ""  # the variable that is the start
    length_name: str = ""  # and the one that is the length

    @property
    def bases(self) -> set[str]:
        """The variables that say where it is."""
        return {each.base for each in (self.start, self.length) if each is not None and each.base is not None}


def number_of(offset: Offset | None) -> int | None:
    return offset.distance if offset is not None and offset.base is None else None


class StorageIndex:
    """Slots are the same or not: those of one base at other distances are not, those of one variable are."""

    def __init__(self) -> None:
        self._bases: dict[str | None, int] = {}
        self._slots: dict[Offset, int] = {}
        self._names: dict[str, int] = {}

    def add(self, store: int, operation: StoreOperation) -> None:
        if operation.start is not None:
            base = operation.start.base
            self._bases[base] = self._bases.get(base, 0) | store
            self._slots[operation.start] = self._slots.get(operation.start, 0) | store
            self._names[operation.name] = self._names.get(operation.name, 0) | store

    def touched(self, stores: int, operation: StoreOperation) -> int:
        """Those of the stores that the operation may have a slot in common with."""
        if operation.start is None:
            return stores
        return stores & (~self._bases.get(operation.start.base, 0) | self._slots.get(operation.start, 0))

    def covered(self, stores: int, operation: StoreOperation) -> int:
        """Those of the stores that the operation certainly overwrites."""
        return stores & self._names.get(operation.name, 0) if operation.start is not None else 0


class MemoryIndex:
    """Ranges: by number where start and length are known, by distance from a variable where that is known."""

    def __init__(self) -> None:
        self._empty = 0  # of length zero: nothing touches them, everything covers them
        self._numbers: dict[int, _Starts] = {}  # by length, those whose start is a number
        self._open = _Starts()  # of any length, from a number on
        self._all_numbers = 0
        self._words: dict[str | None, _Starts] = {}  # by base, those of at most a word
        self._lengths: dict[str, dict[int, int]] = {}  # by variable and length, which is a number
        self._same: dict[tuple[str, str], int] = {}  # by variables of start and length

    def add(self, store: int, operation: StoreOperation) -> None:
        start, length = operation.start, number_of(operation.length)
        if length == 0:
            self._empty |= store
            return
        if start is None:
            return
        if start.base is None:
            self._all_numbers |= store
            starts = self._numbers.setdefault(length, _Starts()) if length is not None else self._open
            starts.add(start.distance, store)
        elif length is not None and length <= _WORD:
            self._words.setdefault(start.base, _Starts()).add(_centred(start.distance), store)
        if length is not None:
            lengths = self._lengths.setdefault(operation.name, {})
            lengths[length] = lengths.get(length, 0) | store
        elif operation.length is not None:
            self._same[operation[2:]] = self._same.get(operation[2:], 0) | store

    def touched(self, stores: int, operation: StoreOperation) -> int:
        """Those of the stores that the operation may have a byte in common with."""
        start, length = operation.start, number_of(operation.length)
        if length == 0:
            return 0
        stores &= ~self._empty
        if start is None:
            return stores
        if start.base is None:
            end = min(start.distance + length, _MASK + 1) if length is not None else _MASK + 1
            return stores & (~self._all_numbers | self._overlapping(start.distance, end))
        near = self._words.get(start.base)
        if near is None or length is None or length > _WORD:
            return stores
        middle = _centred(start.distance)
        return stores & (~near.all | near.between(middle - _WORD + 1, middle + _WORD))

    def _overlapping(self, start: int, end: int) -> int:
        """Of those with number and length, the ones that end after the start and begin before the end."""
        found = self._open.between(0, end)
        for length, starts in self._numbers.items():
            found |= starts.between(max(0, start - length + 1), end)
        return found

    def covered(self, stores: int, operation: StoreOperation) -> int:
        """Those of the stores that the operation certainly overwrites."""
        start, length = operation.start, number_of(operation.length)
        found = self._empty
        if start is not None and operation.length is not None:
            found |= self._same.get(operation[2:], 0)
        if start is not None and length is not None:
            for size, same in self._lengths.get(operation.name, {}).items():
                if size <= length:
                    found |= same
            if start.base is None and start.distance + length <= _MASK:
                for size, starts in self._numbers.items():
                    if size <= length:
                        found |= starts.between(start.distance, start.distance + length - size + 1)
        return stores & found


def _centred(distance: int) -> int:
    return (distance + _MIDDLE) & _MASK


class _Starts:
    """Stores by a number, in a tree of sixteen branches each: the union of any range takes few steps."""

    def __init__(self) -> None:
        self.all = 0
        self._parts: tuple[dict[int, int], ...] = tuple({} for _ in _SHIFTS)
        self._far: dict[int, int] = {}

    def add(self, start: int, store: int) -> None:
        self.all |= store
        if start >= _FAR:
            self._far[start] = self._far.get(start, 0) | store
            return
        for shift, part in zip(_SHIFTS, self._parts, strict=True):
            part[start >> shift] = part.get(start >> shift, 0) | store

    def between(self, first: int, end: int) -> int:
        """Those from the first number up to before the end."""
        found = 0
        for start, stores in self._far.items():
            if first <= start < end:
                found |= stores
        at, end = max(0, first), min(end, _FAR)
        while at < end:
            for shift, part in zip(_SHIFTS, self._parts, strict=True):
                if not at & ((1 << shift) - 1) and at + (1 << shift) <= end:
                    found |= part.get(at >> shift, 0)
                    at += 1 << shift
                    break
        return found
