"""Spilling: values that do not fit on the stack are rematerialised at their uses, or kept in memory.

Memory can be used if the code has a `memoryguard`. A recursive function has one place for all its frames: what a frame
still needs is kept on the stack while the function may be called again, below everything that the call touches.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from fusevm.codegen.liveness import Liveness, liveness
from fusevm.codegen.weights import Weights
from fusevm.ir import analyses
from fusevm.ir.functions import DependencyBlock, Function
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.values import CONST, PHI, Value, traits_of


def users(function: Function, value: Value) -> list[tuple[DependencyBlock, Value | None]]:
    """The uses of a value: by an instruction, or by the end of a block (None)."""
    return list(dict.fromkeys((use.block, use.user) for use in analyses.uses(function).get(value.id, ())))


def is_cheap(value: Value) -> bool:
    """Whether it can be rematerialised from literals alone, for a few gas."""
    return traits_of(value).pure and value.op not in (PHI, "RESULT") and all(arg.op == CONST for arg in value.args)


def costs_of_spilling(
    function: Function, values: Sequence[Value], weights: Weights, cycle: Set[int]
) -> dict[Value, float]:
    """By weight: 2.5 for a store, 2 for a load or what is made again; both at each call that may come back."""
    blocks = {block.start: block for block in function.blocks()}
    live = liveness(function) if cycle else None
    costs: dict[Value, float] = {}
    for value in values:
        uses = sum(weights.get(block, 1.0) for block, _ in users(function, value))
        if is_cheap(value):
            costs[value] = uses
            continue
        home = blocks.get(value.block)
        across = [] if live is None else _calls_across(function, value, cycle, live)
        stores = (weights.get(home, 1.0) if home else 1.0) + sum(weights.get(block, 1.0) for block, _ in across)
        costs[value] = 2.5 * stores + 2.0 * (uses + sum(weights.get(block, 1.0) for block, _ in across))
    return costs


def recompute(function: Function, value: Value) -> None:
    """Rematerialises the value before each user."""
    numbers = FreshNumbers(function)
    _replace_uses(function, value, lambda block: numbers.new(block, value.op, value.args, value.number))


def recompute_elsewhere(function: Function) -> None:
    """Gives other blocks that use a cheap value copies of their own, so that nothing has to be kept for them."""
    for home in function.blocks():
        for value in [each for each in home.instructions if is_cheap(each)]:
            if any(block is not home for block, _ in users(function, value)):
                recompute(function, value)
                home.instructions = [each for each in home.instructions if each is not value]


def keep_in_memory(function: Function, value: Value, address: int, cycle: Set[int] = frozenset()) -> None:
    """`cycle`: the numbers of the functions that may call this one, if it is recursive."""
    numbers = FreshNumbers(function)
    place = Value(CONST, (), address)
    across = _calls_across(function, value, cycle, liveness(function)) if cycle else []
    for block in function.blocks():
        if value in block.params:
            block.instructions.insert(0, numbers.new(block, "MSTORE", (place, value)))
        elif value in block.instructions:
            at = block.instructions.index(value) + 1
            while at < len(block.instructions) and block.instructions[at].op == "RESULT":
                at += 1
            block.instructions.insert(at, numbers.new(block, "MSTORE", (place, value)))
    _replace_uses(function, value, lambda block: numbers.new(block, "MLOAD", (place,)), place)
    for block, call in across:
        at = block.instructions.index(call)
        kept = numbers.new(block, "MLOAD", (place,))
        block.instructions.insert(at, kept)
        at += 2
        while at < len(block.instructions) and _is_of_call(block.instructions[at], call):
            at += 1
        block.instructions.insert(at, numbers.new(block, "MSTORE", (place, kept)))
    analyses.forget(function, analyses.Keeps.GRAPH)


def _calls_across(
    function: Function, value: Value, cycle: Set[int], live: Liveness
) -> list[tuple[DependencyBlock, Value]]:
    """The calls of these functions after which the value is still needed."""
    found: list[tuple[DependencyBlock, Value]] = []
    for block in function.blocks():
        needed = value.id in live.exit[block] or value in block.end.args
        for each in reversed(block.instructions):
            if each is value:
                break
            if needed and each.op == "CALLFN" and each.number in cycle:
                found.append((block, each))
            needed |= value in each.args
    return found


def _is_of_call(value: Value, call: Value) -> bool:
    """Whether it is a result of the call, or stores one."""
    return call in value.args or (value.op == "MSTORE" and value.args[1].op == "RESULT" and call in value.args[1].args)


def _replace_uses(function: Function, value: Value, make, place: Value | None = None) -> None:  # type: ignore[no-untyped-def]
    for block in function.blocks():
        instructions: list[Value] = []
        for user in block.instructions:
            stores = place is not None and user.op == "MSTORE" and user.args[0] is place
            if value in user.args and not stores:
                copy = make(block)
                copy.where = user.where
                instructions.append(copy)
                user.args = tuple([copy if arg is value else arg for arg in user.args])
            instructions.append(user)
        if value in block.end.args or any(value in arc.args for arc in block.end.arcs):
            copy = make(block)
            copy.where = block.end.where
            instructions.append(copy)
            block.end.args = tuple([copy if arg is value else arg for arg in block.end.args])
            for arc in block.end.arcs:
                arc.args = [copy if arg is value else arg for arg in arc.args]
        block.instructions = instructions
    analyses.forget(function, analyses.Keeps.GRAPH)
