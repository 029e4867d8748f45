"""What native code asks Python for while it runs: accounts, storage, block hashes. And which addresses are warm."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Generator, Iterator, MutableSet
from typing import Any, NamedTuple

from fusevm.chain.environment import Context
from fusevm.chain.outcome import check_time
from fusevm.chain.state import Account as StateAccount
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.limits import MAX_NONCE
from fusevm.evm.precompiles import Precompile, PrecompileFailure, precompiles_of
from fusevm.native.emit.build import Library
from fusevm.native.host.codes import NO_ACCOUNT, NO_CODE, Codes, code_fields
from fusevm.native.host.precompiles import run_precompile
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import view_of, words
from fusevm.native.layout import (
    ACCOUNT_ALIVE,
    ACCOUNT_BLANK,
    ACCOUNT_CODED,
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DIRTY,
    ACCOUNT_DOOMED,
    ACCOUNT_HASHED,
    ACCOUNT_NEW,
    ACCOUNT_PRECOMPILE,
    ACCOUNT_STORED,
    ACCOUNT_TRACELESS,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    SLOT_WARM,
    TRANSIENT,
    WORD,
    Account,
    BlockHash,
    InitCode,
    Slot,
)
from fusevm.native.runtime.memory import FAILED

_Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_ACCOUNT = struct.Struct(words(Account, "number", "balance") + f"{len(NO_ACCOUNT)}s")
_ACCOUNT_ADDRESS = Account.offset("address")
_ACCOUNT_BODY = Account.offset("number")
_SLOT_HEAD = struct.Struct(words(Slot, "account", "key"))
_SLOT_HEAD_AT = Slot.offset("account")
_SLOT_VALUE, _SLOT_ORIGINAL = Slot.offset("value"), Slot.offset("original")
_ACCOUNT_HEAD = struct.Struct(words(Account, "number", "balance"))
_ACCOUNT_CODE = struct.Struct(words(Account, "code", "code_size"))
_CODE = Account.offset("code")
_INIT_CODE = struct.Struct(words(InitCode))
_CODE_HASH = Account.offset("code_hash")
_KEPT = ACCOUNT_WARM | ACCOUNT_BLANK | ACCOUNT_CREATED | ACCOUNT_DESTROYED
_NOBODY = ACCOUNT_VOID | ACCOUNT_TRACELESS  # an address nobody has used
_ZERO = bytes(WORD)
_LONG = 4_096  # bytes: copying less costs little
_LONG_NONCE = "a nonce of more than 64 bits"


def _native(address: bytes) -> bytes:
    return address[::-1].ljust(WORD, b"\0")


def _word(number: int) -> bytes:
    if number >> 256:
        raise NativeLimit("a balance of more than 256 bits")
    return number.to_bytes(WORD, "little") if number else _ZERO


class Before(NamedTuple):
    """An account as it was before the call changed it."""

    account: StateAccount | None  # None where there was none
    nonce: int = 0
    balance: int = 0

    @staticmethod
    def of(account: StateAccount) -> Before:
        return Before(account, account.nonce, account.balance)

    def changes(self, *, made: bool) -> Iterator[tuple[str, Any]]:
        """What is no longer so, and how it was. A contract that was made had no code."""
        if self.account is None:
            return
        if self.account.nonce != self.nonce:
            yield "nonce", self.nonce
        if self.account.balance != self.balance:
            yield "balance", self.balance
        if made:
            yield "code", b""


class NativeWarmth(MutableSet[bytes]):
    """What the reference tier's instructions see as the set of warm addresses: kept, and undone, natively."""

    def __init__(self, is_warm: Callable[[bytes], bool], warm: Callable[[bytes], None]) -> None:
        self._is_warm = is_warm
        self._warm = warm

    def __contains__(self, address: object) -> bool:
        return isinstance(address, bytes) and self._is_warm(address)

    def add(self, value: bytes) -> None:
        self._warm(value)

    def discard(self, value: bytes) -> None:
        """Undoing is the native journal's business, which is reverted with the same frames."""

    def __iter__(self) -> Iterator[bytes]:
        raise TypeError("warm addresses cannot be listed while native code runs")

    def __len__(self) -> int:
        raise TypeError("warm addresses cannot be counted while native code runs")


