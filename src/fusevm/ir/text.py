"""Dependency blocks as text, in the notation of the design notes."""

from __future__ import annotations

from collections.abc import Sequence

from fusevm.ir.block import DependencyBlock, Program
from fusevm.ir.copies import name_of
from fusevm.ir.names import TEXT_OF
from fusevm.ir.ordering import Operand, OrderedStep, Schedule, StackSlot, schedule
from fusevm.ir.values import CONST, PHI, SPILL, UNSPILL, Value


def name(value: Operand) -> str:
    if isinstance(value, StackSlot):
        return f"(Unspill {int(value)})"
    return f"#{value.number}" if value.op == CONST else f"${value.id}"


def _operation(value: Value, operands: Sequence[Operand]) -> str:
    words = [TEXT_OF[value.op] + "!" * value.raw, *map(name, operands)]
    if value.op in (UNSPILL, SPILL, PHI):
        words.append(str(value.number))
    return " ".join(words)


def step_text(step: OrderedStep) -> str:
    if step.slot is not None:
        return f"${step.value.id} = Unspill {step.slot}"
    return f"${step.value.id} = {_operation(step.value, step.operands)}"


def block_text(block: DependencyBlock, order: Schedule | None = None, facts: bool = False) -> str:
    order = order or schedule(block)
    lines = [f"dependency block {name_of(block.start)}:"]
    if facts:
        gas = " + ".join(map(str, block.sections))
        lines.append(f"// low {block.low}, high {block.high}, delta {block.delta}, gas {gas}")
    lines += [
        f"${value.id} = Phi {value.number}" for value in block.entry if value.op == PHI and value.block == block.start
    ]
    lines += [step_text(step) for step in order.steps]
    terminator = block.terminator
    words = [TEXT_OF[terminator.op], *map(name, order.operands)]
    if terminator.falls is not None:
        words.append(f"#{terminator.falls}" if terminator.op == "FALL" else f"else #{terminator.falls}")
    lines.append(" ".join(words))
    for edge, args in zip(terminator.edges, order.edges, strict=True):
        handed = ", ".join(f"{slot} = {name(value)}" for slot, value in args.items())
        lines.append(f"  -> {name_of(edge.target)} ({handed})")
    return "\n    ".join(lines) + "\n"


def program_text(program: Program, facts: bool = False) -> str:
    orders = [schedule(each, program.unseen) for each in program.blocks.values()]
    return "\n".join(block_text(order.block, order, facts) for order in orders)


def listing(block: DependencyBlock) -> str:
    """The instructions in the order of their creation, and the virtual stack (the top is to the right)."""
    everything = [*block.entry, *block.instructions, *block.spills]
    rows = [f"  {value.id}: {_operation(value, value.args)}" for value in everything]
    return "\n".join(["instrs:", *rows, "", f"vstack: [{', '.join(map(name, block.stack))}]"]) + "\n"
