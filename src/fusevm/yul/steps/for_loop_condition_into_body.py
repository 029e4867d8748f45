"""ForLoopConditionIntoBody (I): moves a loop's condition to the head of its body.

Needs: Disambiguator.
Does: `for {…} C {…} {…}` becomes `for {…} true {…} { if iszero(C) { break } … }`, unless C is a variable or literal.
Why: ExpressionSplitter can't split a loop's condition, but it can split this.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Block, Break, ForLoop, FunctionCall, Identifier, If
from fusevm.yul.syntax.walk import Modifier


def run(context: StepContext, block: Block) -> None:
    _Mover().block(block)


class _Mover(Modifier):
    def loop(self, loop: ForLoop) -> None:
        condition = loop.condition
        if isinstance(condition, FunctionCall):
            place = condition.location
            ended = FunctionCall(Identifier("iszero", place), [condition], place)
            loop.body.statements.insert(0, If(ended, Block([Break(place)], place), place))
            loop.condition = literals.true(place)
        super().loop(loop)
