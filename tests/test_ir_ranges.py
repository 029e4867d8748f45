"""Ranges are sound: of words in its operands' ranges an instruction makes one in its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from fusevm.evm.words import INTEGER_MEANINGS, MEANINGS, Integers
from fusevm.ir.ranges import ANYTHING, RANGES, TOP, Range, assumed, bits_of, range_of

EDGES = [0, 1, 2, 3, 7, 8, 30, 31, 32, 33, 127, 128, 254, 255, 256, 257, 0xFFFF, 2**64 - 1, 2**64, 2**128, 2**160 - 1]
EDGES += [2**255 - 2, 2**255 - 1, 2**255, 2**255 + 1, TOP - 256, TOP - 32, TOP - 1, TOP]
ROUNDS = 3_000
ARITY = {name: meaning.func.__code__.co_argcount - 1 for name, meaning in INTEGER_MEANINGS.items()}  # type: ignore[attr-defined]
COMPARISONS = ("EQ", "GT", "ISZERO", "LT", "SGT", "SLT")
OF_WORDS = sorted(RANGES.keys() & INTEGER_MEANINGS.keys())


def word(random: Random) -> int:
    kind = random.randrange(4)
    if kind < 2:
        return random.choice(EDGES)
    return random.getrandbits(random.choice((3, 8, 16, 64, 255, 256)))


def some_range(random: Random) -> Range:
    one, other = word(random), word(random)
    if random.randrange(4) == 0:
        other = min(one + random.randrange(3), TOP)
    return Range(min(one, other), max(one, other))


def within(random: Random, found: Range) -> int:
    kind = random.randrange(4)
    if kind == 0:
        return found.low
    if kind == 1:
        return found.high
    near = [edge for edge in EDGES if edge in found]
    return random.choice(near) if near and kind == 2 else random.randint(found.low, found.high)


def cases(op: str) -> Iterator[tuple[list[Range], list[int]]]:
    """Ranges of the operands, and words in them."""
    random = Random(op)
    for _ in range(ROUNDS):
        ranges = [some_range(random) for _ in range(ARITY[op])]
        words = [within(random, each) for each in ranges]
        if len(words) > 1 and random.randrange(4) == 0:  # equal words, which chance would not find
            words[1] = words[0]
            ranges[1] = ranges[1].with_(Range(words[0], words[0]))
        elif random.randrange(4) == 0:
            words[0], ranges[0] = 0, Range(0, ranges[0].high)
        yield ranges, words


@pytest.mark.parametrize("op", OF_WORDS)
def test_a_result_lies_in_the_range_of_its_instruction(op: str) -> None:
    for ranges, words in cases(op):
        assert INTEGER_MEANINGS[op](*words) in range_of(op, ranges), (ranges, words)


@pytest.mark.parametrize("op", OF_WORDS)
def test_the_range_of_known_operands_is_often_one_word(op: str) -> None:
    """A rule that always answered ANYTHING would be sound too."""
    tight = 0
    for ranges, words in cases(op):
        exact = [Range(each, each) for each in words]
        tight += range_of(op, exact) != ANYTHING or range_of(op, ranges) != ANYTHING
    assert tight > ROUNDS // 20


@pytest.mark.parametrize("op", COMPARISONS)
def test_an_assumed_comparison_excludes_no_words_for_which_it_holds(op: str) -> None:
    narrowed = 0
    for ranges, words in cases(op):
        found = assumed(op, ranges, bool(INTEGER_MEANINGS[op](*words)))
        narrowed += found != ranges
        assert all(each in narrow for each, narrow in zip(words, found, strict=True)), (ranges, words, found)
        assert all(one.low <= two.low and two.high <= one.high for one, two in zip(ranges, found, strict=True))
    assert narrowed > ROUNDS // 40


def test_what_no_rule_knows_is_assumed_to_be_as_it_was() -> None:
    assert assumed("ADD", [Range(1, 2), Range(3, 4)], True) == [Range(1, 2), Range(3, 4)]


def test_a_range_that_wraps_always_is_known_and_one_that_may_is_not() -> None:
    assert range_of("ADD", [Range(TOP, TOP), Range(5, 6)]) == Range(4, 5)
    assert range_of("ADD", [Range(TOP - 5, TOP), Range(5, 6)]) == ANYTHING
    assert range_of("SUB", [Range(0, 1), Range(2, 2)]) == Range(TOP - 1, TOP)


def test_ranges_join_and_meet() -> None:
    assert Range(1, 2).with_(Range(5, 9)) == Range(1, 9)
    assert Range(1, 6).within(Range(5, 9)) == Range(5, 6)
    assert Range(1, 2).within(Range(5, 9)) == Range(1, 2)  # control never comes there


@pytest.mark.parametrize("op", OF_WORDS)
def test_bits_that_cannot_be_set_are_not(op: str) -> None:
    random = Random(f"bits {op}")
    known = 0
    for _ in range(ROUNDS):
        masks = [word(random) | word(random) for _ in range(ARITY[op])]
        words = [mask & random.getrandbits(256) if random.randrange(3) else mask for mask in masks]
        constant = [random.randrange(2) == 0 for _ in words]
        result = INTEGER_MEANINGS[op](*words)
        high = min(result + random.randrange(1 << random.choice((1, 200))), TOP)
        constants = [each if fixed else None for each, fixed in zip(words, constant, strict=True)]
        found = bits_of(op, masks, constants, high)
        known += found != TOP
        assert not result & ~found, (masks, words, high)
    assert known


# -- all words of three bits ------------------------------------------------------------------------------------------

NARROW = (
    "ADD",
    "AND",
    "DIV",
    "EQ",
    "GT",
    "ISZERO",
    "LT",
    "MOD",
    "MUL",
    "NOT",
    "OR",
    "SGT",
    "SHL",
    "SHR",
    "SLT",
    "SUB",
    "XOR",
)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Integers:
    monkeypatch.setattr("fusevm.ir.ranges.TOP", 7)
    monkeypatch.setattr("fusevm.ir.ranges.SIGN", 4)
    return Integers(3)


def all_ranges(top: int) -> list[Range]:
    return [Range(low, high) for low in range(top + 1) for high in range(low, top + 1)]


@pytest.mark.parametrize("op", [*NARROW, "SAR"])
def test_the_range_of_an_instruction_holds_all_its_results(op: str, narrow: Integers) -> None:
    for operands in product(all_ranges(7), repeat=ARITY[op]):
        found = range_of(op, list(operands))
        for words in product(*[range(each.low, each.high + 1) for each in operands]):
            assert MEANINGS[op](narrow, *words) in found, (operands, words)


@pytest.mark.parametrize("op", ["ADDMOD", "MULMOD"])
def test_the_range_of_a_sum_or_product_in_a_ring_holds_all_its_results(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusevm.ir.ranges.TOP", 3)
    for operands in product(all_ranges(3), repeat=3):
        found = range_of(op, list(operands))
        for words in product(*[range(each.low, each.high + 1) for each in operands]):
            assert MEANINGS[op](Integers(2), *words) in found, (operands, words)


@pytest.mark.parametrize("op", COMPARISONS)
def test_an_assumed_comparison_excludes_nothing_of_which_it_may_hold(op: str, narrow: Integers) -> None:
    for operands in product(all_ranges(7), repeat=ARITY[op]):
        said = {holds: assumed(op, list(operands), holds) for holds in (True, False)}
        for words in product(*[range(each.low, each.high + 1) for each in operands]):
            found = said[bool(MEANINGS[op](narrow, *words))]
            assert all(word in each for word, each in zip(words, found, strict=True)), (operands, words, found)


@pytest.mark.parametrize("op", NARROW)
def test_the_bits_of_an_instruction_hold_those_of_all_its_results(op: str, narrow: Integers) -> None:
    for masks in product(range(8), repeat=ARITY[op]):
        choices = [[word for word in range(8) if not word & ~mask] for mask in masks]
        for words in product(*choices):
            result = MEANINGS[op](narrow, *words)
            for constants in product(*[(None, word) for word in words]):
                assert not result & ~bits_of(op, list(masks), list(constants), result), (masks, words, constants)
