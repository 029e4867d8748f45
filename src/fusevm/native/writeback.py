"""What native code leaves for Python: changed storage, kept raw until somebody looks, and logs likewise."""

from __future__ import annotations

import struct

from fusevm.chain.state import State
from fusevm.native.layout import SLOT_DIRTY, SLOT_WARM, TRANSIENT, Slot
from fusevm.native.views import words

_SLOT = struct.Struct(words(Slot))


class PendingStorage:
    """The table of touched slots as it stood when a call ended."""

    __slots__ = ("_addresses", "_raw")

    def __init__(self, raw: bytes, addresses: list[bytes]) -> None:
        self._raw = raw
        self._addresses = addresses

    def apply(self, state: State, *, warm: bool = False) -> None:
        """Writes the storage that changed; with `warm`, also which slots were looked at, and transient storage."""
        for _, _, account, flags, raw_key, value, _ in _SLOT.iter_unpack(self._raw):
            where, key = self._addresses[account & ~TRANSIENT], int.from_bytes(raw_key, "little")
            if account & TRANSIENT:
                if warm:
                    state.set_transient(where, key, int.from_bytes(value, "little"))
                continue
            if flags & SLOT_DIRTY:
                state.set_storage(where, key, int.from_bytes(value, "little"))
            if warm and flags & SLOT_WARM:
                state.warm_slot(where, key)
