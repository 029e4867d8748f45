"""What native code asks Python for while it runs: accounts, storage, block hashes. And which addresses are warm."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Container, Generator, Iterator, MutableSet

from fusevm.chain.environment import Context
from fusevm.chain.outcome import EngineLimit
from fusevm.chain.state import Account as StateAccount
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import precompiles_of
from fusevm.native.codes import NO_ACCOUNT, NO_CODE, Codes, hidden_code
from fusevm.native.layout import (
    ACCOUNT_BLANK,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    SLOT_WARM,
    WORD,
    Account,
    BlockHash,
    Slot,
)
from fusevm.native.tables import Tables
from fusevm.native.views import view_of, words

_Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_ACCOUNT = struct.Struct(words(Account, "number", "balance") + f"{len(NO_ACCOUNT)}s")
_ACCOUNT_BODY, _ACCOUNT_FLAGS = Account.offset("number"), Account.offset("flags")
_SLOT_HEAD = struct.Struct("<QQQ32s")
_SLOT_VALUE, _SLOT_ORIGINAL = Slot.offset("value"), Slot.offset("original")
_FLAGS = struct.Struct("<Q")
_ZERO = bytes(WORD)


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

    def __init__(self, tables: Tables, codes: Codes, warm_address: Callable[[int, bytes], int]) -> None:
        self._tables = tables
        self._codes = codes
        self._warm_address = warm_address
        self.state: State
        self.context: Context
        self.precompiles: Container[bytes] = ()
        self._all_warm = False
        self._voids = True  # whether calling what has no code leaves no trace (EIP-161)
        self.addresses: list[bytes] = []  # of accounts by number
        self.numbers: dict[bytes, int] = {}
        self.entries: dict[bytes, int] = {}  # accounts native code knows: where they are
        self.initially_warm: MutableSet[bytes] = set()
        self.warmth = NativeWarmth(self._is_warm, self._warm)
        self.hashes_asked = False
        self.error: BaseException | None = None  # what a question ended in
        self._callbacks = {
            "load_slot": _Callback(self._guarded(self._load_slot)),
            "load_account": _Callback(self._guarded(self._load_account)),
            "load_block_hash": _Callback(self._guarded(self._load_block_hash)),
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
        self.state = state
        self.initially_warm = state.warm_addresses
        state.warm_addresses = self.warmth
        self.addresses = [address]  # a new list: what the last call left pending may hold the old one
        self.numbers = {address: 0}
        self.error = None
        if self.entries:
            self.entries = {}
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
        number, _, _, raw_key = _SLOT_HEAD.unpack_from(table.map, table.skip + at)
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
        table, state = self._tables.accounts, self.state
        at = table.skip + address - table.address
        where = table.map[at : at + 20][::-1]
        account = state.account(where)
        if where in self.entries:
            flags = _FLAGS.unpack_from(table.map, at + _ACCOUNT_FLAGS)[0] & (ACCOUNT_WARM | ACCOUNT_BLANK)
        else:
            self.entries[where] = address
            is_warm = self._all_warm or where in self.initially_warm or where in state.always_warm
            flags = ACCOUNT_WARM if is_warm else 0
            if self.is_blank(account):
                flags |= ACCOUNT_BLANK
        code, balance = account.code, account.balance
        if code:
            more, fields = hidden_code(code) if where in self.precompiles else self._codes.facts_of(code)
            flags |= more
        else:
            fields = NO_ACCOUNT if account.empty else NO_CODE
            touchable = fields is NO_ACCOUNT and state.exists(where)
            if self._voids and not touchable and where not in self.precompiles:
                flags |= ACCOUNT_VOID
        raw_balance = balance.to_bytes(WORD, "little") if balance else _ZERO
        _ACCOUNT.pack_into(table.map, at + _ACCOUNT_BODY, self.number(where), flags, raw_balance, fields)

    def _load_block_hash(self, address: int) -> None:
        self.hashes_asked = True
        entry = view_of(BlockHash).from_address(address)
        entry.hash[:] = self.context.block.hash_of(entry.number - 1)[::-1]

    # -- warmth

    def _is_warm(self, address: bytes) -> bool:
        entry = self.entries.get(address)
        if entry is None:
            return address in self.initially_warm
        return bool(view_of(Account).from_address(entry).flags & ACCOUNT_WARM)

    def _warm(self, address: bytes) -> None:
        answer = self._warm_address(self._tables.address, address[::-1].ljust(WORD, b"\0"))
        if self.error is not None:
            raise self.error
        if answer == 2:
            raise EngineLimit(f"more than {self._tables.caps.accounts:,} accounts in one call")
