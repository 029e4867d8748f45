"""Accounts and storage that are loaded on first access.

Both are dictionaries, so that a state works on them as on its own. What they hold is known; what was looked for and
is absent is noted, to distinguish it from what was not requested yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fusevm.chain.accounts import Account
from fusevm.chain.sources.source import Facts, Place, Source


class LazySlots(dict[int, int]):
    """Non-zero slots that are known. The rest is below: `_below` returns a slot on first access."""

    __slots__ = ("zeros",)

    def __init__(self, known: Iterable[tuple[int, int]] = (), zeros: Iterable[int] = ()) -> None:
        super().__init__(known)
        self.zeros = set(zeros)  # known to be zero

    def _below(self, key: int) -> int:
        raise NotImplementedError

    def knows(self, key: int) -> bool:
        return dict.__contains__(self, key) or key in self.zeros

    def learn(self, key: int, value: int) -> None:
        """What the slot below holds, unless it is known here."""
        if self.knows(key):
            return
        if value:
            dict.__setitem__(self, key, value)
        else:
            self.zeros.add(key)

    def get(self, key: int, default: Any = None) -> Any:
        found = dict.get(self, key)
        if found is None:
            if key in self.zeros:
                return default
            found = self._below(key)
            self.learn(key, found)
        return found or default

    def __getitem__(self, key: int) -> int:
        found: int = self.get(key, 0)
        if not found:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and bool(self.get(key, 0))

    def __setitem__(self, key: int, value: int) -> None:
        dict.__setitem__(self, key, value)
        self.zeros.discard(key)

    def pop(self, key: int, default: Any = None) -> Any:
        self.zeros.add(key)
        return dict.pop(self, key, default)

    def __delitem__(self, key: int) -> None:
        self.pop(key)

    def __eq__(self, other: object) -> bool:
        """Whether all that either knows is the same in both."""
        if not isinstance(other, dict):
            return NotImplemented
        keys = {*self, *self.zeros, *other, *(other.zeros if isinstance(other, LazySlots) else ())}
        return all(self.get(key, 0) == other.get(key, 0) for key in keys)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


class RemoteSlots(LazySlots):
    """Storage of an account of a source. Whatever is known, there may be more."""

    __slots__ = ("address", "source")

    def __init__(
        self, source: Source, address: bytes, known: Iterable[tuple[int, int]] = (), zeros: Iterable[int] = ()
    ) -> None:
        super().__init__(known, zeros)
        self.source, self.address = source, address

    def _below(self, key: int) -> int:
        (found,) = self.source.slots([(self.address, key)])
        return found

    def __bool__(self) -> bool:
        return True

    def copy(self) -> RemoteSlots:
        return RemoteSlots(self.source, self.address, self.items(), self.zeros)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteSlots, (self.source, self.address, list(self.items()), self.zeros)


class LazyAccounts(dict[bytes, Account]):
    """Accounts that are known. `_load` returns an account on first access, with storage of its own."""

    __slots__ = ("absent",)

    def __init__(self, known: Iterable[tuple[bytes, Account]] = (), absent: Iterable[bytes] = ()) -> None:
        super().__init__(known)
        self.absent = set(absent)  # known not to be there

    def _load(self, address: bytes) -> Account | None:
        raise NotImplementedError

    def knows(self, address: bytes) -> bool:
        return dict.__contains__(self, address) or address in self.absent

    def get(self, address: bytes, default: Any = None) -> Any:
        found = dict.get(self, address)
        if found is None and address not in self.absent:
            found = self._load(address)
            if found is None:
                self.absent.add(address)
            else:
                dict.__setitem__(self, address, found)
        return default if found is None else found

    def __getitem__(self, address: bytes) -> Account:
        found: Account | None = self.get(address)
        if found is None:
            raise KeyError(address)
        return found

    def __contains__(self, address: object) -> bool:
        return isinstance(address, bytes) and self.get(address) is not None

    def __setitem__(self, address: bytes, account: Account) -> None:
        dict.__setitem__(self, address, account)
        self.absent.discard(address)

    def pop(self, address: bytes, default: Any = None) -> Any:
        self.absent.add(address)
        return dict.pop(self, address, default)

    def __delitem__(self, address: bytes) -> None:
        self.pop(address)


class RemoteAccounts(LazyAccounts):
    """Those of a source."""

    __slots__ = ("source",)

    def __init__(
        self, source: Source, known: Iterable[tuple[bytes, Account]] = (), absent: Iterable[bytes] = ()
    ) -> None:
        super().__init__(known, absent)
        self.source = source

    def _load(self, address: bytes) -> Account | None:
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
                account = self._account(address, facts)
                if account is None:
                    self.absent.add(address)
                else:
                    dict.__setitem__(self, address, account)
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
