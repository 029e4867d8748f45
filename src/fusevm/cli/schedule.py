"""`fusevm schedule CODE`: what native code runs, with fusions marked and what they save."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fusevm.cli import options
from fusevm.cli.inputs import BadInput, code_to_analyse, fork_or_exit
from fusevm.evm.forks import Fork
from fusevm.schedule.build import Handlers, ScheduleUnit, build_schedule
from fusevm.schedule.sections import HandlerToken, sections_of

MAX_IN_A_TABLE = 4_000  # rows


def schedule(
    code: options.Code,
    no_fuse: Annotated[bool, typer.Option("--no-fuse", help="one handler per opcode")] = False,
    only: Annotated[list[str] | None, typer.Option(help="only this fusion, e.g. 'DUP2 MSTORE PUSH'; repeat")] = None,
    regions: Annotated[
        bool, typer.Option("--regions", help="mark the words that regions of all functions and loops would replace")
    ] = False,
    fork: options.CodeFork = "latest",
    as_json: options.AsJson = False,
) -> None:
    """Show the schedule of some code: its handlers, in order, with the instructions each one does."""
    data, rules = code_to_analyse(code), fork_or_exit(fork)
    if regions and (no_fuse or only):
        raise BadInput("--regions goes with all fusions: leave out --no-fuse and --only")
    handlers = _handlers(no_fuse, only or [])
    units = build_schedule(data, rules, handlers, keep_units=True).units
    patched = _patched(data, rules) if regions else {}
    sections = sections_of(data, rules, handlers.native)  # those that can be reached
    steps = sum(1 if section.row else section.steps for section in sections)
    if as_json:
        typer.echo(
            json.dumps({"steps": steps, "handlers": len(units), "units": [_as_data(unit, patched) for unit in units]})
        )
        return
    if len(units) > MAX_IN_A_TABLE:
        _list(units, patched)
    else:
        _show(units, patched)
    saved = 1 - len(units) / steps if steps else 0.0
    typer.echo(f"\n{steps} reachable instructions by {len(units)} handlers: {saved:.0%} of the dispatches saved")


def _show(units: list[ScheduleUnit], patched: dict[int, int]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("entry", justify="right")
    table.add_column("pc", justify="right")
    table.add_column("handler", overflow="fold")
    table.add_column("operands", overflow="fold")
    table.add_column("stands for", justify="right")
    for unit in units:
        fused = len(unit.sequence) > 1
        name = f"[bold green]{' '.join(unit.sequence)}[/]" if fused else " ".join(unit.sequence)
        if unit.at in patched:
            name = f"[bold magenta]region 0x{patched[unit.at]:x}[/] instead of {name}"
        table.add_row(str(unit.at), str(unit.tokens[0].pc), name, _operands(unit), str(unit.steps or ""))
    Console(highlight=False).print(table)


def _list(units: list[ScheduleUnit], patched: dict[int, int]) -> None:
    """The same without columns that fit: to lay out a table of this length takes longer than anything else."""
    typer.echo("entry pc handler, operands, stands for")
    for unit in units:
        region = f"region 0x{patched[unit.at]:x} instead of " if unit.at in patched else ""
        steps = f" ({unit.steps})" if unit.steps else ""
        typer.echo(f"{unit.at} {unit.tokens[0].pc} {region}{' '.join(unit.sequence)} {_operands(unit)}{steps}")


def _patched(code: bytes, fork: Fork) -> dict[int, int]:
    """The words of the schedule that regions replace, and where those begin."""
    from fusevm.lab.regions.report import regions_in

    found = regions_in(code, fork, None)
    places = found.layout.places
    return {places[pc]: pc for pc in found.unit.entries}


def _handlers(no_fuse: bool, only: list[str]) -> Handlers:
    from fusevm.native.emit.build import library

    handlers = library().handlers
    if no_fuse:
        return handlers.only(frozenset())
    if not only:
        return handlers
    wanted = frozenset(tuple(pattern.split()) for pattern in only)
    for pattern in wanted:
        if pattern not in handlers.addresses:
            raise BadInput(f"no fusion {' '.join(pattern)!r}; `fusevm fusions` lists them")
    return handlers.only(wanted)


def _operands(unit: ScheduleUnit) -> str:
    return " ".join(filter(None, map(_operand, unit.tokens)))


def _operand(token: HandlerToken) -> str:
    if token.name in ("SECTION", "GASSECTION"):
        return f"gas {token.operand & 0xFFFFFFFF}"
    if token.name in ("PUSH", "PUSHW"):
        return f"{token.operand:#x}"
    if token.name in ("JUMP@", "JUMPI@"):
        return f"→{token.operand}"
    return ""


def _as_data(unit: ScheduleUnit, patched: dict[int, int]) -> dict[str, object]:
    return {
        "entry": unit.at,
        "pc": unit.tokens[0].pc,
        "sequence": list(unit.sequence),
        "fused": len(unit.sequence) > 1,
        "steps": unit.steps,
    } | ({"region": patched[unit.at]} if unit.at in patched else {})
