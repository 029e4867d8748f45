"""Basic blocks to dependency blocks: a virtual stack of values takes the place of the run-time one."""

from __future__ import annotations

from fusevm.evm import bytecode
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.block import Block, Terminator
from fusevm.ir.builder import Builder, NeverReached
from fusevm.ir.values import Value


def lift_block(source: bytecode.Block, fork: Fork = LATEST, builder: Builder | None = None) -> Block:
    """The block on its own: every word it needs is unspilled, every word it leaves is spilled."""
    builder = builder or Builder()
    block = shape_of(source, fork)
    builder.begin(block)
    builder.enter(-block.low)
    run(source, fork, builder)
    builder.finish()
    return block


def shape_of(source: bytecode.Block, fork: Fork) -> Block:
    """An empty dependency block that knows its lowest and highest stack point."""
    block = Block(source.start)
    height = 0
    for instruction in source.instructions:
        op = instruction.op
        block.opcodes += 1
        if op is None:
            break
        block.stack_opcodes += op.is_stack or op.name == "PC"
        block.low = min(block.low, height - op.pops)
        height += op.pushes - op.pops
        block.high = max(block.high, height)
    return block


def run(source: bytecode.Block, fork: Fork, builder: Builder) -> None:
    """Executes the block over values, every instruction but the stack's own through the builder."""
    try:
        _run(source, fork, builder)
    except NeverReached:
        builder.block.stack = ()
        builder.block.terminator = Terminator("INVALID")


def _run(source: bytecode.Block, fork: Fork, builder: Builder) -> None:
    block, last = builder.block, source.last
    stack: list[Value] = block.entry[::-1]
    for instruction in source.instructions:
        op = instruction.op
        if op is None:
            builder.end(Terminator("INVALID"))
            return
        builder.charge(op.gas_at(fork))
        if op.is_push:
            stack.append(builder.const(instruction.push or 0))
        elif op.is_dup:
            stack.append(stack[-op.copies])
        elif op.is_swap:
            one, other = op.swaps
            stack[-one], stack[-other] = stack[-other], stack[-one]
        elif op.name == "POP":
            stack.pop()
        elif op.name == "PC":
            stack.append(builder.const(instruction.pc))
        elif op.name != "JUMPDEST":
            args = tuple([stack.pop() for _ in range(op.pops)])
            if instruction.ends_block and instruction is not last:
                continue  # a JUMP to what is joined on behind it
            if instruction.ends_block:
                block.stack = tuple(stack)
                builder.end(Terminator(op.name, args, instruction.next_pc if op.name == "JUMPI" else None))
                return
            value = builder.emit(op.name, args, instruction.pc)
            if op.pushes:
                assert value is not None
                stack.append(value)
    block.stack = tuple(stack)
    builder.end(Terminator("FALL", (), source.end))
