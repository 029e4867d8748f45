"""`fusevm statetest`: Ethereum's state tests, from folders, JSON files or archives, on any tier."""

from __future__ import annotations

import json
import lzma
import os
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fusevm.chain.outcome import Disagreement, EngineLimit, Executor
from fusevm.cli import options
from fusevm.cli.inputs import BadInput, parse_json
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.official.statetest import Case, MalformedTest, Verdict, cases_in, run_case
from fusevm.tiers import executor_for

SHOWN_FAILURES = 50


class Tally(NamedTuple):
    """What one file brought."""

    passed: int
    failures: list[tuple[str, str]]  # case and reason


def statetest(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="folders, .json files or .tar.xz archives")],
    tier: options.Tier = "auto",
    fork: Annotated[str | None, typer.Option("--fork", "-f", help="only the cases of this fork")] = None,
    no_fuse: Annotated[bool, typer.Option("--no-fuse", help="native tier, one handler per opcode")] = False,
    lockstep: Annotated[bool, typer.Option("--lockstep", help="native tier beside the reference tier")] = False,
    sample: Annotated[int | None, typer.Option(min=1, help="only so many cases, spread over all files")] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="processes")] = os.cpu_count() or 1,
    as_json: options.AsJson = False,
) -> None:
    """Run Ethereum state tests, judged by state root and logs hash. Exits 1 on a failure."""
    only = None if fork is None else fork_named(fork)
    if no_fuse or lockstep:
        tier = "lockstep" if lockstep else "native-unfused"
    executor_for(tier)
    started = time.perf_counter()
    files = [document for path in paths for document in documents(path)]
    if not files:
        raise BadInput(f"no state tests in {', '.join(paths)}")
    passed, failures = 0, []
    per_file = None if sample is None else -(-sample // len(files))
    for tally in _run_all(files, tier, only, jobs, per_file):
        passed += tally.passed
        failures += tally.failures
    if as_json:
        rows = [{"case": case, "reason": reason} for case, reason in failures]
        seconds = round(time.perf_counter() - started, 3)
        typer.echo(json.dumps({"passed": passed, "failed": len(failures), "seconds": seconds, "failures": rows}))
    else:
        for case, reason in failures[:SHOWN_FAILURES]:
            typer.echo(f"FAILED {case}: {reason}")
        if len(failures) > SHOWN_FAILURES:
            typer.echo(f"… and {len(failures) - SHOWN_FAILURES} more")
        typer.echo(f"{passed} passed, {len(failures)} failed")
    if failures:
        raise typer.Exit(1)


def documents(path: str) -> Iterator[tuple[str, bytes]]:
    """(name, text) of every JSON file at a path."""
    where = Path(path)
    if where.is_dir():
        for each in sorted(where.rglob("*.json")):
            yield str(each), each.read_bytes()
    elif not where.exists():
        raise BadInput(f"no such file or folder: {path}")
    elif where.suffix == ".json":
        yield path, where.read_bytes()
    else:
        yield from _in_archive(path)


def _in_archive(path: str) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".json"):
                    content = archive.extractfile(member)
                    if content is not None:
                        yield f"{path}:{member.name}", content.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        problem = (str(error) or type(error).__name__).splitlines()[0].rstrip(":")
        raise BadInput(f"{path}: not a whole archive: {problem}") from None


def _run_all(
    files: list[tuple[str, bytes]], tier: str, fork: Fork | None, jobs: int, most: int | None = None
) -> Iterator[Tally]:
    with _progress(len(files)) as progress:
        task = progress.add_task("state tests", total=len(files)) if progress else None
        if jobs == 1:
            tallies: Iterator[Tally] = (run_file(name, text, tier, fork, most) for name, text in files)
            pool: AbstractContextManager[Any] = nullcontext()
        else:
            executor = ProcessPoolExecutor(jobs)
            names, texts = zip(*files, strict=True)
            count = len(files)
            tallies = executor.map(run_file, names, texts, [tier] * count, [fork] * count, [most] * count, chunksize=4)
            pool = executor
        with pool:
            for tally in tallies:
                if progress and task is not None:
                    progress.advance(task)
                yield tally


def _progress(files: int) -> AbstractContextManager[Progress | None]:
    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def spread(cases: list[Case], most: int | None) -> list[Case]:
    """At most so many of them, evenly spaced."""
    if most is None or len(cases) <= most:
        return cases
    return [cases[index * len(cases) // most] for index in range(most)]


def run_file(name: str, text: bytes, tier: str, fork: Fork | None, most: int | None = None) -> Tally:
    run = executor_for(tier)
    execute: Executor = lambda message, state, context: run(message, state, context, None)  # noqa: E731
    passed, failures = 0, []
    try:
        for case in spread(list(cases_in(parse_json(text, name), fork)), most):
            try:
                verdict = run_case(case, execute)
            except (Disagreement, EngineLimit) as error:
                verdict = Verdict(False, str(error))
            if verdict.passed:
                passed += 1
            else:
                failures.append((case.name, verdict.reason))
    except BadInput as error:
        failures.append((name, str(error).removeprefix(f"{name}: ")))
    except MalformedTest as error:
        failures.append((name, f"malformed: {error}"))
    return Tally(passed, failures)
