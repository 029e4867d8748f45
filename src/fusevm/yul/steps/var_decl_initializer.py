"""VarDeclInitializer (d): writes the zero that a declaration without value means.

Needs: nothing.
Does: `let x, y` becomes `let x := 0 let y := 0`.
Why: other steps need not think of declarations without value.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Block, Statement, VariableDeclaration
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    _Initializer().block(block)


class _Initializer(Rewriter):
    def rewrite(self, statement: Statement) -> list[Statement] | None:
        self.statement(statement)
        if not isinstance(statement, VariableDeclaration) or statement.value is not None:
            return None
        place = statement.location
        return [VariableDeclaration([each], literals.zero(place), place) for each in statement.variables]
