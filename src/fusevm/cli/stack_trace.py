"""Stack traces of `run` and `trace`, where artifacts with sources are given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import typer

from fusevm import Result
from fusevm.cli.execution import Prepared


def show_stack_trace(prepared: Prepared, result: Result, artifacts: Sequence[Path] | None) -> None:
    """Runs a failed call again, to see which functions were running.

    An artifact that is run is itself looked at, where it has source maps.
    """
    if result.ok or not (artifacts or prepared.artifact):
        return
    from fusevm.cli.scenario import sources_from
    from fusevm.tracing.sources.artifacts import BadArtifact, read_sources
    from fusevm.tracing.stack_trace import stack_trace

    sources = sources_from(artifacts or ())
    if prepared.artifact is not None:
        with suppress(BadArtifact):
            sources.add(read_sources([prepared.artifact]))
    with prepared.evm.snapshot():
        found = stack_trace(prepared.evm, prepared.message, sources)
    if artifacts or (found is not None and any(line.place for line in found.lines)):
        typer.echo(f"\n{found}")
