"""Inlining: a call is replaced by a copy of the callee's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from fusevm.ir.fold.recorder import number_of, within
from fusevm.ir.functions import JUMP, LEAVE, Arc, DependencyBlock, End, Function, Unit
from fusevm.ir.values import CONST, PHI, Value


class FreshNumbers:
    """Allocates fresh numbers for the values and blocks of a function."""

    def __init__(self, function: Function) -> None:
        blocks = function.blocks()
        self.block = max(block.start for block in blocks) + 1
        self.value = 1 + max((value.id for block in blocks for value in _all_in(block)), default=-1)

    def new_block(self) -> DependencyBlock:
        self.block += 1
        return DependencyBlock(self.block - 1)

    def new(self, block: DependencyBlock, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        value = Value(op, args, number, self.value, block.start)
        self.value += 1
        return value

    def make(self, block: DependencyBlock, op: str, args: tuple[Value, ...], number: int = 0) -> Value:
        value = self.new(block, op, args, number)
        block.instructions.append(value)
        return value


def _all_in(block: DependencyBlock) -> Iterator[Value]:
    """All values, including symbols, which are operands but belong to no block."""
    yield from block.params
    yield from block.end.args
    for value in block.instructions:
        yield value
        yield from value.args
    for arc in block.end.arcs:
        yield from arc.args


def inline_calls(unit: Unit, function: Function, chosen: Mapping[str, Set[int]]) -> None:
    """Replaces the chosen calls of a function, and the chosen calls within the copies, by copies of their callees.

    `chosen` has the ids of these calls by calling function. Callees must not have changed since they were chosen: a
    caller is inlined into before its callees, so that every copy is made once.
    """
    numbers = FreshNumbers(function)
    replaced: dict[int, Value] = {}
    wanted = set(chosen[function.name])
    work = function.blocks()
    while work:
        block = work.pop()
        for at in range(len(block.instructions) - 1, -1, -1):  # backwards: instructions after a call move once
            call = block.instructions[at]
            if call.op == "CALLFN" and call.id in wanted:
                copies = _inline(unit, block, at, numbers, replaced)
                inner = chosen[unit.callee(call).name]
                for original, copy in copies.items():
                    work.append(copy)
                    pairs = zip(original.instructions, copy.instructions, strict=True)
                    wanted.update(new.id for old, new in pairs if old.op == "CALLFN" and old.id in inner)
    if replaced:
        _replace(function, replaced)


def _inline(
    unit: Unit, block: DependencyBlock, at: int, numbers: FreshNumbers, replaced: dict[int, Value]
) -> dict[DependencyBlock, DependencyBlock]:
    """Replaces one call; returns the callee's blocks and their copies."""
    call = block.instructions[at]
    callee = unit.callee(call)
    after = numbers.new_block()
    after.params = [numbers.new(after, PHI, (), number) for number in range(callee.results)]
    after.end = block.end
    for value in block.instructions[at + 1 :]:
        if value.op == "RESULT" and value.args[0] is call:
            replaced[value.id] = after.params[value.number]
        else:
            value.block = after.start
            after.instructions.append(value)
    entry, copies = _copied(callee, after, numbers, call.args)
    if number_of(call.where) is not None:  # a recorder is attached
        for copy in copies.values():
            for value in copy.instructions:
                value.where = within(value.where, call.where)
            copy.end.where = within(copy.end.where, call.where)
    del block.instructions[at:]
    block.end = End(JUMP, (), [Arc(entry)], where=call.where)
    return copies


def _replace(function: Function, new: dict[int, Value]) -> None:
    """Replaces uses of values, by id."""

    def resolved(value: Value) -> Value:
        while value.op != CONST and value.id in new:
            value = new[value.id]
        return value

    def swap(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([resolved(value) for value in values])

    for block in function.blocks():
        for value in block.instructions:
            value.args = swap(value.args)
        block.end.args = swap(block.end.args)
        for arc in block.end.arcs:
            arc.args = list(swap(tuple(arc.args)))


def _copied(
    callee: Function, after: DependencyBlock, numbers: FreshNumbers, args: tuple[Value, ...]
) -> tuple[DependencyBlock, dict[DependencyBlock, DependencyBlock]]:
    blocks = callee.blocks()
    made = {block: numbers.new_block() for block in blocks}
    values: dict[int, Value] = {}
    looped = any(target is callee.entry for block in blocks for target in block.targets)
    for block, copy in made.items():
        for param in block.params:
            if block is not callee.entry or looped:
                values[param.id] = numbers.new(copy, PHI, (), len(copy.params))
                copy.params.append(values[param.id])
    if not looped:
        for param, arg in zip(callee.params, args, strict=True):
            values[param.id] = arg

    def new(value: Value) -> Value:
        if value.op == CONST:
            return value
        if value.id not in values:  # a symbol, which belongs to no block
            values[value.id] = numbers.new(after, value.op, (), value.number)
        return values[value.id]

    for block, copy in made.items():
        for value in block.instructions:
            made_value = numbers.make(copy, value.op, tuple([new(arg) for arg in value.args]), value.number)
            made_value.where = value.where
            values[value.id] = made_value
    for block, copy in made.items():
        ended = tuple([new(arg) for arg in block.end.args])
        if block.end.op == LEAVE:
            copy.end = End(JUMP, (), [Arc(after, list(ended))], where=block.end.where)
        else:
            arcs = [Arc(made[arc.target], [new(arg) for arg in arc.args]) for arc in block.end.arcs]
            copy.end = End(block.end.op, ended, arcs, block.end.cases, block.end.where, block.end.places)
    if not looped:
        return made[callee.entry], made
    into = numbers.new_block()
    into.end = End(JUMP, (), [Arc(made[callee.entry], list(args))])
    return into, made
