"""The virtual stack every analysis runs code over, against a plain stack of integers."""

from __future__ import annotations

import random

import pytest

from fusevm.analysis.symbolic import ACTIONS, SymbolicStack, actions_of, bounds_of, steps_of
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import Instruction, decode
from fusevm.evm.opcodes import Opcode, arranged_by_immediate, copying, swapping
from fusevm.evm.words import INTEGER_MEANINGS

SEEDS = range(200)
DEPTH = 700  # words on the plain stack, more than any program here looks at
ARRANGING = ["POP", "PC", *(f"DUP{n}" for n in range(1, 17)), *(f"SWAP{n}" for n in range(1, 17))]
PURE = ["ADD", "SUB", "MUL", "ISZERO", "ADDMOD", "LT", "NOT"]

Term = int | tuple["int | str | Term", ...]


def random_code(seed: int) -> list[Instruction]:
    dice = random.Random(seed)
    words = [f"PUSH {dice.getrandbits(dice.choice((1, 8, 256)))}" for _ in range(20)]
    return decode(assemble(" ".join(dice.choice([*words, *ARRANGING, *PURE]) for _ in range(dice.randrange(40)))))


def plainly(code: list[Instruction], stack: list[int]) -> tuple[list[int], int, int]:
    """The stack the code leaves, how deep it looked below the entry's top, and how high it rose above it."""
    entry, stack = len(stack), list(stack)
    deepest = highest = 0
    for instruction in code:
        op = instruction.op
        assert op is not None
        deepest = max(deepest, op.pops - (len(stack) - entry))
        if op.is_push:
            stack.append(instruction.push or 0)
        elif op.is_dup:
            stack.append(stack[-op.pops])
        elif op.is_swap:
            stack[-1], stack[-op.pops] = stack[-op.pops], stack[-1]
        elif op.name == "PC":
            stack.append(instruction.pc)
        elif op.name == "POP":
            stack.pop()
        else:
            stack.append(INTEGER_MEANINGS[op.name](*[stack.pop() for _ in range(op.pops)]))
        highest = max(highest, len(stack) - entry)
    return stack, deepest, highest


def symbolically(code: list[Instruction]) -> SymbolicStack[Term]:
    stack: SymbolicStack[Term] = SymbolicStack(lambda depth: ("slot", depth), int)
    for instruction, operands in stack.run(steps_of(code, code)):
        stack.push(instruction.pc if instruction.name == "PC" else (instruction.name, *operands))
    return stack


def value_of(term: Term, entry: list[int]) -> int:
    if isinstance(term, int):
        return term
    name, *operands = term
    if name == "slot":
        depth = operands[0]
        assert isinstance(depth, int)
        return entry[-depth]
    return INTEGER_MEANINGS[str(name)](*[value_of(each, entry) for each in operands])  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
def test_symbols_stand_for_what_a_plain_stack_holds(seed: int) -> None:
    dice = random.Random(seed)
    code, entry = random_code(seed), [dice.getrandbits(256) for _ in range(DEPTH)]
    stack = symbolically(code)
    words = [value_of(word, entry) for word in stack.words]
    assert entry[: DEPTH - stack.taken] + words == plainly(code, entry)[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_the_deepest_and_the_highest_point(seed: int) -> None:
    code = random_code(seed)
    _, deepest, highest = plainly(code, [0] * DEPTH)
    assert bounds_of(actions_of(code)) == (deepest, highest)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_slots_are_taken_than_are_looked_at(seed: int) -> None:
    code = random_code(seed)
    assert symbolically(code).taken == bounds_of(actions_of(code)).needs


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_can_be_taken_up_where_another_ended(seed: int) -> None:
    code = random_code(seed)
    half, whole = len(code) // 2, symbolically(code)
    first = symbolically(code[:half])
    second: SymbolicStack[Term] = SymbolicStack(first.slot, int, first.taken, first.words)
    for instruction, operands in second.run(steps_of(code[half:], code[half:])):
        second.push(instruction.pc if instruction.name == "PC" else (instruction.name, *operands))
    assert (second.taken, second.words) == (whole.taken, whole.words)


def test_an_opcode_the_fork_lacks_is_handed_over_without_operands() -> None:
    code = decode(b"\x5f\x0c")
    assert list(SymbolicStack(int, int).run(steps_of(code, code))) == [(code[1], [])]


def test_only_what_arranges_the_stack_can_be_arranged() -> None:
    stack: SymbolicStack[int] = SymbolicStack(int, int)
    stack.arrange(ACTIONS["DUP3"])
    assert (stack.taken, stack.words) == (3, [3, 2, 1, 3])
    with pytest.raises(ValueError, match="more than to arrange"):
        stack.arrange(ACTIONS["ADD"])


DUPN = arranged_by_immediate(Opcode(0xE6, "DUPN", 0, 1, 3), lambda op, n: copying(op, n + 17) if n < 0x5B else None)
EXCHANGE = arranged_by_immediate(
    Opcode(0xE8, "EXCHANGE", 0, 0, 3), lambda op, n: swapping(op, 2, n + 3) if n < 0x5B else None
)


@pytest.mark.parametrize(
    ("op", "immediate", "needs", "expected"),
    [(DUPN, 3, 20, [*range(20, 0, -1), 20]), (EXCHANGE, 4, 7, [2, 6, 5, 4, 3, 7, 1])],
)
def test_an_opcode_with_variants_arranges_the_words_its_immediate_names(
    op: Opcode, immediate: int, needs: int, expected: list[int]
) -> None:
    code = [Instruction(0, op.byte, op.variants[immediate], None, 2)]
    stack: SymbolicStack[int] = SymbolicStack(int, int)
    assert list(stack.run(steps_of(code, code))) == []
    assert stack.words == expected
    assert bounds_of(actions_of(code)).needs == needs
