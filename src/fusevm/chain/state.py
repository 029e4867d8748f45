"""All accounts. Every change can be undone by the journal (`chain/journal.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fusevm.chain.accounts import ABSENT, DELEGATION_PREFIX, EMPTY_CODE_HASH, Account, Accounts, delegate_in, put_slot
from fusevm.chain.logs import Log, logs_hash
from fusevm.chain.roots import Roots, proof_of
from fusevm.chain.scope import TransactionScope
from fusevm.chain.slots import Slots
from fusevm.chain.sources.layer import DEEPEST, LayeredAccounts
from fusevm.chain.sources.lazy import RemoteAccounts
from fusevm.chain.sources.source import PartialState, Place, Source

__all__ = [
    "DELEGATION_PREFIX",
    "EMPTY_CODE_HASH",
    "RIPEMD160",
    "Account",
    "Log",
    "State",
    "delegate_in",
    "logs_hash",
    "put_slot",
]

RIPEMD160 = (3).to_bytes(20, "big")
MAX_MOVED = 1 << 10
_known = dict.get  # of accounts or slots that may be lazy: known entries are found as quickly as in a plain dictionary


class State(TransactionScope):
    """All accounts, and what a transaction keeps beside them until it ends.

    >>> state = State()
    >>> state.set_balance(bytes(20), 5)
    >>> state.account(bytes(20)).balance, state.size
    (5, 1)
    """

    def __init__(self, *, source: Source | None = None) -> None:
        super().__init__()
        self._accounts: dict[bytes, Account] = Accounts() if source is None else RemoteAccounts(source)
        self._roots = Roots()
        # with copies: accounts, and when they were as here. A change adds to the journal, or moves the version on.
        self._shared: tuple[dict[bytes, Account], tuple[int, int]] | None = None
        # for tiers that keep copies of accounts between calls
        self.moved: list[bytes] = []  # accounts whose balance, nonce or code changed, or that were created
        self.handed_out = False  # whether `accounts` was: then changes cannot be tracked

    # -- accounts

    @property
    def accounts(self) -> dict[bytes, Account]:
        """All of them by address, whatever is pending written. They may be changed, so tiers keep no copies from then
        on; to look at accounts, `account` and `items` do."""
        if self.pending is not None:
            self.settle()
        self.handed_out = True
        self.remake()
        return self._accounts

    @accounts.setter
    def accounts(self, accounts: dict[bytes, Account]) -> None:
        self.pending = None
        self.handed_out = True
        self._roots = Roots()
        self._accounts = accounts

    @property
    def journalled(self) -> dict[bytes, Account]:
        """As `accounts`, for callers that write the undo entries to the journal and call `remake`."""
        if self.pending is not None:
            self.settle()
        return self._accounts

    def account(self, address: bytes) -> Account:
        """The account to read from; a blank one where there is none."""
        if self.pending is not None:
            self.settle()
        return _known(self._accounts, address) or self._accounts.get(address, ABSENT)

    def unsettled_account(self, address: bytes) -> Account:
        """As `account`, for callers that know what is pending."""
        return _known(self._accounts, address) or self._accounts.get(address, ABSENT)

    @property
    def size(self) -> int:
        """How many accounts there are."""
        return len(self._accounts)

    def _move(self, address: bytes) -> None:
        """An account is about to change, except its storage."""
        if len(self.moved) >= MAX_MOVED:
            self.remade += 1
            self.moved = []
        self.moved.append(address)
        self.version += 1

    def exists(self, address: bytes) -> bool:
        return _known(self._accounts, address) is not None or address in self._accounts

    def is_dead(self, address: bytes) -> bool:
        return self.unsettled_account(address).empty

    def ensure(self, address: bytes) -> Account:
        """The account to write to, created if need be."""
        account = _known(self._accounts, address) or self._accounts.get(address)
        if account is None:
            self._move(address)
            self._undoable(self._accounts.pop, address, None)
            account = self._accounts[address] = Account()
        return account

    def insert(self, address: bytes) -> Account:
        """An account that the keeper of the ledger creates, and undoes."""
        account = self._accounts[address] = Account()
        return account

    def remove(self, address: bytes) -> None:
        """One that the ledger's keeper undoes."""
        self._accounts.pop(address, None)

    def touch(self, address: bytes) -> None:
        """EIP-161: an account that ends the transaction touched and empty is cleared.

        The touch of the RIPEMD-160 precompile outlives a revert, as it did on mainnet in block 2,675,119.
        """
        if address == RIPEMD160:
            self.leftovers = True
            self.touched.add(address)
        else:
            self._add(self.touched, address)

    def set_balance(self, address: bytes, balance: int) -> None:
        account = self.ensure(address)
        if self.ledger is not None:
            self.ledger.set_balance(address, account, balance)
            return
        self._move(address)
        self.journal.append((setattr, account, "balance", account.balance))
        account.balance = balance

    def add_balance(self, address: bytes, amount: int) -> None:
        self.set_balance(address, self.account(address).balance + amount)

    def transfer(self, sender: bytes, recipient: bytes, amount: int) -> None:
        self.set_balance(sender, self.account(sender).balance - amount)
        self.add_balance(recipient, amount)

    def set_nonce(self, address: bytes, nonce: int) -> None:
        account = self.ensure(address)
        if self.ledger is not None:
            self.ledger.set_nonce(address, account, nonce)
            return
        self._move(address)
        self.journal.append((setattr, account, "nonce", account.nonce))
        account.nonce = nonce

    def set_code(self, address: bytes, code: bytes) -> None:
        account = self.ensure(address)
        self._move(address)
        self.journal.append((setattr, account, "code", account.code))
        account.code = code

    def delegate_of(self, address: bytes) -> bytes | None:
        """EIP-7702: the address whose code runs when this one is called, if it delegates."""
        return delegate_in(self.account(address).code)

    def has_code_or_nonce_or_storage(self, address: bytes) -> bool:
        """Whether a creation at this address would collide (EIP-684, EIP-7610)."""
        self.settle()
        account = self.account(address)
        return bool(account.nonce or account.code or account.storage)

    def delete(self, address: bytes) -> None:
        self.settle()
        account = self._accounts.get(address)
        if account is not None:
            self.remake()
            self._undoable(self._accounts.__setitem__, address, account)
            del self._accounts[address]

    # -- storage

    def storage(self, address: bytes, key: int) -> int:
        if self.pending is not None:
            self.settle()
        slots = self.account(address).storage
        return _known(slots, key) or slots.get(key, 0)

    def original_storage(self, address: bytes, key: int) -> int:
        original = self.original.get((address, key))
        return self.storage(address, key) if original is None else original

    def set_storage(self, address: bytes, key: int, value: int) -> None:
        if self.pending is not None:
            self.settle()
        slots = self.ensure(address).storage
        old = slots.get(key, 0)
        self.original.setdefault((address, key), old)
        self.leftovers = True
        if old == value:
            return
        self.remake()
        self.journal.append((put_slot, slots, key, old))
        put_slot(slots, key, value)

    def replace_storage(self, address: bytes, slots: dict[int, int]) -> None:
        """All of an account's storage at once: what is not among the slots is zero."""
        self.settle()
        account = self.ensure(address)
        self.remake()
        self.journal.append((setattr, account, "storage", account.storage))
        account.storage = Slots((key, value) for key, value in slots.items() if value)

    def write_slot(self, address: bytes, key: int, value: int, *, keep_original: bool) -> None:
        """Storage that a tier has already changed in its own tables: the version does not move on."""
        slots = self.ensure(address).storage
        old = slots.get(key, 0)
        if keep_original:
            self.leftovers = True
            self.original.setdefault((address, key), old)
        if old != value:
            self.journal.append((put_slot, slots, key, old))
            put_slot(slots, key, value)

    # -- as a whole

    def copy(self) -> State:
        """The accounts alone, independent of this state."""
        self.settle()
        twin = State()
        if isinstance(self._accounts, RemoteAccounts):
            twin._accounts = self._accounts.copy()
        else:
            accounts = Accounts({address: account.copy() for address, account in self._accounts.items()})
            twin._accounts, twin._roots = accounts, self._roots.of_copy(accounts, self._accounts)
        return twin

    def branch(self) -> State:
        """As `copy`, in constant time: both sides become layers over the current accounts, and copy what they access.

        Marks taken before are gone. If marks are open, or the accounts may be held elsewhere, they are copied whole.
        """
        self.__getstate__()
        accounts = self._accounts
        deep = isinstance(accounts, LayeredAccounts) and accounts.depth >= DEEPEST
        if self._open or self.handed_out or deep or isinstance(accounts, RemoteAccounts):
            return self.copy()
        now = self.version, self.mark()
        if self._shared is None or self._shared[1] != now:
            self._forgotten += len(self.journal)
            self.journal = []
            self._roots, self._accounts = self._roots.over(accounts, accounts)
            self._shared = accounts, now  # last: from here on they must not change
        twin = State()
        twin._roots, twin._accounts = self._roots.over(self._shared[0], self._accounts)
        twin._shared = self._shared[0], (twin.version, twin.mark())
        return twin

    @property
    def source(self) -> Source | None:
        """Where accounts that are not known come from; None where all are known."""
        return self._accounts.source if isinstance(self._accounts, RemoteAccounts) else None

    def prefetch(self, addresses: Sequence[bytes] = (), places: Sequence[Place] = ()) -> None:
        """Asks the source for accounts and slots in one go, where there is a source and they are not known."""
        if isinstance(self._accounts, RemoteAccounts):
            self._accounts.fetch(addresses, places)

    def items(self) -> Iterator[tuple[bytes, Account]]:
        self.settle()
        return iter(self._accounts.items())

    def root(self) -> bytes:
        """The state root: what a block header would commit to. After a change it costs what the change does.

        Raises PartialState where there is a source.
        """
        self.settle()
        self._refuse_partial("state root: the root")
        return self._roots.trie(self._accounts).root

    def proof(self, address: bytes, slots: Iterable[int] = ()) -> dict[str, Any]:
        """That an account and its slots are what they are, or are not there: the fields of eth_getProof (EIP-1186).

        >>> state = State()
        >>> state.set_balance(b"\\x11" * 20, 5)
        >>> state.proof(b"\\x11" * 20)["balance"], len(state.proof(b"\\x22" * 20, [1])["accountProof"])
        ('0x5', 1)
        """
        self.settle()
        self._refuse_partial("proof: a proof")
        return proof_of(self._roots.trie(self._accounts), address, self.account(address), list(slots))

    def _refuse_partial(self, what: str) -> None:
        if self.source is not None:
            raise PartialState(f"{what} needs all accounts; of {self.source.name} only {self.size} are loaded")

    # -- pickled and copied: the accounts as they are now, and nothing of a transaction, a snapshot or a journal

    def __getstate__(self) -> dict[bytes, Account]:
        if self.ledger is not None:
            raise RuntimeError("a call is running on this state; pickle or copy it when the call has ended")
        self.settle()
        return self._accounts

    def __setstate__(self, accounts: dict[bytes, Account]) -> None:
        State.__init__(self)
        self._accounts = Accounts(accounts) if type(accounts) is dict else accounts

    def __copy__(self) -> State:
        self.__getstate__()
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.__copy__()
