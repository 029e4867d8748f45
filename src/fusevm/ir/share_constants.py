"""Shares long constants: pushed once, and kept on the stack for further uses nearby."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fusevm.ir import analyses
from fusevm.ir.functions import DependencyBlock, Function
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.values import CONST, Value


class Reach(NamedTuple):
    """How far a constant is kept after a block that uses it."""

    levels: int  # down the dominator tree
    joins: bool = False  # also past blocks with several predecessors


def share_constants(function: Function, reach_of: Callable[[int, DependencyBlock], Reach | None]) -> None:
    """Uses in a block, and in those within reach that it dominates, become uses of one LITERAL."""
    predecessors = analyses.predecessors(function)
    blocks = {block.start: block for block in predecessors}
    below = analyses.dominators(function).children
    single = {block.start for block, sources in predecessors.items() if len(sources) == 1}
    numbers = FreshNumbers(function)
    for block in blocks.values():
        counts = _counts(block)
        for number in list(counts):
            reach = reach_of(number, block)
            if reach is None:
                continue
            after = [blocks[start] for start in _after(block.start, below, reach, single)]
            near = [each for each in after if number in _counts(each)]
            if counts[number] + len(near) < 2:
                continue
            literal = numbers.new(block, "LITERAL", (), number)
            at = next((place for place, value in enumerate(block.instructions) if _uses(value, number)), None)
            literal.where = block.end.where if at is None else block.instructions[at].where
            block.instructions.insert(len(block.instructions) if at is None else at, literal)
            for each in (block, *near):
                _replace(each, number, literal)


def _after(start: int, below: dict[int, list[int]], reach: Reach, single: set[int]) -> list[int]:
    found: list[int] = []
    edge = [start]
    for _ in range(reach.levels):
        edge = [each for above in edge for each in below[above] if reach.joins or each in single]
        found += edge
    return found


def _uses(value: Value, number: int) -> bool:
    return any(arg.op == CONST and arg.number == number for arg in value.args)


def _counts(block: DependencyBlock) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in block.instructions:
        for arg in value.args:
            if arg.op == CONST:
                counts[arg.number] = counts.get(arg.number, 0) + 1
    for arg in block.end.args:
        if arg.op == CONST:
            counts[arg.number] = counts.get(arg.number, 0) + 1
    return counts


def _replace(block: DependencyBlock, number: int, literal: Value) -> None:
    def new(args: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([literal if arg.op == CONST and arg.number == number else arg for arg in args])

    for value in block.instructions:
        if _uses(value, number):
            value.args = new(value.args)
    block.end.args = new(block.end.args)
