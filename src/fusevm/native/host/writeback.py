"""What native code leaves for Python: changed storage, kept raw until somebody looks."""

from __future__ import annotations

from fusevm.chain.state import State
from fusevm.native.host.views import packed_whole
from fusevm.native.layout import SlotChange

_CHANGE = packed_whole(SlotChange, "account key value")


class PendingStorage:
    """Slots that changed, as calls left them one after another."""

    __slots__ = ("addresses", "ends_transaction", "raw")

    def __init__(self, raw: list[bytes], addresses: list[bytes], *, ends_transaction: bool) -> None:
        self.raw = raw
        self.addresses = addresses
        self.ends_transaction = ends_transaction  # nobody asks what the slots were before

    def apply(self, state: State) -> None:
        """Writes the storage that changed: the last value of each slot."""
        last: dict[tuple[int, bytes], bytes] = {}
        for raw in self.raw:
            for account, key, value in _CHANGE.iter_unpack(raw):
                last[account, key] = value
        for (account, raw_key), value in last.items():
            key = int.from_bytes(raw_key, "little")
            state.write_slot(
                self.addresses[account], key, int.from_bytes(value, "little"), keep_original=not self.ends_transaction
            )
