"""Balances, nonces and new contracts while native code runs: one journal for both sides, the native one.

Python's changes go through the native journal, and Python learns of native ones before it acts.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fusevm.chain.state import Account as StateAccount
from fusevm.chain.state import State
from fusevm.evm.limits import MAX_NONCE
from fusevm.native.emit.build import Library
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import packed
from fusevm.native.layout import (
    ACCOUNT_CODED,
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DIRTY,
    ACCOUNT_ENSURED,
    WORD,
    Account,
)

ADDRESS = Account.offset("address")
BODY = Account.offset("number")
HEAD = packed(Account, "number flags nonce balance")
_CODE = packed(Account, "code code_size")
_CODE_AT = Account.offset("code")
_ZERO = bytes(WORD)


def native_address(address: bytes) -> bytes:
    """An address as a word of native code."""
    return address[::-1].ljust(WORD, b"\0")


def native_word(number: int) -> bytes:
    if number >> 256:
        raise NativeLimit("a balance of more than 256 bits")
    return number.to_bytes(WORD, "little") if number else _ZERO


def require_native_nonce(nonce: int) -> None:
    if nonce > MAX_NONCE:
        raise NativeLimit("a nonce of more than 64 bits")


class AccountBefore(NamedTuple):
    """An account as it was before the call changed it."""

    account: StateAccount | None  # None where there was none
    nonce: int = 0
    balance: int = 0

    @staticmethod
    def of(account: StateAccount) -> AccountBefore:
        return AccountBefore(account, account.nonce, account.balance)

    def changes(self, *, made: bool) -> Iterator[tuple[str, int | bytes]]:
        """What has changed, with the old values. A contract that was created had no code."""
        if self.account is None:
            return
        if self.account.nonce != self.nonce:
            yield "nonce", self.nonce
        if self.account.balance != self.balance:
            yield "balance", self.balance
        if made:
            yield "code", b""


ABSENT = AccountBefore(None)


class NativeLedger:
    """What Python knows of accounts that native code may change too."""

    def __init__(self, tables: Tables, native: Library) -> None:
        self._tables = tables
        self._native = native
        self._account_map = tables.accounts.map
        self.state: State
        self.changed: dict[bytes, AccountBefore] = {}  # accounts that changed, as far as Python knows
        self.made: dict[bytes, bool] = {}  # of these, contracts made natively; whether there was no account before
        self.inserted: dict[bytes, StateAccount] = {}  # accounts that were created natively
        self.destroyed: set[bytes] = set()  # accounts that SELFDESTRUCT marked natively
        self.calls = 0  # tells whether the call a journal entry belongs to is still running
        self.error: BaseException | None = None  # what a question of native code ended in

    def address_at(self, at: int) -> bytes:
        """Of the account at that place in the table's map."""
        start = at + ADDRESS
        return self._account_map[start : start + 20][::-1]

    def undo_to(self, journal: int, logs: int, refund: int) -> None:
        """Undoing the state from here on undoes what native code did since it stood there."""
        self.state.journal.append((self._revert, self.calls, journal, logs, refund))

    def _revert(self, call: int, journal: int, logs: int, refund: int) -> None:
        """Only in the call that is running; of an earlier one nothing is left here."""
        if call == self.calls:
            shared = self._tables.shared
            self._native.revert_to(self._tables.address, journal)
            shared.log_size, shared.refund = logs, refund

    def set_balance(self, address: bytes, account: StateAccount, balance: int) -> None:
        """Python changes a balance: kept, and undone, natively, and known on both sides."""
        self._put(self._native.put_balance, address, account, native_word(balance))
        account.balance = balance

    def set_nonce(self, address: bytes, account: StateAccount, nonce: int) -> None:
        """As a balance."""
        require_native_nonce(nonce)
        self._put(self._native.put_nonce, address, account, nonce)
        account.nonce = nonce

    def _put(self, put: Callable[..., int], address: bytes, account: StateAccount, value: bytes | int) -> None:
        shared = self._tables.shared
        self.undo_to(shared.journal_count, shared.log_size, shared.refund)
        self._note(address, account)
        if not put(self._tables.address, native_address(address), value):
            raise self.error or NativeLimit("accounts or changes")

    def learn(self) -> None:
        """Copies accounts that changed natively, or were undone, to Python; must be called before Python acts."""
        tables = self._tables
        count = tables.shared.dirty_count
        if not count:
            return
        tables.shared.wanted = 1
        table = tables.accounts
        for place in struct.unpack(f"<{count}Q", tables.dirty.read(0, 8 * count)):
            at = table.skip + place
            number, flags, nonce, raw = HEAD.unpack_from(table.map, at + BODY)
            known = flags & ~(ACCOUNT_DIRTY | ACCOUNT_CODED)
            HEAD.pack_into(table.map, at + BODY, number, known, nonce, raw)
            address = self.address_at(at)
            if flags & ACCOUNT_DESTROYED or self.destroyed:
                self._learn_end(address, flags)
            balance = int.from_bytes(raw, "little")
            account = self._changing(address, flags, empty=not (balance or nonce or flags & ACCOUNT_ENSURED))
            if account is None:
                continue
            if balance or account.balance:
                account.balance = balance
            if nonce or account.nonce:
                account.nonce = nonce
            if flags & ACCOUNT_CODED:
                code, size = _CODE.unpack_from(table.map, at + _CODE_AT)
                account.code = ctypes.string_at(code, size) if size else b""
        tables.shared.dirty_count = 0

    def _learn_end(self, address: bytes, flags: int) -> None:
        """Whether the account will be removed when the transaction ends."""
        destroyed = self.state.destroyed
        if flags & ACCOUNT_DESTROYED:
            if address not in destroyed:
                self.destroyed.add(address)
                destroyed.add(address)
        elif address in self.destroyed:
            destroyed.discard(address)
            self.destroyed.discard(address)

    def _note(self, address: bytes, account: StateAccount) -> None:
        """Remembers an account as it was before it changes."""
        before = self.changed.get(address)
        if before is None:
            self.changed[address] = AccountBefore.of(account)
        elif before.account is not None and before.account is not account:
            self.changed[address] = ABSENT  # created in this call, undone, and created again

    def _changing(self, address: bytes, flags: int, *, empty: bool) -> StateAccount | None:
        """The account to change, created or removed if need be; None where nothing is left of it.

        At any point Ctrl-C may end this: what is done must be noted before.
        """
        state, made = self.state, self.made
        if state.exists(address):
            account = state.account(address)
            self._note(address, account)
            if flags & ACCOUNT_CREATED:
                made.setdefault(address, False)
                state.created.add(address)
            elif address in made:
                return self._unmade(address, account, empty=empty)
            elif empty and self.inserted.get(address) is account:  # a payment created it, and was undone
                state.remove(address)
                return None
            return account
        if flags & ACCOUNT_CREATED:
            self.changed[address] = ABSENT
            made[address] = True
            state.created.add(address)
            return self._insert(address)
        if address in made:
            state.created.discard(address)
            del made[address]
        if empty:
            return None  # it was undone, balance and all
        self.changed[address] = ABSENT  # a payment created it
        return self._insert(address)

    def _insert(self, address: bytes) -> StateAccount:
        account = self.inserted[address] = self.state.insert(address)
        return account

    def _unmade(self, address: bytes, account: StateAccount, *, empty: bool) -> StateAccount | None:
        """What is left of a contract whose creation was undone."""
        state, gone = self.state, empty and (self.made[address] or self.inserted.get(address) is account)
        account.code = b""
        if gone:
            state.remove(address)
        state.created.discard(address)
        del self.made[address]
        return None if gone else account

    def settle(self) -> None:
        """The call is over: what changed goes into the state's own journal."""
        self.learn()
        state = self.state
        for address, before in self.changed.items():
            if before.account is None:
                state.journal.append((state.remove, address))
            for name, value in before.changes(made=address in self.made):
                state.journal.append((setattr, before.account, name, value))
        for address in self.made:
            state.journal.append((state.created.discard, address))
        for address in self.destroyed:
            state.journal.append((state.destroyed.discard, address))
        self.made, self.changed, self.destroyed = {}, {}, set()

    def undo_unsettled(self, state: State) -> None:
        """What changed in a call that never was, as it was."""
        for address, before in self.changed.items():
            if before.account is None:
                state.remove(address)
            for name, value in before.changes(made=address in self.made):
                setattr(before.account, name, value)
        state.created.difference_update(self.made)
        state.destroyed.difference_update(self.destroyed)
        self.made, self.changed, self.destroyed = {}, {}, set()
