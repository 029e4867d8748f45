"""What a transaction of several messages keeps after one of them has run natively: warm slots, transient storage.

Every slot or account that was warmed or changed has an entry in the native journal, until `commit` walks it.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.chain.state import State
from fusevm.native.host.tables import Tables
from fusevm.native.host.views import packed_whole, view_at
from fusevm.native.host.world import NativeWorld
from fusevm.native.layout import ACCOUNT_ENTRY, ACCOUNT_WARM, SLOT_WARM, TRANSIENT, Account, StorageSlot, Undo

_UNDO = packed_whole(Undo, "slot flags value")
_OFFSET = ACCOUNT_ENTRY - 1


class TransactionCarryover(NamedTuple):
    """Read from the native journal before that is cleared, applied to the state after native code has returned it."""

    addresses: list[bytes]
    slots: list[tuple[bytes, int]]
    transient: list[tuple[bytes, int, int]]

    def apply(self, state: State) -> None:
        for address in self.addresses:
            state.warm_address(address)
        for address, key in self.slots:
            state.warm_slot(address, key)
        for address, key, value in self.transient:
            if state.transient_storage(address, key) != value:
                state.set_transient(address, key, value)


def read_carryover(tables: Tables, world: NativeWorld) -> TransactionCarryover:
    """From the journal of a message that has succeeded."""
    found = TransactionCarryover([], [], [])
    raw = tables.journal.read(0, tables.shared.journal_count * _UNDO.size)
    for place in dict.fromkeys(place for place, _, _ in _UNDO.iter_unpack(raw)):
        if place >= ACCOUNT_ENTRY:
            account = view_at(Account, tables.accounts.address + (place & _OFFSET))
            if account.flags & ACCOUNT_WARM:
                found.addresses.append(account.address.to_bytes(20, "big"))
            continue
        slot = view_at(StorageSlot, tables.slots.address + place)
        address = world.addresses[slot.account & ~TRANSIENT]
        if slot.account & TRANSIENT:
            found.transient.append((address, slot.key, slot.value))
        elif slot.flags & SLOT_WARM:
            found.slots.append((address, slot.key))
    return found
