"""`fusevm coverage`: which lines, branches and functions calls have run; as a table and as lcov."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fusevm.cli import options
from fusevm.cli.inputs import write_file
from fusevm.cli.scenario import Scenario, takes_scenario
from fusevm.tracing.profile.coverage import FileCoverage, file_coverage, lcov
from fusevm.tracing.recording import Recording
from fusevm.tracing.sources.contracts import Sources

Lcov = Annotated[Path | None, typer.Option("--lcov", help="write it in lcov's form, for genhtml and editors")]


@takes_scenario
def coverage(
    asked: Scenario,
    lcov_to: Lcov = None,
    as_json: options.AsJson = False,
) -> None:
    """Deploy a contract, call it, and say how much of its sources has run; the constructor counts."""
    with asked.evm.record(logs=False, coverage=True) as recording:
        asked.run(asked.deploy())
    found = reached(recording, asked.sources)
    if lcov_to is not None:
        write_file(lcov_to, lcov(found), "--lcov")
    if as_json:
        typer.echo(json.dumps({file.file.path: _counts(file) for file in found}))
        return
    typer.echo("     lines  branches  functions  file")
    for file in found:
        lines, branches, functions = (f"{hit}/{of}" for hit, of in _counts(file).values())
        typer.echo(f"{lines:>10}  {branches:>8}  {functions:>9}  {file.file.path}")


def reached(recording: Recording, sources: Sources) -> list[FileCoverage]:
    """The files of which some code has run at all: an artifact may come with many more."""
    files = file_coverage(recording.coverage.values(), sources)
    return [file for file in files if any(file.lines.values()) or any(file.functions.values())]


def write_lcov(recording: Recording, sources: Sources, path: Path) -> None:
    write_file(path, lcov(reached(recording, sources)), "--lcov")


def _counts(file: FileCoverage) -> dict[str, tuple[int, int]]:
    branches = [hits for branch in file.branches.values() for hits in (branch.taken, branch.passed)]
    return {
        "lines": (_hit(file.lines.values()), len(file.lines)),
        "branches": (_hit(branches), len(branches)),
        "functions": (_hit(file.functions.values()), len(file.functions)),
    }


def _hit(counts: Iterable[int]) -> int:
    return sum(count > 0 for count in counts)
