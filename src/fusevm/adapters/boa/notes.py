"""What native calls hashed and stored, from which boa shows maps: recorded as they run, decoded on demand."""

from __future__ import annotations

from boa.util.abi import Address

from fusevm.tracing.recording import Keccak, RecordedFrame, Recording, StorageWrite, Wanted
from fusevm.tracing.session import RecordingSession

WANTED = Wanted(logs=False, storage=True, keccak=True)
PREIMAGE = 64  # bytes: the slot of a map, and a key
MAX_GAS = 50_000_000  # of calls that are not decoded yet: gas bounds what is noted of them


class StorageNotes:
    """As on py-evm, what was undone since is known too."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, bytes] = {}  # preimages of hashes
        self._stores: dict[Address, set[int]] = {}  # slots that were written
        self._begin()

    def _begin(self) -> None:
        self._recording = Recording(WANTED)
        self.hooks = RecordingSession(self._recording).hooks(None)
        self._waiting = 0  # gas

    @property
    def hashes(self) -> dict[bytes, bytes]:
        self._learn()
        return self._hashes

    @hashes.setter
    def hashes(self, value: dict[bytes, bytes]) -> None:
        self._learn()
        self._hashes = value

    @property
    def stores(self) -> dict[Address, set[int]]:
        self._learn()
        return self._stores

    @stores.setter
    def stores(self, value: dict[Address, set[int]]) -> None:
        self._learn()
        self._stores = value

    def ran(self, gas: int) -> None:
        """A recorded call is over."""
        self._waiting += gas + 1
        if self._waiting > MAX_GAS:
            self._learn()

    def _learn(self) -> None:
        if self._waiting:
            recording = self._recording
            self._begin()
            for frame in recording.walk():
                self._learn_from(frame)

    def _learn_from(self, frame: RecordedFrame) -> None:
        for event in frame.events:
            if isinstance(event, StorageWrite):
                if not event.transient:
                    self._stores.setdefault(Address(event.address), set()).add(event.key)
            elif isinstance(event, Keccak) and len(event.data) == PREIMAGE:
                self._hashes[event.hash] = event.data
