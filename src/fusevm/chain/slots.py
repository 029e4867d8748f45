"""The storage of an account: a mapping that knows which slots have changed since its root was last asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fusevm.chain.noting import Noting, Watch
from fusevm.chain.patricia import Trie, hashed_keys
from fusevm.chain.trie import EMPTY_ROOT

SHORT = 128  # what is below is its own encoding
_HEADERS = [bytes((SHORT + size,)) for size in range(33)]


class NotedSlots(Noting[int, int]):
    """Keys to values that are not zero, both words. Writes after the root was computed are noted and reported."""

    __slots__ = ()
    _changed: set[int] | None  # slots written since the trie was made; None: all of them may have been
    _trie: Trie | None
    watch: Watch | None  # notified of the first change
    _ahead: tuple[Trie, dict[int, int], Trie] | None = None  # a trie, writes that may come, and the trie after them

    def _note(self, key: int) -> None:
        changed = self._changed
        if not changed and self.watch is not None:
            self.watch[0].add(self.watch[1])
        if changed is not None:
            changed.add(key)

    def _note_all(self) -> None:
        if self.watch is not None:
            self.watch[0].add(self.watch[1])
        self._trie = self._changed = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing was written since the root was last asked for."""
        return self._trie is not None and not self._changed

    def _before(self) -> Trie | None:
        """The trie as it was before the slots that are noted were written."""
        return self._trie

    @property
    def trie(self) -> Trie:
        """The trie of all slots by the hashes of their keys; changes are applied to the last one."""
        before = None if self._changed is None else self._before()
        if self._changed is None or before is None:
            self._trie = trie_of(self)
            self._changed = set()  # last: until then all may have been written
        elif self._changed:
            keys, get = list(self._changed), self.get
            written = {key: get(key, 0) for key in keys}
            ahead = self._ahead
            expected = ahead is not None and ahead[0] is before and ahead[1] == written
            self._trie = ahead[2] if ahead is not None and expected else _changed(before, written)
            self._changed.difference_update(keys)
        else:
            self._trie = before
        return self._trie

    @property
    def root(self) -> bytes:
        if self:
            return self.trie.root
        self._trie = self._changed = None  # nothing to keep: most accounts have no storage
        return EMPTY_ROOT


class Slots(NotedSlots):
    """All of them."""

    __slots__ = ("_ahead", "_changed", "_trie", "watch")

    def __init__(self, *given: Mapping[int, int] | Iterable[tuple[int, int]]) -> None:
        super().__init__(*given)
        self._trie = None
        self._changed = None
        self._ahead = None
        self.watch = None

    # As inherited, but faster where writes are not noted: every SSTORE calls this.

    def __setitem__(self, key: int, value: int) -> None:
        if self._changed is not None or self.watch is not None:
            self._note(key)
        dict.__setitem__(self, key, value)

    def pop(self, key: int, *default: Any) -> Any:
        if self._changed is not None or self.watch is not None:
            self._note(key)
        return dict.pop(self, key, *default)

    def expect(self, writes: Mapping[int, int]) -> None:
        """Computes the root in advance, in case these slots are the next that are written. A hint only."""
        before = self._trie
        written = {key: value for key, value in writes.items() if self.get(key, 0) != value}
        if before is not None and self.is_settled and written:
            after = _changed(before, written)
            if after.root:  # its nodes have their references now
                self._ahead = before, written, after

    def copy(self) -> Slots:
        """An independent one. The trie is shared: it never changes."""
        twin = Slots(self)
        twin._trie = self._trie
        twin._changed = None if self._changed is None else set(self._changed)
        return twin

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return Slots, (dict(self),)


def _changed(trie: Trie, written: Mapping[int, int]) -> Trie:
    values = [encoded_word(value) if value else None for value in written.values()]
    return trie.changed(dict(zip(_hashed(list(written)), values, strict=True)))


def trie_of(slots: Mapping[int, int]) -> Trie:
    return Trie.of(zip(_hashed(list(slots)), map(encoded_word, slots.values()), strict=True))


def _hashed(keys: list[int]) -> list[bytes]:
    return hashed_keys([key.to_bytes(32, "big") for key in keys], 32)


def encoded_word(value: int) -> bytes:
    """As `encode(natural(value))`, twice as quick: there are many."""
    size = (value.bit_length() + 7) >> 3
    return value.to_bytes(1, "big") if 0 < value < SHORT else _HEADERS[size] + value.to_bytes(size, "big")
