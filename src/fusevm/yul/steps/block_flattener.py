"""BlockFlattener (f): puts the statements of nested blocks into the block around them.

Needs: Disambiguator, FunctionGrouper (the blocks at the top are left alone, they are the program's shape).
Does: `{ let x := 2 { let y := 3 } }` becomes `{ let x := 2 let y := 3 }` in the main block and in functions.
Why: scopes only grow, and other steps see longer runs of statements.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, FunctionDefinition, Statement
from fusevm.yul.syntax.walk import Modifier


def run(context: StepContext, block: Block) -> None:
    flattener = _Flattener()
    for statement in block.statements:
        if isinstance(statement, Block):
            flattener.block(statement)
        elif isinstance(statement, FunctionDefinition):
            flattener.block(statement.body)


class _Flattener(Modifier):
    def block(self, block: Block) -> None:
        super().block(block)
        if any(each.__class__ is Block for each in block.statements):
            flat: list[Statement] = []
            for statement in block.statements:
                if isinstance(statement, Block):
                    flat += statement.statements
                else:
                    flat.append(statement)
            block.statements = flat
