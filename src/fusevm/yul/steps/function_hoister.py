"""FunctionHoister (h): moves all function definitions to the end of the outermost block.

Needs: Disambiguator.
Does: takes functions out of wherever they stand, inner before outer; empty blocks go on the way.
Why: a function can't mention variables of another, so its place means nothing; at the top everyone finds it.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, FunctionDefinition, Statement
from fusevm.yul.syntax.walk import Modifier


def run(context: StepContext, block: Block) -> None:
    hoister = _Hoister()
    hoister.block(block)
    block.statements += hoister.functions


class _Hoister(Modifier):
    def __init__(self) -> None:
        super().__init__()
        self.functions: list[Statement] = []

    def block(self, block: Block) -> None:
        kept: list[Statement] = []
        for statement in block.statements:
            self.statement(statement)
            if isinstance(statement, FunctionDefinition):
                self.functions.append(statement)
            elif not isinstance(statement, Block) or statement.statements:
                kept.append(statement)
        block.statements = kept
