"""Moves do what was asked: operands come to the top, one stack becomes another, and nothing that is needed is lost."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fusevm.codegen.moves import DEAD, DUP, OTHER, POP, PUSH, REACH, SWAP, FoundMoves, bring, shuffle
from fusevm.codegen.moves import _greedy as greedy
from fusevm.codegen.moves import _one_by_one as one_by_one

Slot = int | tuple[str, int]


def apply(stack: list[Slot], found: FoundMoves, pushed: list[Slot]) -> list[Slot]:
    """The stack (its top last) after the moves, each of which must be within reach."""
    stack = list(stack)
    for move in found.moves:
        if move & 0xFF == PUSH:
            stack.append(pushed[move >> 8])
        elif move == POP:
            stack.pop()
        elif DUP < move <= DUP + REACH:
            assert move - DUP <= len(stack)
            stack.append(stack[-(move - DUP)])
        else:
            depth = move - SWAP
            assert 1 <= depth <= REACH
            assert depth < len(stack)
            stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]
    return stack


# -- bring ------------------------------------------------------------------------------------------------------------


def some_pattern(random: Random) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    count = random.randrange(1, 5)
    wanted = [random.randrange(count) for _ in range(random.choice((1, 1, 2, 2, 2, 3, 4, 7)))]
    names = list(dict.fromkeys(wanted))
    wanted = [names.index(each) for each in wanted]
    pushed = sum(1 << each for each in range(len(names)) if random.randrange(3) == 0)
    dies = sum(1 << each for each in range(len(names)) if random.randrange(2))
    slots = [random.choice((DEAD, OTHER, OTHER)) for _ in range(random.choice((0, 1, 3, 6, 12)))]
    for each in range(len(names)):
        if not pushed >> each & 1:
            for _ in range(random.choice((1, 1, 1, 2))):
                slots.insert(random.randrange(len(slots) + 1), each)
    return tuple(slots), tuple(wanted), dies, pushed


def check_brought(found: FoundMoves, pattern: tuple[int, ...], wanted: tuple[int, ...], dies: int, pushed: int) -> None:
    before: list[Slot] = [
        slot if slot >= 0 else ("other" if slot == OTHER else "dead", place) for place, slot in enumerate(pattern)
    ][::-1]
    after = apply(before, found, list(range(8)))
    rest = after[: len(after) - len(wanted)]
    assert tuple(after[len(rest) :]) == wanted
    kept = Counter(slot for slot in before if isinstance(slot, tuple) and slot[0] == "other")
    assert Counter(slot for slot in rest if isinstance(slot, tuple) and slot[0] == "other") == kept
    for operand in set(wanted):
        if not (dies | pushed) >> operand & 1:
            assert operand in rest, "an operand that is needed later is gone"


@pytest.mark.parametrize("seed", range(8))
def test_operands_come_to_the_top_and_what_is_needed_later_stays(seed: int) -> None:
    random = Random(seed)
    for _ in range(150):
        pattern, wanted, dies, pushed = some_pattern(random)
        ways = bring(pattern, wanted, dies, pushed)
        assert ways or any(slot >= 0 for slot in pattern[8:])
        assert list(ways) == sorted(ways)
        for found in ways:
            check_brought(found, pattern, wanted, dies, pushed)


def test_operands_that_are_pushed_or_copied_one_by_one_are_right_too() -> None:
    random = Random(1)
    for _ in range(1_000):
        case = some_pattern(random)
        for found in one_by_one(*case):
            check_brought(found, *case)


def test_an_operand_on_top_that_nobody_needs_afterwards_costs_nothing() -> None:
    (best, *_) = bring((0, OTHER), (0,), 1, 0)
    assert best == FoundMoves(0, ())


def test_an_operand_that_is_needed_afterwards_is_copied() -> None:
    (best, *_) = bring((OTHER, 0), (0,), 0, 0)
    assert best.moves == (DUP + 2,)


def test_what_is_out_of_reach_cannot_be_brought() -> None:
    assert bring((*[OTHER] * 16, 0), (0,), 0, 0) == ()


# -- shuffle ----------------------------------------------------------------------------------------------------------


def some_stacks(random: Random) -> tuple[tuple[int, ...], tuple[int, ...], dict[int, int]]:
    """A stack, one that it can become, and what can be pushed."""
    size = random.choice((0, 1, 2, 3, 4, 5, 8, 12))
    stack = [random.randrange(12) if random.randrange(6) else DEAD for _ in range(size)]
    made = {100 + each: random.choice((3, 4, 6)) for each in range(random.randrange(3))}
    slots = [slot for slot in stack if slot != DEAD] + list(made)
    below = stack[: random.randrange(len(stack) + 1)] if random.randrange(2) else []
    target = [slot if random.randrange(4) else DEAD for slot in below]
    while slots and len(target) < 12 and random.randrange(5):
        target.append(random.choice(slots))
    return tuple(stack), tuple(target), made


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("search", [shuffle, lambda stack, target, made: greedy(list(stack), target, made)])
def test_a_stack_becomes_another(seed: int, search: object) -> None:
    random = Random(seed)
    impossible = 0
    for _ in range(200):
        stack, target, made = some_stacks(random)
        found = search(stack, target, made)  # type: ignore[operator]
        if found is None:
            impossible += 1
            continue
        after = apply(list(stack), found, list(target))
        assert len(after) == len(target), (stack, target, found)
        assert all(want in (DEAD, have) for have, want in zip(after, target, strict=True)), (stack, target, found)
    assert impossible < 20


def test_equal_stacks_need_no_move() -> None:
    assert shuffle((1, 2, 3), (1, 2, 3), {}) == FoundMoves(0, ())


def test_a_slot_that_may_hold_anything_is_left_alone() -> None:
    assert shuffle((1, 2), (DEAD, 2), {}) == FoundMoves(0, ())


def test_what_cannot_be_made_or_reached_is_none() -> None:
    assert shuffle((1,), (1, 2), {}) is None
    deep = tuple(range(20))
    assert shuffle(deep, (*deep, 0), {}) is None
