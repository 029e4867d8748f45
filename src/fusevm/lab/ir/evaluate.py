"""Interprets dependency blocks over Python integers, before or after folding, without a backend.

Word operations use the shared meanings; effects are executed by the reference tier's instructions. Scheduled blocks run
step by step over an explicit run-time stack, and the invariants of the schedule and the guards are checked: a reloaded
word must equal the value it replaces, an unchecked access must be within memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from fusevm.evm.gas import exponent_cost
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.keccak import keccak256
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.ir.functions import CONTINUES, DependencyBlock
from fusevm.ir.ordering import BlockOrder, Operand, OrderedStep, StackSlot, schedule
from fusevm.ir.values import CONST, SPILL, TRAITS, Value
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import INSTRUCTIONS, table_of
from fusevm.reference.interpreter import run
from fusevm.reference.trampoline import drive, resume

_PADDING = STACK_LIMIT  # below the bottom: for parameters deeper than the actual stack, whose words are never used


class BrokenPromise(AssertionError):
    """The schedule or a fold broke an invariant: a bug in fusevm, not in the program."""


@dataclass(slots=True)
class Ending:
    """How a block ended: the pc to continue at, or None if the frame has ended."""

    target: int | None
    jumped: bool = False


class Operations:
    """What instructions do to a frame and its registers."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.registers: dict[int, int] = {}
        self.metered = True

    def set(self, value: Value, word: int) -> None:
        self.registers[value.id] = word

    def charge(self, gas: int) -> None:
        if self.metered:
            self.frame.charge(gas)

    def operate(self, value: Value, words: list[int]) -> Frame | None:
        """Executes an instruction. If it calls, returns the frame to run first, whose result is then on its stack."""
        meaning = INTEGER_MEANINGS.get(value.op)
        if meaning is not None:
            if value.op == "EXP" and not value.prechecked:
                self.charge_exponent(words[1])
            self.set(value, meaning(*words))
        elif value.op in GUARDS:
            GUARDS[value.op](self, words)
        elif value.prechecked and value.op in RAW:
            result = RAW[value.op](self, words)
            if result is not None:
                self.set(value, result)
        elif value.prechecked:
            self.unpriced(value, words)
        else:
            return self.refer(value, words)
        return None

    def refer(self, value: Value, words: list[int]) -> Frame | None:
        """Executes it on the reference tier."""
        frame = self.frame
        frame.stack[:] = reversed(words)
        callee = INSTRUCTIONS[value.op](frame)
        if callee is None and frame.stack:
            self.set(value, frame.stack.pop())
        return callee

    def unpriced(self, value: Value, words: list[int]) -> None:
        """A copy or a log whose dynamic gas was charged with its section: what the reference tier charges is undone."""
        gas, size = self.frame.gas, len(self.frame.memory)
        self.frame.gas = 1 << 64
        try:
            self.refer(value, words)
        finally:
            self.frame.gas = gas
        if len(self.frame.memory) != size:
            raise BrokenPromise(f"{value!r} grew memory without a check")

    def charge_exponent(self, exponent: int) -> None:
        self.charge(exponent_cost(self.frame.context.rules, exponent.bit_length()))

    def inside(self, offset: int, size: int) -> bytearray:
        if size and offset + size > len(self.frame.memory):
            raise BrokenPromise(f"{size} bytes at {offset} are outside memory of {len(self.frame.memory)}")
        return self.frame.memory


