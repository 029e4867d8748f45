"""What native code leaves for Python: changed storage, kept raw until somebody looks, and logs likewise."""

from __future__ import annotations

from fusevm.chain.state import State
from fusevm.native.host.views import packed_whole
from fusevm.native.layout import SLOT_DIRTY, TRANSIENT, StorageSlot

_SLOT = packed_whole(StorageSlot, "hash next account flags key value original")


class PendingStorage:
    """The table of touched slots as it stood when a call ended."""

    __slots__ = ("_addresses", "_raw")

    def __init__(self, raw: bytes, addresses: list[bytes]) -> None:
        self._raw = raw
        self._addresses = addresses

    def apply(self, state: State) -> None:
        """Writes the storage that changed."""
        for _, _, account, flags, raw_key, value, _ in _SLOT.iter_unpack(self._raw):
            if flags & SLOT_DIRTY and not account & TRANSIENT:
                key = int.from_bytes(raw_key, "little")
                state.set_storage(self._addresses[account], key, int.from_bytes(value, "little"))
