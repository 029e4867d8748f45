"""The compiled matchers, on IR values and on Yul, against matching as it is defined."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from fusevm.evm.forks import LATEST
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.ir.fold.compiled import keys_of, range_table, table_of
from fusevm.ir.fold.engine import Folder
from fusevm.ir.fold.facts import RangeFolder
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.ranges import Range
from fusevm.ir.values import CONST, Value
from fusevm.rules.families import by_root, engine_rules, range_rules, yul_rules
from fusevm.rules.matching import NUMBER, form_of
from fusevm.rules.pattern import ADD, Meta, Node, Rule, Tree, V, VariableKind, X, metas
from fusevm.yul.analysis.equality import leaf_key
from fusevm.yul.steps.expression_simplifier import _candidates, _rules
from fusevm.yul.syntax.ast import Expression, FunctionCall, Identifier, Literal, LiteralKind, Location
from plainmatching import View, match
from ruleterms import EDGES

PLACE = Location()
YUL_RULES = yul_rules(LATEST)


def test_the_form_of_a_pattern_is_its_opcode_or_a_number_or_nothing() -> None:
    assert [form_of(each) for each in (ADD(X, 1), *ADD(X, 1).args, V)] == ["ADD", None, NUMBER, None]


# -- IR values ------------------------------------------------------------------------------------------------------


class Values(View[Value]):
    def call(self, term: Value) -> tuple[str, Sequence[Value]] | None:
        return None if term.op == CONST else (term.op, term.args)

    def constant(self, term: Value) -> int | None:
        return term.number if term.op == CONST else None

    def same(self, left: Value, right: Value) -> bool:
        return left is right


def agrees(made: Folder, op: str, args: tuple[Value, ...]) -> int:
    """How many of the engine's rules match the instruction; each is tried both ways."""
    matched, term = 0, made.raw(op, args)
    for keys in keys_of(op, args):
        for folding in table_of(LATEST, True).buckets.get(keys, ()):
            plain, found = match(folding.rule, term, Values()), folding.match(*args)
            assert (plain is None) == (found is None), folding.rule.name
            if plain is not None and found is not None:
                assert (plain.values, plain.constants) == (found.values, found.constants), folding.rule.name
                matched += 1
    return matched


def test_engine_matchers_agree_with_the_definition_on_random_instructions() -> None:
    dice, made = random.Random(5), Folder(stages=Stage(0))
    made.enter(3)
    values = [*made.block.params, *(made.const(n) for n in (0, 1, 2, 31, 255, (1 << 256) - 1))]
    ops = list(INTEGER_MEANINGS)
    for _ in range(400):
        op = dice.choice(ops)
        args = tuple(dice.choice(values) for _ in range(BY_NAME[op].pops))
        agrees(made, op, args)
        values.append(made.raw(op, args))


class KnownValues(Values):
    def __init__(self, folder: RangeFolder) -> None:
        self.folder = folder

    def fact(self, name: str, terms: list[Value]) -> int:
        if name in ("low", "high"):
            return int(getattr(self.folder.range(terms[0]), name))
        if name == "bits":
            return self.folder.bits(terms[0])
        return self.folder.is_less(terms[0], terms[1]) in ((True,) if name == "less" else (True, False))


@pytest.mark.parametrize("seed", range(4))
def test_matchers_with_conditions_on_facts_agree_with_the_definition(seed: int) -> None:
    dice, matched = random.Random(seed), Counter[str]()
    for rule in range_rules() * 40:
        made = RangeFolder(LATEST, Mode.OPTIMISATION, EVERYTHING, keeps_growth=True)
        made.enter(4)
        for value in made.block.params:
            made.range_at[value.id] = Range(*sorted((dice.choice(EDGES), dice.choice(EDGES))))
            made.bits_at[value.id] = dice.choice(EDGES)
            made.facts.less[value.id, dice.choice(made.block.params).id] = dice.random() < 0.5
        bound: dict[str, Value] = {}
        args = tuple(value_like(arg, made, bound, dice) for arg in rule.pattern.args)
        (matcher,) = [each for each in range_table()[rule.pattern.op] if each.rule is rule]
        plain, found = match(rule, made.raw(rule.pattern.op, args), KnownValues(made)), matcher.match(made, *args)
        assert (plain is None) == (found is None), rule.name
        if plain is not None and found is not None:
            assert (plain.values, plain.constants) == (found.values, found.constants), rule.name
            matched[rule.name] += 1
    assert len(matched) > 20


def value_like(pattern: Tree, made: Folder, bound: dict[str, Value], dice: random.Random) -> Value:
    """A value the pattern is likely to fit."""
    if isinstance(pattern, Node):
        return made.raw(pattern.op, tuple(value_like(arg, made, bound, dice) for arg in pattern.args))
    if not isinstance(pattern, Meta):
        return made.const(pattern.at(256))  # type: ignore[attr-defined]
    if dice.random() < 0.1:
        bound.pop(pattern.name, None)  # not the value it stood for before
    if pattern.kind is VariableKind.CONSTANT:
        return bound.setdefault(pattern.name, made.const(dice.choice(EDGES)))
    if pattern.kind is VariableKind.BOOLEAN:
        return bound.setdefault(pattern.name, made.raw(dice.choice(("LT", "EQ", "ADD")), tuple(made.block.params[:2])))
    return bound.setdefault(pattern.name, dice.choice((*made.block.params, made.const(dice.choice(EDGES)))))


