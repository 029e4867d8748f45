"""Executes one basic block symbolically: the stack it leaves, and the target of its jump."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.bytecode import BasicBlock, Instruction
from fusevm.evm.forks import Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.ir.builder import Builder
from fusevm.ir.functions import SymbolKind, Unit
from fusevm.ir.recovery.words import (
    Computed,
    Known,
    Label,
    Number,
    Param,
    RecoveryFailed,
    Shifted,
    StackLimitReached,
    StackWord,
    WordStack,
)
from fusevm.ir.values import Value

_MASK = 0xFFFFFF  # bits that addresses are made of
_HIGHEST_SHIFT = 224


class Leaving(NamedTuple):
    """How a block ends: JUMP, JUMPI, FALL, or an instruction that ends the frame, with its operands."""

    op: str
    target: StackWord | None = None
    args: tuple[StackWord, ...] = ()


@dataclass(slots=True)
class Lifter:
    """Lifts words: it knows which PUSHes are code addresses or immutables, and which addresses are used as numbers."""

    fork: Fork
    labels: dict[int, int]  # the pc of a PUSH to the address
    immutables: dict[int, str]  # the pc of a PUSH32 to the name of the immutable
    builder: Builder = field(default_factory=Builder)
    unit: Unit = field(default_factory=Unit)
    is_main: bool = False
    moves: bool = True  # the code will be laid out again, so PC has no constant value
    escaped: set[int] = field(default_factory=set)  # PUSHes whose address is used as a number

    def number(self, word: StackWord) -> Value:
        """The word as an operand; a code address used like this escapes."""
        if isinstance(word.known, Label):
            self.escaped |= word.known.pushes
            return self.builder.const(word.known.target)
        if isinstance(word.known, Shifted):
            self.escaped |= word.known.label.pushes
            return self.builder.const(word.known.label.target << word.known.by)
        if isinstance(word.known, Number):
            return self.builder.const(word.known.number)
        assert word.value is not None
        return word.value

    def computed(self, op: str, args: list[Known]) -> Known:
        """What is known of a result: constant folding, and masks and shifts that preserve a code address."""
        match op, args:
            case ("AND", [Label() as label, Number(mask)]) | ("AND", [Number(mask), Label() as label]):
                return label if mask & _MASK == _MASK else None
            case "SHL", [Number(by), Label() as label] if 0 < by <= _HIGHEST_SHIFT:
                return Shifted(label, by)
            case "SHR", [Number(by), Shifted(label, shifted)] if by == shifted:
                return label
        numbers = [arg.number for arg in args if isinstance(arg, Number)]
        if args and len(numbers) == len(args) and op in INTEGER_MEANINGS and op != "EXP":
            return Number(INTEGER_MEANINGS[op](*numbers))
        return None

    def before(self, instruction: Instruction, stack: WordStack) -> None:
        """Hook: called before every instruction that is not stack manipulation."""

    def named(self, stack: WordStack) -> WordStack:
        """The stack with a placeholder for every word that has no value."""
        words = [word._replace(value=word.value or self.builder.make("UNSPILL")) for word in stack.words]
        return WordStack(stack.taken, words, stack.params, stack.peak)


def walk(block: BasicBlock, stack: WordStack, lifter: Lifter) -> Leaving:
    """Runs the block over the stack. New values get the block and the pc of their instruction as source location."""
    start, end = block.start, block.end
    for instruction in block.instructions:
        op = instruction.op
        if op is None:
            return Leaving("INVALID")
        if lifter.is_main and op.pops > len(stack.words):
            return Leaving("INVALID")  # the stack underflows
        if op.is_push:
            stack.push(_pushed(instruction.pc, instruction.push or 0, lifter))
        elif op.is_dup:
            stack.reach(op.pops)
            stack.push(stack.words[-op.pops])
        elif op.is_swap:
            stack.reach(op.pops)
            one, other = op.swaps
            stack.words[-one], stack.words[-other] = stack.words[-other], stack.words[-one]
        elif op.name == "PC":
            if lifter.moves:
                raise RecoveryFailed("PC reads the place of its own code", instruction.pc)
            stack.push(StackWord(Number(instruction.pc), lifter.builder.const(instruction.pc)))
        elif op.name not in ("POP", "JUMPDEST"):
            lifter.before(instruction, stack)
            lifter.builder.where = (start, end, instruction.pc)
            args = [stack.pop() for _ in range(op.pops)]
            if op.name in ("JUMP", "JUMPI"):
                return Leaving(op.name, args[0], tuple(args[1:]))
            if op.ends:
                return Leaving(op.name, None, tuple(args))
            made = operation(op.name, args, instruction.pc, lifter)
            if op.pushes:
                stack.push(made)
        elif op.name == "POP":
            stack.pop()
        if len(stack.words) > STACK_LIMIT or stack.taken > STACK_LIMIT:
            raise StackLimitReached(instruction.pc)
    lifter.builder.where = (start, end, block.last.pc)
    return Leaving("FALL")


def _pushed(pc: int, number: int, lifter: Lifter) -> StackWord:
    if pc in lifter.labels:
        return StackWord(Label(number, frozenset([pc])))
    if pc in lifter.immutables:
        symbol = lifter.unit.symbol(SymbolKind.IMMUTABLE, lifter.immutables[pc])
        return StackWord(None, lifter.builder.raw("SYMBOL", (), symbol))
    return StackWord(Number(number), lifter.builder.const(number))


def operation(op: str, args: list[StackWord], pc: int, lifter: Lifter) -> StackWord:
    known = lifter.computed(op, [arg.known for arg in args])
    if known is not None and not isinstance(known, Computed):
        return StackWord(known)
    return StackWord(known, lifter.builder.raw(op, tuple([lifter.number(arg) for arg in args]), pc))


def refine_by_condition(stack: WordStack, condition: StackWord, holds: bool) -> WordStack:
    """The stack on the edge where a condition holds, or does not: on one of the two, the tested word is zero.

    Likewise the word whose ISZERO it is, and so on: of a copy of the condition no less is known if it is an ISZERO.
    """
    after = stack.copy()
    value = condition.value
    while value is not None:
        if not holds:
            after.words = [StackWord(Number(0)) if _is(word, value) else word for word in after.words]
        value, holds = (value.args[0] if value.op == "ISZERO" else None), not holds
    return after


def _is(word: StackWord, value: Value) -> bool:
    return word.value is value and (word.known is None or isinstance(word.known, Param | Computed))
