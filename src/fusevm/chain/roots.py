"""The root of a state and proofs of what is in it, from tries that are kept from one question to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusevm.chain.patricia import Trie, hashed_keys
from fusevm.chain.rlp import encode, natural
from fusevm.chain.slots import Slots
from fusevm.chain.trie import EMPTY_ROOT, storage_root
from fusevm.evm.keccak import keccak256

if TYPE_CHECKING:
    from fusevm.chain.accounts import Account

Seen = tuple[int, int, bytes, bytes]  # nonce, balance, code, storage root


class Roots:
    """The trie of all accounts as they were when the root was last asked for.

    To find out which have changed, each is looked at; of an account's storage what was written is known.
    """

    def __init__(self) -> None:
        self._trie = Trie()
        self._seen: dict[bytes, Seen] = {}

    def copy(self) -> Roots:
        twin = Roots()
        twin._trie, twin._seen = self._trie, self._seen  # neither ever changes
        return twin

    def trie(self, accounts: Mapping[bytes, Account]) -> Trie:
        """Ctrl-C in the middle leaves it as it was."""
        seen = self._seen
        found = {address: now for address, account in accounts.items() if (now := _look(account)) != seen.get(address)}
        gone = [] if seen.keys() <= accounts.keys() else [address for address in seen if address not in accounts]
        if not (found or gone):
            return self._trie
        hashed = hashed_keys([*found, *gone], 20)
        encoded = [encoded_account(now, accounts[address]) for address, now in found.items()]
        trie = self._trie.changed(dict(zip(hashed, [*encoded, *(None for _ in gone)], strict=True)))
        after = {**seen, **found}
        for address in gone:
            del after[address]
        self._trie, self._seen = trie, after
        return trie


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
