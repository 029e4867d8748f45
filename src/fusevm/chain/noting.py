"""Dictionaries that note which of their keys are written, and notify an observer: this keeps roots cheap.

Ctrl-C may come between any two lines, so a key is noted before it is written. To note one that does not change does no
harm.
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Of an account: the addresses that have changed since the root was last asked for, and its own, to be added there.
Watch: TypeAlias = tuple[set[bytes], bytes]


class Noting(dict[K, V], Generic[K, V]):
    """Every write to a dictionary calls one of two methods first."""

    __slots__ = ()

    def _note(self, key: K) -> None:
        """This key is about to be written."""
        raise NotImplementedError

    def _note_all(self) -> None:
        """Any key may be."""
        raise NotImplementedError

    def __setitem__(self, key: K, value: V) -> None:
        self._note(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self._note(key)
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self._note(key)
        return super().pop(key, *default)

    def setdefault(self, key: K, *default: Any) -> Any:
        self._note(key)
        return super().setdefault(key, *default)

    def popitem(self) -> tuple[K, V]:
        self._note_all()
        return super().popitem()

    def clear(self) -> None:
        self._note_all()
        super().clear()

    def update(self, *given: Any, **names: Any) -> None:
        self._note_all()
        super().update(*given, **names)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self
