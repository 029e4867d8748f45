"""DeadCodeEliminator (D): drops what follows a statement that never flows out.

Needs: Disambiguator, ForLoopInitRewriter (a loop's init block outlives its own end), FunctionHoister to find it all.
Does: after break, continue, leave, or a call that does not return, only function definitions stay in the block.
Why: inlining and constant conditions leave such code.
"""

from __future__ import annotations

from fusevm.yul.analysis.controlflow import TerminationFinder, function_flows
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, FunctionDefinition
from fusevm.yul.syntax.walk import Modifier


def run(context: StepContext, block: Block) -> None:
    finder = TerminationFinder(context.dialect, function_flows(context.dialect, block))
    _Eliminator(finder).block(block)


class _Eliminator(Modifier):
    def __init__(self, finder: TerminationFinder) -> None:
        super().__init__()
        self.finder = finder

    def block(self, block: Block) -> None:
        last = self.finder.first_exit(block.statements)
        if last is not None:
            rest = block.statements[last + 1 :]
            block.statements[last + 1 :] = [each for each in rest if isinstance(each, FunctionDefinition)]
        super().block(block)
