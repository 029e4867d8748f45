"""What native code asks Python for while it runs: accounts, storage slots, code, block hashes, precompiles."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Generator

from fusevm.chain.state import Account as StateAccount
from fusevm.evm.precompiles import PrecompileFailure
from fusevm.evm.precompiles.contract import Answers
from fusevm.native.host.code_cache import CodeCache
from fusevm.native.host.code_records import NO_ACCOUNT, NO_CODE, code_fields
from fusevm.native.host.ledger import BODY, HEAD, native_word, require_native_nonce
from fusevm.native.host.precompiles import DIRECT, load_entry, loaded_entry, run_precompile
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import packed, packed_whole, view_at
from fusevm.native.host.world import NativeWorld
from fusevm.native.layout import (
    ACCOUNT_ALIVE,
    ACCOUNT_BLANK,
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DOOMED,
    ACCOUNT_ENSURED,
    ACCOUNT_HASHED,
    ACCOUNT_NEW,
    ACCOUNT_PRECOMPILE,
    ACCOUNT_STORED,
    ACCOUNT_TRACELESS,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    QUESTIONS,
    SLOT_WARM,
    TRANSIENT,
    WORD,
    Account,
    BlockHash,
    Engine,
    InitCode,
    StorageSlot,
)
from fusevm.native.runtime.memory import FAILED

_Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_ACCOUNT = struct.Struct(HEAD.format + f"{len(NO_ACCOUNT)}s")
_SLOT_HEAD = packed(StorageSlot, "account flags key")
_SLOT_HEAD_AT = StorageSlot.offset("account")
_SLOT_VALUE, _SLOT_ORIGINAL = StorageSlot.offset("value"), StorageSlot.offset("original")
_INIT_CODE = packed_whole(InitCode, "hash size code schedule jumps entry")
_ASKED, _ASKED_AT = packed(Engine, "asked_data asked_size asked_gas"), Engine.offset("asked_data")
_ANSWER, _ANSWER_AT = packed(Engine, "answer_size answer_gas"), Engine.offset("answer_size")
_EPOCH, _EPOCH_AT = packed(Account, "epoch"), Account.offset("epoch")
_ENTRY, _ENTRY_AT = packed(Account, "entry"), Account.offset("entry")
_CODE, _CODE_HASH = Account.offset("code"), Account.offset("code_hash")
_KEPT = ACCOUNT_WARM | ACCOUNT_BLANK | ACCOUNT_CREATED | ACCOUNT_DESTROYED | ACCOUNT_ENSURED
_NOBODY = ACCOUNT_VOID | ACCOUNT_TRACELESS  # an unused address
_ZERO = bytes(WORD)
_LONG = 4_096  # bytes: copying less costs little


class Callbacks:
    """Answers them, for one engine; the fields of the native engine that hold their addresses name them."""

    def __init__(self, world: NativeWorld, tables: Tables, codes: CodeCache) -> None:
        self._world = world
        self._tables = tables
        self._codes = codes
        self.take_notes: Callable[[], None] = lambda: None  # of recordings
        self._account_map = tables.accounts.map
        self._account_shift = tables.accounts.skip - tables.accounts.address
        self._passing = tables.accounts.address + tables.caps.accounts * Account.byte_size()  # for one read, not kept
        self._callbacks = {name: _Callback(self._guarded(getattr(self, f"_{name}"))) for name in QUESTIONS}
        for name, callback in self._callbacks.items():
            setattr(tables.shared, name, ctypes.cast(callback, ctypes.c_void_p).value)

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
                    self._world.error, answer = error, 1

        running = callback()
        next(running)
        return running.send

    def _load_slot(self, address: int) -> None:
        table, at = self._tables.slots, address - self._tables.slots.address
        number, _, raw_key = _SLOT_HEAD.unpack_from(table.map, table.skip + at + _SLOT_HEAD_AT)
        key, state = int.from_bytes(raw_key, "little"), self._world.state
        if number & TRANSIENT:
            value = state.transient.get((self._world.addresses[number & ~TRANSIENT], key), 0)
            table.write(at + _SLOT_VALUE, value.to_bytes(WORD, "little"))
            return
        account = self._world.addresses[number]
        slots = state.unsettled_account(account).storage  # native code knows what is pending
        value = dict.get(slots, key) or slots.get(key, 0)  # quickly where it is known, also of lazy storage
        if value:
            raw = value.to_bytes(WORD, "little")
            table.write(at + _SLOT_VALUE, raw)
            table.write(at + _SLOT_ORIGINAL, raw)
        original = state.original.get((account, key))  # written before this message began, as by an enclosing one
        if original is not None:
            table.write(at + _SLOT_ORIGINAL, original.to_bytes(WORD, "little"))
        if state.warm_slots and (account, key) in state.warm_slots:
            view_at(StorageSlot, address).flags = SLOT_WARM

    def _load_account(self, address: int) -> None:
        world = self._world
        if world.context.deadline is not None:
            world.look_at_clock()
        data, state = self._account_map, world.state
        at = address + self._account_shift
        where = world.address_at(at)
        (epoch,) = _EPOCH.unpack_from(data, at + _EPOCH_AT)
        if epoch and epoch >= self._tables.shared.call_epoch:
            self._load_again(at, where)
            return
        number = 0 if address == self._passing else world.number(where)
        flags = 0
        if world.all_warm or where in world.initially_warm or where in state.always_warm:
            flags = ACCOUNT_WARM
        if where not in world.precompiles and not state.exists(where):
            if not (state.original or state.warm_slots):
                flags |= ACCOUNT_BLANK
            flags |= _NOBODY if world.voids else ACCOUNT_VOID
            _ACCOUNT.pack_into(data, at + BODY, number, flags, 0, _ZERO, NO_ACCOUNT)
            return
        account = state.unsettled_account(where)
        if world.is_blank(account):
            flags |= ACCOUNT_BLANK
        self._describe(at, where, account, number, flags, native_word(account.balance))

    def _load_again(self, at: int, where: bytes) -> None:
        """An account may have changed natively since it was described, or may have been undone."""
        self._world.learn()
        _, known, _, raw_balance = HEAD.unpack_from(self._account_map, at + BODY)
        self._describe(
            at, where, self._world.state.unsettled_account(where), self._world.number(where), known & _KEPT, raw_balance
        )

    def _describe(
        self, at: int, where: bytes, account: StateAccount, number: int, flags: int, raw_balance: bytes
    ) -> None:
        if account.storage:
            flags |= ACCOUNT_STORED
        if where in self._world.state.destroyed and where not in self._world.destroyed:
            flags |= ACCOUNT_DOOMED
        if where in self._world.state.created and not flags & ACCOUNT_CREATED:
            flags |= ACCOUNT_NEW
        require_native_nonce(account.nonce)
        more, fields = self._nature(where, account)
        described = number, flags | more, account.nonce, raw_balance, fields
        _ACCOUNT.pack_into(self._account_map, at + BODY, *described)
        if more & ACCOUNT_PRECOMPILE:
            self._tell_entry(at, where)

    def _tell_entry(self, at: int, where: bytes) -> None:
        entry = loaded_entry(self._world.precompiles[where], where)
        if entry:
            _ENTRY.pack_into(self._account_map, at + _ENTRY_AT, entry)

    def _nature(self, where: bytes, account: StateAccount) -> tuple[int, bytes]:
        """What calling the account means, as flags, and the fields about its code."""
        code, there = account.code, self._world.state.exists(where)
        if where in self._world.precompiles:
            flags = ACCOUNT_PRECOMPILE
            fields = code_fields(code) if code else NO_ACCOUNT if account.empty else NO_CODE
        elif code:
            flags, fields, _ = self._codes.record_of(code)
        else:
            flags, fields = ACCOUNT_VOID, NO_ACCOUNT if account.empty else NO_CODE
        if not self._world.voids:
            return (flags | ACCOUNT_TRACELESS | ACCOUNT_ALIVE if there else flags), fields
        if not account.empty:
            return flags | ACCOUNT_TRACELESS | ACCOUNT_ALIVE, fields
        return (flags if there else flags | ACCOUNT_TRACELESS), fields  # an empty account would be touched

    def _load_init_code(self, address: int) -> None:
        self._world.look_at_clock()
        table = self._tables.init_codes
        at = table.skip + address - table.address
        hashed, size, place, *_ = _INIT_CODE.unpack_from(table.map, at)
        schedule = self._codes.init_code.schedule(ctypes.string_at(place, size), self._running)
        places = schedule.code_base, schedule.base, schedule.jumps_base, schedule.entry
        _INIT_CODE.pack_into(table.map, at, hashed, size, *places)

    def _running(self) -> set[int]:
        """Where the tables of jumps of frames are."""
        tables = self._tables
        return {view.jumps for view in tables.views[: tables.depth() + 1]}

    def _load_code(self, address: int) -> None:
        self._world.look_at_clock()
        self._world.learn()
        table = self._tables.accounts
        at = table.skip + address - table.address
        account = self._world.state.unsettled_account(self._world.address_at(at))
        places = self._codes.places(account.code, self._running)
        start = at + _CODE
        table.map[start : start + len(places)] = places

    def _hash_code(self, address: int) -> None:
        self._world.learn()
        table = self._tables.accounts
        at = table.skip + address - table.address
        account = self._world.state.unsettled_account(self._world.address_at(at))
        start, code_hash = at + _CODE_HASH, account.code_hash()
        table.map[start : start + WORD] = code_hash[::-1]
        self._codes.records.note_hash(account.code, self._codes.fork, code_hash)
        view_at(Account, address).flags |= ACCOUNT_HASHED

    def _run_precompile(self, address: int) -> None:
        world, engine = self._world, self._tables.engine
        context = world.context
        if context.deadline is not None:
            world.look_at_clock()
        at = address + self._account_shift
        where = world.address_at(at)
        contract = world.precompiles[where]
        place, size, gas = _ASKED.unpack_from(engine, _ASKED_AT)
        if contract.answers is not None:
            self._answer(contract.answers, ctypes.string_at(place, size), gas)
            return
        if size > _LONG:  # what is not read, or not paid for, is not even copied
            view = self._tables.memory.view(place, size)
            size = contract.reads(view)
            if size > _LONG and contract.gas(view, context.fork) > gas:
                _ANSWER.pack_into(engine, _ANSWER_AT, FAILED, 0)
                return
        data = ctypes.string_at(place, size)
        price = contract.gas(data, context.fork)
        if price > gas:
            _ANSWER.pack_into(engine, _ANSWER_AT, FAILED, 0)
            return
        try:
            output = run_precompile(contract, data, context.fork, price, context.deadline)
        except PrecompileFailure:
            _ANSWER.pack_into(engine, _ANSWER_AT, FAILED, 1)  # recordings distinguish it from a lack of gas
            return
        if contract.address in DIRECT and _ENTRY.unpack_from(self._account_map, at + _ENTRY_AT) == (0,):
            load_entry(contract, context.deadline)
            self._tell_entry(at, where)
        self._give(output, gas - price)

    def _answer(self, answers: Answers, data: bytes, gas: int) -> None:
        """A user's own contract, which says what it has used."""
        try:
            output, used = answers(data, gas)
        except PrecompileFailure:
            output, used = b"", gas + 1
        if used > gas:
            _ANSWER.pack_into(self._tables.engine, _ANSWER_AT, FAILED, 0)
        else:
            self._give(output, gas - used)

    def _give(self, output: bytes, gas_left: int) -> None:
        if len(output) > self._tables.output.size:
            raise NativeLimit(f"{self._tables.output.size >> 20} MiB of a precompile's output")
        self._tables.output.write(0, output)
        _ANSWER.pack_into(self._tables.engine, _ANSWER_AT, len(output), gas_left)

    def _take_notes(self, _address: int) -> None:
        self.take_notes()

    def _load_block_hash(self, address: int) -> None:
        self._world.hashes_asked = True
        self._tables.shared.wanted = 1  # the next call must ask Python for it again
        entry = view_at(BlockHash, address)
        entry.hash = int.from_bytes(self._world.context.block.hash_of(entry.number - 1), "big")
