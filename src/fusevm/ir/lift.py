"""Lifts basic blocks to dependency blocks: a virtual stack of values replaces the run-time stack."""

from __future__ import annotations

from functools import cache
from itertools import accumulate

from fusevm.analysis.symbolic import OPERATES, SymbolicStack, actions_of, bounds_of, steps_of
from fusevm.evm import bytecode
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME, opcodes_of
from fusevm.ir.block import DependencyBlock, Terminator
from fusevm.ir.builder import Builder, NeverReached
from fusevm.ir.values import Value

PC = BY_NAME["PC"].byte


def lift_block(source: bytecode.BasicBlock, fork: Fork = LATEST, builder: Builder | None = None) -> DependencyBlock:
    """Lifts one block on its own: every live-in word is unspilled, every word it leaves is spilled."""
    builder = builder or Builder()
    block = shape_of(source)
    builder.begin(block)
    builder.enter(-block.low)
    run(source, fork, builder)
    builder.finish()
    return block


def shape_of(source: bytecode.BasicBlock) -> DependencyBlock:
    """An empty dependency block with the block's lowest and highest stack slot."""
    block = DependencyBlock(source.start)
    actions = actions_of(source.instructions)
    block.opcodes = len(actions)
    block.stack_opcodes = len([action for action in actions if action.kind != OPERATES])
    block.stack_opcodes += len([each for each in source.instructions if each.byte == PC])
    needs, rises = bounds_of(actions)
    block.low, block.high = -needs, rises
    return block


def run(source: bytecode.BasicBlock, fork: Fork, builder: Builder) -> None:
    """Executes the block symbolically: every instruction except stack manipulation goes through the builder."""
    try:
        _run(source, fork, builder)
    except NeverReached:
        builder.block.stack = ()
        builder.block.terminator = Terminator("INVALID")


def _run(source: bytecode.BasicBlock, fork: Fork, builder: Builder) -> None:
    block, last = builder.block, source.last
    stack: SymbolicStack[Value] = SymbolicStack(
        lambda depth: block.entry[depth - 1], builder.const, len(block.entry), reversed(block.entry)
    )
    prices = _prices(fork)
    gas = list(accumulate([prices[each.byte] if each.op else 0 for each in source.instructions]))
    charged = 0
    tags = zip(source.instructions, gas, strict=True)
    for (instruction, paid), operands in stack.run(steps_of(source.instructions, tags)):
        builder.charge(paid - charged)  # its own static gas, and that of the stack manipulation before it
        charged = paid
        op = instruction.op
        if op is None:
            builder.end(Terminator("INVALID"))
            return
        if op.name == "PC":
            stack.push(builder.const(instruction.pc))
        elif op.name != "JUMPDEST":
            args = tuple(operands)
            if op.ends or op.name == "JUMPI":
                if instruction is not last:
                    continue  # a JUMP to the block that was merged after it
                block.stack = tuple(stack.words)
                builder.end(Terminator(op.name, args, instruction.next_pc if op.name == "JUMPI" else None))
                return
            value = builder.emit(op.name, args, instruction.pc)
            if op.pushes:
                assert value is not None
                stack.push(value)
    builder.charge(gas[-1] - charged)
    block.stack = tuple(stack.words)
    builder.end(Terminator("FALL", (), source.end))


@cache
def _prices(fork: Fork) -> tuple[int, ...]:
    """The static gas of each byte; 0 if it is not an opcode of the fork."""
    return tuple(op.gas_at(fork) if op else 0 for op in opcodes_of(fork))
