"""Shares long constants: pushed once, and kept on the stack for further uses nearby."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.ir.functions import Function, GraphBlock
from fusevm.ir.graphs import ways_into
from fusevm.ir.inline import Numbers
from fusevm.ir.values import CONST, Value

_NEAR = 2  # edges down, through blocks with a single predecessor


def share_constants(function: Function, is_long: Callable[[int, GraphBlock], bool]) -> None:
    """Uses in a block, and in the near blocks that only it leads to, become uses of one LITERAL."""
    blocks = function.blocks()
    ways = ways_into(blocks)
    numbers = Numbers(function)
    for block in blocks:
        counts = _counts(block)
        for number in list(counts):
            if not is_long(number, block):
                continue
            near = [each for each in _after(block, ways) if number in _counts(each)]
            if counts[number] + len(near) < 2:
                continue
            literal = numbers.new(block, "LITERAL", (), number)
            at = next((place for place, value in enumerate(block.instructions) if _uses(value, number)), None)
            literal.where = block.end.where if at is None else block.instructions[at].where
            block.instructions.insert(len(block.instructions) if at is None else at, literal)
            for each in (block, *near):
                _replace(each, number, literal)


def _after(block: GraphBlock, ways: dict[GraphBlock, list[GraphBlock]]) -> list[GraphBlock]:
    found: list[GraphBlock] = []
    edge = [block]
    for _ in range(_NEAR):
        edge = [target for each in edge for target in each.targets if len(ways[target]) == 1 and target not in found]
        found += edge
    return found


def _uses(value: Value, number: int) -> bool:
    return any(arg.op == CONST and arg.number == number for arg in value.args)


def _counts(block: GraphBlock) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in block.instructions:
        for arg in value.args:
            if arg.op == CONST:
                counts[arg.number] = counts.get(arg.number, 0) + 1
    for arg in block.end.args:
        if arg.op == CONST:
            counts[arg.number] = counts.get(arg.number, 0) + 1
    return counts


def _replace(block: GraphBlock, number: int, literal: Value) -> None:
    def new(args: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([literal if arg.op == CONST and arg.number == number else arg for arg in args])

    for value in block.instructions:
        if _uses(value, number):
            value.args = new(value.args)
    block.end.args = new(block.end.args)
