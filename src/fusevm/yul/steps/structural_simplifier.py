"""StructuralSimplifier (t): branches on constants.

Needs: Disambiguator, ForLoopInitRewriter; LiteralRematerialiser, to have the constants in the text.
Does: `if` on a true literal becomes its body, on a false one goes; a switch on a literal becomes the case that fits; a
loop with false condition goes.
Why: inlining and specialising decide many branches.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, ForLoop, If, Literal, Statement, Switch
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    _Simplifier().block(block)


class _Simplifier(Rewriter):
    def rewrite(self, statement: Statement) -> list[Statement] | None:
        replacement: list[Statement] | None = None
        if isinstance(statement, If) and isinstance(statement.condition, Literal):
            replacement = statement.body.statements if statement.condition.value else []
        elif isinstance(statement, Switch) and isinstance(statement.expression, Literal):
            replacement = _chosen(statement, statement.expression.value)
        elif isinstance(statement, ForLoop) and isinstance(statement.condition, Literal):
            replacement = None if statement.condition.value else statement.pre.statements
        if replacement is None:
            self.statement(statement)
            return None
        return self.rewritten(replacement)


def _chosen(switch: Switch, value: int) -> list[Statement]:
    default: list[Statement] = []
    for case in switch.cases:
        if case.value is None:
            default = [case.body]
        elif case.value.value == value:
            return [case.body]
    return default
