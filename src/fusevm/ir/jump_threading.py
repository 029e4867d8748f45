"""Jump threading: a predecessor that passes the condition to a block which only branches on it branches itself."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.ir import analyses
from fusevm.ir.functions import BRANCH, JUMP, Arc, DependencyBlock, End, Function
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.values import CONST


def thread_branches(function: Function) -> bool:
    """Threads jumps to blocks that only branch on their parameter; returns whether any edge was changed."""
    uses = analyses.use_counts(function)
    changed = False
    for block, sources in analyses.predecessors(function).items():
        if not _only_branches(block, uses) or block is function.entry:
            continue
        for source in sources:
            if source.end.op == JUMP and source is not block:
                _redirect(source, block)
                changed = True
    return changed


def _only_branches(block: DependencyBlock, uses: Mapping[int, int]) -> bool:
    if block.instructions or block.end.op != BRANCH or len(block.params) != 1:
        return False
    (param,) = block.params
    return block.end.args[0] is param and uses.get(param.id) == 1 and block not in block.targets


def _redirect(source: DependencyBlock, block: DependencyBlock) -> None:
    condition = source.end.arcs[0].args[0]
    arcs = [Arc(arc.target, list(arc.args)) for arc in block.end.arcs]
    if condition.op == CONST:
        source.end = End(JUMP, (), [arcs[0] if condition.number else arcs[1]], where=source.end.where)
    else:
        source.end = End(BRANCH, (condition,), arcs, where=block.end.where)


def hoist_value_check(function: Function) -> None:
    """Hoists the CALLVALUE check out of a switch: every case starts with it, and the default reverts or has it too.

    Not if another block leads to one of them as well: what comes from there has not been checked.
    """
    predecessors = analyses.predecessors(function)
    for block in predecessors:
        if block.end.op != "SWITCH" or len(block.end.arcs) < 3:
            continue
        *cases, default = [arc.target for arc in block.end.arcs]
        refuses = [_refusing(case) for case in cases]
        checked = [case for case in (*cases, default) if _refusing(case) is not None]
        if any(source is not block for case in checked for source in predecessors[case]):
            continue
        if all(fails is not None for fails in refuses) and (_reverts(default) or _refusing(default) is not None):
            numbers = FreshNumbers(function)  # before any block becomes unreachable, so that no number is used twice
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


def _refusing(block: DependencyBlock) -> DependencyBlock | None:
    """The block it branches to if CALLVALUE is not zero, if that reverts without data."""
    end = block.end
    if end.op != BRANCH or end.args[0].op != "CALLVALUE" or any(v.op != "CALLVALUE" for v in block.instructions):
        return None
    paid = end.arcs[0].target
    return paid if _reverts(paid) and not end.arcs[0].args and not end.arcs[1].args else None


def _reverts(block: DependencyBlock) -> bool:
    """Whether the block only reverts, without data."""
    return (
        block.end.op == "REVERT"
        and not block.instructions
        and all(arg.op == CONST and arg.number == 0 for arg in block.end.args)
    )
