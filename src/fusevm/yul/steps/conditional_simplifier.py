"""ConditionalSimplifier (C): writes down what a branch taken says about the value it was taken on.

Needs: Disambiguator.
Does: begins `case V` of a switch on a variable x with `x := V`, and puts `c := 0` after an `if c` whose body never
flows out.
Why: the data flow then knows the value. ConditionalUnsimplifier takes it back.
"""

from __future__ import annotations

from fusevm.yul.analysis.controlflow import Exit, TerminationFinder, function_flows
from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Assignment, Block, Identifier, If, Statement, Switch
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    finder = TerminationFinder(context.dialect, function_flows(context.dialect, block))
    _Simplifier(finder).block(block)


class _Simplifier(Rewriter):
    def __init__(self, finder: TerminationFinder) -> None:
        super().__init__()
        self.finder = finder

    def switch(self, statement: Switch) -> None:
        if isinstance(statement.expression, Identifier):
            for case in statement.cases:
                if case.value is not None:
                    place = case.body.location
                    target = Identifier(statement.expression.name, place)
                    case.body.statements.insert(0, Assignment([target], case.value, place))
        super().switch(statement)

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        self.statement(statement)
        if (
            isinstance(statement, If)
            and isinstance(statement.condition, Identifier)
            and statement.body.statements
            and self.finder.exit_of(statement.body.statements[-1]) is not Exit.FLOW_OUT
        ):
            place = statement.location
            target = Identifier(statement.condition.name, place)
            return [statement, Assignment([target], literals.zero(place), place)]
        return None
