"""CircularReferencesPruner (l): drops functions that only call each other.

Needs: Disambiguator, FunctionHoister.
Does: removes every function the main code cannot reach through calls.
Why: UnusedPruner keeps a function as long as anything mentions it, even if only itself.
"""

from __future__ import annotations

from fusevm.yul.analysis.callgraph import MAIN, call_graph
from fusevm.yul.context import StepContext
from fusevm.yul.steps import function_grouper
from fusevm.yul.syntax.ast import Block, FunctionDefinition


def run(context: StepContext, block: Block) -> None:
    reached = call_graph(block).reached((MAIN, *context.reserved))
    block.statements = [s for s in block.statements if not isinstance(s, FunctionDefinition) or s.name in reached]
    function_grouper.run(context, block)
