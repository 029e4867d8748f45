"""The rules with conditions on what value analysis knows: who has them, their proofs, and that they are applied."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest

from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.ir.fold.facts import RangeFolder
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.ranges import SIGN, TOP, Range
from fusevm.ir.values import CONST, Value
from fusevm.rules.families import FAMILIES, engine_rules, range_rules, yul_rules
from fusevm.rules.pattern import Meta, Node, Rule, Tree, Use, VariableKind
from fusevm.rules.prove import Refuted, prove_at
from test_ir_ranges import word

ROUNDS = 2_000


def test_conditions_on_facts_are_for_the_engine_with_value_analysis() -> None:
    assert range_rules() == FAMILIES["ranges"]
    assert all(each.given and each.use == Use.RANGES and each.since == Fork.FRONTIER for each in range_rules())
    assert not [each.name for each in (*engine_rules(), *yul_rules()) if each.given]


def test_rules_with_conditions_on_facts_are_proved_at_256_bits() -> None:
    """But a product of two unknown powers of two is not."""
    pytest.importorskip("z3")
    left = [each for each in FAMILIES["ranges"] if each.name != "mul-no-bits"]
    assert [each.name for each in left if prove_at(each, 256) is None] == []


def test_no_condition_on_a_fact_is_idle() -> None:
    """Without any one of them the rule is refuted."""
    pytest.importorskip("z3")
    for each in FAMILIES["ranges"]:
        for place in range(len(each.given)):
            with pytest.raises(Refuted):
                prove_at(replace(each, given=each.given[:place] + each.given[place + 1 :]), 16)


class Known:
    """A folder that knows something true of every value: its range, its bits, and of which others it is less."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.words: dict[int, int] = {}
        self.folder = RangeFolder(LATEST, Mode.OPTIMISATION, EVERYTHING, keeps_growth=True)
        self.folder.enter(3)
        self.leaves = list(self.folder.block.params)
        shift, *others = random.choice(((0, 0, 0), (0, 0, 0), (1, 200, 128), (255, 8, 160), (128, 128, 64)))
        for value, each in zip(self.leaves, (shift, *others), strict=True):
            mask = random.choice((TOP, TOP << each & TOP, TOP >> each))
            number = random.choice((word(random), *self.words.values())) & mask
            low = random.choice((0, 0, SIGN, number, max(number - 9, 0)))
            high = random.choice((TOP, TOP, SIGN - 1, number, min(number + 9, TOP), 1))
            self.words[value.id] = number
            self.folder.range_at[value.id] = Range(min(low, number), max(high, number))
            self.folder.bits_at[value.id] = mask
        for one, other in permutations(self.leaves, 2):
            if random.randrange(4) == 0 and self.words[one.id] <= self.words[other.id]:
                strict = random.randrange(2) == 0 and self.words[one.id] < self.words[other.id]
                self.folder.facts.less[one.id, other.id] = strict

    def like(self, pattern: Tree, bound: dict[str, Value]) -> Value:
        if isinstance(pattern, Node):
            return self.folder.raw(pattern.op, tuple([self.like(arg, bound) for arg in pattern.args]))
        assert isinstance(pattern, Meta)
        if pattern.kind is VariableKind.ANY and self.random.randrange(8):
            return bound.setdefault(pattern.name, self.leaves[len(bound) % 3])
        return bound.setdefault(pattern.name, self.folder.const(word(self.random)))

    def word(self, value: Value) -> int:
        if value.op == CONST:
            return value.number
        known = self.words.get(value.id)
        return self.result(value.op, value.args) if known is None else known

    def result(self, op: str, args: tuple[Value, ...]) -> int:
        return INTEGER_MEANINGS[op](*[self.word(arg) for arg in args])


@pytest.mark.parametrize("rule", range_rules(), ids=lambda rule: rule.name)
def test_a_rule_with_conditions_on_facts_is_applied_and_keeps_the_word(rule: Rule) -> None:
    random, applied = Random(rule.name), 0
    for _ in range(ROUNDS):
        known = Known(random)
        op, bound = rule.pattern.op, dict[str, Value]()
        args = tuple([known.like(arg, bound) for arg in rule.pattern.args])
        result = known.folder.fold_by_ranges(op, args)
        if result is not None:
            found = known.word(result) if isinstance(result, Value) else known.result(*result)
            assert found == known.result(op, args), known.folder.stats.rules
        applied += known.folder.stats.rules[rule.name]
    assert applied > 5


def test_without_value_analysis_no_such_rule_is_tried() -> None:
    folder = RangeFolder(LATEST, Mode.OPTIMISATION, EVERYTHING & ~Stage.RANGES, keeps_growth=True)
    folder.enter(1)
    (x,) = folder.block.params
    folder.range_at[x.id] = Range(0, 1)
    assert folder.fold("LT", (x, folder.const(2))) == ("LT", (x, folder.const(2)))
