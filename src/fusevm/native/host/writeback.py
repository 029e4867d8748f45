"""What native code leaves for Python: changed storage, kept raw until it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusevm.chain.state import State
from fusevm.native.host.views import packed_whole
from fusevm.native.layout import SlotChange

if TYPE_CHECKING:
    from fusevm.native.host.warm_tables import WarmTables

CHANGE = packed_whole(SlotChange, "account key value")
MAX_PENDING = 1 << 8  # calls whose storage waits to be written
TAKEN_BACK = 32  # slots; with more it takes less time to empty native tables


class PendingStorage:
    """Slots that changed, as calls left them one after another."""

    __slots__ = ("addresses", "ends_transaction", "raw", "warm")

    def __init__(self, raw: list[bytes], warm: WarmTables, *, ends_transaction: bool) -> None:
        self.raw = raw
        self.warm = warm
        self.addresses = warm.addresses
        self.ends_transaction = ends_transaction  # the slots' old words are not needed

    def apply(self, state: State) -> None:
        """Writes the storage that changed: the last value of each slot."""
        last: dict[tuple[int, bytes], bytes] = {}
        for raw in self.raw:
            for account, key, value in CHANGE.iter_unpack(raw):
                last[account, key] = value
        for (account, raw_key), value in last.items():
            key = int.from_bytes(raw_key, "little")
            state.write_slot(
                self.addresses[account], key, int.from_bytes(value, "little"), keep_original=not self.ends_transaction
            )

    def dropped(self, state: State) -> None:
        """Native tables take it back, and stay good."""
        if sum(map(len, self.raw)) <= TAKEN_BACK * CHANGE.size and self.addresses is self.warm.addresses:
            changed = {slot[:2]: None for raw in self.raw for slot in CHANGE.iter_unpack(raw)}
            self.warm.take_back(state, changed)


def leave_pending(state: State, raw: bytes, warm: WarmTables) -> None:
    """Hands the slots that a transaction has changed to the state, which writes them lazily."""
    pending = state.pending
    state.remake()
    if isinstance(pending, PendingStorage):
        pending.raw.append(raw)
        if len(pending.raw) > MAX_PENDING:
            state.settle()
    else:
        state.pending = PendingStorage([raw], warm, ends_transaction=True)
    warm.note(state)
