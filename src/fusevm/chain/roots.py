"""The root of a state and proofs of what is in it, from tries that are kept from one question to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fusevm.chain.accounts import Account, Accounts, Watched
from fusevm.chain.patricia import Trie, hashed_keys
from fusevm.chain.slots import NotedSlots, Slots, encoded_word
from fusevm.chain.sources.layer import LayeredAccounts
from fusevm.chain.trie import HASH_HEADER, storage_root
from fusevm.evm.keccak import keccak256


class Roots:
    """The trie of all accounts as they were when the root was last asked for, and which may have changed since.

    Every account is watched from then on: before it changes it adds its address to a set, and so does its storage, and
    the mapping of accounts before one comes or goes. What cannot be watched (storage in a plain dictionary, an account
    that another state watches) is looked at each time.
    """

    def __init__(self) -> None:
        self._trie = Trie()
        self._changed: set[bytes] = set()
        self._unwatched: set[bytes] = set()

    def trie(self, accounts: Mapping[bytes, Account]) -> Trie:
        """Ctrl-C in the middle leaves it as it was."""
        if not isinstance(accounts, Accounts | LayeredAccounts):
            return Trie.of(self._entries(accounts.items()))
        if accounts.changed is not self._changed:
            self._begin(accounts)
        elif self._changed or self._unwatched:
            self._follow(accounts)
        return self._trie

    def _begin(self, accounts: Accounts | LayeredAccounts) -> None:
        """From nothing."""
        self._changed.clear()
        self._unwatched.clear()
        items = list(accounts.items())
        for address, account in items:
            self._watch(address, account)
        self._trie = Trie.of(self._entries(items))
        accounts.changed = self._changed  # last: from here on changes are tracked

    def _follow(self, accounts: Accounts | LayeredAccounts) -> None:
        looked_at = list(self._changed | self._unwatched if self._unwatched else self._changed)
        values: list[bytes | None] = []
        gone = []
        for address in looked_at:
            account = accounts.get(address)
            if account is None:
                gone.append(address)
                values.append(None)
            else:
                self._watch(address, account)
                values.append(encoded_account(account))
        self._trie = self._trie.changed(dict(zip(hashed_keys(looked_at, 20), values, strict=True)))
        self._unwatched.difference_update(gone)
        self._changed.difference_update(looked_at)

    def _watch(self, address: bytes, account: Account) -> None:
        """Before it is looked at."""
        storage = account.storage
        if not isinstance(storage, NotedSlots):
            self._unwatched.add(address)
            return
        watched = isinstance(account, Watched)
        watch = account.watch if watched else storage.watch or (self._changed, address)
        if watch[0] is not self._changed or watch[1] != address:  # it is another's, too
            self._unwatched.add(address)
            return
        self._unwatched.discard(address)
        storage.watch = watch
        if not watched:
            account.watch = watch
            account.__class__ = Watched

    @staticmethod
    def _entries(items: Iterable[tuple[bytes, Account]]) -> Iterable[tuple[bytes, bytes]]:
        items = list(items)
        hashed = hashed_keys([address for address, _ in items], 20)
        return zip(hashed, [encoded_account(account) for _, account in items], strict=True)

    def over(self, below: dict[bytes, Account], now: Mapping[bytes, Account]) -> tuple[Roots, LayeredAccounts]:
        """For a layer over accounts that are as those now known here: only what may have changed is looked at there."""
        twin, known = self._twin(now)
        return twin, LayeredAccounts(below, twin._changed if known else None)

    def of_copy(self, accounts: Accounts, now: Mapping[bytes, Account]) -> Roots:
        """For accounts that were copied from those now known here."""
        twin, known = self._twin(now)
        if known:
            for address, account in accounts.items():
                twin._watch(address, account)
            accounts.changed = twin._changed
        return twin

    def _twin(self, now: Mapping[bytes, Account]) -> tuple[Roots, bool]:
        """And whether changes are tracked."""
        twin = Roots()
        twin._trie, twin._changed = self._trie, self._changed | self._unwatched
        return twin, isinstance(now, Accounts | LayeredAccounts) and now.changed is self._changed


def root_of(storage: Mapping[int, int]) -> bytes:
    return storage.root if isinstance(storage, NotedSlots) else storage_root(storage)


def encoded_account(account: Account) -> bytes:
    """As `encode` of the four fields: the two hashes make it a list of 68 to 108 bytes."""
    numbers = encoded_word(account.nonce) + encoded_word(account.balance)
    body = numbers + HASH_HEADER + root_of(account.storage) + HASH_HEADER + account.code_hash()
    return b"\xf8" + bytes((len(body),)) + body


def proof_of(trie: Trie, address: bytes, account: Account, slots: Sequence[int]) -> dict[str, Any]:
    """As eth_getProof answers (EIP-1186)."""
    storage = account.storage if isinstance(account.storage, NotedSlots) else Slots(account.storage)
    return {
        "address": "0x" + address.hex(),
        "accountProof": _shown(trie.proof(keccak256(address))),
        "balance": hex(account.balance),
        "codeHash": "0x" + account.code_hash().hex(),
        "nonce": hex(account.nonce),
        "storageHash": "0x" + root_of(storage).hex(),
        "storageProof": [
            {
                "key": hex(slot),
                "value": hex(storage.get(slot, 0)),
                "proof": _shown(storage.trie.proof(keccak256(slot.to_bytes(32, "big")))),
            }
            for slot in slots
        ],
    }


def _shown(nodes: list[bytes]) -> list[str]:
    return ["0x" + node.hex() for node in nodes]
