"""`fusevm fusions`: the table of fusions, those in given code, and what really occurs in much of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fusevm.cli import options
from fusevm.cli.inputs import BadInput, code_to_analyse, fork_or_exit, parse_json, read_code, read_file
from fusevm.evm.forks import LATEST
from fusevm.schedule import FusionType, fusions_in
from fusevm.schedule.build import build_schedule
from fusevm.schedule.fusions import chosen, fusions

if TYPE_CHECKING:
    from fusevm.lab.fusions import Stream


def fusions_command(
    code: Annotated[str | None, typer.Argument(help="tell the fusions in this code: hex, a file of it, or -")] = None,
    count: Annotated[
        list[str] | None, typer.Option("--count", help="count what occurs in this code, file or bench .json; repeat")
    ] = None,
    suggest: Annotated[int, typer.Option(help="with --count: also suggest so many fusions by counting")] = 0,
    fork: options.CodeFork = "latest",
    as_json: options.AsJson = False,
) -> None:
    """List the table of fusions, or those in some code, or count how often each occurs and what it saves."""
    if code is not None and count:
        raise BadInput("give either CODE, to see the fusions in it, or --count")
    suggested: list[str] = []
    if code is not None:
        rows = _found(code, fork, as_json=as_json)
    elif count:
        codes = [each for source in count for each in _codes(source)]
        rows = _counted(codes)
        if suggest:
            suggested = _suggested(codes, suggest)
    else:
        rows = _listed()
    if as_json:
        typer.echo(json.dumps({"fusions": rows, "suggested": suggested}))
        return
    _show(rows)
    if code is None and not count:
        folded, threaded = FusionType.CONSTANT_FOLD, FusionType.JUMP_THREAD
        typer.echo(f"\nbefore these: {folded.value}; {threaded.value} goes straight on")
    for line in suggested:
        typer.echo(f"suggested: {line}")


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ("fusion",):
        table.add_column(name, justify="left" if name in ("fusion", "type", "what") else "right", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(highlight=False).print(table)


def _listed() -> list[dict[str, Any]]:
    counts = {each.sequence: (each.corpus, each.elsewhere) for each in chosen()}
    return [
        {
            "fusion": " ".join(fusion.sequence),
            "type": fusion.fusion_type.name.lower(),
            "corpus": counts.get(fusion.sequence, (0, 0))[0],
            "elsewhere": counts.get(fusion.sequence, (0, 0))[1],
        }
        for fusion in fusions()
    ]


def _found(code: str, fork: str, *, as_json: bool) -> list[dict[str, Any]]:
    """Numbers as they are for machines that read them, in hex for people."""
    return [
        {
            "pc": pc if as_json else f"{pc:#x}",
            "type": info.fusion_type.name.lower(),
            "original_length": info.original_length,
            "folded_value": None if info.folded_value is None else f"{info.folded_value:#x}",
            "count": info.count,
        }
        for pc, info in fusions_in(code_to_analyse(code), fork_or_exit(fork)).items()
    ]


def _codes(source: str) -> list[bytes]:
    """Code as given, or all the code in a bench or corpus file."""
    if not source.endswith(".json"):
        return [read_code(source)]
    try:
        document = parse_json(read_file(source), source)
        found = [account.get("code", "") for account in document.get("pre", {}).values()]
        found += [build["creation"] for build in document.get("solc", {}).values()]
        codes = [bytes.fromhex(each.removeprefix("0x")) for each in found if len(each) > 2]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"cannot read code from {source}: {error}") from None
    if not codes:
        raise BadInput(f"{source}: no code in it; a bench file has 'pre', a file of the corpus 'solc'")
    return codes


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


def _suggested(codes: list[bytes], count: int) -> list[str]:
    from fusevm.lab.fusions import choose, streams_of
    from fusevm.native.emit.build import library

    streams: list[Stream] = [stream for code in codes for stream in streams_of(code, LATEST, library().handlers.native)]
    return [" ".join(each) for each in choose(streams, count)]
