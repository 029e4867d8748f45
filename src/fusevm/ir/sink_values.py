"""Sinking: a value is computed near its uses, not on paths that never use it, and occupies the stack for less time."""

from __future__ import annotations

from fusevm.analysis.graphs import DominatorTree
from fusevm.ir import analyses
from fusevm.ir.functions import DependencyBlock, Function
from fusevm.ir.values import CONST, traits_of


def sink_values(function: Function) -> None:
    """Moves pure instructions down to the block that dominates all their uses, never into a loop.

    Nor into an empty latch: what every iteration but the last computes would become a block and a jump of its own.
    """
    blocks, tree = analyses.order(function), analyses.dominators(function)
    by_start = {block.start: block for block in blocks}
    depth = dict.fromkeys(by_start, 0)
    for loop in analyses.loops(function):
        for start in loop.body:
            depth[start] = max(depth[start], loop.depth)
    latches = _empty_latches(blocks, tree)
    used_in = {number: [use.block.start for use in uses] for number, uses in analyses.uses(function).items()}
    for block in reversed(blocks):
        sunk: set[int] = set()
        for value in reversed(block.instructions):
            if not traits_of(value).pure or value.op == "RESULT":
                continue
            places = used_in.get(value.id)
            if not places:
                continue
            target = _common(tree, places)
            while depth[target] > depth[block.start]:
                target = tree.above[target]
            if target == block.start or not tree.dominates(block.start, target) or target in latches:
                continue
            sunk.add(value.id)
            by_start[target].instructions.insert(0, value)
            value.block = target
            for arg in value.args:  # their uses move with it
                if arg.op != CONST:
                    used_in[arg.id].remove(block.start)
                    used_in[arg.id].append(target)
        if sunk:
            block.instructions = [value for value in block.instructions if value.id not in sunk]


def _empty_latches(blocks: list[DependencyBlock], tree: DominatorTree) -> set[int]:
    """The blocks that do nothing but go back to the header of a loop."""
    return {
        block.start
        for block in blocks
        if not block.instructions and any(tree.dominates(target.start, block.start) for target in block.targets)
    }


def _common(tree: DominatorTree, places: list[int]) -> int:
    """The nearest common dominator."""
    at = places[0]
    for place in places[1:]:
        while not tree.dominates(at, place):
            at = tree.above[at]
    return at
