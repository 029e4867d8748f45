"""What each opcode does, one file per family. Every instruction reads in the same order: stack, gas, operation.

So whatever else is wrong with it, an instruction that cannot be paid for is out of gas, as in the specification.

The interpreter has already charged the static gas, checked the stack's bounds and moved the program counter past the
opcode. An instruction returns None to continue, its own frame to end it, or a new frame to run first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, NoReturn

from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import opcodes_of
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import arithmetic as words
from fusevm.reference.instructions import calls, control, environment, memory, stack, storage

Instruction = Callable[[Frame], Frame | None]

INSTRUCTIONS: dict[str, Instruction] = {
    **words.INSTRUCTIONS,
    **environment.INSTRUCTIONS,
    **memory.INSTRUCTIONS,
    **storage.INSTRUCTIONS,
    **control.INSTRUCTIONS,
    **stack.INSTRUCTIONS,
    **calls.INSTRUCTIONS,
}


class InstructionEntry(NamedTuple):
    instruction: Instruction
    gas: int  # the static part
    needs: int  # words the stack must hold
    room: int  # words it may hold at most before


def refuse(frame: Frame, gas: int, needs: int) -> NoReturn:
    """Says why an instruction cannot begin: too little gas, or the stack too low or too high."""
    height = len(frame.stack)
    if height < needs:
        raise ExceptionalHalt(HaltReason.STACK_UNDERFLOW, f"{needs} words needed, {height} there")
    if gas > frame.gas:
        raise ExceptionalHalt(HaltReason.OUT_OF_GAS, f"{gas} needed, {frame.gas} left")
    raise ExceptionalHalt(HaltReason.STACK_OVERFLOW, f"{height} words are there")


def _invalid(frame: Frame) -> Frame | None:
    byte = frame.code[frame.pc - 1]
    raise ExceptionalHalt(HaltReason.INVALID_OPCODE, f"0x{byte:02x}")


@cache
def table_of(fork: Fork) -> tuple[InstructionEntry, ...]:
    """256 entries, one per byte."""
    invalid = InstructionEntry(_invalid, 0, 0, STACK_LIMIT)
    return tuple(
        InstructionEntry(INSTRUCTIONS[op.name], op.gas_at(fork), op.pops, STACK_LIMIT - (op.pushes - op.pops))
        if op is not None and op.name != "INVALID"
        else invalid
        for op in opcodes_of(fork)
    )
