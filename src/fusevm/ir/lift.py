"""Lifts a basic block on its own: a virtual stack of values replaces the run-time stack."""

from __future__ import annotations

from fusevm.analysis.symbolic import actions_of, bounds_of
from fusevm.evm.bytecode import BasicBlock
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import GAS
from fusevm.ir.functions import DependencyBlock, End
from fusevm.ir.recovery.walk import Leaving, Lifter, walk
from fusevm.ir.recovery.words import Known, StackLimitReached, StackWord, WordStack
from fusevm.ir.values import TRAITS, Value


class BlockLifter(Lifter):
    """Lifts what the code says, without computing anything."""

    __slots__ = ()

    def computed(self, op: str, args: list[Known]) -> Known:
        return None


def lift_block(source: BasicBlock, fork: Fork = LATEST) -> DependencyBlock:
    """Every live-in word is unspilled, every word that the block leaves is spilled."""
    needs, rises = bounds_of(actions_of(source.instructions))
    block = DependencyBlock(source.start, high=rises)
    lifter = BlockLifter(fork, {}, {}, moves=False)
    lifter.builder.begin(block)
    lifter.builder.enter(needs)
    stack = WordStack(params=[StackWord(None, param) for param in block.params])
    stack.take(needs)
    try:
        leaving = walk(source, stack, lifter)
    except StackLimitReached:
        leaving = Leaving("INVALID")
    args = leaving.args if leaving.target is None else (leaving.target, *leaving.args)
    words = tuple(map(lifter.number, stack.words))
    falls = (source.end,) if leaving.op in ("JUMPI", "FALL") else ()
    block.end = End(leaving.op, tuple(map(lifter.number, args)), cases=falls, words=words)
    _charge(block, source, fork)
    return block


def _charge(block: DependencyBlock, source: BasicBlock, fork: Fork) -> None:
    """Divides the static gas among the block and its instructions that read the gas counter."""
    meter: DependencyBlock | Value = block
    observers = iter([value for value in block.instructions if TRAITS[value.op].observes])
    for instruction in source.instructions:
        if instruction.op is not None:
            meter.gas += instruction.op.gas_at(fork)
            if instruction.op.reads & GAS:
                meter = next(observers, meter)
