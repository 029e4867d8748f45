"""Copies of functions, to undo a pass; and their shape, to see whether a pass changed anything."""

from __future__ import annotations

from dataclasses import replace

from fusevm.ir.functions import Arc, DependencyBlock, End, Function, Unit
from fusevm.ir.values import CONST, Value


def copied_unit(unit: Unit) -> Unit:
    """A unit with copies of the functions; append-only tables (names, symbols) are shared."""
    return replace(unit, functions={name: copied(function) for name, function in unit.functions.items()})


def copied(function: Function) -> Function:
    blocks = function.blocks()
    made = {block: DependencyBlock(block.start) for block in blocks}
    values: dict[int, Value] = {}
    for block, copy in made.items():
        copy.params = [_copy(value, values) for value in block.params]
        copy.instructions = [_copy(value, values) for value in block.instructions]

    def new(args: tuple[Value, ...] | list[Value]) -> tuple[Value, ...]:
        return tuple([values.get(id(arg), arg) for arg in args])  # literals and symbols belong to no block

    for block, copy in made.items():
        for value, twin in zip(block.instructions, copy.instructions, strict=True):
            twin.args = new(value.args)
        arcs = [Arc(made[arc.target], list(new(arc.args))) for arc in block.end.arcs]
        copy.end = End(block.end.op, new(block.end.args), arcs, block.end.cases, block.end.where, block.end.places)
    return replace(function, entry=made[function.entry])


def _copy(value: Value, values: dict[int, Value]) -> Value:
    if id(value) in values:  # a value that is pushed at each use may be in two blocks
        return values[id(value)]
    copy = Value(value.op, value.args, value.number, value.id, value.block)
    copy.prechecked, copy.keep, copy.uses, copy.where = value.prechecked, value.keep, value.uses, value.where
    values[id(value)] = copy
    return copy


def shape(function: Function) -> tuple[object, ...]:
    """The function up to renumbering of values and blocks."""
    blocks = function.blocks()
    place = {block: number for number, block in enumerate(blocks)}
    numbers: dict[int, int] = {}
    for block in blocks:
        for value in (*block.params, *block.instructions):
            numbers[id(value)] = len(numbers)

    def named(value: Value) -> tuple[object, ...]:
        if value.op == CONST or id(value) not in numbers:
            return value.op, value.number
        return (numbers[id(value)],)

    return tuple(
        (
            len(block.params),
            tuple((each.op, _number(each), *map(named, each.args)) for each in block.instructions),
            (block.end.op, block.end.cases, *map(named, block.end.args)),
            tuple((place[arc.target], *map(named, arc.args)) for arc in block.end.arcs),
        )
        for block in blocks
    )


def _number(value: Value) -> int:
    """The number of an instruction where that is part of its meaning, not only its pc."""
    own = ("CALLFN", "RESULT", "SYMBOL", "SETIMMUTABLE", "VERBATIM", "LITERAL")
    return value.number if value.op in own else 0
