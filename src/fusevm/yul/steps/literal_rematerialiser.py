"""LiteralRematerialiser (T): a literal in place of each variable known to hold it.

Needs: Disambiguator, ForLoopInitRewriter.
Does: replaces mentions of variables by their value where that is a literal.
Why: steps that look at the text only (StructuralSimplifier, FunctionSpecializer) see the constants.
"""

from __future__ import annotations

from fusevm.yul.analysis.dataflow import DataFlowAnalyzer
from fusevm.yul.analysis.effects import builtin_effects
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, Expression, Identifier, Literal


def run(context: StepContext, block: Block) -> None:
    _Rematerialiser(context.dialect, builtin_effects(context.dialect)).block(block)


class _Rematerialiser(DataFlowAnalyzer):
    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            value = self.values.get(expression.name)
            return value if value.__class__ is Literal else expression
        return super().expression(expression)
