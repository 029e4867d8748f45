"""Functions as text: one block after another, each with its parameters, instructions and successors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.ir.functions import Arc, Function, GraphBlock, Unit
from fusevm.ir.values import CONST, Value


class Line(NamedTuple):
    """A line of text, its source location, and the values that it uses."""

    text: str
    where: Source | None = None
    uses: tuple[Value, ...] = ()


def unit_text(unit: Unit) -> str:
    return "\n".join(function_text(function, unit) for function in unit.functions.values())


def function_text(function: Function, unit: Unit) -> str:
    return "\n".join([line.text for line in function_lines(function, unit)]) + "\n"


def function_lines(function: Function, unit: Unit) -> Iterator[Line]:
    name = function.name or "main"
    results = f" -> {function.results}" if function.results else "" if function.returns else " never returns"
    yield Line(f"function {name}({_list(function.params)}){results}", function.where)
    for block in function.blocks():
        yield Line(f"  block {block.start}({_list(block.params)}):")
        for value in block.instructions:
            yield Line(f"    {_instruction(value, unit)}", value.where, value.args)
        handed = [arg for arc in block.end.arcs for arg in arc.args]
        yield Line(f"    {_end(block)}", block.end.where, (*block.end.args, *handed))


def _name(value: Value) -> str:
    if value.op == CONST:
        return hex(value.number) if value.number > 9 else str(value.number)
    return f"${value.id}"


def _list(values: list[Value] | tuple[Value, ...]) -> str:
    return ", ".join(_name(value) for value in values)


def _instruction(value: Value, unit: Unit) -> str:
    what = value.op
    if value.op == "CALLFN":
        what = f"call {unit.names[value.number]}"
    elif value.op == "RESULT":
        what = f"result {value.number} of"
    elif value.op in ("SYMBOL", "SETIMMUTABLE"):
        what = f"{value.op} {unit.symbols[value.number].name}"
    return f"${value.id} = {what} {_list(value.args)}".rstrip()


def _arc(arc: Arc) -> str:
    return f"{arc.target.start}({_list(arc.args)})"


def _end(block: GraphBlock) -> str:
    end = block.end
    cases = [f"{case:#x}: " for case in end.cases]
    if not end.arcs:  # the cases of a region's EXIT are program counters
        return " ".join(each for each in (end.op, *[case[:-2] for case in cases], _list(end.args)) if each)
    ways = [prefix + _arc(arc) for prefix, arc in zip([*cases, *[""] * len(end.arcs)], end.arcs, strict=False)]
    return " ".join(each for each in (end.op, _list(end.args), ", ".join(ways)) if each)
