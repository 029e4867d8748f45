"""Accounts, and the journal that can undo whatever was done to them.

Every change leaves an entry that undoes it: a function and its arguments. A snapshot is a position in the journal, so
taking one costs nothing, and reverting costs what is undone.

Ctrl-C may come between any two lines. So an entry is written before the change it undoes, undoing twice is the same as
undoing once, an entry is removed only after it was undone, and an interrupted revert is finished by the next reader.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, MutableSet, Sequence
from typing import Any, NamedTuple, Protocol

from fusevm.chain.addresses import checksummed
from fusevm.chain.display import html_table, shown_bytes, shown_word
from fusevm.chain.rlp import encode
from fusevm.chain.roots import Roots, proof_of
from fusevm.chain.slots import Slots
from fusevm.evm.code_cache import CodeCache
from fusevm.evm.keccak import keccak256

EMPTY_CODE_HASH = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
RIPEMD160 = (3).to_bytes(20, "big")
DELEGATION_PREFIX = b"\xef\x01\x00"  # EIP-7702: followed by the address whose code runs instead
DELEGATION_SIZE = 23
MOVED_MOST = 1 << 10


class Log(NamedTuple):
    """What LOG0 to LOG4 leave.

    >>> Log(bytes(20), (1,), b"data").data
    b'data'
    """

    address: bytes
    topics: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        topics = ", ".join(map(shown_word, self.topics))
        return f"Log({checksummed(self.address)}, topics=[{topics}], data={shown_bytes(self.data)})"

    def _repr_html_(self) -> str:
        rows = [("address", checksummed(self.address)), ("topics", [*map(shown_word, self.topics)])]
        return html_table("Log", [*rows, ("data", shown_bytes(self.data))])


_hash_of_code = CodeCache(keccak256, len, 1 << 25)


class Account:
    __slots__ = ("balance", "code", "nonce", "storage")

    def __init__(self, nonce: int = 0, balance: int = 0, code: bytes = b"", storage: dict[int, int] | None = None):
        self.nonce = nonce
        self.balance = balance
        self.code = code
        self.storage: dict[int, int] = Slots() if storage is None else Slots(storage)  # non-zero values only

    @property
    def empty(self) -> bool:
        """EIP-161: no nonce, no balance, no code."""
        return not (self.nonce or self.balance or self.code)

    def code_hash(self) -> bytes:
        return _hash_of_code(self.code) if self.code else EMPTY_CODE_HASH

    def copy(self) -> Account:
        twin = Account(self.nonce, self.balance, self.code)
        twin.storage = self.storage.copy()
        return twin


_ABSENT = Account()  # what reading an account that does not exist sees; never written to


class Pending(Protocol):
    """What must be done before the state is read: storage that a tier has changed but not yet written, say."""

    def apply(self, state: State) -> None: ...


class _Revert:
    """A revert under way: all of it is done, if need be by the next reader of the state."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length

    def apply(self, state: State) -> None:
        state.undo_to_length(self.length)


class Ledger(Protocol):
    """Whoever keeps balances, nonces and new contracts, and undoes them, while a tier runs."""

    def set_balance(self, address: bytes, account: Account, balance: int) -> None: ...

    def set_nonce(self, address: bytes, account: Account, nonce: int) -> None: ...

    def end(self, state: State) -> None:
        """Leaves the state to itself; what was not settled never was."""


