"""PUSH, POP, DUP, SWAP, and whatever else the opcode table says arranges the stack."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import OPCODES_TABLE, Opcode
from fusevm.reference.frame import Frame


def _pop(frame: Frame) -> None:
    frame.stack.pop()


def _push0(frame: Frame) -> None:
    frame.stack.append(0)


def _push(size: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        start = frame.pc
        frame.pc = end = start + size
        frame.stack.append(int.from_bytes(frame.code[start:end], "big"))

    return run


def _dup(depth: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        stack.append(stack[-depth])

    return run


def _swap(one: int, other: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        stack[-one], stack[-other] = stack[-other], stack[-one]

    return run


def _by_immediate(variants: tuple[Opcode | None, ...]) -> Callable[[Frame], None]:
    """The byte after the opcode says which words it arranges, and so how many there must be."""
    instructions = [None if op is None else _arranging(op) for op in variants]

    def run(frame: Frame) -> None:
        byte = frame.code[frame.pc]
        op, instruction = variants[byte], instructions[byte]
        if op is None or instruction is None:
            raise ExceptionalHalt(HaltReason.INVALID_OPCODE, f"immediate 0x{byte:02x}")
        height = len(frame.stack)
        if height < op.pops:
            raise ExceptionalHalt(HaltReason.STACK_UNDERFLOW, f"{op.pops} words needed, {height} there")
        if height + op.pushes - op.pops > STACK_LIMIT:
            raise ExceptionalHalt(HaltReason.STACK_OVERFLOW, f"{height} words are there")
        frame.pc += 1
        instruction(frame)

    return run


def _arranging(op: Opcode) -> Callable[[Frame], None]:
    if op.variants and not (op.is_dup or op.is_swap):
        return _by_immediate(op.variants)
    if op.is_push:
        return _push(op.immediate) if op.immediate else _push0
    if op.is_dup:
        return _dup(op.copies)
    return _swap(*op.swaps) if op.is_swap else _pop


INSTRUCTIONS = {op.name: _arranging(op) for op in OPCODES_TABLE if op.is_stack}
