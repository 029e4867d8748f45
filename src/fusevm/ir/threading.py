"""Jump threading: a predecessor that passes the condition to a block which only branches on it branches itself."""

from __future__ import annotations

from fusevm.ir.functions import BRANCH, JUMP, Arc, End, Function, GraphBlock
from fusevm.ir.graphs import ways_into
from fusevm.ir.inline import Numbers
from fusevm.ir.values import CONST, Value


def thread_branches(function: Function) -> bool:
    """Threads jumps to blocks that only branch on their parameter; returns whether any edge was changed."""
    blocks = function.blocks()
    ways = ways_into(blocks)
    uses = _uses(blocks)
    changed = False
    for block in blocks:
        if not _only_branches(block, uses) or block is function.entry:
            continue
        for way in ways[block]:
            if way.end.op == JUMP and way is not block:
                _redirect(way, block)
                changed = True
    return changed


def _only_branches(block: GraphBlock, uses: dict[int, int]) -> bool:
    if block.instructions or block.end.op != BRANCH or len(block.params) != 1:
        return False
    (param,) = block.params
    return block.end.args[0] is param and uses.get(param.id) == 1 and block not in block.targets


def _uses(blocks: list[GraphBlock]) -> dict[int, int]:
    uses: dict[int, int] = {}

    def note(values: tuple[Value, ...] | list[Value]) -> None:
        for value in values:
            if value.op != CONST:
                uses[value.id] = uses.get(value.id, 0) + 1

    for block in blocks:
        for value in block.instructions:
            note(value.args)
        note(block.end.args)
        for arc in block.end.arcs:
            note(arc.args)
    return uses


def _redirect(way: GraphBlock, block: GraphBlock) -> None:
    condition = way.end.arcs[0].args[0]
    arcs = [Arc(arc.target, list(arc.args)) for arc in block.end.arcs]
    if condition.op == CONST:
        way.end = End(JUMP, (), [arcs[0] if condition.number else arcs[1]], where=way.end.where)
    else:
        way.end = End(BRANCH, (condition,), arcs, where=block.end.where)


def hoist_value_check(function: Function) -> None:
    """Hoists the CALLVALUE check out of a switch: every case starts with it, and the default reverts or has it too.

    Not if another block leads to one of them as well: what comes from there has not been checked.
    """
    ways = ways_into(function.blocks())
    for block in function.blocks():
        if block.end.op != "SWITCH" or len(block.end.arcs) < 3:
            continue
        *cases, default = [arc.target for arc in block.end.arcs]
        refuses = [_refusing(case) for case in cases]
        if any(way is not block for case in (*cases, default) if _refusing(case) is not None for way in ways[case]):
            continue
        if all(fails is not None for fails in refuses) and (_reverts(default) or _refusing(default) is not None):
            numbers = Numbers(function)  # before any block becomes unreachable, so that no number is used twice
            for case in (*cases, default):
                if _refusing(case) is not None:
                    case.end = End(JUMP, (), [case.end.arcs[1]], where=case.end.where)
            fails = refuses[0]
            assert fails is not None
            rest = numbers.new_block()
            rest.end = block.end
            value = numbers.make(block, "CALLVALUE", ())
            value.where = block.end.where
            block.end = End(BRANCH, (value,), [Arc(fails), Arc(rest)], where=rest.end.where)


def _refusing(block: GraphBlock) -> GraphBlock | None:
    """The block it branches to if CALLVALUE is not zero, if that reverts without data."""
    end = block.end
    if end.op != BRANCH or end.args[0].op != "CALLVALUE" or any(v.op != "CALLVALUE" for v in block.instructions):
        return None
    paid = end.arcs[0].target
    return paid if _reverts(paid) and not end.arcs[0].args and not end.arcs[1].args else None


def _reverts(block: GraphBlock) -> bool:
    """Whether the block only reverts, without data."""
    return (
        block.end.op == "REVERT"
        and not block.instructions
        and all(arg.op == CONST and arg.number == 0 for arg in block.end.args)
    )
