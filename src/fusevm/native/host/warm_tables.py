"""Native tables from one call to the next: of which state they are copies, and whether they are still good."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fusevm.chain.environment import Context
from fusevm.chain.state import State, delegate_in
from fusevm.native.emit.build import Library
from fusevm.native.host.choice import CallStats
from fusevm.native.host.code_cache import CodeCache
from fusevm.native.host.ledger import native_address
from fusevm.native.host.tables import Tables
from fusevm.native.host.world import NativeWorld
from fusevm.native.layout import WORD, StorageSlot
from fusevm.native.switches import is_on
from fusevm.schedule.build import address_of

_VALUE, _ORIGINAL = StorageSlot.offset("value"), StorageSlot.offset("original")
MAX_ADDRESSES = 1 << 15  # that have a number
MAX_TARGETS = 1 << 10


class Target(NamedTuple):
    """An account that is called from outside, as far as calls of it have that in common."""

    number: int
    blank: bool
    rest: bytes  # of its first frame, and where it is
    rest_place: int
    code: bytes
    plain: bool  # whether it runs on a plain schedule


Shape = tuple[bytes, bytes, bytes | None, int, int, bool, bool, int]
# Address, caller, selector (where it matters), size of data, gas, static, kept, slice.


class WarmTables:
    """Slots and accounts stay in native tables, committed, while the state changes only through native code.

    `State.version` says whether it changed otherwise; then `State.moved` lists accounts to be described again, and
    `State.remade` says whether that is not all. While a call runs nothing is valid: it may never end.
    """

    def __init__(
        self, tables: Tables, native: Library, codes: CodeCache, world: NativeWorld, *, on: bool = True
    ) -> None:
        self._tables = tables
        self._native = native
        self._codes = codes
        self._world = world
        self.on = on and is_on("kept")
        self.state: State | None = None  # None while a call runs
        self.version = 0
        self._remade = self._moved = self._generation = 0
        self.targets: dict[bytes, Target] = {}
        self.ready: dict[Shape, tuple[Target, CallStats | None, bytes]] = {}  # what native code is given of such calls

    def begin(self, state: State, *, good: bool = True) -> bool:
        """Before a call: whether native tables must be emptied. `good` is False if the caller knows that they must."""
        codes, needs_sweep = self._codes, self._codes.needs_sweep
        if needs_sweep:
            codes.sweep()
        fresh = not (good and self._renewed(state))
        if fresh:
            self.state = None
            self._forget(state)
        if needs_sweep:  # last: an interrupt before leaves `needs_sweep` set, and the next call does all of this again
            codes.swept()
        return fresh

    def _renewed(self, state: State) -> bool:
        """Whether the tables are valid for this state, after accounts that changed since were removed from them."""
        if self.state is not state or self._remade != state.remade or state.handed_out or not self.on:
            return False
        if len(self._world.addresses) > MAX_ADDRESSES or self._codes.retired.code:
            return False
        if self.version != state.version:
            self._forget_targets()
            for address in state.moved[self._moved :]:
                self._native.forget_account(self._tables.address, native_address(address))
            self.note(state)
        if self._generation != self._codes.generation:
            self._forget_targets()
            self._native.forget_schedules(self._tables.address)
            self._generation = self._codes.generation
        return True

    def _forget(self, state: State) -> None:
        self._forget_targets()
        self._world.forget()
        if state.pending is not None:
            state.settle()  # native code does not know of it any more
        self._generation = self._codes.generation
        self.note(state)

    def drop(self) -> None:
        """Another fork or other precompiles: every account must be described again."""
        self.state = None
        self._forget_targets()

    @property
    def addresses(self) -> list[bytes]:
        """Of accounts, by number."""
        return self._world.addresses

    def take_back(self, state: State, changed: Iterable[tuple[int, bytes]]) -> None:
        """Slots of accounts have the values again that they have in the state: that alone was just undone."""
        if self.state is not state or (self.version, self._remade) != (state.version - 1, state.remade - 1):
            return
        slots = self._tables.slots
        for number, raw_key in changed:
            place = self._native.known_slot(self._tables.address, number, raw_key)
            if not place:
                return
            account = state.unsettled_account(self._world.addresses[number])
            value = account.storage.get(int.from_bytes(raw_key, "little"), 0).to_bytes(WORD, "little")
            slots.write(place - slots.address + _VALUE, value)
            slots.write(place - slots.address + _ORIGINAL, value)
        self.note(state)

    def make_ready(self, shape: Shape, target: Target, stats: CallStats | None, given: bytes) -> None:
        if self.on:
            if len(self.ready) >= MAX_TARGETS:
                self.ready.clear()
            self.ready[shape] = target, stats, given

    def _forget_targets(self) -> None:
        self.targets.clear()
        self.ready.clear()

    def keep(self, state: State) -> None:
        """A call has ended, and its changes are in the state: the tables are valid for this state."""
        self.note(state)
        if self.on and not state.handed_out:
            self.state = state

    def note(self, state: State) -> None:
        """Notes the version for which the tables are valid."""
        self.version, self._remade, self._moved = state.version, state.remade, len(state.moved)

    def holds_for(self, state: State, context: Context, caller: bytes, address: bytes) -> bool:
        """Whether native code knows what is warm from the start, and slots are as at the start of the transaction."""
        if state.warm_slots or state.original or state.transient:
            return False
        if not context.rules.access_sets:
            return True
        if context.precompiles is not context.always_warm:  # native code takes those it has kept for warm
            return False
        coinbase = context.block.coinbase if context.rules.warm_coinbase else caller
        return state.always_warm is self._world.always_warm and state.warm_addresses == {caller, address, coinbase}

    def expect(self, address: bytes, state: State, context: Context) -> None:
        """A contract was created and will probably be called next: empties the tables now, outside of that call."""
        codes, shared = self._codes, self._tables.shared
        if not self.on or state.handed_out or codes.needs_sweep:
            return
        if not codes.is_ready(state.unsettled_account(address).code):
            return
        self._forget(state)
        self._native.forget_all(self._tables.address)
        shared.kept_epoch = shared.epoch
        self._world.prepare(state)
        self._world.tell_coinbase(context)
        self.target(address, state)
        codes.in_use.clear()  # it has not run
        self.keep(state)

    def target(self, address: bytes, state: State) -> Target | None:
        """An account with code of its own, about to be called; of others None."""
        account = state.unsettled_account(address)
        code = account.code
        if not code or address in self._world.precompiles or delegate_in(code) is not None:
            return None
        rest = self._codes.first_frame(code)
        plain = self._codes.runs_plainly(code)
        fields = self._world.number(address), not account.storage, rest, address_of(rest), code, plain
        target = tuple.__new__(Target, fields)  # half a microsecond less than by its own
        if self.on:
            if len(self.targets) >= MAX_TARGETS:
                self._forget_targets()
            self.targets[address] = target
        return target