class Machine(Operations):
    """A frame with its run-time stack and its registers."""

    def __init__(self, frame: Frame, stack: list[int] | None = None) -> None:
        super().__init__(frame)
        self.words = [0] * (2 * _PADDING + STACK_LIMIT)
        self.top = _PADDING  # the index of the first free word
        for word in stack or ():
            self.words[self.top] = word
            self.top += 1
        self.fresh: set[int] = set()  # registers set by the current block

    @property
    def height(self) -> int:
        return self.top - _PADDING

    def stack(self) -> list[int]:
        return self.words[_PADDING : self.top]

    def read(self, operand: Operand) -> int:
        if isinstance(operand, StackSlot):
            return self.words[self.top + operand]
        return operand.number if operand.op == CONST else self.registers[operand.id]

    def set(self, value: Value, word: int) -> None:
        super().set(value, word)
        self.fresh.add(value.id)

    # -- a block ----------------------------------------------------------------------------------------------------

    def run(self, order: BlockOrder) -> Generator[Frame, None, Ending]:
        block = order.block
        self.fresh.clear()
        if self.height < len(block.params):
            raise ExceptionalHalt(HaltReason.STACK_UNDERFLOW)
        if self.height + block.high > STACK_LIMIT:
            raise ExceptionalHalt(HaltReason.STACK_OVERFLOW)
        self.charge(block.gas)
        for step in order.steps:
            callee = self.step(step)
            if callee is not None:
                yield callee
                self.set(step.value, self.frame.stack.pop())
            if TRAITS[step.value.op].observes and step.slot is None:
                self.charge(step.value.gas)
        return self.end(order)

    def step(self, step: OrderedStep) -> Frame | None:
        """Executes the step. If it calls, returns the frame to run first, whose result is then on the frame's stack."""
        value = step.value
        if step.slot is not None:
            word = self.words[self.top + step.slot]
            if value.id in self.fresh and self.registers[value.id] != word:
                raise BrokenPromise(f"{value!r} is no longer in slot {step.slot}")
            self.set(value, word)
            return None
        words = [self.read(operand) for operand in step.operands]
        if value.op == SPILL:
            self.words[self.top + value.number] = words[0]
            return None
        return self.operate(value, words)

    # -- its end ----------------------------------------------------------------------------------------------------

    def end(self, order: BlockOrder) -> Ending:
        end, frame = order.block.end, self.frame
        words = [self.read(operand) for operand in order.operands]
        if end.op == "JUMP" or (end.op == "JUMPI" and words[1]):
            return Ending(words[0], jumped=True)
        if end.op in CONTINUES:
            return Ending(end.cases[0])
        if end.op == "INVALID":
            raise ExceptionalHalt(HaltReason.INVALID_OPCODE)
        frame.stack[:] = reversed(words)
        INSTRUCTIONS[end.op](frame)
        return Ending(None)


def _reach(machine: Operations, words: list[int]) -> None:
    machine.frame.expand(words[0], words[1])


def _expgas(machine: Operations, words: list[int]) -> None:
    machine.charge_exponent(words[0])


GUARDS = {"REACH": _reach, "EXPGAS": _expgas}


def _mload(machine: Operations, words: list[int]) -> int:
    return int.from_bytes(machine.inside(words[0], 32)[words[0] : words[0] + 32], "big")


def _mstore(machine: Operations, words: list[int]) -> None:
    machine.inside(words[0], 32)[words[0] : words[0] + 32] = words[1].to_bytes(32, "big")


def _mstore8(machine: Operations, words: list[int]) -> None:
    machine.inside(words[0], 1)[words[0]] = words[1] & 0xFF


def _keccak256(machine: Operations, words: list[int]) -> int:
    offset, size = words
    return int.from_bytes(
        keccak256(bytes(machine.inside(offset, size)[offset : offset + size]) if size else b""), "big"
    )


RAW: dict[str, Callable[[Operations, list[int]], int | None]] = {
    "MLOAD": _mload,
    "MSTORE": _mstore,
    "MSTORE8": _mstore8,
    "KECCAK256": _keccak256,
}


# -- blocks and programs ------------------------------------------------------------------------------------------


def run_block(
    block: DependencyBlock, frame: Frame, stack: list[int], order: BlockOrder | None = None, metered: bool = True
) -> tuple[Ending, list[int]]:
    """Runs one block that was lifted on its own; returns how it ended and the stack it leaves."""
    machine = Machine(frame, stack)
    machine.metered = metered
    running = machine.run(order or schedule(block))
    while True:
        try:
            callee = next(running)
        except StopIteration as stopped:
            ending: Ending = stopped.value
            break
        call(frame, callee)
    if ending.target is None:
        return ending, []
    machine.top += block.delta
    return ending, machine.stack()


def call(frame: Frame, callee: Frame) -> None:
    """Runs a callee on the reference tier and returns its result to the calling frame."""
    table = table_of(frame.context.fork)
    drive(callee, lambda each: run(each, table))
    resume(frame, callee)
