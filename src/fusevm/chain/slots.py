"""The storage of an account: a mapping that knows which slots have changed since its root was last asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fusevm.chain.patricia import Trie, hashed_keys
from fusevm.chain.trie import EMPTY_ROOT

SHORT = 128  # what is below is its own encoding
_HEADERS = [bytes((SHORT + size,)) for size in range(33)]


class Slots(dict[int, int]):
    """Keys to values that are not zero, both words.

    Once the root was asked for, every key that is written is noted, before the write: Ctrl-C may come between any two
    lines, and to note a key that did not change does no harm.
    """

    __slots__ = ("_changed", "_trie")

    def __init__(self, *given: Mapping[int, int] | Iterable[tuple[int, int]]) -> None:
        super().__init__(*given)
        self._trie: Trie | None = None
        self._changed: set[int] | None = None  # None: nobody asks

    def __setitem__(self, key: int, value: int) -> None:
        if self._changed is not None:
            self._changed.add(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: int) -> None:
        if self._changed is not None:
            self._changed.add(key)
        super().__delitem__(key)

    def pop(self, key: int, *default: Any) -> Any:
        if self._changed is not None:
            self._changed.add(key)
        return super().pop(key, *default)

    def setdefault(self, key: int, default: int = 0) -> int:
        if self._changed is not None:
            self._changed.add(key)
        return super().setdefault(key, default)

    def popitem(self) -> tuple[int, int]:
        self._trie = self._changed = None
        return super().popitem()

    def clear(self) -> None:
        self._trie = self._changed = None
        super().clear()

    def update(self, *given: Any, **names: Any) -> None:
        self._trie = self._changed = None
        super().update(*given, **names)

    def __ior__(self, other: Any) -> Slots:  # type: ignore[override, misc]
        self.update(other)
        return self

    def copy(self) -> Slots:
        """An independent one. The trie is shared: it never changes."""
        twin = Slots(self)
        twin._trie = self._trie
        twin._changed = None if self._changed is None else set(self._changed)
        return twin

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return Slots, (dict(self),)

    @property
    def is_settled(self) -> bool:
        """Whether nothing was written since the root was last asked for."""
        return self._trie is not None and not self._changed

    @property
    def trie(self) -> Trie:
        """All slots by the hashes of their keys; what has changed is brought into the last one."""
        if self._trie is None or self._changed is None:
            self._changed = set()
            self._trie = Trie.of(zip(_hashed(list(self)), map(encoded_word, self.values()), strict=True))
        elif self._changed:
            keys = list(self._changed)
            values = map(self.get, keys)
            changes = zip(_hashed(keys), (encoded_word(value) if value else None for value in values), strict=True)
            self._trie = self._trie.changed(dict(changes))
            self._changed.difference_update(keys)
        return self._trie

    @property
    def root(self) -> bytes:
        return self.trie.root if self else EMPTY_ROOT


def _hashed(keys: list[int]) -> list[bytes]:
    return hashed_keys([key.to_bytes(32, "big") for key in keys], 32)


def encoded_word(value: int) -> bytes:
    """As `encode(natural(value))`, twice as quick: there are many."""
    size = (value.bit_length() + 7) >> 3
    return value.to_bytes(1, "big") if 0 < value < SHORT else _HEADERS[size] + value.to_bytes(size, "big")
