"""FunctionGrouper (g): the main code as one block, all functions after it.

Needs: Disambiguator, FunctionHoister.
Does: gives the program the form `{ { main code } function … function … }`.
Why: everyone knows then where the functions begin.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, FunctionDefinition, Statement


def run(context: StepContext, block: Block) -> None:
    if is_grouped(block):
        return
    main: list[Statement] = []
    functions: list[Statement] = []
    for statement in block.statements:
        (functions if isinstance(statement, FunctionDefinition) else main).append(statement)
    block.statements = [Block(main, block.location), *functions]


def is_grouped(block: Block) -> bool:
    if not block.statements or not isinstance(block.statements[0], Block):
        return False
    return all(isinstance(each, FunctionDefinition) for each in block.statements[1:])
