"""boa's environment on fusevm."""

from __future__ import annotations

from boa.environment import Env
from boa.util.abi import Address

from fusevm.adapters.boa.engine import FusevmEVM
from fusevm.adapters.boa.notes import StorageNotes


class FusevmEnv(Env):  # type: ignore[misc]
    """`boa.set_env(FusevmEnv())`, or `fusevm.adapters.boa.enable()`."""

    def __init__(
        self, fork_try_prefetch_state: bool = False, fast_mode_enabled: bool = False, tier: str = "auto"
    ) -> None:
        self.notes = StorageNotes()
        super().__init__(fork_try_prefetch_state, False)
        self.evm = FusevmEVM(self, False, fork_try_prefetch_state, tier)
        self.nickname = "fusevm"

    @property
    def sha3_trace(self) -> dict[bytes, bytes]:
        return self.notes.hashes

    @sha3_trace.setter
    def sha3_trace(self, value: dict[bytes, bytes]) -> None:
        self.notes.hashes = value

    @property
    def sstore_trace(self) -> dict[Address, set[int]]:
        return self.notes.stores

    @sstore_trace.setter
    def sstore_trace(self, value: dict[Address, set[int]]) -> None:
        self.notes.stores = value