@pytest.mark.parametrize("seed", range(4))
def test_engine_matchers_agree_with_the_definition_on_what_patterns_look_for(seed: int) -> None:
    dice, made, matched = random.Random(seed), Folder(stages=Stage(0)), 0
    made.enter(4)
    for rule in engine_rules(LATEST, True):
        bound: dict[str, Value] = {}
        args = tuple(value_like(arg, made, bound, dice) for arg in rule.pattern.args)
        matched += agrees(made, rule.pattern.op, args)
    assert matched > 200


# -- Yul ------------------------------------------------------------------------------------------------------------


class Scope:
    """Variables and what is known of them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.values: dict[str, Expression] = {}

    def variable(self, value: Expression | None) -> Identifier:
        name = f"v{len(self.values)}"
        self.values[name] = value or Identifier(name, PLACE)
        return Identifier(name, PLACE)

    def resolved(self, term: Expression) -> Expression:
        return self.values[term.name] if isinstance(term, Identifier) else term

    def number(self, word: int) -> Expression:
        """As a literal or a variable; now and then it is not a number at all."""
        kind = LiteralKind.NUMBER if self.dice.random() < 0.95 else LiteralKind.BOOLEAN
        literal = Literal(kind, word, self.dice.choice((str(word), hex(word))), PLACE)
        return literal if self.dice.random() < 0.5 else self.variable(literal)

    def like(self, pattern: Tree, bound: dict[str, Expression]) -> Expression:
        """An expression the pattern is likely to fit."""
        if isinstance(pattern, Node):
            call = self.call(pattern, bound)
            return call if self.dice.random() < 0.05 else self.variable(call)
        if not isinstance(pattern, Meta):
            return self.number(pattern.at(256))  # type: ignore[attr-defined]
        if self.dice.random() < 0.1:
            bound.pop(pattern.name, None)
        if pattern.kind is VariableKind.CONSTANT or self.dice.random() < 0.1:
            return bound.setdefault(pattern.name, self.number(self.dice.choice(EDGES)))
        return bound.setdefault(pattern.name, self.variable(None))

    def call(self, pattern: Node, bound: dict[str, Expression]) -> FunctionCall:
        return FunctionCall(
            Identifier(pattern.op.lower(), PLACE), [self.like(arg, bound) for arg in pattern.args], PLACE
        )


class Expressions(View[Expression]):
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def call(self, term: Expression) -> tuple[str, Sequence[Expression]] | None:
        value = self.scope.resolved(term)
        if not isinstance(value, FunctionCall) or any(isinstance(each, FunctionCall) for each in value.arguments):
            return None
        return value.function.name.upper(), value.arguments

    def constant(self, term: Expression) -> int | None:
        value = self.scope.resolved(term)
        return value.value if isinstance(value, Literal) and value.kind is LiteralKind.NUMBER else None

    def same(self, left: Expression, right: Expression) -> bool:
        assert isinstance(left, Identifier | Literal)
        assert isinstance(right, Identifier | Literal)
        return leaf_key(left) == leaf_key(right)


def form(term: Expression, scope: Scope) -> str | None:
    value = scope.resolved(term)
    if isinstance(value, Literal):
        return NUMBER if value.kind is LiteralKind.NUMBER else None
    return value.function.name.upper() if isinstance(value, FunctionCall) else None


def test_no_yul_rule_asks_for_a_truth() -> None:
    """Expressions have no answer to that."""
    assert not [each.name for each in YUL_RULES for meta in metas(each.pattern) if meta.kind is VariableKind.BOOLEAN]


@pytest.mark.parametrize("seed", range(8))
def test_yul_matchers_agree_with_the_definition_on_what_patterns_look_for(seed: int) -> None:
    scope, matched = Scope(random.Random(seed)), 0
    for wanted in YUL_RULES:
        call = scope.call(wanted.pattern, {})
        for each in _rules(LATEST)[call.function.name]:
            plain, found = match(each.rule, call, Expressions(scope)), each.match(scope.resolved, *call.arguments)
            assert (plain is None) == (found is None), each.rule.name
            if plain is not None and found is not None:
                terms = {
                    name: scope.resolved(term) if name in plain.constants else term
                    for name, term in plain.values.items()
                }
                assert (terms, plain.constants) == (found.values, found.constants), each.rule.name
                matched += 1
    assert matched > 100


@pytest.mark.parametrize("seed", range(8))
def test_the_candidates_of_a_form_are_all_that_can_match(seed: int) -> None:
    scope = Scope(random.Random(seed))
    roots = by_root(YUL_RULES)
    for wanted in YUL_RULES:
        call = scope.call(wanted.pattern, {})
        forms = tuple(form(each, scope) for each in call.arguments)
        candidates = [each.rule for each in _candidates(LATEST, call.function.name, forms)]
        matching = [each for each in roots[wanted.pattern.op] if match(each, call, Expressions(scope))]
        assert [each for each in candidates if each in matching] == matching, names(matching)


def names(rules: list[Rule]) -> list[str]:
    return [each.name for each in rules]
