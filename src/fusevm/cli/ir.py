"""`fusevm ir CODE`: dependency blocks, or the functions that are compiled; one block alone, or read from text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from typing import Annotated

import typer

from fusevm.cli import options
from fusevm.cli.inputs import BadInput, code_to_analyse, fork_or_exit, quit_with, read_file
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import MSIZE
from fusevm.functions.ir import folded
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import DependencyBlock
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import BlockOrder, schedule
from fusevm.ir.parse import IrSyntaxError, parse
from fusevm.ir.recovery.words import RecoveryFailed
from fusevm.ir.regions.build import RegionUnit, outside
from fusevm.ir.text import block_text, function_text


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
    fold: Annotated[
        bool, typer.Option("--fold", help="the functions that are compiled, folded, and what each stage did")
    ] = False,
    stage: Annotated[list[StageName] | None, typer.Option(help="only these stages; may be repeated")] = None,
    mode: Annotated[
        Mode, typer.Option(help="execution: exact gas, as native code; optimisation: as fusevm optimize")
    ] = Mode.EXECUTION,
    inline: Annotated[bool, typer.Option("--inline", help="Unspills of blocks as operands")] = False,
    block: Annotated[str | None, typer.Option(help="only the block at this pc; folded with --fold")] = None,
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="blocks or functions, and counts, as data")] = False,
) -> None:
    """Show the dependency blocks of bytecode, its functions as they are compiled, or text, which is folded."""
    rules = fork_or_exit(fork)
    if (code is None) == (text is None):
        quit_with("give CODE, or --text FILE")
    if text is not None:
        _show_text(text, block, rules, mode, _stages(stage), inline=inline, as_json=as_json)
        return
    assert code is not None
    data = code_to_analyse(code)
    folds = fold or bool(stage)
    if folds and block is None:
        _show_functions(data, rules, mode, _stages(stage), as_json=as_json)
        return
    sources = basic_blocks(data, rules)
    if block is not None:
        sources = [sources[_position(block, [each.start for each in sources])]]
    found = [lift_block(each, rules) for each in sources]
    if folds:
        found = [fold_block(each, rules, mode, _stages(stage))[0] for each in found]
    unseen = MSIZE if folds and mode is Mode.OPTIMISATION else None
    _show_blocks(found, lambda each: schedule(each, unseen, inline), facts=block is None, as_json=as_json)


def _show_functions(code: bytes, fork: Fork, mode: Mode, stages: Stage, *, as_json: bool) -> None:
    """The functions that become native code and the blocks that are in none, or what `fusevm optimize` writes from."""
    try:
        found, stats = folded(code, fork, optimise=mode is Mode.OPTIMISATION, stages=stages)
    except RecoveryFailed as reason:
        quit_with(f"--mode optimisation: {reason}")
    blocks: list[DependencyBlock] = []
    unit, region = (found.unit, found) if isinstance(found, RegionUnit) else (found, None)
    for source in outside(region, code, fork) if region is not None else ():
        block, counts = fold_block(lift_block(source, fork), fork, mode, stages)
        blocks.append(block)
        stats.add(counts)
    texts = {name: function_text(each, unit, region is not None) for name, each in unit.functions.items()}
    if as_json:
        counted = {each.name: getattr(stats, each.name) for each in fields(stats) if each.name != "rules"}
        functions = [{"name": name, "text": each} for name, each in texts.items()]
        others = [{"start": each.start, "text": block_text(each)} for each in blocks]
        rules = dict(stats.rules.most_common())
        about = {"fork": fork.label, "mode": mode.value}
        typer.echo(json.dumps({**about, "functions": functions, "blocks": others, "counts": counted, "rules": rules}))
        return
    typer.echo("\n".join([*texts.values(), *[block_text(each, facts=True) for each in blocks], _summary(stats)]))


def _show_text(
    source: str, block: str | None, fork: Fork, mode: Mode, stages: Stage, *, inline: bool, as_json: bool
) -> None:
    """The blocks of a text, each folded on its own."""
    try:
        blocks = parse(_text_of(source))
        if block is not None:
            blocks = [blocks[_position(block, [each.start for each in blocks])]]
        blocks = [fold_block(each, fork, mode, stages)[0] for each in blocks]
    except IrSyntaxError as error:
        quit_with(f"{source}: {error}")
    unseen = MSIZE if mode is Mode.OPTIMISATION else None
    _show_blocks(blocks, lambda each: schedule(each, unseen, inline), facts=False, as_json=as_json)


def _text_of(source: str) -> str:
    try:
        text = read_file(source, "a file of IR text").decode("utf-8")
    except UnicodeDecodeError:
        quit_with(f"cannot read IR text from {source}: not text")
    except BadInput as error:
        quit_with(f"cannot read IR text: {error}")
    if not text.strip():
        quit_with(f"{source}: empty; IR text is needed, as `fusevm ir CODE` prints it")
    return text


def _show_blocks(
    blocks: list[DependencyBlock], schedule_of: Callable[[DependencyBlock], BlockOrder], *, facts: bool, as_json: bool
) -> None:
    """Blocks as the design notes write them: their steps and how they end; `facts`: also stack and gas."""
    texts = [block_text(each, schedule_of(each), facts) for each in blocks]
    if as_json:
        rows = [{"start": each.start, "text": text} for each, text in zip(blocks, texts, strict=True)]
        typer.echo(json.dumps({"blocks": rows}))
    else:
        typer.echo("\n".join(texts), nl=False)


def _position(block: str, starts: list[int]) -> int:
    """Which of the blocks is meant: by pc, hex or decimal."""
    try:
        return starts.index(int(block, 0))
    except ValueError:
        known = ", ".join(hex(start) for start in starts[:12])
        quit_with(f"no block at {block}; blocks begin at {known}{', …' if len(starts) > 12 else ''}")


def _stages(names: list[StageName] | None) -> Stage:
    if not names:
        return EVERYTHING
    chosen = Stage(0)
    for name in names:
        chosen |= Stage[name.name]
    return chosen


def _summary(stats: Stats) -> str:
    lines = [
        f"fold: {stats.folded} rewritten; cse: {stats.shared} shared; fwd: {stats.forwarded} loads known; "
        f"dse: {stats.stores_dropped} stores dropped; checks: {stats.checks} asked, {stats.checks_dropped} dropped, "
        f"{stats.checks_merged} merged; {stats.guards_decided} conditions known"
    ]
    return "\n".join([*lines, *(f"{count:6}  {rule}" for rule, count in stats.rules.most_common())])
