"""Spilling: values that do not fit on the stack are rematerialised at their uses, or kept in memory.

Memory can be used if the code has a `memoryguard`, and only by functions that are not recursive.
"""

from __future__ import annotations

from fusevm.ir.functions import Function, GraphBlock
from fusevm.ir.inline import Numbers
from fusevm.ir.values import CONST, PHI, Value, traits_of


def users(function: Function, value: Value) -> list[tuple[GraphBlock, Value | None]]:
    """The uses of a value: by an instruction, or by the end of a block (None)."""
    found: list[tuple[GraphBlock, Value | None]] = []
    for block in function.blocks():
        found += [(block, user) for user in block.instructions if value in user.args]
        if value in block.end.args or any(value in arc.args for arc in block.end.arcs):
            found.append((block, None))
    return found


def is_cheap(value: Value) -> bool:
    """Whether it can be rematerialised from literals alone, for a few gas."""
    return traits_of(value).pure and value.op not in (PHI, "RESULT") and all(arg.op == CONST for arg in value.args)


def cost_of_spilling(function: Function, value: Value, weights: dict[GraphBlock, float]) -> float:
    uses = users(function, value)
    if is_cheap(value):
        return sum(weights.get(block, 1.0) for block, _ in uses)
    home = next((block for block in function.blocks() if block.start == value.block), None)
    stored = weights.get(home, 1.0) if home is not None else 1.0
    return 2.5 * stored + 2.0 * sum(weights.get(block, 1.0) for block, _ in uses)


def recompute(function: Function, value: Value) -> None:
    """Rematerialises the value before each user."""
    numbers = Numbers(function)
    _replace_uses(function, value, lambda block: numbers.new(block, value.op, value.args, value.number))


def recompute_elsewhere(function: Function) -> None:
    """Gives other blocks that use a cheap value copies of their own, so that nothing has to be kept for them."""
    for home in function.blocks():
        for value in [each for each in home.instructions if is_cheap(each)]:
            if any(block is not home for block, _ in users(function, value)):
                recompute(function, value)
                home.instructions = [each for each in home.instructions if each is not value]


def keep_in_memory(function: Function, value: Value, address: int) -> None:
    numbers = Numbers(function)
    place = Value(CONST, (), address)
    for block in function.blocks():
        if value in block.params:
            block.instructions.insert(0, numbers.new(block, "MSTORE", (place, value)))
        elif value in block.instructions:
            at = block.instructions.index(value) + 1
            while at < len(block.instructions) and block.instructions[at].op == "RESULT":
                at += 1
            block.instructions.insert(at, numbers.new(block, "MSTORE", (place, value)))
    _replace_uses(function, value, lambda block: numbers.new(block, "MLOAD", (place,)), place)


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
