"""Compares the gas of single-block loops before and after: here every instruction counts, whatever the estimates."""

from __future__ import annotations

from fusevm.codegen.blocks import StackBlock, StackProgram, Terminator
from fusevm.codegen.measure import gas_of_code
from fusevm.evm.assembler import Source
from fusevm.evm.bytecode import BasicBlock
from fusevm.ir.functions import Unit

_BRANCH_GAS = 1 + 3 + 10  # JUMPDEST, PUSH, JUMPI


def loop_gas_increase(program: StackProgram, unit: Unit, blocks: list[BasicBlock], runs: int) -> int | None:
    """How much more gas an iteration of a single-block loop costs than before; None if none costs more.

    Compares loops that are one block in both versions.
    """
    old: dict[Source, int] = {(block.start, block.end): _old_gas(block, unit) for block in blocks if _goes_back(block)}
    for block in program.blocks.values():
        before = old.get(block.where[:2]) if block.where is not None else None
        if block.end is Terminator.BRANCH and block.label in block.targets and before is not None:
            more = _gas(block, unit, runs) - before
            if more > 0:
                return more
    return None


def _goes_back(block: BasicBlock) -> bool:
    *_, target, last = (None, *block.instructions)
    return last.name == "JUMPI" and target is not None and target.push == block.start


def _old_gas(block: BasicBlock, unit: Unit) -> int:
    return sum(each.op.gas_at(unit.fork) for each in block.instructions if each.op is not None)


def _gas(block: StackBlock, unit: Unit, runs: int) -> int:
    return _BRANCH_GAS + sum(gas_of_code(code, unit, runs * block.weight) for code in block.code)
