"""ConditionalUnsimplifier (U): takes back what ConditionalSimplifier wrote down.

Needs: Disambiguator.
Does: removes `x := V` at the head of `case V` of a switch on x, and `c := 0` after an `if c` that never flows out.
Why: the assignments only told the data flow something; executing them is waste.
"""

from __future__ import annotations

from fusevm.yul.analysis.controlflow import Exit, TerminationFinder, function_flows
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Assignment, Block, Identifier, If, Literal, Statement, Switch
from fusevm.yul.syntax.walk import Modifier, rewrite_pairs


def run(context: StepContext, block: Block) -> None:
    finder = TerminationFinder(context.dialect, function_flows(context.dialect, block))
    _Unsimplifier(finder).block(block)


class _Unsimplifier(Modifier):
    def __init__(self, finder: TerminationFinder) -> None:
        super().__init__()
        self.finder = finder

    def switch(self, statement: Switch) -> None:
        if isinstance(statement.expression, Identifier):
            for case in statement.cases:
                body = case.body.statements
                if case.value is not None and body and _assigns(body[0], statement.expression.name, case.value.value):
                    del body[0]
        super().switch(statement)

    def block(self, block: Block) -> None:
        super().block(block)
        if any(each.__class__ is If for each in block.statements):
            block.statements = rewrite_pairs(block.statements, self.without_zero)

    def without_zero(self, first: Statement, second: Statement) -> list[Statement] | None:
        if (
            isinstance(first, If)
            and isinstance(first.condition, Identifier)
            and first.body.statements
            and _assigns(second, first.condition.name, 0)
            and self.finder.exit_of(first.body.statements[-1]) is not Exit.FLOW_OUT
        ):
            return [first]
        return None


def _assigns(statement: Statement, name: str, value: int) -> bool:
    """Whether it is just `name := value`."""
    return (
        isinstance(statement, Assignment)
        and [target.name for target in statement.targets] == [name]
        and isinstance(statement.value, Literal)
        and statement.value.value == value
    )
