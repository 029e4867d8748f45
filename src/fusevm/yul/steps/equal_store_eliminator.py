"""EqualStoreEliminator (E): drops stores of the value that is there already.

Needs: Disambiguator, ForLoopInitRewriter; sees more after ExpressionSplitter.
Does: removes `mstore(k, v)` and `sstore(k, v)` where the data flow knows that place k holds v.
Why: a store is expensive, and this one changes nothing.
"""

from __future__ import annotations

from fusevm.yul.analysis.dataflow import StoreAnalyzer, simple_store
from fusevm.yul.analysis.effects import EffectTable, program_effects
from fusevm.yul.context import StepContext
from fusevm.yul.steps.statement_remover import remove_statements
from fusevm.yul.syntax.ast import Block, ExpressionStatement
from fusevm.yul.syntax.dialect import Dialect


def run(context: StepContext, block: Block) -> None:
    finder = _Finder(context.dialect, program_effects(context.dialect, block))
    finder.block(block)
    remove_statements(block, finder.redundant)


class _Finder(StoreAnalyzer):
    def __init__(self, dialect: Dialect, effects: EffectTable) -> None:
        super().__init__(dialect, effects)
        self.redundant: set[int] = set()

    def expression_statement(self, statement: ExpressionStatement) -> None:
        for builtin, known in (("sstore", self.storage), ("mstore", self.memory)):
            store = simple_store(builtin, statement.expression)
            if store is not None and known.get(store[0]) == store[1]:
                self.redundant.add(id(statement))
        super().expression_statement(statement)
