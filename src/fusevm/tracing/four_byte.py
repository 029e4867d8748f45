"""geth's `4byteTracer`: which functions were called, by the first four bytes of the data, and with how much data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fusevm.chain.state import State
from fusevm.evm.precompiles import precompiles_of
from fusevm.tracing.recording import FrameKind, Wanted
from fusevm.tracing.requests import Json, Run, TracedMachine, TraceRequest, hooked, recorded, undone

_CALLS = (FrameKind.CALL, FrameKind.CALLCODE, FrameKind.DELEGATECALL, FrameKind.STATICCALL)


class FourByteTracer(NamedTuple):
    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> FourByteTracer:
        return cls()

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        """By selector and size of the arguments. Creations and calls of precompiles have no selector."""
        with undone(state), recorded(machine, Wanted(calls=True, logs=False)) as recording:
            run()
            precompiles = precompiles_of(request.fork)
            counts = Counter(
                f"0x{frame.input[:4].hex()}-{len(frame.input) - 4}"
                for frame in recording.walk()
                if frame.kind in _CALLS and len(frame.input) >= 4 and frame.code_address not in precompiles
            )
        return dict(sorted(counts.items()))


class NoopTracer(NamedTuple):
    """geth's `noopTracer`: runs the transaction, and says nothing."""

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> NoopTracer:
        return cls()

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        with undone(state), hooked(machine, None):
            run()
        return {}
