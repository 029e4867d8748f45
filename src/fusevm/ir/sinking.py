"""Sinking: a value is computed near its uses, not on paths that never use it, and occupies the stack for less time."""

from __future__ import annotations

from fusevm.analysis.graphs import DominatorTree, natural_loops
from fusevm.ir.functions import Function, GraphBlock
from fusevm.ir.values import CONST, Value, traits_of


def sink(function: Function) -> None:
    """Moves pure instructions down to the block that dominates all their uses, never into a loop."""
    blocks = function.blocks()
    by_start = {block.start: block for block in blocks}
    graph = {block.start: tuple(target.start for target in block.targets) for block in blocks}
    tree = DominatorTree(graph, function.entry.start)
    depth = dict.fromkeys(graph, 0)
    for loop in natural_loops(graph, function.entry.start):
        for start in loop.body:
            depth[start] = max(depth[start], loop.depth)
    used_in = _uses(blocks)
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
            if target == block.start or not tree.dominates(block.start, target):
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


def _uses(blocks: list[GraphBlock]) -> dict[int, list[int]]:
    """The blocks in which each value is used; an edge argument is used at the end of the predecessor."""
    found: dict[int, list[int]] = {}

    def note(value: Value, start: int) -> None:
        if value.op != CONST:
            found.setdefault(value.id, []).append(start)

    for block in blocks:
        for value in block.instructions:
            for arg in value.args:
                note(arg, block.start)
        for arg in block.end.args:
            note(arg, block.start)
        for arc in block.end.arcs:
            for arg in arc.args:
                note(arg, block.start)
    return found


def _common(tree: DominatorTree, places: list[int]) -> int:
    """The nearest common dominator."""
    at = places[0]
    for place in places[1:]:
        while not tree.dominates(at, place):
            at = tree.above[at]
    return at
