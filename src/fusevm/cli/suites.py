"""Running official test suites: finding the files, sharing them out to processes, progress, and the report."""

from __future__ import annotations

import json
import lzma
import os
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fusevm.chain.outcome import Disagreement, EngineLimit
from fusevm.cli.inputs import JSON, BadInput, explained, parse_json, read_file
from fusevm.lab.official.statetest import CaseVerdict, MalformedTest
from fusevm.lab.processes import in_processes
from fusevm.reference.hooks import Hooks
from fusevm.reference.tracer import tracing_hooks

SHOWN_FAILURES = 50
_ARCHIVES = (".xz", ".gz", ".bz2", ".tar", ".tgz")
PROCESSES = os.cpu_count() or 1

Paths = Annotated[list[str], typer.Argument(metavar="PATH...", help="folders, .json files or .tar.xz archives")]
PathsOrSamples = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH...]", help="folders, .json files or .tar.xz archives (the project's own, if none)"),
]
Sample = Annotated[int | None, typer.Option(min=1, help="only so many cases, spread over all files")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="processes")]
Trace = Annotated[
    bool, typer.Option("--trace", help="EIP-3155 lines and each case's state root on standard error; reference tier")
]

C = TypeVar("C")


class Tally(NamedTuple):
    """The results of one file."""

    passed: int
    failures: list[tuple[str, str]]  # case and reason


FileRunner = Callable[[str, bytes], Tally]


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
        text = f"{path}: not a whole archive: {problem}; give a folder, a .json file or a .tar.xz archive of tests"
        if Path(path).suffix in _ARCHIVES:
            raise BadInput(text) from None
        raise explained(text, read_file(path), path, JSON) from None


def run_suite(
    what: str, paths: list[str], run_file: Callable[..., Tally], sample: int | None, jobs: int, as_json: bool
) -> None:
    """Runs every file at the paths with `run_file(name, text, most=…)` and reports. Exits 1 on a failure."""
    started = time.perf_counter()
    files = [document for path in paths for document in documents(path)]
    if not files:
        raise BadInput(f"no {what} in {', '.join(paths)}")
    most = None if sample is None else -(-sample // len(files))
    passed, failures = 0, []
    for tally in _run_all(what, files, partial(run_file, most=most), jobs):
        passed += tally.passed
        failures += tally.failures
    _report(passed, failures, time.perf_counter() - started, as_json)
    if failures:
        raise typer.Exit(1)


def _run_all(what: str, files: list[tuple[str, bytes]], run: FileRunner, jobs: int) -> Iterator[Tally]:
    with _progress() as progress:
        task = progress.add_task(what, total=len(files)) if progress else None
        each = partial(_run_one, run)
        for tally in map(each, files) if jobs == 1 else in_processes(each, files, jobs):
            if progress and task is not None:
                progress.advance(task)
            yield tally


def _run_one(run: FileRunner, file: tuple[str, bytes]) -> Tally:
    return run(*file)


def _progress() -> AbstractContextManager[Progress | None]:
    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _report(passed: int, failures: list[tuple[str, str]], seconds: float, as_json: bool) -> None:
    if as_json:
        rows = [{"case": case, "reason": reason} for case, reason in failures]
        figures = {"passed": passed, "failed": len(failures), "seconds": round(seconds, 3), "failures": rows}
        typer.echo(json.dumps(figures))
        return
    for case, reason in failures[:SHOWN_FAILURES]:
        typer.echo(f"FAILED {case}: {reason}")
    if len(failures) > SHOWN_FAILURES:
        typer.echo(f"… and {len(failures) - SHOWN_FAILURES} more")
    typer.echo(f"{passed} passed, {len(failures)} failed")


def spread(cases: list[C], most: int | None) -> list[C]:
    """At most this many of them, evenly spaced."""
    if most is None or len(cases) <= most:
        return cases
    return [cases[index * len(cases) // most] for index in range(most)]


def judge_file(
    name: str,
    text: bytes,
    cases_in: Callable[[Any], Iterable[C]],
    run: Callable[[C], CaseVerdict],
    name_of: Callable[[C], str],
    most: int | None,
) -> Tally:
    """Runs the cases of one file; what the engine cannot do, and a malformed file, are failures."""
    passed, failures = 0, []
    try:
        for case in spread(list(cases_in(parse_json(text, name))), most):
            try:
                verdict = run(case)
            except (Disagreement, EngineLimit) as error:
                verdict = CaseVerdict(False, str(error))
            if verdict.passed:
                passed += 1
            else:
                failures.append((name_of(case), verdict.reason))
    except BadInput as error:
        failures.append((name, str(error).removeprefix(f"{name}: ")))
    except MalformedTest as error:
        failures.append((name, f"malformed: {error}"))
    return Tally(passed, failures)


def trace_hooks(wanted: bool) -> Hooks | None:
    """Hooks that write what differential fuzzers read, goevmlab say."""
    return tracing_hooks(lambda line: typer.echo(line, err=True, nl=False)) if wanted else None


def echo_state_root(root: bytes) -> None:
    typer.echo(json.dumps({"stateRoot": f"0x{root.hex()}"}), err=True)
