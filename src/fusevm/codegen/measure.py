"""The static measure of stack code: its bytes, and the gas of a run with blocks weighted by estimated frequency."""

from __future__ import annotations

from typing import NamedTuple

from fusevm.codegen.blocks import LABEL, PUSH, SETIMMUTABLE, SYMBOL, VERBATIM, Code, StackProgram, Terminator
from fusevm.codegen.constants import DEPOSIT, MAX_WEIGHT, gas_of, pushed
from fusevm.codegen.weights import undamped
from fusevm.evm.opcodes import BY_NAME, LOGS, OPCODES_TABLE
from fusevm.ir.functions import Unit

LABEL_BYTES, JUMP_BYTES = 3, 4  # of a label that is pushed, and with its jump
JUMP_GAS, BRANCH_GAS = 3 + 8, 3 + 10
_PUSHES = frozenset({LABEL, SYMBOL, SETIMMUTABLE})
_PAID_ANYWAY = frozenset(op.name for op in OPCODES_TABLE if op.calls or op.writes & LOGS)


class StaticCost(NamedTuple):
    bytes: int
    gas: float

    def over(self, runs: int) -> float:
        """Of deployment and this many runs, in gas."""
        return DEPOSIT * self.bytes + self.gas * runs


def static_cost(program: StackProgram, unit: Unit, runs: int) -> StaticCost:
    """Logs, calls and creations do not count: no pass changes what they cost."""
    following = dict(zip(program.order, program.order[1:], strict=False))
    size, gas = 0, 0.0
    for label in program.order:
        block = program.blocks[label]
        bytes_, once = 1, 1  # the JUMPDEST
        for code in block.code:
            bytes_ += size_of(code, unit, runs * min(block.weight, MAX_WEIGHT))
            if code.op not in _PAID_ANYWAY:
                once += gas_of_code(code, unit, runs * min(block.weight, MAX_WEIGHT))
        if block.end is Terminator.RETURN:
            bytes_, once = bytes_ + 1, once + 8
        elif block.end is Terminator.BRANCH:
            bytes_, once = bytes_ + JUMP_BYTES, once + BRANCH_GAS
        if block.needs_jump(following.get(label)):
            bytes_, once = bytes_ + JUMP_BYTES, once + JUMP_GAS
        size += bytes_
        gas += undamped(block.weight) * once
    return StaticCost(size, gas)


def size_of(code: Code, unit: Unit, runs: float) -> int:
    if code.op == PUSH:
        return len(pushed(code.number, unit, runs))
    if code.op == VERBATIM:
        return len(unit.verbatims[code.number].data)
    return LABEL_BYTES if code.op in _PUSHES else 1


def gas_of_code(code: Code, unit: Unit, runs: float) -> int:
    """The static gas of one instruction; what `verbatim` costs is not known."""
    if code.op == PUSH:
        return gas_of(pushed(code.number, unit, runs))
    return 3 if code.op in _PUSHES or code.op == VERBATIM else BY_NAME[code.op].gas_at(unit.fork)
