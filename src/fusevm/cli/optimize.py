"""`fusevm optimize CODE`: bytecode in, cheaper bytecode that does the same out, and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fusevm.cli import options
from fusevm.cli.artifacts import ArtifactFile, read_artifact
from fusevm.cli.inputs import BadInput, code_to_analyse, fork_or_exit, write_file
from fusevm.codegen.bytecode import Optimized, optimize
from fusevm.codegen.optimize_report import Cost, OptimizeReport

MAX_RULES = 12


def optimize_command(
    code: Annotated[
        str, typer.Argument(help="hex, a file of hex or binary, a Foundry or Hardhat artifact, or - for standard input")
    ],
    runs: Annotated[int, typer.Option(min=0, help="how often the code is expected to run: gas against bytes")] = 200,
    fork: options.CodeFork = "latest",
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="write the code there: hex, or the artifact")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Optimise bytecode: runtime code, creation code with its constructor arguments, or a compiler's artifact.

    The result does what the code did, for less gas. What cannot be proved to is left as it is, and the report says why.
    """
    artifact = read_artifact(Path(code)) if code.endswith(".json") else None
    data = artifact.creation if artifact is not None else code_to_analyse(code)
    if not data:
        raise BadInput("there is no code to optimise")
    made = optimize(data, fork_or_exit(fork), runs)
    warning = artifact.warning(made) if artifact is not None else None
    if warning:
        made.report.left_alone.append(warning)
    text = json.dumps(artifact.with_code(made), indent=2) if artifact is not None else "0x" + made.code.hex()
    if out is not None:
        write_file(out, text + "\n", "--output")
    if as_json:
        typer.echo(json.dumps(_as_data(made, artifact)))
        return
    console = Console(highlight=False)
    _show(console, made.report)
    if out is None:
        typer.echo("\n0x" + made.code.hex())


def _as_data(made: Optimized, artifact: ArtifactFile | None) -> dict[str, Any]:
    data: dict[str, Any] = {"code": "0x" + made.code.hex(), "report": made.report.as_dict()}
    if made.deployed is not None:
        data["runtime"] = "0x" + made.deployed[1].hex()
    if artifact is not None:
        data["artifact"] = artifact.with_code(made)
    return data


def _show(console: Console, report: OptimizeReport) -> None:
    console.print(_title(report))
    for reason in report.left_alone:
        console.print(f"  left as it is: {reason}", style=None if report.changed else "yellow")
    if report.changed:
        console.print(_table(report.before, report.after))
        _show_steps(console, report)
    if report.runtime is not None:
        console.print()
        _show(console, report.runtime)


def _title(report: OptimizeReport) -> str:
    name = {"runtime": "runtime code", "creation": "creation code", "code": "code"}[report.kind]
    if not report.changed:
        return f"{name}: {report.before.bytes:,} bytes, unchanged"
    before, after = report.before, report.after
    return (
        f"{name}: {before.bytes:,} → {after.bytes:,} bytes ({_change(before.bytes, after.bytes)}), "
        f"static gas of a run {before.gas:,.0f} → {after.gas:,.0f} ({_change(before.gas, after.gas)}), "
        f"{len(before.blocks):,} → {len(after.blocks):,} blocks"
    )


def _change(before: float, after: float) -> str:
    return f"{(after - before) / before:+.1%}" if before else "±0"


def _table(before: Cost, after: Cost) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("  instructions")
    for name in ("bytes", "→", "static gas", "→"):
        table.add_column(name, justify="right")
    for kind, (size, gas) in before.by_kind.items():
        new_size, new_gas = after.by_kind[kind]
        table.add_row(f"  {kind}", f"{size:,}", f"{new_size:,}", f"{gas:,.0f}", f"{new_gas:,.0f}")
    return table


def _show_steps(console: Console, report: OptimizeReport) -> None:
    done = ", ".join(f"{count:,} {what}" for what, count in report.steps.items() if count)
    if done:
        console.print(f"  folding: {done}")
    rules = [f"{name} ×{count}" for name, count in report.rules.most_common(MAX_RULES)]
    if rules:
        more = len(report.rules) - len(rules)
        console.print("  rules: " + ", ".join(rules) + (f", {more} more" if more > 0 else ""), markup=False)
    if report.immutables:
        places = ", ".join(f"{old} → {' '.join(map(str, new))}" for old, new in report.immutables.items())
        console.print(f"  words to be filled in, by place: {places}")
