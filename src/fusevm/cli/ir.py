"""`fusevm ir CODE`: dependency blocks, folded or not, and what each stage did."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from fusevm.cli.inputs import code_or_exit, fork_or_exit, quit_with
from fusevm.ir.block import DependencyBlock, Mode, Program
from fusevm.ir.fold.program import fold_program
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.measure import Measurement, measure
from fusevm.ir.ordering import Schedule, schedule
from fusevm.ir.program import lift_program
from fusevm.ir.text import block_text


class StageName(StrEnum):
    FOLD = "fold"
    CSE = "cse"
    FWD = "fwd"
    DSE = "dse"


def ir(
    code: Annotated[str, typer.Argument(help="hex, 0x-hex, a file of hex or binary, or - for standard input")],
    fold: Annotated[bool, typer.Option("--fold", help="fold, and say what each stage did")] = False,
    stage: Annotated[list[StageName] | None, typer.Option(help="only these stages; may be repeated")] = None,
    mode: Annotated[Mode, typer.Option(help="execution keeps gas exact, optimisation may lower it")] = Mode.EXECUTION,
    peel: Annotated[bool, typer.Option("--peel", help="run the first turn of small loops apart")] = False,
    inline: Annotated[bool, typer.Option("--inline", help="Unspills as operands")] = False,
    block: Annotated[str | None, typer.Option(help="only the block at this pc")] = None,
    fork: Annotated[str, typer.Option(help="the fork whose opcodes and prices hold")] = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="blocks and counts as data")] = False,
) -> None:
    """Show the dependency blocks of a program."""
    data, rules = code_or_exit(code), fork_or_exit(fork)
    stats: Stats | None = None
    if fold or stage:
        program, stats = fold_program(data, rules, mode, _stages(stage), peel)
    else:
        program = lift_program(data, rules, peel)
    chosen = _chosen(program, block)
    orders = [schedule(each, program.unseen, inline) for each in chosen]
    found = measure(data, rules, mode, peel) if stats is not None else None
    if as_json:
        typer.echo(json.dumps(_as_data(program, orders, stats, found)))
        return
    typer.echo("\n".join(block_text(order.block, order, facts=True) for order in orders), nl=False)
    if stats is not None and found is not None:
        typer.echo(_summary(found, stats))


def _stages(names: list[StageName] | None) -> Stage:
    if not names:
        return EVERYTHING
    chosen = Stage(0)
    for name in names:
        chosen |= Stage[name.name]
    return chosen


def _chosen(program: Program, block: str | None) -> list[DependencyBlock]:
    if block is None:
        return list(program.blocks.values())
    try:
        return [program.blocks[int(block, 0)]]
    except (ValueError, KeyError):
        starts = ", ".join(map(hex, list(program.blocks)[:12])) + (", …" if len(program.blocks) > 12 else "")
        quit_with(f"no block at {block}; blocks begin at {starts}")


def _summary(found: Measurement, stats: Stats) -> str:
    kept = found.opcodes - found.stack_opcodes
    lines = [
        "",
        f"{found.opcodes} opcodes in {found.blocks} blocks, {found.stack_opcodes} of them only arrange the stack",
        "stage      in    out  loads  spills  PHIs",
    ]
    before = kept
    for row in found.rows:
        lines.append(f"{row.stage:5} {before:7} {row.instructions:6} {row.loads:6} {row.spills:7} {row.phis:5}")
        before = row.instructions
    lines.append(
        f"fold: {stats.folded} rewritten; cse: {stats.shared} shared; fwd: {stats.forwarded} loads known; "
        f"dse: {stats.stores_dropped} stores dropped; checks: {stats.checks} asked, {stats.checks_dropped} dropped or "
        f"merged; {stats.hoisted} hoisted; {stats.guards_decided} conditions known"
    )
    lines += [f"{count:6}  {rule}" for rule, count in stats.rules.most_common()]
    return "\n".join(lines)


def _as_data(
    program: Program, orders: list[Schedule], stats: Stats | None, found: Measurement | None
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "fork": program.fork.label,
        "mode": program.mode.value,
        "blocks": [
            {
                "start": order.block.start,
                "text": block_text(order.block, order),
                "low": order.block.low,
                "high": order.block.high,
                "delta": order.block.delta,
                "gas": list(order.block.sections),
                "params": list(order.block.params),
                "edges": [edge.target for edge in order.block.terminator.edges],
                "live_across_calls": order.live_across_calls,
            }
            for order in orders
        ],
    }
    if stats is not None and found is not None:
        data["stages"] = [
            {"stage": row.stage, "instructions": row.instructions, "loads": row.loads, "spills": row.spills,
             "phis": row.phis}
            for row in found.rows
        ]  # fmt: skip
        data["opcodes"], data["stack_opcodes"] = found.opcodes, found.stack_opcodes
        data["rules"] = dict(stats.rules.most_common())
        data["counts"] = {
            name: getattr(stats, name)
            for name in ("folded", "shared", "forwarded", "stores_dropped", "checks", "checks_dropped", "checks_merged",
                         "hoisted", "guards_decided")
        }  # fmt: skip
    return data
