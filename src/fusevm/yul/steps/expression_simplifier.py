"""ExpressionSimplifier (s): rewrites expressions by the rule base.

Needs: Disambiguator, ForLoopInitRewriter; CommonSubexpressionEliminator right before, so that equal values are the same
variable; does most on split expressions.
Does: tries the rules of the outermost opcode in solc's order, inner expressions first, and applies the first that
matches until none does. Variables are looked through where an opcode or a number is asked for. A start in memory
whose length is zero becomes 0.
Why: `add(x, 0)` and its kind come from other steps and from careless writers.
"""

from __future__ import annotations

from functools import cache

from fusevm.evm.forks import Fork
from fusevm.rules.families import by_root, yul_rules
from fusevm.rules.pattern import Const, Kind, Meta, Node, Rule, Tree, is_constant
from fusevm.yul.analysis.accesses import ACCESSES
from fusevm.yul.analysis.dataflow import DataFlowAnalyzer
from fusevm.yul.analysis.effects import builtin_effects
from fusevm.yul.analysis.equality import leaf_key
from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Identifier, Literal, LiteralKind, Location
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import copy_expression


def run(context: StepContext, block: Block) -> None:
    _Simplifier(context.dialect).block(block)


NUMBER = "number"  # the form of an argument that is a number; others are an opcode's name, or None: anything
Forms = tuple[str | None, ...]


@cache
def _rules(fork: Fork) -> dict[str, tuple[Rule, ...]]:
    """By builtin, solc's rules in solc's order."""
    return {op.lower(): rules for op, rules in by_root(yul_rules(fork)).items()}


@cache
def _candidates(fork: Fork, name: str, forms: Forms) -> tuple[Rule, ...]:
    """The rules that can match a call with arguments of these forms: most can't, and this says so at once."""
    rules = _rules(fork).get(name, ())
    return tuple(rule for rule in rules if all(map(_admits, rule.pattern.args, forms)))


def _admits(pattern: Tree, form: str | None) -> bool:
    if isinstance(pattern, Node):
        return form == pattern.op.lower()
    if isinstance(pattern, Meta) and pattern.kind is not Kind.CONSTANT:
        return pattern.kind is Kind.ANY or form != NUMBER
    return form == NUMBER


class _Simplifier(DataFlowAnalyzer):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect, builtin_effects(dialect))
        self.rules = _rules(dialect.fork)

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is not FunctionCall:
            return expression
        self.call(expression)
        while isinstance(expression, FunctionCall):
            simpler = self.simpler(expression)
            if simpler is None:
                self.zero_starts(expression)
                break
            expression = simpler
        return expression

    def simpler(self, call: FunctionCall) -> Expression | None:
        name = call.function.name
        if name not in self.rules:
            return None
        forms: list[str | None] = []
        for argument in call.arguments:
            if argument.__class__ is FunctionCall:
                return None  # what it does may not be doubled, dropped or moved
            forms.append(self.form(argument))
        for rule in _candidates(self.dialect.fork, name, tuple(forms)):
            match = _Match(self, rule)
            if match.fits(call):
                return match.result(call.location)
        return None

    def form(self, argument: Expression) -> str | None:
        value = self.resolved(argument)
        if value.__class__ is Literal:
            return NUMBER if value.kind is LiteralKind.NUMBER else None
        return value.function.name if value.__class__ is FunctionCall else None

    def resolved(self, expression: Expression) -> Expression:
        """A variable's value, if it is known and may be written here."""
        if expression.__class__ is not Identifier:
            return expression
        name: str = expression.name
        value = self.values.get(name)
        if value is None:
            return expression
        if value.__class__ is FunctionCall and not self.in_scope.issuperset(self.mentions[name]):
            return expression
        return value

    def zero_starts(self, call: FunctionCall) -> None:
        """Nobody looks at where a range of length zero begins."""
        for access in ACCESSES.get(call.function.name, ()):
            if access.start is None or access.length is None:
                continue
            start = call.arguments[access.start]
            if start.__class__ is FunctionCall or self.is_zero(start):
                continue
            if self.is_zero(call.arguments[access.length]):
                call.arguments[access.start] = literals.zero(start.location)

    def is_zero(self, expression: Expression) -> bool:
        value = self.values.get(expression.name) if isinstance(expression, Identifier) else expression
        return isinstance(value, Literal) and value.value == 0


class _Match:
    """An attempt to match a rule; says what its metavariables stand for."""

    __slots__ = ("numbers", "rule", "simplifier", "terms")

    def __init__(self, simplifier: _Simplifier, rule: Rule) -> None:
        self.simplifier = simplifier
        self.rule = rule
        self.terms: dict[str, Expression] = {}
        self.numbers: dict[str, int] = {}

    def fits(self, call: FunctionCall) -> bool:
        return self._arguments(self.rule.pattern, call) and self.rule.holds(self.numbers)

    def _arguments(self, pattern: Node, call: FunctionCall) -> bool:
        for part, argument in zip(pattern.args, call.arguments, strict=True):
            if argument.__class__ is FunctionCall or not self._fits(part, argument):
                return False
        return True

    def _fits(self, pattern: Tree, term: Expression) -> bool:
        if isinstance(pattern, Meta) and pattern.kind is not Kind.CONSTANT:
            if pattern.kind is Kind.VARIABLE and self._number(term) is not None:
                return False
            bound = self.terms.setdefault(pattern.name, term)
            assert not isinstance(bound, FunctionCall)
            assert not isinstance(term, FunctionCall)
            return bound is term or leaf_key(bound) == leaf_key(term)
        if isinstance(pattern, Node):
            value = self.simplifier.resolved(term)
            return (
                isinstance(value, FunctionCall)
                and value.function.name == pattern.op.lower()
                and self._arguments(pattern, value)
            )
        literal = self._number(term)
        if literal is None:
            return False
        if isinstance(pattern, Const):
            return literal.value == pattern.at(256)
        assert isinstance(pattern, Meta)
        self.terms.setdefault(pattern.name, literal)
        return self.numbers.setdefault(pattern.name, literal.value) == literal.value

    def _number(self, term: Expression) -> Literal | None:
        value = self.simplifier.resolved(term)
        return value if isinstance(value, Literal) and value.kind is LiteralKind.NUMBER else None

    def result(self, place: Location) -> Expression:
        return self._build(self.rule.result, place)

    def _build(self, tree: Tree, place: Location) -> Expression:
        if isinstance(tree, Meta):
            return copy_expression(self.terms[tree.name])  # numbers keep their spelling
        if is_constant(tree):
            return literals.number(self.rule.number(tree, self.numbers), place)
        assert isinstance(tree, Node)
        arguments = [self._build(each, place) for each in tree.args]
        return FunctionCall(Identifier(tree.op.lower(), place), arguments, place)
