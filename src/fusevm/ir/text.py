"""The IR as text, in the notation of the design notes: dependency blocks on their own, and functions of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.ir.functions import Arc, DependencyBlock, Function, Unit
from fusevm.ir.names import TEXT_OF
from fusevm.ir.ordering import BlockOrder, Operand, OrderedStep, StackSlot, left_words, schedule
from fusevm.ir.values import CONST, SPILL, UNSPILL, Value

_DECIMAL = 1 << 16  # literals from here on are hexadecimal


def name(value: Operand) -> str:
    if isinstance(value, StackSlot):
        return f"(Unspill {int(value)})"
    if value.op == CONST:
        return f"#{value.number}" if value.number < _DECIMAL else f"#{value.number:#x}"
    return f"${value.id}"


def _operation(value: Value, operands: Sequence[Operand]) -> str:
    words = [TEXT_OF[value.op] + "!" * value.prechecked, *map(name, operands)]
    if value.op in (UNSPILL, SPILL):
        words.append(str(value.number))
    return " ".join(words)


# -- a block on its own -----------------------------------------------------------------------------------------------


def step_text(step: OrderedStep) -> str:
    if step.slot is not None:
        return f"${step.value.id} = Unspill {step.slot}"
    return f"${step.value.id} = {_operation(step.value, step.operands)}"


def block_text(block: DependencyBlock, order: BlockOrder | None = None, facts: bool = False) -> str:
    order = order or schedule(block)
    lines = [f"dependency block {block.start}:"]
    if facts:
        gas = " + ".join(map(str, block.sections))
        lines.append(f"// low {-len(block.params)}, high {block.high}, delta {block.delta}, gas {gas}")
    lines += [step_text(step) for step in order.steps]
    words = [TEXT_OF[block.end.op], *map(name, order.operands)]
    words += [f"#{falls}" if block.end.op == "FALL" else f"else #{falls}" for falls in block.end.cases]
    lines.append(" ".join(words))
    return "\n    ".join(lines) + "\n"


def listing(block: DependencyBlock) -> str:
    """The instructions in the order of their creation, and the virtual stack (the top is to the right)."""
    rows = [f"  {value.id}: {_operation(value, value.args)}" for value in (*block.params, *block.instructions)]
    return "\n".join(["instrs:", *rows, "", f"vstack: [{_list(block.end.words)}]"]) + "\n"


# -- functions --------------------------------------------------------------------------------------------------------


class IrLine(NamedTuple):
    """A line of text, its source location, and the values that it uses."""

    text: str
    where: Source | None = None
    uses: tuple[Value, ...] = ()


def unit_text(unit: Unit, region: bool = False) -> str:
    return "\n".join(function_text(function, unit, region) for function in unit.functions.values())


def function_text(function: Function, unit: Unit, region: bool = False) -> str:
    return "\n".join([line.text for line in function_lines(function, unit, region)]) + "\n"


def function_lines(function: Function, unit: Unit, region: bool = False) -> Iterator[IrLine]:
    """`region`: the function unspills its parameters, and spills what it leaves where it is left."""
    title = function.name or "main"
    results = f" -> {function.results}" if function.results else "" if function.returns else " never returns"
    yield IrLine(f"function {title}({_list(function.params)}){results}", function.where)
    for block in function.blocks():
        unspilled = region and block is function.entry
        facts = f" // pc {block.pc:#x}, gas {block.gas}" if block.pc >= 0 else ""
        yield IrLine(f"  block {block.start}({'' if unspilled else _list(block.params)}):{facts}")
        for depth, param in enumerate(block.params if unspilled else (), 1):
            yield IrLine(f"    ${param.id} = Unspill {-depth}")
        for value in block.instructions:
            yield IrLine(f"    ${value.id} = {_instruction(value, unit)}", value.where, value.args)
        end, leaves = block.end, region and not block.end.arcs
        for slot, word in left_words(function.params, end.args) if leaves else ():
            yield IrLine(f"    Spill {name(word)} {slot}", end.where, (word,))
        handed = [arg for arc in end.arcs for arg in arc.args]
        yield IrLine(f"    {_end(block, () if leaves else end.args)}", end.where, (*end.args, *handed))


def _list(values: Iterable[Value]) -> str:
    return ", ".join(map(name, values))


def _instruction(value: Value, unit: Unit) -> str:
    if value.op == "CALLFN":
        return " ".join(["call", unit.names[value.number], *map(name, value.args)])
    if value.op == "RESULT":
        return f"result {value.number} of {name(value.args[0])}"
    if value.op in ("SYMBOL", "SETIMMUTABLE"):
        return " ".join([TEXT_OF[value.op], unit.symbols[value.number].name, *map(name, value.args)])
    return _operation(value, value.args)


def _end(block: DependencyBlock, args: Sequence[Value]) -> str:
    """The cases of a region's EXIT are program counters."""
    end = block.end
    op = TEXT_OF.get(end.op, end.op.capitalize())
    if not end.arcs:
        return " ".join([op, *map(hex, end.cases), *map(name, args)])
    cases = [*[f"{case:#x}: " for case in end.cases], *[""] * len(end.arcs)]
    edges = [prefix + _arc(arc) for prefix, arc in zip(cases, end.arcs, strict=False)]
    return " ".join([op, *map(name, args), ", ".join(edges)])


def _arc(arc: Arc) -> str:
    return f"{arc.target.start}({_list(arc.args)})"
