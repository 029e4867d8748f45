"""Stack traces of `run` and `trace`, where artifacts with sources are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from fusevm import Result
from fusevm.cli.execution import Prepared


def show_stack_trace(prepared: Prepared, result: Result, artifacts: Sequence[Path] | None) -> None:
    """Runs what has failed once more, to see which functions were running."""
    if result.ok or not artifacts:
        return
    from fusevm.tracing.sources.artifacts import read_sources
    from fusevm.tracing.stack_trace import stack_trace

    with prepared.evm.snapshot():
        found = stack_trace(prepared.evm, prepared.message, read_sources(artifacts))
    typer.echo(f"\n{found}")
