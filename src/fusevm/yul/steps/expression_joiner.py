"""ExpressionJoiner (j): puts the value of a variable used once, just after its declaration, where it is used.

Needs: Disambiguator.
Does: `let x := add(0, 2) let y := mul(x, 3)` becomes `let y := mul(add(0, 2), 3)`, never changing the order in which
calls are evaluated. The opposite of ExpressionSplitter.
Why: fewer variables on the stack.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.steps import function_grouper
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Identifier, Statement, VariableDeclaration
from fusevm.yul.syntax.walk import Modifier, count_variables, remove_empty_blocks


def run(context: StepContext, block: Block) -> None:
    _Joiner(count_variables(block)).block(block)
    function_grouper.run(context, block)


class _Joiner(Modifier):
    """`latest` is the statement executed just before the expression being visited; what was joined becomes a hole."""

    def __init__(self, mentions: dict[str, int]) -> None:
        super().__init__()
        self.mentions = mentions
        self.statements: list[Statement] | None = None
        self.latest = -1

    def block(self, block: Block) -> None:
        self.forget()
        for index, statement in enumerate(block.statements):
            self.statement(statement)
            self.statements, self.latest = block.statements, index
        remove_empty_blocks(block)
        self.forget()

    def forget(self) -> None:
        self.statements, self.latest = None, -1

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            return self.joined(expression)
        return super().expression(expression)

    def call(self, call: FunctionCall) -> None:
        """Only where everything to the right is a variable or literal may something be put in: order matters."""
        arguments = call.arguments
        start = len(arguments)
        while start > 0:
            start -= 1
            if arguments[start].__class__ is FunctionCall:
                break
        for index in range(start, len(arguments)):
            arguments[index] = self.expression(arguments[index])

    def joined(self, identifier: Identifier) -> Expression:
        if self.statements is None:
            return identifier
        latest = self.statements[self.latest]
        if (
            latest.__class__ is not VariableDeclaration
            or len(latest.variables) != 1
            or latest.value is None
            or latest.variables[0].name != identifier.name
            or self.mentions[identifier.name] != 1
        ):
            return identifier
        self.statements[self.latest] = Block()
        if self.latest > 0:
            self.latest -= 1
        else:
            self.forget()
        return latest.value
