"""The state and the block as native code sees them, from one call to the next: accounts by number, and what is warm."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, MutableSet

from fusevm.chain.environment import Context
from fusevm.chain.outcome import check_time
from fusevm.chain.state import Account as StateAccount
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import Precompile
from fusevm.native.emit.build import Library
from fusevm.native.host.ledger import NativeLedger, native_address
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import view_at
from fusevm.native.layout import TRANSIENT, WORD, StorageSlot


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


class NativeWorld(NativeLedger):
    """What both sides know of the running call."""

    def __init__(self, tables: Tables, native: Library) -> None:
        super().__init__(tables, native)
        self.context: Context
        self.precompiles: Mapping[bytes, Precompile] = {}
        self.always_warm: Container[bytes] = ()
        self.all_warm = False
        self.voids = True  # whether calling what has no code leaves no trace (EIP-161)
        self.addresses: list[bytes] = []  # of accounts by number
        self.numbers: dict[bytes, int] = {}
        self.initially_warm: Collection[bytes] = ()
        self.warmth = NativeWarmth(self._is_warm, self._warm)
        self.coinbase = b""  # where it is warm from the start
        self.busy = False
        self.hashes_asked = False

    def bind(self, context: Context) -> None:
        self.context = context
        self.precompiles = context.precompiles
        self.always_warm = context.always_warm
        self.all_warm = context.fork < Fork.BERLIN
        self.voids = context.fork >= Fork.SPURIOUS_DRAGON

    def forget(self) -> None:
        """No account has a number any more: native tables are, or will be, emptied."""
        self.numbers = {}  # first, as in `number`
        self.addresses = []  # a new list: what the last call left pending may hold the old one

    def prepare(self, state: State) -> None:
        """A call from outside is about to run natively; `busy` is set once it does."""
        self.state = state
        self.error = None
        if self.inserted:
            self.inserted = {}
        if self.hashes_asked:
            self._tables.block_hashes.clear()
            self.hashes_asked = False

    def tell_coinbase(self, context: Context) -> None:
        self.coinbase = context.block.coinbase if context.rules.warm_coinbase else b""

    def take_over(self, state: State) -> None:
        """From here on the state's ledger and warm addresses are kept here."""
        if state.warm_addresses is not self.warmth:
            self.initially_warm = state.warm_addresses
        state.ledger = self
        state.warm_addresses = self.warmth

    def number(self, address: bytes) -> int:
        number = self.numbers.get(address)
        if number is None:
            number = len(self.addresses)
            self.addresses.append(address)  # first: Ctrl-C may come between, and two addresses must not have one number
            self.numbers[address] = number
        return number

    def is_blank(self, account: StateAccount) -> bool:
        """Whether every slot of it is known to be zero and cold."""
        state = self.state
        return not (account.storage or state.original or state.warm_slots)

    def look_at_clock(self) -> None:
        check_time(self.context.deadline)

    def slot_at(self, address: bytes, key: int, transient: bool) -> StorageSlot | None:
        """A storage slot as native code has it, or None."""
        number = self.numbers.get(address)
        if number is None:
            return None
        account = number | TRANSIENT if transient else number
        place = self._native.known_slot(self._tables.address, account, key.to_bytes(WORD, "little"))
        return view_at(StorageSlot, place) if place else None

    def end(self, state: State) -> None:
        """Nothing is running any more; changes not settled are those of a call that never was."""
        self.calls += 1
        if self.changed or self.made or self.destroyed:
            self.undo_unsettled(state)
        if state.warm_addresses is self.warmth:
            warm = self.initially_warm
            state.warm_addresses = warm if isinstance(warm, set) else set(warm)
        self.busy = False
        state.ledger = None  # last: if this is interrupted before, the next reader of the state does it again

    # -- warmth

    def _is_warm(self, address: bytes) -> bool:
        answer = self._native.is_warm(self._tables.address, native_address(address))
        return address in self.initially_warm if answer == 2 else bool(answer)

    def _warm(self, address: bytes) -> None:
        answer = self._native.warm_address(self._tables.address, native_address(address))
        if self.error is not None:
            raise self.error
        if answer == 2:
            raise NativeLimit("accounts or changes")
