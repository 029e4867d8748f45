"""A call that succeeded natively, in the form of boa's computations; what needs a trace is traced on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boa.vm.gas_meters import GasMeter

from fusevm.adapters.boa.history import History, NativeCall
from fusevm.chain.state import Log

# Set by boa's IR executor alone, and asked for by `hasattr`.
_NEVER = ("vyper_error_msg", "vyper_source_pos")


class NativeComputation:
    """Output, gas and logs of a native run. `children`, `code`, `call_trace` and so on are the traced run's."""

    is_error = False
    is_success = True
    error = None
    _error = None
    _gas_meter_class = GasMeter

    def __init__(self, output: bytes, gas_used: int, gas_left: int, refund: int, logs: Sequence[Log]) -> None:
        self.output = output
        self._gas_used = gas_used
        self._gas_left = gas_left
        self._refund = refund
        self._logs = logs
        self._history: History | None = None
        self._call: NativeCall | None = None

    def can_be_traced(self, history: History, call: NativeCall) -> NativeComputation:
        self._history, self._call = history, call
        return self

    def get_gas_used(self) -> int:
        return self._gas_used

    def get_gas_remaining(self) -> int:
        return self._gas_left

    def get_gas_refund(self) -> int:
        return self._refund

    @property
    def net_gas_used(self) -> int:
        return max(0, self._gas_used - self._refund)

    def get_raw_log_entries(self) -> tuple[Any, ...]:
        return tuple((place, *log) for place, log in enumerate(self.get_log_entries()))

    def get_log_entries(self) -> tuple[Any, ...]:
        return tuple((bytes(log.address), log.topics, log.data) for log in self._logs)

    def raise_if_error(self) -> None:
        pass

    @property
    def beneficiaries(self) -> list[bytes]:
        """Of a call that ended in SELFDESTRUCT, which returns nothing. boa asks where a function should return."""
        if self.output:
            return []
        found: list[bytes] = self.traced.beneficiaries
        return found

    @property
    def traced(self) -> Any:
        """py-evm's computation of the same call, from the same state."""
        assert self._history is not None
        assert self._call is not None
        return self._history.trace(self._call)

    def __getattr__(self, name: str) -> Any:
        if name in _NEVER or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.traced, name)
