"""Clean-up of functions without analysis: dead values are removed, straight lines merged, empty blocks skipped."""

from __future__ import annotations

from collections.abc import Callable, Set

from fusevm.evm.opcodes import Effect
from fusevm.ir import analyses
from fusevm.ir.fold.summaries import EffectSummary
from fusevm.ir.functions import BRANCH, JUMP, SWITCH, Arc, DependencyBlock, End, Function, Unit
from fusevm.ir.roots import is_root
from fusevm.ir.values import CONST, Value

_EMPTY = 8  # so many empty blocks in a row are skipped


def prune(unit: Unit, function: Function, effects: dict[str, EffectSummary], unseen: Effect) -> None:
    """Removes dead instructions and unused parameters."""
    drop_others(function, needed_values(function, lambda value: _stays(value, unit, effects, unseen)))


def needed_values(function: Function, stays: Callable[[Value], bool]) -> set[int]:
    """The values that the ends of blocks and the instructions which stay in any case are made from, by id."""
    blocks, arguments = analyses.order(function), analyses.arguments(function)
    needed: set[int] = set()
    work = [value for block in blocks for value in (*filter(stays, block.instructions), *block.end.args)]
    while work:
        value = work.pop()
        if value.op != CONST and value.id not in needed:
            needed.add(value.id)
            work += value.args
            work += arguments.get(value.id, ())
    return needed


def drop_others(function: Function, needed: Set[int]) -> None:
    """Removes all values but these, and the function's own parameters."""
    blocks = analyses.order(function)
    for block in blocks:
        block.instructions = [value for value in block.instructions if value.id in needed]
        for arc in block.end.arcs:
            params = arc.target.params
            arc.args = [arg for param, arg in zip(params, arc.args, strict=True) if param.id in needed]
    for block in blocks:
        if block is not function.entry:
            block.params = [param for param in block.params if param.id in needed]


def _stays(value: Value, unit: Unit, effects: dict[str, EffectSummary], unseen: Effect) -> bool:
    if value.keep:
        return True
    if value.op == "CALLFN":
        summary = effects[unit.names[value.number]]
        return bool(summary.writes & ~unseen.value) or summary.halts
    return is_root(value, unseen)


def drop_choices(function: Function) -> None:
    """Removes branches whose edges do the same, and the cases of a switch that do what its default does."""
    for block in function.blocks():
        end = block.end
        if end.op not in (BRANCH, SWITCH):
            continue
        last = end.arcs[-1]
        default = _outcome(last)
        kept = [number for number, arc in enumerate(end.arcs[:-1]) if _outcome(arc) != default]
        if not kept:
            block.end = End(JUMP, (), [last], where=end.where)
        elif end.op == SWITCH:
            end.arcs = [*(end.arcs[number] for number in kept), last]
            end.cases = tuple([end.cases[number] for number in kept])
            end.places = tuple([end.places[number] for number in kept]) if end.places else ()


def _outcome(arc: Arc) -> tuple[object, ...]:
    """What the edge leads to: equal for edges that do the same."""
    for _ in range(_EMPTY):
        middle = arc.target
        if middle.instructions or middle.params or middle.end.op != JUMP:
            break
        arc = middle.end.arcs[0]
    target, end = arc.target, arc.target.end
    if target.instructions or target.params or end.arcs:
        return (target.start, *map(_name, arc.args))
    return (end.op, *map(_name, end.args))


def _name(value: Value) -> tuple[str, int]:
    return (value.op, value.number if value.op in (CONST, "SYMBOL") else value.id)


def straighten(function: Function) -> None:
    """Merges straight lines of blocks, and redirects edges to empty blocks to the successors of these."""
    _pass_empty(function)
    analyses.forget(function)
    predecessors = analyses.predecessors(function)
    joined: set[DependencyBlock] = set()
    for block in predecessors:
        if block in joined:
            continue
        while block.end.op == JUMP:
            target = block.end.arcs[0].target
            if target is block or target is function.entry or len(predecessors[target]) != 1 or target.params:
                break
            block.instructions += target.instructions
            block.end = target.end
            joined.add(target)


def _pass_empty(function: Function) -> None:
    """Skips blocks that only jump, unless that would give a branch two edges to the same block."""
    for block in function.blocks():
        for arc in block.end.arcs:
            for _ in range(_EMPTY):
                middle = arc.target
                if middle.instructions or middle.params or middle.end.op != JUMP or middle is function.entry:
                    break
                on = middle.end.arcs[0]
                if on.target is middle:
                    break
                others = [each.target for each in block.end.arcs if each is not arc]
                if on.target in others and (on.args or block.end.op == BRANCH):
                    break
                arc.target, arc.args = on.target, list(on.args)
