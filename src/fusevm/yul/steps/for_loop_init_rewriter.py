"""ForLoopInitRewriter (o): moves a loop's init block before the loop.

Needs: Disambiguator.
Does: `for { Init } C { Post } { Body }` becomes `Init for {} C { Post } { Body }`. No block is put around them: names
are unique, so nothing can clash.
Why: the odd scope of the init block is gone, and later steps need not consider it.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, ForLoop, Statement
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    _Mover().block(block)


class _Mover(Rewriter):
    def rewrite(self, statement: Statement) -> list[Statement] | None:
        self.statement(statement)
        if not isinstance(statement, ForLoop):
            return None
        before, statement.pre.statements = statement.pre.statements, []
        return [*before, statement]
