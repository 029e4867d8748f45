"""`fusevm fusions`: the table of fusions, and what really occurs in given code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fusevm.cli import options
from fusevm.cli.inputs import BadInput, parse_json, read_code
from fusevm.evm.forks import LATEST
from fusevm.lab.fusions import Stream, choose, streams_of
from fusevm.schedule.build import build_schedule
from fusevm.schedule.fusions import FusionType, fusions


def fusions_command(
    count: Annotated[
        list[str] | None, typer.Option("--count", help="count what occurs in this code, file or bench .json; repeat")
    ] = None,
    suggest: Annotated[int, typer.Option(help="with --count: also suggest so many fusions by counting")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """List the fusions, or count how often each occurs and what it saves."""
    rows: list[dict[str, Any]]
    suggested: list[str] = []
    if not count:
        rows = [
            {"fusion": " ".join(fusion.sequence) or "—", "type": fusion.fusion_type.name.lower(), "what": what}
            for fusion in fusions()
            for what in (fusion.fusion_type.value,)
        ]
    else:
        codes = [code for source in count for code in _codes(source)]
        rows = _counted(codes)
        if suggest:
            suggested = [" ".join(each) for each in choose(_streams(codes), suggest)]
    if as_json:
        typer.echo(json.dumps({"fusions": rows, "suggested": suggested}))
        return
    table = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ("fusion",):
        table.add_column(name, justify="left" if name in ("fusion", "type", "what") else "right", overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console = Console(highlight=False)
    console.print(table)
    if not count:
        folded, threaded = FusionType.CONSTANT_FOLD, FusionType.JUMP_THREAD
        console.print(f"\nbefore these: {folded.value}; {threaded.value} goes straight on")
    for line in suggested:
        console.print(f"suggested: {line}")


def _codes(source: str) -> list[bytes]:
    """Code as given, or all the code in a bench or corpus file."""
    if not source.endswith(".json"):
        return [read_code(source)]
    try:
        document = parse_json(Path(source).read_bytes(), source)
        found = [account.get("code", "") for account in document.get("pre", {}).values()]
        found += [build["creation"] for build in document.get("solc", {}).values()]
        return [bytes.fromhex(each.removeprefix("0x")) for each in found if len(each) > 2]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"cannot read code from {source}: {error}") from None


def _counted(codes: list[bytes]) -> list[dict[str, Any]]:
    from fusevm.native.emit.build import library

    found: Counter[tuple[str, ...]] = Counter()
    for code in codes:
        found.update(unit.sequence for unit in build_schedule(code, LATEST, library().handlers, keep_units=True).units)
    total = sum(len(sequence) * times for sequence, times in found.items())
    ordered = sorted(found.items(), key=lambda item: -(len(item[0]) - 1) * item[1])
    return [
        {
            "fusion": " ".join(sequence),
            "occurs": times,
            "saves": (len(sequence) - 1) * times,
            "of all": f"{(len(sequence) - 1) * times / total:.2%}",
        }
        for sequence, times in ordered
        if len(sequence) > 1
    ]


def _streams(codes: list[bytes]) -> list[Stream]:
    from fusevm.native.emit.build import library

    return [stream for code in codes for stream in streams_of(code, LATEST, library().handlers.native)]
