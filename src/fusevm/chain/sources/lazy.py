"""Accounts and storage that are loaded on first access.

Both are dictionaries, so that a state works on them as on its own. What they hold is known; what was looked for and
is absent is noted, to distinguish it from what was not requested yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from fusevm.chain.accounts import Account
from fusevm.chain.sources.source import Facts, Place, Source

K = TypeVar("K")
V = TypeVar("V")


class Lazy(dict[K, V], Generic[K, V]):
    """Entries that are known. `_below` returns another on first access; zero and None are nothing."""

    __slots__ = ("absent",)
    _kind: type

    def __init__(self, known: Iterable[tuple[K, V]] = (), absent: Iterable[K] = ()) -> None:
        super().__init__(known)
        self.absent = set(absent)  # known not to be there

    def _below(self, key: K) -> V | None:
        raise NotImplementedError

    def knows(self, key: K) -> bool:
        return dict.__contains__(self, key) or key in self.absent

    def learn(self, key: K, value: V | None) -> None:
        """What is below, unless the key is known here."""
        if not self.knows(key):
            self._keep(key, value)

    def _keep(self, key: K, value: V | None) -> None:
        if value:
            dict.__setitem__(self, key, value)
        else:
            self.absent.add(key)

    def get(self, key: K, default: Any = None) -> Any:
        found = dict.get(self, key)
        if found is None and key not in self.absent:
            found = self._below(key)
            self._keep(key, found)
        return found or default

    def __getitem__(self, key: K) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, self._kind) and self.get(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: K, value: V) -> None:
        dict.__setitem__(self, key, value)
        self.absent.discard(key)

    def pop(self, key: K, default: Any = None) -> Any:
        self.absent.add(key)
        return dict.pop(self, key, default)

    def __delitem__(self, key: K) -> None:
        self.pop(key)


class LazySlots(Lazy[int, int]):
    """Slots, of which none that is known holds zero."""

    __slots__ = ()
    _kind = int

    def __eq__(self, other: object) -> bool:
        """Whether all that either knows is the same in both."""
        if not isinstance(other, dict):
            return NotImplemented
        keys = {*self, *self.absent, *other, *(other.absent if isinstance(other, LazySlots) else ())}
        return all(self.get(key, 0) == other.get(key, 0) for key in keys)

    def __ne__(self, other: object) -> bool:
        return not self == other


class RemoteSlots(LazySlots):
    """Storage of an account of a source. Whatever is known, there may be more."""

    __slots__ = ("address", "source")

    def __init__(
        self, source: Source, address: bytes, known: Iterable[tuple[int, int]] = (), absent: Iterable[int] = ()
    ) -> None:
        super().__init__(known, absent)
        self.source, self.address = source, address

    def _below(self, key: int) -> int:
        (found,) = self.source.slots([(self.address, key)])
        return found

    def __bool__(self) -> bool:
        return True

    def copy(self) -> RemoteSlots:
        return RemoteSlots(self.source, self.address, self.items(), self.absent)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteSlots, (self.source, self.address, list(self.items()), self.absent)


class LazyAccounts(Lazy[bytes, Account]):
    """Accounts, each with storage of its own."""

    __slots__ = ()
    _kind = bytes


class RemoteAccounts(LazyAccounts):
    """Those of a source."""

    __slots__ = ("source",)

    def __init__(
        self, source: Source, known: Iterable[tuple[bytes, Account]] = (), absent: Iterable[bytes] = ()
    ) -> None:
        super().__init__(known, absent)
        self.source = source

    def _below(self, address: bytes) -> Account | None:
        (facts,) = self.source.accounts([address])
        return self._account(address, facts)

    def _account(self, address: bytes, facts: Facts | None) -> Account | None:
        """One that never had code nor sent a transaction has no storage."""
        if facts is None:
            return None
        storage: dict[int, int] = RemoteSlots(self.source, address) if facts.nonce or facts.code else {}
        return Account(facts.nonce, facts.balance, facts.code, storage)

    def fetch(self, addresses: Sequence[bytes], places: Sequence[Place]) -> None:
        """Loads accounts and slots that are not known, in two batches at most."""
        known, absent = dict.keys(self), self.absent
        missing = [address for address in addresses if address not in known and address not in absent]
        if not missing and not places:  # as for most transactions
            return
        missing += [address for address, _ in places if address not in known and address not in absent]
        missing = list(dict.fromkeys(missing))
        if missing:
            for address, facts in zip(missing, self.source.accounts(missing), strict=True):
                self.learn(address, self._account(address, facts))
        unknown = list(dict.fromkeys(self._unknown(places)))
        if unknown:
            for (address, key), value in zip(unknown, self.source.slots(unknown), strict=True):
                self[address].storage.learn(key, value)  # type: ignore[attr-defined]

    def _unknown(self, places: Iterable[Place]) -> Iterator[Place]:
        for address, key in places:
            account = dict.get(self, address)
            if account is not None and isinstance(account.storage, RemoteSlots) and not account.storage.knows(key):
                yield address, key

    def copy(self) -> RemoteAccounts:
        copied = ((address, account.copy()) for address, account in self.items())
        return RemoteAccounts(self.source, copied, self.absent)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteAccounts, (self.source, list(self.items()), self.absent)
