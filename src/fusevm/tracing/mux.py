"""geth's `muxTracer`: several tracers over one transaction, each with its own configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fusevm.chain.state import State
from fusevm.tracing.requests import Json, Run, TracedMachine, Tracer, TraceRequest
from fusevm.values import BadValue, shown


class MuxTracer(NamedTuple):
    tracers: Mapping[str, Tracer]

    @classmethod
    def configured(cls, config: Mapping[str, Any], named: Callable[[str, Any], Tracer]) -> MuxTracer:
        """`named` makes a tracer of its name and configuration."""
        if "muxTracer" in config:
            raise BadValue(f"config: muxTracer within muxTracer: {shown(config['muxTracer'])}; name its tracers beside")
        return cls({name: named(name, each) for name, each in config.items()})

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        """Each runs the transaction again: all that is traced is undone."""
        return {name: tracer.run(machine, state, request, run) for name, tracer in self.tracers.items()}
