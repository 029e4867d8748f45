"""`fusevm bench`: how long contracts take, on our tiers and on other engines, every result checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fusevm.cli.inputs import fork_or_exit, quit_with
from fusevm.lab import samples

if TYPE_CHECKING:
    from fusevm.lab.peers.bench import BenchFile, Row
    from fusevm.lab.peers.work import PeerEngine

YARDSTICK = "pyrevm"  # whose time the others are given in multiples of


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="bench files, all of them if none is named")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="pyrevm, py-evm and the executable spec too")] = False,
    tier: Annotated[list[str] | None, typer.Option(help="a tier of ours (auto if none is named)")] = None,
    fork: Annotated[str | None, typer.Option("--fork", "-f", help="only the files of this fork")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="the best of so many runs, after one to warm up")] = 5,
    limit: Annotated[float, typer.Option(min=0.1, help="seconds after which a run is given up")] = 60.0,
    cold: Annotated[bool, typer.Option("--cold", help="do not wait until auto has compiled hot code")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="only what a call of STOP costs")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="the folder of bench files (docs/files.md)"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one object per file: name, ok, gas_used, group, seconds")
    ] = False,
) -> None:
    """Time contracts, checking gas, refund and output each time.

    The state is set up before and restored after each run, off the clock: only the call itself is timed. `auto` runs
    each file until its hot code is compiled, off the clock too, unless --cold is given.
    """
    from fusevm.lab.peers.bench import BadBench, bench_files
    from fusevm.lab.peers.ours import OurTier

    engines = _engines([*(tier or ["auto"]), *(("pyrevm", "py-evm", "spec") if peers else ())])
    if stop:
        _stop(engines, as_json)
        return
    for engine in engines:
        if isinstance(engine, OurTier):
            engine.settles = not cold
    try:
        place = folder or _default_folder()
        files = bench_files(place, names or ())
    except BadBench as error:
        quit_with(str(error))
    if fork is not None:
        wanted = fork_or_exit(fork)
        files = [file for file in files if file.work.fork is wanted]
        if not files:
            quit_with(f"no bench file of {wanted.label} in {place}")
    rows = _measure(files, engines, repeat, limit)
    if as_json:
        typer.echo(json.dumps([row.as_json() for row in rows]))
    else:
        _print(rows, [engine.name for engine in engines], limit)
        if place == samples.BENCH:
            typer.echo(f"these are the project's own files; {samples.MORE_BENCHES}")
    raise typer.Exit(0 if all(row.ok for row in rows) else 1)


def _default_folder() -> Path:
    """Where the test data is, if it is anywhere; else the project's own files."""
    given = os.environ.get("FUSEVM_FIXTURES")
    folder = (Path(given) if given else Path("..") / "shared" / "fixtures") / "bench"
    return folder if given or folder.is_dir() else samples.BENCH


def _engines(names: list[str]) -> list[PeerEngine]:
    from fusevm.lab.peers.engines import engine_named
    from fusevm.lab.peers.work import PeerMissing, UnknownEngine

    try:
        return [engine_named(name) for name in names]
    except (PeerMissing, UnknownEngine) as error:
        quit_with(str(error))


def _measure(files: list[BenchFile], engines: list[PeerEngine], repeat: int, limit: float) -> list[Row]:
    from fusevm.lab.peers.bench import Row, measure

    rows = [Row(file) for file in files]
    with Console(stderr=True).status("") as status:
        for row in rows:
            for engine in engines:
                status.update(f"{row.file.name}: {engine.name}")
                row.engines[engine.name] = measure(engine, row.file, repeat, limit)
    return rows


def _print(rows: list[Row], names: list[str], limit: float) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("file", no_wrap=True, min_width=14)
    table.add_column("ops", justify="right", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
        if name != YARDSTICK and YARDSTICK in names:
            table.add_column(f"×{YARDSTICK}", justify="right", no_wrap=True, style="dim")
    for row in rows:
        table.add_row(row.file.name, f"{row.file.ops:,}", *_cells(row, names, limit))
    console.print(table)
    for row in rows:
        for name, measured in row.engines.items():
            if measured.fault:
                console.print(f"[red]{row.file.name}: {name}: {measured.fault}[/red]", highlight=False)
    for line in means(rows, names):
        console.print(line, highlight=False)
    wrong = sum(not row.ok for row in rows)
    console.print(f"{len(rows) - wrong} right, {wrong} wrong", style="red" if wrong else "green", highlight=False)


def means(rows: list[Row], names: list[str]) -> Iterator[str]:
    """How the first engine compares with each other one, by groups of files."""
    from fusevm.lab.peers.bench import GROUPS, geometric_mean, ratios

    for name in names[1:]:
        for group in GROUPS:
            found = ratios([row for row in rows if row.file.group == group], names[0], name)
            if found:
                mean = geometric_mean(found)
                yield f"{names[0]} takes {mean:.3g} times as long as {name}: geometric mean of {len(found)} {group}"


def _cells(row: Row, names: list[str], limit: float) -> list[str]:
    """For each engine its time and, beside the yardstick's, how many times as long that is."""
    cells = []
    for name in names:
        measured = row.engines[name]
        if measured.fault:
            cells.append("[red]wrong[/red]")
        else:
            cells.append(f">{limit:g} s" if measured.seconds is None else shown(measured.seconds))
        if name != YARDSTICK and YARDSTICK in names:
            base = row.engines[YARDSTICK].seconds
            cells.append(_times(measured.seconds / base) if measured.seconds and base else "")
    return cells


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}"


def shown(seconds: float) -> str:
    """In the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _stop(engines: list[PeerEngine], as_json: bool) -> None:
    from fusevm.lab.peers.bench import stop_seconds

    found = {engine.name: stop_seconds(engine) for engine in engines}
    if as_json:
        typer.echo(json.dumps({"name": "STOP", "seconds": found}))
        return
    for name, seconds in found.items():
        typer.echo(f"{name:<10} {shown(seconds)} per call of STOP")
