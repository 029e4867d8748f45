"""MainFunction: the main code as a function named `main`.

Needs: Disambiguator, FunctionGrouper.
Does: `{ { code } function … }` becomes `{ function main() { code } function … }`; any other main is renamed.
Why: targets that run functions rather than blocks. (solc had it for WebAssembly and has dropped it since.)
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.steps.name_displacer import displace
from fusevm.yul.syntax.ast import Block, FunctionDefinition

NAME = "main"


def run(context: StepContext, block: Block) -> None:
    if not block.statements or not isinstance(block.statements[0], Block):
        raise ValueError("MainFunction needs FunctionGrouper: the first statement has to be the main block")
    displace(context.dispenser, block, {NAME})
    context.reserved |= {NAME}  # nothing in here calls it
    main = block.statements[0]
    assert isinstance(main, Block)
    block.statements[0] = FunctionDefinition(NAME, [], [], main, main.location)
