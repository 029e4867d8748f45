"""Rematerialiser (m): cheap values in place of the variables that hold them.

Needs: Disambiguator, ForLoopInitRewriter.
Does: replaces mentions of a variable by its known value if it is mentioned once (at the same loop depth), costs
nothing, or costs next to nothing and is mentioned at most five times outside of loops. What is copied counts against
the budget for growth.
Why: a variable less on the stack, if all its mentions go.
"""

from __future__ import annotations

from collections.abc import Collection

from fusevm.yul.analysis.dataflow import DataFlowAnalyzer
from fusevm.yul.analysis.effects import builtin_effects
from fusevm.yul.analysis.metrics import code_cost
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Identifier
from fusevm.yul.syntax.walk import copy_expression, count_variables


def run(context: StepContext, block: Block) -> None:
    _Rematerialiser(context, count_variables(block)).block(block)


def rematerialise(context: StepContext, block: Block, names: Collection[str]) -> None:
    """Replace only these variables, whatever their values cost."""
    _Rematerialiser(context, count_variables(block), names).block(block)


class _Rematerialiser(DataFlowAnalyzer):
    def __init__(self, context: StepContext, counts: dict[str, int], only: Collection[str] | None = None) -> None:
        super().__init__(context.dialect, builtin_effects(context.dialect))
        self.context = context
        self.counts = counts
        self.only = only
        self.depths: dict[str, int] = {}  # of loops, where the variable was given its value
        self.costs: dict[int, tuple[Expression, int]] = {}

    def assign(self, name: str, value: Expression) -> None:
        super().assign(name, value)
        self.depths[name] = self.loop_depth

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            name: str = expression.name
            value = self.values.get(name)
            if value is None or not self.is_worth_it(name, value):
                return expression
            if any(other not in self.in_scope for other in self.mentions.get(name, ())):
                return expression
            if value.__class__ is FunctionCall and not self.context.may_copy(value):
                return expression
            self.counts[name] -= 1
            for other, count in count_variables(value).items():
                self.counts[other] = self.counts.get(other, 0) + count
            expression = copy_expression(value)
            if expression.__class__ is Identifier:
                return expression
        return super().expression(expression)

    def is_worth_it(self, name: str, value: Expression) -> bool:
        if self.only is not None:
            return name in self.only
        count = self.counts[name]
        if count <= 1 and self.depths[name] == self.loop_depth:
            return True
        cost = self.cost(value)
        return cost == 0 or (cost <= 1 and count <= 5 and self.loop_depth == 0)

    def cost(self, value: Expression) -> int:
        known = self.costs.get(id(value))
        if known is None:
            known = self.costs[id(value)] = value, code_cost(self.dialect, value)
        return known[1]
