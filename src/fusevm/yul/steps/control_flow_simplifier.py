"""ControlFlowSimplifier (n): control structures that do nothing, or do it in a roundabout way.

Needs: Disambiguator, ForLoopInitRewriter.
Does: an `if` without body becomes `pop(condition)`; empty cases go; a switch with one case becomes an `if`, with none
a `pop`, with only a default its body; a loop whose body always ends it becomes an `if`; a last `leave` goes.
Why: fewer jumps, and the joins other steps are careful about disappear.
"""

from __future__ import annotations

from fusevm.yul.analysis.controlflow import Exit, TerminationFinder
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import (
    Block,
    Break,
    Continue,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Leave,
    Location,
    Statement,
    Switch,
)
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    _Simplifier(TerminationFinder(context.dialect)).block(block)


class _Simplifier(Rewriter):
    def __init__(self, finder: TerminationFinder) -> None:
        super().__init__()
        self.finder = finder
        self.breaks = self.continues = 0  # of the loop we are in

    def break_(self, statement: Break) -> None:
        self.breaks += 1

    def continue_(self, statement: Continue) -> None:
        self.continues += 1

    def function(self, function: FunctionDefinition) -> None:
        super().function(function)
        body = function.body.statements
        if body and isinstance(body[-1], Leave):
            body.pop()

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        replacement: list[Statement] | None = None
        if isinstance(statement, If) and not statement.body.statements:
            replacement = [discard(statement.condition, statement.location)]
        elif isinstance(statement, Switch):
            replacement = _reduced(statement)
        elif isinstance(statement, ForLoop):
            return self.unlooped(statement)
        if replacement is None:
            self.statement(statement)
            return None
        return self.rewritten(replacement)

    def unlooped(self, loop: ForLoop) -> list[Statement] | None:
        """The loop as an `if`, where it never runs twice."""
        outer = self.breaks, self.continues
        self.breaks = self.continues = 0
        self.loop(loop)
        breaks, continues = self.breaks, self.continues
        self.breaks, self.continues = outer
        body = loop.body.statements
        way_out = self.finder.exit_of(body[-1]) if body else Exit.FLOW_OUT
        if way_out is Exit.BREAK:
            breaks -= 1
        elif way_out not in (Exit.TERMINATE, Exit.LEAVE):
            return None
        if breaks or continues:
            return None
        if way_out is Exit.BREAK:
            body.pop()
        return [If(loop.condition, loop.body, loop.location)]


def _reduced(switch: Switch) -> list[Statement] | None:
    """Without empty cases; what the switch becomes if less than two are left."""
    switch.cases = [case for case in switch.cases if case.value is not None or case.body.statements]
    if all(case.value is not None for case in switch.cases):
        switch.cases = [case for case in switch.cases if case.body.statements]
    if not switch.cases:
        return [discard(switch.expression, switch.location)]
    if len(switch.cases) > 1:
        return None
    case, place = switch.cases[0], switch.expression.location
    if case.value is None:
        return [discard(switch.expression, switch.location), case.body]
    condition = FunctionCall(Identifier("eq", place), [case.value, switch.expression], place)
    return [If(condition, case.body, switch.location)]


def discard(expression: Expression, location: Location) -> Statement:
    return ExpressionStatement(FunctionCall(Identifier("pop", location), [expression], location), location)
