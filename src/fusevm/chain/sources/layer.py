"""Copy-on-write: accounts over those of a state that was copied, which do not change any more.

Copying costs nothing. Each side loads an account on first access, and a slot likewise, so that both pay for
what they use. Hashing or listing all of it fills the layer.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from fusevm.chain.accounts import Account
from fusevm.chain.noting import Noting
from fusevm.chain.patricia import Trie
from fusevm.chain.slots import NotedSlots, trie_of
from fusevm.chain.sources.lazy import K, Lazy, LazyAccounts, LazySlots, V

DEEPEST = 16  # layers: beyond that a copy is made whole


class Layer(Lazy[K, V]):
    """Whoever wants all of it has it filled first."""

    __slots__ = ()

    def fill(self) -> None:
        """Takes all that is below."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[K]:
        self.fill()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self.fill()
        return dict.__len__(self)

    def keys(self) -> KeysView[K]:  # type: ignore[override]
        self.fill()
        return dict.keys(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        self.fill()
        return dict.values(self)

    def items(self) -> ItemsView[K, V]:  # type: ignore[override]
        self.fill()
        return dict.items(self)

    def copy(self) -> dict[K, V]:
        return dict(self.items())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)


class LayeredSlots(NotedSlots, Layer[int, int], LazySlots):
    """Storage over storage that does not change, and its trie likewise."""

    __slots__ = ("_changed", "_trie", "below", "watch")

    def __init__(self, below: dict[int, int]) -> None:
        LazySlots.__init__(self)
        self.below = below
        self._trie = None
        self._changed = set()
        self.watch = None

    def _before(self) -> Trie:
        if self._trie is not None:
            return self._trie
        return self.below.trie if isinstance(self.below, NotedSlots) else trie_of(self.below)

    def _below(self, key: int) -> int:
        return self.below.get(key, 0)

    def fill(self) -> None:
        """Takes all of the storage below."""
        if not self.below:
            return
        for key, value in self.below.items():
            self.learn(key, value)
        if self._trie is None:
            self._changed = None
        self.below = {}

    def __bool__(self) -> bool:
        return bool(dict.__len__(self)) or _has_others(self.below, self.absent)


def _has_others(slots: dict[int, int], absent: set[int]) -> bool:
    """Whether a slot beside these is not zero; without filling a layer up."""
    if any(key not in absent for key in dict.keys(slots)):
        return True
    return isinstance(slots, LayeredSlots) and _has_others(slots.below, absent | slots.absent)


class LayeredAccounts(Noting[bytes, Account], Layer[bytes, Account], LazyAccounts):
    """Accounts over accounts that do not change. Those loaded are noted, since they are not observed yet."""

    __slots__ = ("below", "changed", "depth")

    def __init__(self, below: dict[bytes, Account], changed: set[bytes] | None = None) -> None:
        LazyAccounts.__init__(self)
        self.below = below
        self.depth: int = below.depth + 1 if isinstance(below, LayeredAccounts) else 1
        self.changed = changed  # as in `Accounts`

    def _note(self, key: bytes) -> None:
        if self.changed is not None:
            self.changed.add(key)

    def _note_all(self) -> None:
        self.changed = None

    def _below(self, address: bytes) -> Account | None:
        self._note(address)
        found = self.below.get(address)
        if found is None:
            return None
        storage: dict[int, int] = LayeredSlots(found.storage) if found.storage else {}
        return Account(found.nonce, found.balance, found.code, storage)

    def fill(self) -> None:
        """Takes all of the accounts below."""
        for address in self.below:
            self.get(address)
        self.below = {}
