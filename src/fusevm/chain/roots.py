"""The root of a state and proofs of what is in it, from tries that are kept from one question to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fusevm.chain.accounts import Account, put_slot
from fusevm.chain.patricia import Trie, hashed_keys
from fusevm.chain.rlp import encode, natural
from fusevm.chain.slots import Slots
from fusevm.chain.trie import EMPTY_ROOT, storage_root
from fusevm.evm.keccak import keccak256

Seen = tuple[int, int, bytes, bytes]  # nonce, balance, code, storage root


class Roots:
    """The trie of all accounts as they were when the root was last asked for.

    What may have changed since is told by the state's journal, as far as that goes back; else each account is looked
    at. Of an account's storage what was written is known.
    """

    def __init__(self) -> None:
        self._trie = Trie()
        self._seen: dict[bytes, Seen] = {}
        self._shared = False  # whether a copy has the same `_seen`
        self._whole = True  # False while they are being brought up to date
        self._owners: dict[int, bytes] = {}  # of accounts, and of storage that is in use, by identity
        self.position: int | None = None  # in the state's journal, when the root was last asked for

    def copy(self) -> Roots:
        twin = Roots()
        if self._whole:
            twin._trie, twin._seen = self._trie, self._seen
            twin._shared = self._shared = True
        return twin

    def trie(self, accounts: Mapping[bytes, Account], entries: Iterable[tuple[Any, ...]] | None = None) -> Trie:
        """With the journal's entries since the last time, only what they name is looked at.

        Ctrl-C in the middle does no harm: the next time all is made anew.
        """
        touched = None if entries is None or not self._whole else self._touched(accounts, entries)
        if not self._whole:
            self._trie, self._seen, self._shared = Trie(), {}, False
        self._whole = False
        if touched is None:
            found, gone = self._all(accounts)
        else:
            found, gone = self._some(accounts, touched)
        if found or gone:
            hashed = hashed_keys([*found, *gone], 20)
            encoded = [encoded_account(now, accounts[address]) for address, now in found.items()]
            self._trie = self._trie.changed(dict(zip(hashed, [*encoded, *(None for _ in gone)], strict=True)))
            if self._shared:
                self._seen, self._shared = dict(self._seen), False
            self._seen.update(found)
            for address in gone:
                del self._seen[address]
        self._whole = True
        return self._trie

    def _all(self, accounts: Mapping[bytes, Account]) -> tuple[dict[bytes, Seen], list[bytes]]:
        """Which accounts have changed, and which are gone."""
        seen = self._seen
        found = {address: now for address, account in accounts.items() if (now := _look(account)) != seen.get(address)}
        gone = [] if seen.keys() <= accounts.keys() else [address for address in seen if address not in accounts]
        self._owners = {}
        for address, account in accounts.items():
            self._learn(address, account)
        return found, gone

    def _some(self, accounts: Mapping[bytes, Account], touched: set[bytes]) -> tuple[dict[bytes, Seen], list[bytes]]:
        """The same, of those that may have."""
        found: dict[bytes, Seen] = {}
        gone = []
        for address in touched:
            account = accounts.get(address)
            if account is None:
                if address in self._seen:
                    gone.append(address)
            elif (now := _look(account)) != self._seen.get(address):
                found[address] = now
        return found, gone

    def _learn(self, address: bytes, account: Account) -> None:
        self._owners[id(account)] = address
        if account.storage or account.code:
            self._owners[id(account.storage)] = address

    def _touched(self, accounts: Mapping[bytes, Account], entries: Iterable[tuple[Any, ...]]) -> set[bytes] | None:
        """The accounts that the entries name; None where one names an object that nobody knows."""
        named: set[bytes] = set()
        things: dict[int, Any] = {}
        for undo, *arguments in entries:
            first = arguments[0]
            if undo is setattr:
                if isinstance(first, Account):
                    things[id(first)] = first
            elif undo is put_slot:
                if not isinstance(arguments[1], tuple):  # transient storage has pairs as keys
                    things[id(first)] = first
            elif isinstance(first, bytes) and getattr(undo, "__name__", "") in _PRESENCE:
                named.add(first)
        for address in named:
            account = accounts.get(address)
            if account is not None:
                self._learn(address, account)
        for thing in things.values():
            owner = self._owner(accounts, thing)
            if owner is None:
                return None
            named.add(owner)
        return named

    def _owner(self, accounts: Mapping[bytes, Account], thing: object) -> bytes | None:
        """Whose it is; an identity may have been that of an object that is gone."""
        address = self._owners.get(id(thing))
        account = None if address is None else accounts.get(address)
        if account is None or not (account is thing or account.storage is thing):
            return None
        if account.storage is not thing:
            self._owners[id(account.storage)] = address  # type: ignore[assignment]
        return address


# How the entries are called that give an account back or take it away: `State.ensure`, `delete`, `insert`, and diffs.
_PRESENCE = frozenset({"pop", "remove", "__setitem__"})


def _look(account: Account) -> Seen:
    return account.nonce, account.balance, account.code, root_of(account.storage)


def root_of(storage: Mapping[int, int]) -> bytes:
    if not storage:
        return EMPTY_ROOT
    return storage.root if isinstance(storage, Slots) else storage_root(storage)


def encoded_account(seen: Seen, account: Account) -> bytes:
    return encode([natural(seen[0]), natural(seen[1]), seen[3], account.code_hash()])


def proof_of(trie: Trie, address: bytes, account: Account, slots: Sequence[int]) -> dict[str, Any]:
    """As eth_getProof answers (EIP-1186)."""
    storage = account.storage if isinstance(account.storage, Slots) else Slots(account.storage)
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
