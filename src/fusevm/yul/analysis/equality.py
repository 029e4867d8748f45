"""When two pieces of code are the same: numbers for expressions, and functions that differ only in names.

Nothing here nests tuples as deep as the code nests: hashing and comparing those would take machine stack, and as much
time for every part as for the whole.
"""

from __future__ import annotations

from typing import Any

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Case,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Literal,
    Switch,
    VariableDeclaration,
)

LeafKey = int | str | tuple[None, str]


def leaf_key(expression: Literal | Identifier) -> LeafKey:
    """Equal for equal literals and variables. Literals are equal by value, whatever their spelling."""
    if isinstance(expression, Identifier):
        return expression.name
    return (None, expression.text) if expression.unlimited else expression.value


class ExpressionKeys:
    """Gives syntactically equal expressions the same number. An expression that was asked about must not change."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._calls: dict[int, tuple[FunctionCall, int]] = {}

    def of(self, expression: Expression) -> int:
        if not isinstance(expression, FunctionCall):
            return self._number(leaf_key(expression))
        known = self._calls.get(id(expression))
        if known is not None:
            return known[1]
        parts: list[str | int] = [expression.function.name]
        for argument in expression.arguments:
            parts.append(self.of(argument))
        number = self._number(tuple(parts))
        self._calls[id(expression)] = expression, number
        return number

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def function_key(function: FunctionDefinition) -> tuple[Any, ...]:
    """Equal for functions that differ only in the names of their parameters and variables."""
    writer = _Writer()
    writer.function(function)
    return tuple(writer.key)


class _Writer:
    """The function as a flat list, each variable as the number of its declaration, each list led by its length."""

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.numbers: dict[str, int] = {}

    def function(self, function: FunctionDefinition) -> None:
        for variable in (*function.parameters, *function.returns):
            self.numbers[variable.name] = len(self.numbers)
        self.key += [len(function.parameters), len(function.returns)]
        self.block(function.body)

    def block(self, block: Block) -> None:
        self.key.append(len(block.statements))
        for statement in block.statements:
            self.statement(statement)

    def expression(self, expression: Expression) -> None:
        if isinstance(expression, FunctionCall):
            self.key += [FunctionCall, expression.function.name, len(expression.arguments)]
            for argument in expression.arguments:
                self.expression(argument)
        elif isinstance(expression, Identifier):
            self.key += [Identifier, self.numbers.get(expression.name, expression.name)]
        else:
            self.key += [Literal, leaf_key(expression)]

    def statement(self, statement: Any) -> None:
        kind = statement.__class__
        self.key.append(kind)
        if kind is ExpressionStatement:
            self.expression(statement.expression)
        elif kind is VariableDeclaration:
            self.declaration(statement)
        elif kind is Assignment:
            self.key.append(len(statement.targets))
            for target in statement.targets:
                self.expression(target)
            self.expression(statement.value)
        elif kind is If:
            self.expression(statement.condition)
            self.block(statement.body)
        elif kind is Switch:
            self.switch(statement)
        elif kind is ForLoop:
            self.block(statement.pre)
            self.expression(statement.condition)
            self.block(statement.post)
            self.block(statement.body)
        elif kind is Block:
            self.block(statement)
        elif kind is FunctionDefinition:
            self.key.append(statement.name)
            self.function(statement)

    def declaration(self, declaration: VariableDeclaration) -> None:
        self.key += [len(declaration.variables), declaration.value is None]
        if declaration.value is not None:
            self.expression(declaration.value)
        for variable in declaration.variables:
            self.numbers[variable.name] = len(self.numbers)

    def switch(self, switch: Switch) -> None:
        """Cases are equal in whatever order they stand."""
        self.expression(switch.expression)
        self.key.append(len(switch.cases))
        for case in sorted(switch.cases, key=_case_order):
            self.key.append(None if case.value is None else leaf_key(case.value))
            self.block(case.body)


def _case_order(case: Case) -> int:
    return -1 if case.value is None else case.value.value
