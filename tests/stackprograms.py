"""Random programs of stack code, and what they do: for passes that must not change it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from fusevm.codegen.blocks import LABEL, PUSH, Code, StackBlock, StackProgram, Terminator
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS

WORDS = 3  # that every block of the main code finds on the stack
_STEPS, _EVENTS = 300, 60
_TWO = ("ADD", "SUB", "MUL", "AND", "OR", "XOR", "LT", "GT", "SLT", "SGT", "EQ")
_NUMBERS = (0, 1, 2, 3, 5, 255, 256, 2**255, 2**256 - 1)


@dataclass(slots=True)
class Ran:
    """What could be seen of a run: stores, and how it ended (None: not within the steps)."""

    events: list[tuple[int, int]] = field(default_factory=list)
    end: tuple[object, ...] | None = None

    def agrees_with(self, other: Ran) -> bool:
        if self.end is not None and other.end is not None:
            return self == other
        common = min(len(self.events), len(other.events))
        return self.events[:common] == other.events[:common]


def run_stack_code(code: list[Code], stack: list[int], ran: Ran) -> None:
    for op, number in code:
        if op in (PUSH, LABEL):
            stack.append(number)
        elif op.startswith("DUP"):
            stack.append(stack[-int(op[3:])])
        elif op.startswith("SWAP"):
            depth = int(op[4:])
            stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]
        elif op == "POP":
            stack.pop()
        elif op == "CALLER":
            stack.append(0xCA)
        elif op == "SSTORE":
            ran.events.append((stack.pop(), stack.pop()))
        elif op in INTEGER_MEANINGS:
            taken = [stack.pop() for _ in range(BY_NAME[op].pops)]
            stack.append(INTEGER_MEANINGS[op](*taken))
        else:
            taken = [stack.pop() for _ in range(BY_NAME[op].pops)]
            ran.end = (op, *taken)


def run_program(program: StackProgram) -> Ran:
    ran, stack, label = Ran(), [], 0
    for _ in range(_STEPS):
        block = program.blocks[label]
        run_stack_code(block.code, stack, ran)
        if block.end is Terminator.HALT or len(ran.events) > _EVENTS:
            break
        if block.end is Terminator.BRANCH:
            label = block.targets[0 if stack.pop() else 1]
        elif block.end is Terminator.RETURN:
            label = stack.pop()
        else:
            label = block.targets[0]
    return ran


def random_stack_program(seed: int) -> StackProgram:
    """Some blocks with the same words on the stack, functions that find a label above them, and alike ends."""
    random = Random(seed)
    program = StackProgram()
    main = [program.new(random.choice((0.01, 1.0, 8.0))) for _ in range(random.randrange(3, 14))]
    functions = [program.new(random.choice((0.1, 2.0))) for _ in range(random.randrange(3))]
    main[0].code = [Code(PUSH, random.choice(_NUMBERS)) for _ in range(WORDS)]
    phrases = [_phrase(random) for _ in range(4)]  # that several blocks have
    for block in main:
        for _ in range(random.randrange(4)):
            block.code += random.choice(phrases) if random.randrange(2) else _phrase(random)
        _end(random, block, main, functions)
    for block in random.sample(main[1:], random.randrange(len(main))):
        twin = random.choice(main[1:])
        block.end, block.targets, block.code = twin.end, twin.targets, list(twin.code)
    for block in functions:
        for _ in range(random.randrange(3)):
            block.code += [Code("SWAP1"), Code("DUP2"), Code("POP"), Code(PUSH, 7), Code("ADD"), Code("SWAP1")]
        block.end = Terminator.RETURN
    program.drop_unreached()
    return program


def _phrase(random: Random) -> list[Code]:
    """Leaves the stack as high as it was."""
    kind = random.randrange(7)
    number = Code(PUSH, random.choice(_NUMBERS))
    if kind == 0:
        return [Code(f"DUP{random.randrange(1, WORDS + 1)}"), Code(PUSH, random.randrange(4)), Code("SSTORE")]
    if kind == 1:
        return [number, Code(random.choice(_TWO))]
    if kind == 2:
        return [Code(f"SWAP{random.randrange(1, WORDS)}")]
    if kind == 3:
        return [Code("DUP2"), Code(random.choice(_TWO))]
    if kind == 4:
        return [Code("SWAP1"), Code(random.choice(_TWO)), Code(random.choice(("CALLER", "DUP1")))]
    if kind == 5:
        return [Code("ISZERO")] * random.randrange(1, 4)
    return [number, Code("POP"), Code("SWAP1"), Code("SWAP1")]


def _end(random: Random, block: StackBlock, main: list[StackBlock], functions: list[StackBlock]) -> None:
    kind = random.randrange(10)
    if kind < 2:
        block.end = Terminator.HALT
        block.code += random.choice((
            [Code("STOP")], [Code("INVALID")], [Code(PUSH), Code(PUSH), Code("REVERT")],
            [Code("DUP1"), Code(PUSH), Code("SSTORE"), Code("STOP")],
        ))  # fmt: skip
    elif kind < 5:
        block.end, block.targets = Terminator.JUMP, (random.choice(main[1:]).label,)
    elif kind < 9 or not functions:
        block.code += random.choice(_CONDITIONS)(random)
        block.end, block.targets = Terminator.BRANCH, tuple([random.choice(main[1:]).label for _ in range(2)])
    else:
        block.code.append(Code(LABEL, random.choice(main[1:]).label))
        block.end, block.targets = Terminator.CALL, (random.choice(functions).label,)


_CONDITIONS: tuple[Callable[[Random], list[Code]], ...] = (
    lambda random: [Code("DUP1")],
    lambda random: [Code("DUP1"), Code("ISZERO")],
    lambda random: [Code("DUP2"), Code("DUP2"), Code(random.choice(_TWO))],
    lambda random: [Code("DUP1"), Code(PUSH, random.choice(_NUMBERS)), Code(random.choice(("LT", "GT", "EQ", "SLT")))],
    lambda random: [Code(PUSH, random.choice(_NUMBERS)), Code("DUP2"), Code(random.choice(("LT", "GT", "SUB", "XOR")))],
    lambda random: [Code(PUSH, random.choice(_NUMBERS)), Code("CALLER"), Code(random.choice(("LT", "GT")))],
)


def copied(program: StackProgram) -> StackProgram:
    return deepcopy(program)
