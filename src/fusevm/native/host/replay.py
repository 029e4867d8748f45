"""Why an instruction halted: the reference tier does it again, and says so with all figures.

It finds the state as the native frame saw it: storage is read from the native table, slot by slot. Copying the whole
table into the state would cost more than the call did.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container

from fusevm.chain.state import State
from fusevm.evm.halts import ExceptionalHalt
from fusevm.native.layout import SLOT_WARM, STACK_ALIGN, WORD, NativeFrame, StorageSlot
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import refuse, table_of

Place = tuple[bytes, int]
SlotAt = Callable[[bytes, int, bool], StorageSlot | None]  # address, key, whether transient -> a view of it


def done_again(frame: Frame, view: NativeFrame, halt: ExceptionalHalt, slot_at: SlotAt) -> ExceptionalHalt:
    """The halt as the reference tier reports it; sets the frame's pc. The view is as the instruction found it."""
    frame.pc = view.pc + 1
    state = frame.state
    mark, ledger = state.mark(), state.ledger
    state.ledger = None  # what this does is undone by the state's own journal
    try:
        twin = _twin(frame, view, ReplayState(state, slot_at))
        instruction, gas, needs, room = table_of(frame.context.fork)[frame.code[view.pc]]
        if gas > twin.gas or not needs <= len(twin.stack) <= room:
            refuse(twin, gas, needs)
        twin.gas -= gas
        instruction(twin)
    except ExceptionalHalt as found:
        return found
    finally:
        state.revert(mark)
        state.ledger = ledger
    return halt


def _twin(frame: Frame, view: NativeFrame, state: State) -> Frame:
    """A copy of the frame, on memory of its own."""
    twin = Frame(frame.message, state, frame.context)
    twin.static = frame.static
    twin.pc = frame.pc
    twin.gas = view.gas + view.reserve
    base = view.sp - view.sp % STACK_ALIGN
    raw = ctypes.string_at(base, view.sp - base)
    twin.stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
    twin.memory = bytearray(ctypes.string_at(view.memory, view.memory_size))
    twin.returndata = ctypes.string_at(view.returned, view.returned_size)
    return twin


class _Overlay(set[bytes]):
    """Addresses that the replay warms, over those that are warm natively."""

    def __init__(self, below: Container[bytes]) -> None:
        super().__init__()
        self._below = below

    def __contains__(self, address: object) -> bool:
        return super().__contains__(address) or address in self._below


class ReplayState(State):
    """Shares accounts and journal with the state it replaces; writes to storage stay here."""

    def __init__(self, state: State, slot_at: SlotAt) -> None:
        self.__dict__.update(state.__dict__)
        self._slot_at = slot_at
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
