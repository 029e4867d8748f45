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
from typing import ClassVar

from fusevm.evm.forks import Fork
from fusevm.rules.families import by_root, yul_rules
from fusevm.rules.matching import NUMBER, Match, Matcher, View, form_of
from fusevm.rules.pattern import Meta, Node, Tree, VariableKind, is_constant
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


Forms = tuple[str | None, ...]  # of arguments: NUMBER, an opcode's name, or None for anything else


class _Expressions(View):
    """How matchers access Yul: through variables where an opcode or a number is tested."""

    parameters = ("resolved",)
    names: ClassVar = {
        "FunctionCall": FunctionCall,
        "Literal": Literal,
        "NUMBER": LiteralKind.NUMBER,
        "leaf_key": leaf_key,
    }

    def shown(self, term: str) -> str:
        return f"resolved({term})"

    def refuses(self, operand: str) -> str:
        return f"{operand}.__class__ is FunctionCall"

    def is_call(self, term: str, op: str) -> str:
        return f"{term}.__class__ is FunctionCall and {term}.function.name == {op.lower()!r}"

    def operands(self, term: str) -> str:
        return f"{term}.arguments"

    def is_number(self, term: str) -> str:
        return f"{term}.__class__ is Literal and {term}.kind is NUMBER"

    def number(self, term: str) -> str:
        return f"{term}.value"

    def same(self, one: str, other: str) -> str:
        return f"{one} is {other} or leaf_key({one}) == leaf_key({other})"


@cache
def _rules(fork: Fork) -> dict[str, tuple[Matcher[Expression], ...]]:
    """By builtin, solc's rules in solc's order."""
    view = _Expressions()
    return {op.lower(): tuple(Matcher(rule, view) for rule in rules) for op, rules in by_root(yul_rules(fork)).items()}


@cache
def _candidates(fork: Fork, name: str, forms: Forms) -> tuple[Matcher[Expression], ...]:
    """The rules that can match a call with arguments of these forms: most can't, and this says so at once."""
    matchers = _rules(fork).get(name, ())
    return tuple(each for each in matchers if all(map(_admits, each.rule.pattern.args, forms)))


def _admits(pattern: Tree, form: str | None) -> bool:
    wanted = form_of(pattern)
    if wanted is not None:
        return form == wanted
    return form != NUMBER or (isinstance(pattern, Meta) and pattern.kind is VariableKind.ANY)


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
        for each in _candidates(self.dialect.fork, name, tuple(forms)):
            found = each.match(self.resolved, *call.arguments)
            if found is not None:
                return _built(found.rule.result, found, call.location)
        return None

    def form(self, argument: Expression) -> str | None:
        value = self.resolved(argument)
        if value.__class__ is Literal:
            return NUMBER if value.kind is LiteralKind.NUMBER else None
        return value.function.name.upper() if value.__class__ is FunctionCall else None

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
        """The start of a range of length zero does not matter."""
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


def _built(tree: Tree, found: Match[Expression], place: Location) -> Expression:
    if isinstance(tree, Meta):
        return copy_expression(found.values[tree.name])  # numbers keep their spelling
    if is_constant(tree):
        return literals.number(found.rule.number(tree, found.constants), place)
    assert isinstance(tree, Node)
    arguments = [_built(each, found, place) for each in tree.args]
    return FunctionCall(Identifier(tree.op.lower(), place), arguments, place)
