"""CommonSubexpressionEliminator (c): mentions a variable instead of computing its value again.

Needs: Disambiguator, ForLoopInitRewriter; does most after ExpressionSplitter and SSATransform.
Does: replaces an expression by a variable in scope that is known to hold just that, and a variable that is a plain
copy of another by that other.
Why: values are computed once; copies become unused.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

from fusevm.yul.analysis.dataflow import DataFlowAnalyzer
from fusevm.yul.analysis.effects import IMMOVABLE, EffectTable, program_effects
from fusevm.yul.analysis.equality import ExpressionKeys
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, FunctionDefinition, Identifier, Literal
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.names import name_hash


def run(context: StepContext, block: Block) -> None:
    _Eliminator(context.dialect, program_effects(context.dialect, block)).block(block)


Candidates: TypeAlias = dict[int, list[str]]


class _Eliminator(DataFlowAnalyzer):
    def __init__(self, dialect: Dialect, effects: EffectTable) -> None:
        super().__init__(dialect, effects)
        self.returns: set[str] = set()
        self.keys = ExpressionKeys()
        # By expression, variables in hash order: all that hold it, and some that no longer do.
        self.candidates: Candidates = {}

    def function(self, function: FunctionDefinition) -> None:
        outer = self.returns, self.candidates
        self.returns, self.candidates = {each.name for each in function.returns}, {}
        super().function(function)
        self.returns, self.candidates = outer

    def assign(self, name: str, value: Expression) -> None:
        super().assign(name, value)
        if value.__class__ is not Identifier:
            names = self.candidates.setdefault(self.keys.of(value), [])
            at = bisect_left(names, name_hash(name), key=name_hash)
            if name not in names[at : at + 1]:
                names.insert(at, name)

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            value = self.values.get(expression.name)
            return value if value.__class__ is Identifier and value.name in self.in_scope else expression
        if expression.__class__ is FunctionCall:
            self.free_arguments(expression, self.dialect.builtin(expression.function.name))
            if self.effects[expression.function.name] & IMMOVABLE:
                return expression  # the values of variables are movable
        return self._variable_for(expression) or expression

    def _variable_for(self, expression: Expression) -> Identifier | None:
        key = self.keys.of(expression)
        names = self.candidates.get(key, [])
        at = 0
        while at < len(names):
            name = names[at]
            value = self.values.get(name)
            if value is None or name not in self.in_scope or self.keys.of(value) != key:
                del names[at]  # it comes back when it is given the expression again
            elif name in self.returns and value.__class__ is Literal and value.value == 0:
                at += 1  # better a literal zero than the untouched return variable
            else:
                return Identifier(name, expression.location)
        return None
