"""ForLoopConditionOutOfBody (O): the opposite of ForLoopConditionIntoBody.

Needs: Disambiguator.
Does: `for {…} true {…} { if iszero(C) { break } … }` becomes `for {…} C {…} {…}` where C is movable; `if C` without
iszero gives the condition `iszero(C)`.
Why: shorter, and ControlFlowSimplifier and others read a condition more easily there.
"""

from __future__ import annotations

from fusevm.yul.analysis.effects import EffectTable, builtin_effects, is_movable
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, Break, Expression, ForLoop, FunctionCall, Identifier, If, Literal
from fusevm.yul.syntax.walk import Modifier


def run(context: StepContext, block: Block) -> None:
    _Mover(builtin_effects(context.dialect)).block(block)


class _Mover(Modifier):
    def __init__(self, effects: EffectTable) -> None:
        super().__init__()
        self.effects = effects

    def loop(self, loop: ForLoop) -> None:
        super().loop(loop)
        if not (isinstance(loop.condition, Literal) and loop.condition.value and loop.body.statements):
            return
        first = loop.body.statements[0]
        if (
            isinstance(first, If)
            and first.body.statements
            and isinstance(first.body.statements[0], Break)
            and is_movable(first.condition, self.effects)
        ):
            loop.condition = _negated(first.condition)
            del loop.body.statements[0]


def _negated(condition: Expression) -> Expression:
    if isinstance(condition, FunctionCall) and condition.function.name == "iszero":
        return condition.arguments[0]
    place = condition.location
    return FunctionCall(Identifier("iszero", place), [condition], place)
