"""`fusevm fuzz`: random programs on our tiers and on peers, and where they disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fusevm.cli.inputs import BadInput, fork_or_exit, quit_with
from fusevm.evm.forks import Fork

if TYPE_CHECKING:
    from fusevm.lab.fuzz.campaign import FuzzPlan, FuzzTally


def fuzz(
    programs: Annotated[int, typer.Option(min=1, help="how many programs")] = 1_000,
    seed: Annotated[int, typer.Option(help="the same seed makes the same programs")] = 0,
    fork: Annotated[
        list[str] | None, typer.Option("--fork", "-f", help="a fork to take (all that every engine knows)")
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option(help="a tier of ours; the first is the judge (reference, then native)")
    ] = None,
    peer: Annotated[list[str] | None, typer.Option(help="pyrevm, spec or py-evm")] = None,
    starve: Annotated[bool, typer.Option("--starve", help="again at every point where gas could run out")] = False,
    limits: Annotated[int, typer.Option(min=0, help="again at so many random gas limits")] = 0,
    again: Annotated[int, typer.Option(min=0, help="again so often on one machine, with other gas limits")] = 6,
    save: Annotated[Path | None, typer.Option(help="a folder for the shrunk programs that fail")] = None,
    jobs: Annotated[int, typer.Option("-j", min=1, help="processes")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="the figures and the failing programs as data")] = False,
) -> None:
    """Run random programs on several engines and compare status, gas, refund, output, logs and state."""
    from fusevm.lab.fuzz.campaign import FuzzPlan, run_campaign

    if save is not None and save.exists() and not save.is_dir():
        raise BadInput(f"--save {save}: a file, not a folder")
    engines = (*(tier or ["reference"]), *(peer or []))
    if len(engines) < 2:
        engines = (*engines, "native" if engines[0] != "native" else "reference")
    plan = FuzzPlan(engines, programs, seed, _forks(engines, fork), starve, limits, again)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(" and ".join(engines), total=programs)
        tally = run_campaign(plan, jobs, lambda done: bar.update(task, advance=done.programs))
    if save is not None and tally.failures:
        _save(tally, save)
    if as_json:
        typer.echo(json.dumps(tally.as_json()))
    else:
        _print(plan, tally)
    raise typer.Exit(1 if tally.failures else 0)


def _forks(engines: tuple[str, ...], names: list[str] | None) -> tuple[Fork, ...]:
    """The requested ones, or all that every engine knows."""
    from fusevm.lab.peers.engines import engine_named
    from fusevm.lab.peers.work import PeerMissing, UnknownEngine

    wanted = [fork_or_exit(name) for name in names] if names else list(Fork)
    known = wanted
    for name in engines:
        try:
            engine = engine_named(name)
        except (PeerMissing, UnknownEngine) as error:
            quit_with(str(error))
        missing = [fork.label for fork in wanted if not engine.supports(fork)]
        if names and missing:
            quit_with(f"{name} does not know {', '.join(missing)}")
        known = [fork for fork in known if engine.supports(fork)]
    return tuple(known)


def _save(tally: FuzzTally, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for failure in tally.failures:
        name = failure.seed.replace("/", "-")
        (folder / f"{name}.json").write_text(json.dumps(failure.as_json(), indent=1) + "\n", encoding="utf-8")


def _print(plan: FuzzPlan, tally: FuzzTally) -> None:
    for failure in tally.failures[:5]:
        typer.echo(failure.shrunk.listing())
        typer.echo(failure.difference + "\n")
    statuses = ", ".join(f"{count:,} {status}" for status, count in tally.statuses.most_common())
    typer.echo(
        f"{' and '.join(plan.engines)}, seed {plan.seed}, {len(tally.forks)} forks: {tally.runs:,} runs ({statuses})"
    )
    if tally.starved:
        typer.echo(f"{tally.starved:,} programs were starved at every point of their run, the longer ones at some")
    sampled = max(tally.sampled, 1)
    typer.echo(
        f"of {tally.sampled:,} sampled: {tally.instructions / sampled:,.0f} instructions on average, "
        f"{100 * tally.longer_than_30 / sampled:.0f} % run more than 30"
    )
    for fork, names in tally.never_run().items():
        if names and tally.sampled >= 50 * len(tally.forks):
            typer.echo(f"never run at {fork.label}: {' '.join(names)}")
    for reason, count in tally.excused.most_common():
        typer.echo(f"{count:,} excused: {reason}")
    typer.echo(f"{tally.agreed:,} agreed, {tally.excused.total():,} excused, {len(tally.failures):,} differed")
