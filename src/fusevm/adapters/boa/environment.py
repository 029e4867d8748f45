"""boa's environment on fusevm."""

from __future__ import annotations

from boa.environment import Env
from boa.util.abi import Address

from fusevm.adapters.boa.engine import FusevmEVM
from fusevm.adapters.boa.notes import StorageNotes


class FusevmEnv(Env):  # type: ignore[misc]
    """`boa.set_env(FusevmEnv())`, or `fusevm.adapters.boa.enable()`."""

    default_tier = "auto"  # `enable()` sets it

    def __init__(
        self, fork_try_prefetch_state: bool = False, fast_mode_enabled: bool = False, tier: str | None = None
    ) -> None:
        self.notes = StorageNotes()
        super().__init__(fork_try_prefetch_state, False)
        self.evm = FusevmEVM(self, False, fork_try_prefetch_state, self.default_tier if tier is None else tier)

    @property
    def measures_coverage(self) -> bool:
        """By boa's plugin of coverage.py, which sets `_coverage_enabled` up to boa 0.2.8, and `_coverage` after it."""
        return getattr(self, "_coverage", None) is not None or getattr(self, "_coverage_enabled", False)

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