class State:
    """All accounts, and what a transaction keeps beside them until it ends."""

    def __init__(self) -> None:
        self._accounts: dict[bytes, Account] = {}
        self.journal: list[tuple[Any, ...]] = []
        self._forgotten = 0  # entries that were dropped: marks count them too
        self._roots = Roots()
        self._open: list[int] = []  # marks that must outlive the transactions after them
        self.pending: Pending | None = None
        self.ledger: Ledger | None = None
        # for whoever keeps copies of accounts from one call to the next
        self.version = 0  # moves on with every change
        self.remade = 0  # moves on with every change but those that `moved` tells
        self.moved: list[bytes] = []  # accounts whose balance, nonce or code changed, or that were created
        self.handed_out = False  # whether `accounts` was: then nobody can tell what changes
        # what a transaction keeps
        self.began = 0  # the mark as it began
        self.leftovers = False  # whether there may be anything of it
        self.refund = 0
        self.logs: Sequence[Log] = []
        self.warm_addresses: MutableSet[bytes] = set()
        self.always_warm: Container[bytes] = ()
        self.warm_slots: set[tuple[bytes, int]] = set()
        self.transient: dict[tuple[bytes, int], int] = {}
        self.original: dict[tuple[bytes, int], int] = {}  # slots written: their values as the transaction began
        self.created: set[bytes] = set()
        self.destroyed: set[bytes] = set()
        self.touched: set[bytes] = set()

    def begin_transaction(self, *, resumed: bool = False) -> None:
        """Forgets what the last one kept. What is empty stays: this runs before every call.

        A tier may have done that and run the call already (`resumed`).
        """
        if self.ledger is not None and not resumed:
            raise RuntimeError("a call is running on this state already")
        if self.pending is not None:
            self.settle()
        if not resumed:
            self.forget_transaction()
        self.leftovers = True
        self.began = self._forgotten + len(self.journal)
        self.always_warm = ()
        self.warm_addresses = set()

    def forget_transaction(self) -> None:
        """All but what is warm."""
        if self.journal and not self._open:
            self._forgotten += len(self.journal)
            self.journal = []
        self.refund = 0
        if self.logs:
            self.logs = []
        if self.warm_slots:
            self.warm_slots = set()
        if self.transient:
            self.transient = {}
        if self.original:
            self.original = {}
        if self.created:
            self.created = set()
        if self.destroyed:
            self.destroyed = set()
        if self.touched:
            self.touched = set()
        self.leftovers = bool(self.journal)

    # -- snapshots

    def mark(self) -> int:
        """Where the state stands, for `revert`; good until the next transaction begins."""
        self.settle()
        return self._forgotten + len(self.journal)

    def open_mark(self, mark: int) -> None:
        """Makes a mark that was just taken stay good until `close_mark`, whatever transactions come."""
        self._open.append(mark)

    def close_mark(self, mark: int, *, keep: int) -> None:
        """Reverts to an open mark and closes it and those opened after it, so that `keep` stay open.

        Calling it again changes nothing.
        """
        self.revert(mark)
        del self._open[keep:]

    def keep_since(self, *, keep: int) -> None:
        """Closes the marks after the first `keep` open ones, and keeps all that was done since them."""
        self.settle()
        del self._open[keep:]
        if not self._open:
            self._forgotten += len(self.journal)
            self.journal = []

    @property
    def open_marks(self) -> int:
        return len(self._open)

    def settle(self) -> None:
        """Does what is pending, or nothing of it; called before any look at storage."""
        pending = self.pending
        if pending is None:
            return
        if isinstance(pending, _Revert):
            pending.apply(self)
            return
        mark = self._forgotten + len(self.journal)
        try:
            self.pending = None
            pending.apply(self)
        except BaseException:  # Ctrl-C
            self.revert(mark)
            self.pending = pending
            raise

    def abandon(self) -> None:
        """The running transaction never was."""
        if self.ledger is not None:
            self.ledger.end(self)
        self.revert(self.began)

    def revert(self, mark: int) -> None:
        """Undoes all that was done since the mark."""
        length = mark - self._forgotten
        if length < 0:
            raise ValueError(
                "this mark is gone: a call or transaction began after it; use EVM.snapshot(), or State.open_mark()"
            )
        self.undo_to_length(length)

    def entries_since(self, mark: int) -> list[tuple[Any, ...]]:
        """What would be undone to be back at the mark, the oldest first."""
        self.settle()
        return self.journal[mark - self._forgotten :]

    def undo_to_length(self, length: int) -> None:
        """Undoes the journal's last entries until so many are left."""
        journal = self.journal
        if self.pending is not None or len(journal) > length:
            self.remake()
        self.pending = _Revert(length)  # in place of anything pending: that came later, since taking a mark settles
        while len(journal) > length:
            undo, *arguments = journal[-1]
            undo(*arguments)
            journal.pop()
        self.pending = None

    def _undoable(self, undo: Callable[..., Any], *arguments: Any) -> None:
        self.journal.append((undo, *arguments))

    def _add(self, members: MutableSet[Any], member: Any) -> None:
        if member not in members:
            self.leftovers = True
            self.journal.append((members.discard, member))
            members.add(member)

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
        self._accounts = accounts

    def account(self, address: bytes) -> Account:
        """The account to read from; a blank one where there is none."""
        if self.pending is not None:
            self.settle()
        return self._accounts.get(address, _ABSENT)

    def unsettled_account(self, address: bytes) -> Account:
        """As `account`, for whoever knows what is pending."""
        return self._accounts.get(address, _ABSENT)

    @property
    def size(self) -> int:
        """How many accounts there are."""
        return len(self._accounts)

    def _move(self, address: bytes) -> None:
        """An account is about to change, its storage apart."""
        if len(self.moved) >= MOVED_MOST:
            self.remade += 1
            self.moved = []
        self.moved.append(address)
        self.version += 1

    def remake(self) -> None:
        """Something is about to change that `moved` does not tell."""
        self.remade += 1
        self.version += 1

    def exists(self, address: bytes) -> bool:
        return address in self._accounts

    def is_dead(self, address: bytes) -> bool:
        return self._accounts.get(address, _ABSENT).empty

    def ensure(self, address: bytes) -> Account:
        """The account to write to, created if need be."""
        account = self._accounts.get(address)
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
        return self.account(address).storage.get(key, 0)

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

    def transient_storage(self, address: bytes, key: int) -> int:
        return self.transient.get((address, key), 0)

    def set_transient(self, address: bytes, key: int, value: int) -> None:
        self.leftovers = True
        place = (address, key)
        self.journal.append((put_slot, self.transient, place, self.transient.get(place, 0)))
        put_slot(self.transient, place, value)

    # -- what a transaction keeps

    def add_refund(self, amount: int) -> None:
        self.leftovers = True
        self.journal.append((setattr, self, "refund", self.refund))
        self.refund += amount

    def add_log(self, log: Log) -> None:
        self.leftovers = True
        if not isinstance(self.logs, list):
            self.logs = list(self.logs)
        self.journal.append((_truncate, self.logs, len(self.logs)))
        self.logs.append(log)

    def add_logs(self, logs: Sequence[Log]) -> None:
        """Many at once, perhaps not yet decoded."""
        self.leftovers = True
        self.journal.append((setattr, self, "logs", self.logs))
        self.logs = [*self.logs, *logs] if self.logs else logs

    def logs_so_far(self) -> Sequence[Log]:
        """The logs, to keep: an enclosing snapshot undoes the state's own list."""
        return list(self.logs) if isinstance(self.logs, list) else self.logs

    def is_warm(self, address: bytes) -> bool:
        return address in self.warm_addresses or address in self.always_warm

    def warm_address(self, address: bytes) -> None:
        if not self.is_warm(address):
            self._add(self.warm_addresses, address)

    def is_warm_slot(self, address: bytes, key: int) -> bool:
        return (address, key) in self.warm_slots

    def warm_slot(self, address: bytes, key: int) -> None:
        self._add(self.warm_slots, (address, key))

    def mark_created(self, address: bytes) -> None:
        self._add(self.created, address)

    def mark_destroyed(self, address: bytes) -> None:
        self._add(self.destroyed, address)

    # -- as a whole

    def copy(self) -> State:
        """The accounts alone, independent of this state."""
        self.settle()
        twin = State()
        twin._accounts = {address: account.copy() for address, account in self._accounts.items()}
        twin._roots = self._roots.copy()
        return twin

    def items(self) -> Iterator[tuple[bytes, Account]]:
        self.settle()
        return iter(self._accounts.items())

    def root(self) -> bytes:
        """The state root: what a block header would commit to. After a change it costs what the change does."""
        self.settle()
        return self._roots.trie(self._accounts).root

    def proof(self, address: bytes, slots: Iterable[int] = ()) -> dict[str, Any]:
        """That an account and its slots are what they are, or are not there: the fields of eth_getProof (EIP-1186).

        >>> state = State()
        >>> state.set_balance(b"\\x11" * 20, 5)
        >>> state.proof(b"\\x11" * 20)["balance"], len(state.proof(b"\\x22" * 20, [1])["accountProof"])
        ('0x5', 1)
        """
        self.settle()
        return proof_of(self._roots.trie(self._accounts), address, self.account(address), list(slots))

    # -- pickled and copied: the accounts as they are now, and nothing of a transaction, a snapshot or a journal

    def __getstate__(self) -> dict[bytes, Account]:
        if self.ledger is not None:
            raise RuntimeError("a call is running on this state; pickle or copy it when the call has ended")
        self.settle()
        return self._accounts

    def __setstate__(self, accounts: dict[bytes, Account]) -> None:
        State.__init__(self)
        self._accounts = accounts

    def __copy__(self) -> State:
        self.__getstate__()
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.__copy__()


def delegate_in(code: bytes) -> bytes | None:
    """EIP-7702: the address that code of this form delegates to."""
    return code[3:] if len(code) == DELEGATION_SIZE and code.startswith(DELEGATION_PREFIX) else None


def _truncate(items: list[Any], length: int) -> None:
    del items[length:]


def put_slot(mapping: dict[Any, int], key: Any, value: int) -> None:
    """Zero is the same as absent."""
    if value:
        mapping[key] = value
    else:
        mapping.pop(key, None)


def logs_hash(logs: Sequence[Log]) -> bytes:
    """keccak(rlp(logs)), as state tests compare them."""
    return keccak256(encode([[log.address, [t.to_bytes(32, "big") for t in log.topics], log.data] for log in logs]))