class World:
    """The state and the block as native code sees them, from one call to the next."""

    def __init__(self, tables: Tables, codes: Codes, native: Library) -> None:
        self._tables = tables
        self._codes = codes
        self._native = native
        self._account_map = tables.accounts.map
        self._account_shift = tables.accounts.skip - tables.accounts.address
        self._passing = tables.accounts.address + tables.caps.accounts * Account.byte_size()  # to look at, not to keep
        self.state: State
        self.context: Context
        self.precompiles: dict[bytes, Precompile] = {}
        self._all_warm = False
        self._voids = True  # whether calling what has no code leaves no trace (EIP-161)
        self.addresses: list[bytes] = []  # of accounts by number
        self.numbers: dict[bytes, int] = {}
        self.entries: dict[bytes, int] = {}  # accounts native code knows: where they are
        self.initially_warm: MutableSet[bytes] = set()
        self.warmth = NativeWarmth(self._is_warm, self._warm)
        self.changed: dict[bytes, Before] = {}  # accounts that changed, as far as Python knows
        self.made: dict[bytes, bool] = {}  # of these, contracts made natively; whether there was no account before
        self.inserted: dict[bytes, StateAccount] = {}  # accounts that were created natively
        self.destroyed: set[bytes] = set()  # accounts that SELFDESTRUCT marked natively
        self.busy = False
        self.calls = 0  # tells whether the call a journal entry belongs to is still running
        self.hashes_asked = False
        self.error: BaseException | None = None  # what a question ended in
        self._callbacks = {
            "load_slot": _Callback(self._guarded(self._load_slot)),
            "load_account": _Callback(self._guarded(self._load_account)),
            "load_block_hash": _Callback(self._guarded(self._load_block_hash)),
            "load_code": _Callback(self._guarded(self._load_code)),
            "load_init_code": _Callback(self._guarded(self._load_init_code)),
            "hash_code": _Callback(self._guarded(self._hash_code)),
            "run_precompile": _Callback(self._guarded(self._run_precompile)),
        }
        for name, callback in self._callbacks.items():
            setattr(tables.shared, name, ctypes.cast(callback, ctypes.c_void_p).value)

    def bind(self, context: Context) -> None:
        self.context = context
        self.precompiles = precompiles_of(context.fork)
        self._all_warm = context.fork < Fork.BERLIN
        self._voids = context.fork >= Fork.SPURIOUS_DRAGON

    def begin(self, address: bytes, state: State) -> None:
        """A call from outside: nothing is known but the account called, which is number 0."""
        self.busy = True
        self.state = state
        self.initially_warm = state.warm_addresses
        state.ledger = self
        state.warm_addresses = self.warmth
        self.addresses = [address]  # a new list: what the last call left pending may hold the old one
        self.numbers = {address: 0}
        self.error = None
        if self.entries:
            self.entries = {}
        if self.inserted:
            self.inserted = {}
        if self.hashes_asked:
            self._tables.block_hashes.clear()
            self.hashes_asked = False

    def number(self, address: bytes) -> int:
        number = self.numbers.get(address)
        if number is None:
            number = self.numbers[address] = len(self.addresses)
            self.addresses.append(address)
        return number

    def is_blank(self, account: StateAccount) -> bool:
        """Whether every slot of it is known to be zero and cold."""
        state = self.state
        return not (account.storage or state.original or state.warm_slots)

    # -- questions

    def _guarded(self, function: Callable[[int], None]) -> Callable[[int], int]:
        """Nothing may be raised through native frames: the error is kept, and raised again outside.

        A function would not do: Ctrl-C is noticed as it is entered, before its `try`. A generator resumes inside.
        """

        def callback() -> Generator[int, int, None]:
            answer = 0
            while True:
                try:
                    while True:
                        address = yield answer
                        function(address)
                        answer = 0
                except GeneratorExit:
                    return
                except BaseException as error:
                    self.error, answer = error, 1

        running = callback()
        next(running)
        return running.send

    def _load_slot(self, address: int) -> None:
        table, at = self._tables.slots, address - self._tables.slots.address
        number, _, raw_key = _SLOT_HEAD.unpack_from(table.map, table.skip + at + _SLOT_HEAD_AT)
        account, key, state = self.addresses[number], int.from_bytes(raw_key, "little"), self.state
        value = state.account(account).storage.get(key, 0)
        if value:
            raw = value.to_bytes(WORD, "little")
            table.write(at + _SLOT_VALUE, raw)
            table.write(at + _SLOT_ORIGINAL, raw)
        original = state.original.get((account, key))  # written before this message began, as by an enclosing one
        if original is not None:
            table.write(at + _SLOT_ORIGINAL, original.to_bytes(WORD, "little"))
        if state.warm_slots and (account, key) in state.warm_slots:
            view_of(Slot).from_address(address).flags = SLOT_WARM

    def _load_account(self, address: int) -> None:
        if self.context.deadline is not None:
            self.look_at_clock()
        data, state = self._account_map, self.state
        at = address + self._account_shift
        where = self._address_at(at)
        if where in self.entries:
            self._load_again(at, where)
            return
        number = 0
        if address != self._passing:
            self.entries[where] = address
            number = self.number(where)
        flags = 0
        if self._all_warm or where in self.initially_warm or where in state.always_warm:
            flags = ACCOUNT_WARM
        if where not in self.precompiles and not state.exists(where):
            if not (state.original or state.warm_slots):
                flags |= ACCOUNT_BLANK
            flags |= _NOBODY if self._voids else ACCOUNT_VOID
            _ACCOUNT.pack_into(data, at + _ACCOUNT_BODY, number, flags, 0, _ZERO, NO_ACCOUNT)
            return
        account = state.account(where)
        if self.is_blank(account):
            flags |= ACCOUNT_BLANK
        self._describe(at, where, account, number, flags, _word(account.balance))

    def _address_at(self, at: int) -> bytes:
        """Of the account at that place in the table's map."""
        start = at + _ACCOUNT_ADDRESS
        return self._account_map[start : start + 20][::-1]

    def _load_again(self, at: int, where: bytes) -> None:
        """An account may have changed natively since it was looked at, or may have been undone."""
        self.learn()
        _, known, _, raw_balance = _ACCOUNT_HEAD.unpack_from(self._account_map, at + _ACCOUNT_BODY)
        self._describe(at, where, self.state.account(where), self.number(where), known & _KEPT, raw_balance)

    def _describe(
        self, at: int, where: bytes, account: StateAccount, number: int, flags: int, raw_balance: bytes
    ) -> None:
        if account.storage:
            flags |= ACCOUNT_STORED
        if where in self.state.destroyed and where not in self.destroyed:
            flags |= ACCOUNT_DOOMED
        if where in self.state.created and not flags & ACCOUNT_CREATED:
            flags |= ACCOUNT_NEW
        if account.nonce > MAX_NONCE:
            raise NativeLimit(_LONG_NONCE)
        more, fields = self._nature(where, account)
        described = number, flags | more, account.nonce, raw_balance, fields
        _ACCOUNT.pack_into(self._account_map, at + _ACCOUNT_BODY, *described)

    def _nature(self, where: bytes, account: StateAccount) -> tuple[int, bytes]:
        """What calling the account means, as flags, and the fields about its code."""
        code, there = account.code, self.state.exists(where)
        if where in self.precompiles:
            flags = ACCOUNT_PRECOMPILE
            fields = code_fields(code) if code else NO_ACCOUNT if account.empty else NO_CODE
        elif code:
            flags, fields = self._codes.facts_of(code)
        else:
            flags, fields = ACCOUNT_VOID, NO_ACCOUNT if account.empty else NO_CODE
        if not self._voids:
            return (flags | ACCOUNT_TRACELESS | ACCOUNT_ALIVE if there else flags), fields
        if not account.empty:
            return flags | ACCOUNT_TRACELESS | ACCOUNT_ALIVE, fields
        return (flags if there else flags | ACCOUNT_TRACELESS), fields  # an empty account would be touched

    def _load_init_code(self, address: int) -> None:
        self.look_at_clock()
        table = self._tables.init_codes
        at = table.skip + address - table.address
        hashed, size, place, *_ = _INIT_CODE.unpack_from(table.map, at)
        schedule = self._codes.init_code(ctypes.string_at(place, size), self._running)
        places = schedule.code_base, schedule.base, schedule.jumps_base, schedule.entry
        _INIT_CODE.pack_into(table.map, at, hashed, size, *places)

    def _running(self) -> set[int]:
        """Where the tables of jumps of frames are."""
        tables = self._tables
        return {view.jumps for view in tables.views[: tables.depth() + 1]}

    def _load_code(self, address: int) -> None:
        self.look_at_clock()
        self.learn()
        table = self._tables.accounts
        at = table.skip + address - table.address
        account = self.state.account(self._address_at(at))
        places = self._codes.places(account.code, self._running, self._forget_schedules)
        start = at + _CODE
        table.map[start : start + len(places)] = places

    def _forget_schedules(self) -> None:
        self._native.forget_schedules(self._tables.address)

    def _hash_code(self, address: int) -> None:
        self.learn()
        table = self._tables.accounts
        at = table.skip + address - table.address
        account = self.state.account(self._address_at(at))
        start, code_hash = at + _CODE_HASH, account.code_hash()
        table.map[start : start + WORD] = code_hash[::-1]
        self._codes.note_hash(account.code, code_hash)
        view_of(Account).from_address(address).flags |= ACCOUNT_HASHED

    def look_at_clock(self) -> None:
        check_time(self.context.deadline)

    def _run_precompile(self, address: int) -> None:
        self.look_at_clock()
        table, shared, context = self._tables.accounts, self._tables.shared, self.context
        at = table.skip + address - table.address
        contract = self.precompiles[self._address_at(at)]
        size, gas = shared.asked_size, shared.asked_gas
        shared.answer_size = FAILED
        if size > _LONG:  # what is not read, or not paid for, is not even copied
            view = self._tables.memory.view(shared.asked_data, size)
            size = contract.reads(view)
            if size > _LONG and contract.gas(view, context.fork) > gas:
                return
        data = ctypes.string_at(shared.asked_data, size)
        price = contract.gas(data, context.fork)
        if price <= gas:
            try:
                output = run_precompile(contract, data, context.fork, price, context.deadline)
            except PrecompileFailure:
                return
            if len(output) > self._tables.output.size:
                raise NativeLimit(f"{self._tables.output.size >> 20} MiB of a precompile's output")
            self._tables.output.write(0, output)
            shared.answer_size, shared.answer_gas = len(output), gas - price

    def _load_block_hash(self, address: int) -> None:
        self.hashes_asked = True
        entry = view_of(BlockHash).from_address(address)
        entry.hash[:] = self.context.block.hash_of(entry.number - 1)[::-1]

    def slot_at(self, address: bytes, key: int, transient: bool) -> Any:
        """A storage slot as native code has it, or None."""
        number = self.numbers.get(address)
        if number is None:
            return None
        account = number | TRANSIENT if transient else number
        place = self._native.known_slot(self._tables.address, account, key.to_bytes(WORD, "little"))
        return view_of(Slot).from_address(place) if place else None

    # -- undoing

    def undo_to(self, journal: int, logs: int, refund: int) -> None:
        """Undoing the state from here on undoes what native code did since it stood there."""
        self.state.journal.append((self._revert, self.calls, journal, logs, refund))

    def _revert(self, call: int, journal: int, logs: int, refund: int) -> None:
        """Only in the call that is running; of an earlier one nothing is left here."""
        if call == self.calls:
            shared = self._tables.shared
            self._native.revert_to(self._tables.address, journal)
            shared.log_size, shared.refund = logs, refund

    # -- balances, nonces, and contracts made natively

    def set_balance(self, address: bytes, account: StateAccount, balance: int) -> None:
        """Python changes a balance: kept, and undone, natively, and known on both sides."""
        self._put(self._native.put_balance, address, account, _word(balance))
        account.balance = balance

    def set_nonce(self, address: bytes, account: StateAccount, nonce: int) -> None:
        """As a balance."""
        if nonce > MAX_NONCE:
            raise NativeLimit(_LONG_NONCE)
        self._put(self._native.put_nonce, address, account, nonce)
        account.nonce = nonce

    def _put(self, put: Callable[..., int], address: bytes, account: StateAccount, value: bytes | int) -> None:
        shared = self._tables.shared
        self.undo_to(shared.journal_count, shared.log_size, shared.refund)
        self._note(address, account)
        if not put(self._tables.address, _native(address), value):
            raise self.error or NativeLimit("accounts or changes")

    def learn(self) -> None:
        """Python is told of accounts that changed natively, or were undone; before it acts, it must be."""
        tables = self._tables
        count = tables.shared.dirty_count
        if not count:
            return
        table = tables.accounts
        for place in struct.unpack(f"<{count}Q", tables.dirty.read(0, 8 * count)):
            at = table.skip + place
            number, flags, nonce, raw = _ACCOUNT_HEAD.unpack_from(table.map, at + _ACCOUNT_BODY)
            known = flags & ~(ACCOUNT_DIRTY | ACCOUNT_CODED)
            _ACCOUNT_HEAD.pack_into(table.map, at + _ACCOUNT_BODY, number, known, nonce, raw)
            address = self._address_at(at)
            self._learn_end(address, flags)
            balance = int.from_bytes(raw, "little")
            account = self._changing(address, flags, empty=not (balance or nonce))
            if account is None:
                continue
            account.balance, account.nonce = balance, nonce
            if flags & ACCOUNT_CODED:
                code, size = _ACCOUNT_CODE.unpack_from(table.map, at + _CODE)
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
            self.changed[address] = Before.of(account)
        elif before.account is not None and before.account is not account:
            self.changed[address] = Before(None)  # came into being in this call, was undone, and is there again

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
            self.changed[address] = Before(None)
            made[address] = True
            state.created.add(address)
            return self._insert(address)
        if address in made:
            state.created.discard(address)
            del made[address]
        if empty:
            return None  # it was undone, balance and all
        self.changed[address] = Before(None)  # a payment created it
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

    def end(self, state: State) -> None:
        """Nothing is running any more; changes not settled are those of a call that never was."""
        self.calls += 1
        if self.changed or self.made or self.destroyed:
            for address, before in self.changed.items():
                if before.account is None:
                    state.remove(address)
                for name, value in before.changes(made=address in self.made):
                    setattr(before.account, name, value)
            state.created.difference_update(self.made)
            state.destroyed.difference_update(self.destroyed)
            self.made, self.changed, self.destroyed = {}, {}, set()
        state.warm_addresses = self.initially_warm
        self.busy = False
        state.ledger = None  # last: until then, whoever finds the state abandoned ends this once more

    # -- warmth

    def _is_warm(self, address: bytes) -> bool:
        entry = self.entries.get(address)
        if entry is None:
            return address in self.initially_warm
        return bool(view_of(Account).from_address(entry).flags & ACCOUNT_WARM)

    def _warm(self, address: bytes) -> None:
        answer = self._native.warm_address(self._tables.address, _native(address))
        if self.error is not None:
            raise self.error
        if answer == 2:
            raise NativeLimit("accounts or changes")
