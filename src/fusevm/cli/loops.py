"""`fusevm loops CODE`: the loops of a contract, what counts them, and which of them are fused: held in a region."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from fusevm.analysis.loops.metadata import LoopMetadata
from fusevm.cli import options
from fusevm.cli.inputs import code_to_analyse, fork_or_exit


def loops(
    code: options.Code,
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="the loops as data")] = False,
) -> None:
    """Show loops: what counts each, what an iteration costs, which a region can hold, and why not the others."""
    from fusevm.native.region.loops import loops_in

    found = loops_in(code_to_analyse(code), fork_or_exit(fork))
    if as_json:
        typer.echo(json.dumps([asdict(meta) for meta in found]))
        return
    for meta in found:
        typer.echo(_shown(meta))
    fused = sum(meta.fused for meta in found)
    typer.echo(f"{len(found)} loop{'s' * (len(found) != 1)}, {fused} fused")


def _shown(meta: LoopMetadata) -> str:
    inside = "" if meta.parent_loop_id is None else f", inside loop {meta.parent_loop_id}"
    lines = [f"loop {meta.loop_id} at 0x{meta.header:x}: {meta.kind}{inside}"]
    if meta.comparison is not None and meta.increment is not None:
        start = "" if meta.start_value is None else f" from {meta.start_value}"
        bound = f"slot {meta.bound_slot}" if meta.end_value is None else f"{meta.end_value}"
        times = "" if meta.trips is None else f": {meta.trips:,} times"
        step = f"{meta.increment:+d} while {meta.comparison}"
        lines.append(f"  counts slot {meta.counter_slot}{start} by {step} {bound}{times}")
    else:
        lines.append(f"  not counted: {meta.uncounted}")
    if meta.gas_per_iteration:
        test = f" and {meta.gas_to_test} for the last test" if meta.gas_to_test else ""
        lines.append(
            f"  {meta.gas_per_iteration} gas per iteration{test}; "
            f"needs {meta.min_stack} words, grows by {meta.max_stack}"
        )
    early = ", ".join(f"0x{pc:x}" for pc in meta.early_exits)
    if meta.exit_pc is not None:
        lines.append(f"  leaves to 0x{meta.exit_pc:x}" + (f", early to {early}" if early else ""))
    elif early:
        lines.append(f"  leaves to {early}")
    lines += [f"  walks over {walk}" for walk in meta.walks]
    if meta.independent:
        lines.append("  no iteration needs another's result")
    lines.append(f"  fused: a region from 0x{meta.header:x}" if meta.fused else f"  not fused: {meta.reason}")
    lines += [f"  side exit at 0x{each.pc:x}: {each.reason}" for each in meta.side_exits if meta.fused]
    return "\n".join(lines)
