"""Known contents of storage and memory: by the variable that holds an address, the variable whose value is there.

Entries are indexed by the variables they mention and by location (a base and a distance), so that a store finds
what it may overwrite without looking at the rest. Changes inside a branch are noted: a join looks only at those.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from fusevm.yul.analysis.distances import Offset

_MASK = (1 << 256) - 1
_WORD = 32
_WORDS = (_MASK + 1) // _WORD

Key = TypeVar("Key")
Names = dict[str, None]  # a dictionary as an ordered set


class VariableTable(Generic[Key]):
    """A table of variables that can drop entries which mention a variable, and join two paths."""

    def __init__(self) -> None:
        self._values: dict[Key, str] = {}
        self._mentioning: dict[str, dict[Key, None]] = {}
        self._changes: list[dict[Key, str | None]] = []  # for each branch we are in, what entries were before it

    @abstractmethod
    def names(self, key: Key) -> tuple[str, ...]:
        """The variables a key mentions."""

    def get(self, key: Key) -> str | None:
        return self._values.get(key)

    def note(self, key: Key, value: str) -> None:
        """From now on the key has the value; nothing else changes."""
        self._remove(key)
        if self._changes:
            self._changes[-1].setdefault(key, None)
        self._values[key] = value
        for name in (*self.names(key), value):
            self._mentioning.setdefault(name, {})[key] = None

    def clear(self) -> None:
        for key in list(self._values):
            self._remove(key)

    def forget(self, names: Iterable[str]) -> None:
        """The variables were assigned to: entries that mention them say nothing any more."""
        for name in names:
            for key in list(self._mentioning.get(name, ())):
                self._remove(key)

    def _remove(self, key: Key) -> None:
        value = self._values.pop(key, None)
        if value is None:
            return
        if self._changes:
            self._changes[-1].setdefault(key, value)
        for name in {*self.names(key), value}:
            mentioning = self._mentioning[name]
            del mentioning[key]
            if not mentioning:
                del self._mentioning[name]
        self._removed(key, value)

    def _removed(self, key: Key, value: str) -> None:
        """For indices of subclasses."""

    def begin_branch(self) -> None:
        self._changes.append({})

    def join(self) -> None:
        """The branch ends where control also comes from before it: keep what was known there and is still so."""
        changed = self._changes.pop()
        if self._changes:
            outer = self._changes[-1]
            if len(outer) < len(changed):
                self._changes[-1] = changed | outer
            else:
                for key, before in changed.items():
                    outer.setdefault(key, before)
        for key, before in changed.items():
            if self._values.get(key, before) != before:
                self._remove(key)


class KnownHashes(VariableTable[tuple[str, str]]):
    """By start and length, the variables that hold the hash of that range."""

    def names(self, key: tuple[str, str]) -> tuple[str, ...]:
        return key


class KnownPlaces(VariableTable[str]):
    """By location, the variable whose value is there; and an index of the locations."""

    def __init__(self, offset: Callable[[str], Offset]) -> None:
        super().__init__()
        self._offset = offset
        self._places: dict[str, Offset] = {}

    def names(self, key: str) -> tuple[str, ...]:
        return (key,)

    def note(self, key: str, value: str) -> None:
        super().note(key, value)
        self._enter(key, value)

    def moved(self, names: Iterable[str]) -> None:
        """Less is known about where the variables point to."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                self._removed(name, value)
                self._enter(name, value)

    def _enter(self, key: str, value: str) -> None:
        self._places[key] = self._offset(key)

    def _removed(self, key: str, value: str) -> None:
        del self._places[key]


class KnownMemory(KnownPlaces):
    """Words in memory: a store drops every word that may overlap it."""

    def __init__(self, offset: Callable[[str], Offset]) -> None:
        super().__init__(offset)
        self._words: dict[str | None, dict[int, Names]] = {}  # by base and whole words of distance

    def store(self, place: str, value: str) -> None:
        offset = self._offset(place)
        for base in [each for each in self._words if each != offset.base]:
            for other in [other for names in self._words[base].values() for other in names]:
                self._remove(other)
        number = offset.distance // _WORD
        for near in (number - 1, number, number + 1):
            for other in list(self._words.get(offset.base, {}).get(near % _WORDS, ())):
                if not _WORD <= (offset.distance - self._places[other].distance) & _MASK <= _MASK + 1 - _WORD:
                    self._remove(other)
        self.note(place, value)

    def _enter(self, key: str, value: str) -> None:
        super()._enter(key, value)
        base, distance = self._places[key]
        self._words.setdefault(base, {}).setdefault(distance // _WORD, {})[key] = None

    def _removed(self, key: str, value: str) -> None:
        base, distance = self._places[key]
        _discard(self._words, base, distance // _WORD, key)
        super()._removed(key, value)


class KnownStorage(KnownPlaces):
    """Slots of storage: a store drops what is neither certainly another slot nor holds the same value anyway.

    So after a store all that is left has the base of its place, or its value: only the bases entered since (`_mixed`)
    can hold anything else when the next store comes.
    """

    def __init__(self, offset: Callable[[str], Offset]) -> None:
        super().__init__(offset)
        self._slots: dict[str | None, dict[int, Names]] = {}  # by base and distance
        self._holding: dict[str | None, dict[str, Names]] = {}  # by base and value
        self._mixed: set[str | None] = set()
        self._last = ""  # the value last stored

    def store(self, place: str, value: str) -> None:
        base, distance = self._offset(place)
        for other_base in self._mixed if value == self._last else list(self._holding):
            if other_base != base:
                holding = self._holding.get(other_base, {})
                for other in [other for each, names in holding.items() if each != value for other in names]:
                    self._remove(other)
        for other in list(self._slots.get(base, {}).get(distance, ())):
            if self._values[other] != value:
                self._remove(other)
        self._mixed, self._last = set(), value
        self.note(place, value)

    def _enter(self, key: str, value: str) -> None:
        super()._enter(key, value)
        base, distance = self._places[key]
        self._slots.setdefault(base, {}).setdefault(distance, {})[key] = None
        self._holding.setdefault(base, {}).setdefault(value, {})[key] = None
        self._mixed.add(base)

    def _removed(self, key: str, value: str) -> None:
        base, distance = self._places[key]
        _discard(self._slots, base, distance, key)
        _discard(self._holding, base, value, key)
        super()._removed(key, value)


Inner = TypeVar("Inner")


def _discard(index: dict[str | None, dict[Inner, Names]], outer: str | None, inner: Inner, name: str) -> None:
    """Take a name out of an index, and what is empty then."""
    groups = index[outer]
    del groups[inner][name]
    if not groups[inner]:
        del groups[inner]
        if not groups:
            del index[outer]
