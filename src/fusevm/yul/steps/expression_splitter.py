"""ExpressionSplitter (x): gives every call's value a variable, so that arguments are only variables.

Needs: Disambiguator, ForLoopConditionIntoBody to reach loop conditions (they are left alone).
Does: `let z := add(mload(x), mul(mload(y), 0x20))` becomes a chain of `let _1 := 0x20 let _2 := mload(y) …`, in the
order of evaluation.
Why: a flat sequence is easier to reorder, to inline into and to compare.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import (
    Block,
    Expression,
    ForLoop,
    FunctionCall,
    Identifier,
    If,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.walk import Rewriter


def run(context: StepContext, block: Block) -> None:
    Splitter(context).block(block)


class Splitter(Rewriter):
    def __init__(self, context: StepContext) -> None:
        super().__init__()
        self.dialect = context.dialect
        self.dispenser = context.dispenser
        self.before: list[Statement] = []  # what has to stand before the statement being visited

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        outer, self.before = self.before, []
        self.statement(statement)
        before, self.before = self.before, outer
        if not before:
            return None
        before.append(statement)
        return before

    def call(self, call: FunctionCall) -> None:
        builtin = self.dialect.builtin(call.function.name)
        arguments = call.arguments
        for index in range(len(arguments) - 1, -1, -1):
            if builtin is None or builtin.literal_kind(index) is None:
                arguments[index] = self.outlined(arguments[index])

    def if_(self, statement: If) -> None:
        statement.condition = self.outlined(statement.condition)
        self.block(statement.body)

    def switch(self, statement: Switch) -> None:
        statement.expression = self.outlined(statement.expression)
        for case in statement.cases:
            self.block(case.body)

    def loop(self, loop: ForLoop) -> None:
        self.block(loop.pre)
        self.block(loop.post)
        self.block(loop.body)

    def outlined(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            return expression
        if expression.__class__ is FunctionCall:
            self.call(expression)
        place = expression.location
        name = self.dispenser.new_name("")
        self.before.append(VariableDeclaration([TypedName(name, place)], expression, place))
        return Identifier(name, place)
