"""`fusevm ir CODE`: dependency blocks, folded or not, and what each stage did; one alone, or read from text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fusevm.cli import options
from fusevm.cli.inputs import code_to_analyse, fork_or_exit, quit_with
from fusevm.evm.bytecode import BasicBlock, basic_blocks
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import MSIZE
from fusevm.ir.block import DependencyBlock, Mode, Program
from fusevm.ir.copies import name_of
from fusevm.ir.fold.again import NotAlone, fold_again
from fusevm.ir.fold.program import fold_program
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.lift import lift_block
from fusevm.ir.measure import Measurement, measure
from fusevm.ir.ordering import Schedule, schedule
from fusevm.ir.parse import IrSyntaxError, parse
from fusevm.ir.program import lift_program
from fusevm.ir.text import block_text


class StageName(StrEnum):
    FOLD = "fold"
    CSE = "cse"
    FWD = "fwd"
    DSE = "dse"


def ir(
    code: Annotated[
        str | None, typer.Argument(help="hex, 0x-hex, a file of hex or binary, or - for standard input")
    ] = None,
    text: Annotated[str | None, typer.Option(help="fold the blocks of this text instead: a file, or -")] = None,
    fold: Annotated[bool, typer.Option("--fold", help="fold, and say what each stage did")] = False,
    stage: Annotated[list[StageName] | None, typer.Option(help="only these stages; may be repeated")] = None,
    mode: Annotated[Mode, typer.Option(help="execution keeps gas exact, optimisation may lower it")] = Mode.EXECUTION,
    peel: Annotated[bool, typer.Option("--peel", help="run the first turn of small loops apart")] = False,
    inline: Annotated[bool, typer.Option("--inline", help="Unspills as operands")] = False,
    block: Annotated[
        str | None, typer.Option(help="only the block at this pc, on its own; with --fold as it is in its program")
    ] = None,
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="blocks and counts as data")] = False,
) -> None:
    """Show the dependency blocks of a program, of one basic block, or of text, which is folded."""
    rules = fork_or_exit(fork)
    if (code is None) == (text is None):
        quit_with("give CODE, or --text FILE")
    if text is not None:
        _show_text(text, block, rules, mode, _stages(stage), inline=inline, as_json=as_json)
        return
    assert code is not None
    data = code_to_analyse(code)
    if block is not None and not (fold or stage or peel):
        alone = lift_block(_basic_block(data, block, rules), rules)
        _show_alone([alone], schedule_of=lambda each: schedule(each, inline=inline), as_json=as_json)
        return
    stats: Stats | None = None
    if fold or stage:
        program, stats = fold_program(data, rules, mode, _stages(stage), peel)
    else:
        program = lift_program(data, rules, peel)
    chosen = list(program.blocks.values())
    if block is not None:
        chosen = [chosen[_position(block, [name_of(each.start) for each in chosen])]]
    orders = [schedule(each, program.unseen, inline) for each in chosen]
    found = measure(data, rules, mode, peel) if stats is not None else None
    if as_json:
        typer.echo(json.dumps(_as_data(program, orders, stats, found)))
        return
    typer.echo("\n".join(block_text(order.block, order, facts=True) for order in orders), nl=False)
    if stats is not None and found is not None:
        typer.echo(_summary(found, stats))


def _show_text(
    source: str, block: str | None, fork: Fork, mode: Mode, stages: Stage, *, inline: bool, as_json: bool
) -> None:
    """The blocks of a text, each folded on its own."""
    try:
        blocks = parse(sys.stdin.read() if source == "-" else Path(source).read_text("utf-8"))
        if block is not None:
            blocks = [blocks[_position(block, [name_of(each.start) for each in blocks])]]
        folded = [fold_again(each, fork, mode, stages)[0] for each in blocks]
    except (IrSyntaxError, NotAlone) as error:
        quit_with(f"{source}: {error}")
    except (OSError, UnicodeDecodeError) as error:
        quit_with(f"cannot read IR text from {source}: {error}")
    unseen = MSIZE if mode is Mode.OPTIMISATION else None
    _show_alone(folded, schedule_of=lambda each: schedule(each, unseen, inline), as_json=as_json)


def _show_alone(
    blocks: list[DependencyBlock], *, schedule_of: Callable[[DependencyBlock], Schedule], as_json: bool
) -> None:
    """Blocks as the design notes write them: their steps and how they end, nothing else."""
    texts = [block_text(each, schedule_of(each)) for each in blocks]
    if as_json:
        rows = [{"start": each.start, "text": text} for each, text in zip(blocks, texts, strict=True)]
        typer.echo(json.dumps({"blocks": rows}))
    else:
        typer.echo("\n".join(texts), nl=False)


def _basic_block(code: bytes, block: str, fork: Fork) -> BasicBlock:
    blocks = basic_blocks(code, fork)
    return blocks[_position(block, [name_of(each.start) for each in blocks])]


def _position(block: str, names: list[str]) -> int:
    """Which of the named blocks is meant: by pc, hex or decimal, or by name (`5.1` is a copy of 5)."""
    try:
        return names.index(block if "." in block else str(int(block, 0)))
    except ValueError:
        starts = ", ".join(hex(int(name)) if "." not in name else name for name in names[:12])
        quit_with(f"no block at {block}; blocks begin at {starts}{', …' if len(names) > 12 else ''}")


def _stages(names: list[StageName] | None) -> Stage:
    if not names:
        return EVERYTHING
    chosen = Stage(0)
    for name in names:
        chosen |= Stage[name.name]
    return chosen


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
