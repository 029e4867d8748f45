"""The state as a frame that failed natively saw it: storage is read from the native table, slot by slot.

Copying the whole table into the state would cost more than the call did.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from fusevm.chain.state import State
from fusevm.native.layout import SLOT_WARM, StorageSlot

Place = tuple[bytes, int]


class _Overlay(set[bytes]):
    """Addresses that the replay warms, over those that are warm natively."""

    def __init__(self, below: Container[bytes]) -> None:
        super().__init__()
        self._below = below

    def __contains__(self, address: object) -> bool:
        return super().__contains__(address) or address in self._below


class ReplayState(State):
    """Shares accounts and journal with the state it replaces; writes to storage stay here."""

    def __init__(self, state: State, slot_at: Callable[[bytes, int, bool], StorageSlot | None]) -> None:
        self.__dict__.update(state.__dict__)
        self._slot_at = slot_at  # address, key, whether transient -> a view of the native slot, or None
        self._written: dict[Place, int] = {}
        self._written_transient: dict[Place, int] = {}
        self.ledger = None  # what the replay does is undone by the state's own journal
        self.warm_addresses = _Overlay(state.warm_addresses)

    def storage(self, address: bytes, key: int) -> int:
        found = self._written.get((address, key))
        if found is None:
            slot = self._slot_at(address, key, False)
            found = super().storage(address, key) if slot is None else slot.value
        return found

    def original_storage(self, address: bytes, key: int) -> int:
        slot = self._slot_at(address, key, False)
        if slot is not None:
            return slot.original
        original = self.original.get((address, key))
        return State.storage(self, address, key) if original is None else original

    def set_storage(self, address: bytes, key: int, value: int) -> None:
        self._write(self._written, (address, key), value)

    def transient_storage(self, address: bytes, key: int) -> int:
        found = self._written_transient.get((address, key))
        if found is None:
            slot = self._slot_at(address, key, True)
            found = super().transient_storage(address, key) if slot is None else slot.value
        return found

    def set_transient(self, address: bytes, key: int, value: int) -> None:
        self._write(self._written_transient, (address, key), value)

    def _write(self, written: dict[Place, int], place: Place, value: int) -> None:
        if place in written:
            self.journal.append((written.__setitem__, place, written[place]))
        else:
            self.journal.append((written.pop, place, None))
        written[place] = value

    def is_warm_slot(self, address: bytes, key: int) -> bool:
        if super().is_warm_slot(address, key):
            return True
        slot = self._slot_at(address, key, False)
        return slot is not None and bool(slot.flags & SLOT_WARM)
