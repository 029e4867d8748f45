"""boa's environment on fusevm."""

from __future__ import annotations

from typing import Any

from boa.environment import Env

from fusevm.adapters.boa.engine import FusevmEVM


class FusevmEnv(Env):  # type: ignore[misc]
    """`boa.set_env(FusevmEnv())`, or `fusevm.adapters.boa.enable()`."""

    def __init__(
        self, fork_try_prefetch_state: bool = False, fast_mode_enabled: bool = False, tier: str = "auto"
    ) -> None:
        super().__init__(fork_try_prefetch_state, False)
        self.evm = FusevmEVM(self, False, fork_try_prefetch_state, tier)
        self.nickname = "fusevm"

    # Hashes and stores of native calls are known only after they are traced, which happens on demand.

    @property
    def sha3_trace(self) -> dict[bytes, bytes]:
        self._trace_history()
        return self._sha3_trace

    @sha3_trace.setter
    def sha3_trace(self, value: dict[bytes, bytes]) -> None:
        self._sha3_trace = value

    @property
    def sstore_trace(self) -> dict[Any, set[int]]:
        self._trace_history()
        return self._sstore_trace

    @sstore_trace.setter
    def sstore_trace(self, value: dict[Any, set[int]]) -> None:
        self._sstore_trace = value

    def _trace_history(self) -> None:
        engine = getattr(self, "evm", None)
        if isinstance(engine, FusevmEVM):
            engine.history.trace_all()
