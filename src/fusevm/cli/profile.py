"""`fusevm profile`: where the gas of calls went, by function and by line, as a table or as a flame graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from fusevm import Result
from fusevm.cli import options
from fusevm.cli.coverage import write_lcov
from fusevm.cli.inputs import write_file
from fusevm.cli.scenario import Scenario, takes_scenario
from fusevm.tracing.profile.flame_graph import flame_graph
from fusevm.tracing.profile.lines import GasTable, gas_table
from fusevm.tracing.profile.samples import Samples, folded, speedscope, tree_of
from fusevm.tracing.profile.stacks import sampled
from fusevm.tracing.stack_trace import reason_of

Rows = Annotated[int, typer.Option("--rows", "-n", min=1, help="functions and lines to show")]
Folded = Annotated[Path | None, typer.Option("--folded", help="write folded stacks, for flame graph tools")]
Speedscope = Annotated[Path | None, typer.Option("--speedscope", help="write a file for speedscope")]
Svg = Annotated[Path | None, typer.Option(help="write a flame graph that any browser opens")]
Lcov = Annotated[Path | None, typer.Option(help="write line and branch coverage")]
WithConstructor = Annotated[bool, typer.Option("--with-constructor", help="count the deployment, too")]


@takes_scenario
def profile(
    asked: Scenario,
    with_constructor: WithConstructor = False,
    rows: Rows = 15,
    folded_to: Folded = None,
    speedscope_to: Speedscope = None,
    svg: Svg = None,
    lcov: Lcov = None,
    as_json: options.AsJson = False,
) -> None:
    """Deploy a contract, call it, and say where the gas went. Exits 1 if a call did not succeed."""
    address = None if with_constructor else asked.deploy()
    with asked.evm.snapshot(), asked.evm.record(logs=False, gas=True, coverage=lcov is not None) as recording:
        results = asked.run(asked.deploy() if address is None else address)
    table = gas_table(recording, asked.sources)
    if lcov is not None:
        write_lcov(recording, asked.sources, lcov)
    if folded_to or speedscope_to or svg:
        with asked.evm.snapshot(), sampled(asked.evm, asked.sources) as samples:
            asked.run(asked.deploy() if address is None else address)
        _write(samples, asked.name, folded_to, speedscope_to, svg)
    if as_json:
        typer.echo(json.dumps(_json(table, asked, results)))
    else:
        _show(table, asked, results, rows)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _write(samples: Samples, name: str, folded_to: Path | None, speedscope_to: Path | None, svg: Path | None) -> None:
    if folded_to is not None:
        write_file(folded_to, folded(samples), "--folded")
    if speedscope_to is not None:
        write_file(speedscope_to, json.dumps(speedscope(samples, name)), "--speedscope")
    if svg is not None:
        title = f"{name}: {samples.total:,} gas"
        write_file(svg, flame_graph(tree_of(samples, "all calls"), title), "--svg")


def _json(table: GasTable, asked: Scenario, results: list[Result]) -> dict[str, object]:
    return {
        "gas": table.total,
        "calls": [
            {
                "call": text,
                "ok": result.ok,
                "gas": result.gas_used,
                "error": None if result.ok else reason_of(result, asked.sources),
            }
            for (text, _), result in zip(asked.calls, results, strict=True)
        ],
        "functions": dict(_sorted(table.functions)),
        "lines": [
            {"file": path, "line": line, "gas": gas, "text": table.texts[path, line]}
            for (path, line), gas in _sorted(table.lines)
        ],
        "unmapped": table.unmapped,
    }


def _show(table: GasTable, asked: Scenario, results: list[Result], rows: int) -> None:
    for (text, _), result in zip(asked.calls, results, strict=True):
        typer.echo(f"{result.gas_used:>12,}  {text}" + ("" if result.ok else f"  {reason_of(result, asked.sources)}"))
    typer.echo(f"{table.total:>12,}  gas in all")
    typer.echo("\n         gas           function")
    for name, gas in _sorted(table.functions)[:rows]:
        typer.echo(f"{gas:>12,} {_share(gas, table.total):>8}  {name}")
    typer.echo("\n         gas           line")
    for (path, line), gas in _sorted(table.lines)[:rows]:
        typer.echo(f"{gas:>12,} {_share(gas, table.total):>8}  {path}:{line}  {table.texts[path, line]}")


def _share(gas: int, total: int) -> str:
    return f"{100 * gas / max(total, 1):.1f} %"


Key = TypeVar("Key")


def _sorted(counts: dict[Key, int]) -> list[tuple[Key, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])
