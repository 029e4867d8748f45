"""When two pieces of code are the same: keys for expressions, and functions that differ only in names."""

from __future__ import annotations

from typing import Any, TypeAlias

from fusevm.yul.ast import (
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

ExpressionKey: TypeAlias = "int | str | tuple[Any, ...]"


def key_of(expression: Expression) -> ExpressionKey:
    """Equal for syntactically equal expressions. Literals are equal by value, whatever their spelling."""
    if isinstance(expression, Literal):
        return (None, expression.text) if expression.unlimited else expression.value
    if isinstance(expression, Identifier):
        return expression.name
    parts: list[ExpressionKey] = [expression.function.name]
    for argument in expression.arguments:  # a plain loop: nothing but Python frames on the way down
        parts.append(key_of(argument))
    return tuple(parts)


def function_key(function: FunctionDefinition) -> tuple[Any, ...]:
    """Equal for functions that differ only in the names of their parameters and variables."""
    numbers: dict[str, int] = {}
    for variable in (*function.parameters, *function.returns):
        numbers[variable.name] = len(numbers)
    return len(function.parameters), len(function.returns), _block_key(function.body, numbers)


def _block_key(block: Block, numbers: dict[str, int]) -> tuple[Any, ...]:
    return tuple(_statement_key(each, numbers) for each in block.statements)


def _renamed_key(expression: Expression, numbers: dict[str, int]) -> ExpressionKey:
    if isinstance(expression, Identifier):
        return ("variable", numbers.get(expression.name, expression.name))
    if isinstance(expression, FunctionCall):
        parts: list[ExpressionKey] = [expression.function.name]
        for argument in expression.arguments:
            parts.append(_renamed_key(argument, numbers))
        return tuple(parts)
    return key_of(expression)


def _case_order(case: Case) -> int:
    """Cases are equal in whatever order they stand."""
    return -1 if case.value is None else case.value.value


def _case_key(case: Case, numbers: dict[str, int]) -> tuple[Any, ...]:
    return None if case.value is None else key_of(case.value), _block_key(case.body, numbers)


def _statement_key(statement: Any, numbers: dict[str, int]) -> tuple[Any, ...]:
    kind = statement.__class__
    if kind is ExpressionStatement:
        return kind, _renamed_key(statement.expression, numbers)
    if kind is VariableDeclaration:
        value = None if statement.value is None else _renamed_key(statement.value, numbers)
        for variable in statement.variables:
            numbers[variable.name] = len(numbers)
        return kind, len(statement.variables), value
    if kind is Assignment:
        targets = tuple(_renamed_key(each, numbers) for each in statement.targets)
        return kind, targets, _renamed_key(statement.value, numbers)
    if kind is If:
        return kind, _renamed_key(statement.condition, numbers), _block_key(statement.body, numbers)
    if kind is Switch:
        expression = _renamed_key(statement.expression, numbers)
        return kind, expression, *(_case_key(case, numbers) for case in sorted(statement.cases, key=_case_order))
    if kind is ForLoop:
        pre, condition = _block_key(statement.pre, numbers), _renamed_key(statement.condition, numbers)
        return kind, pre, condition, _block_key(statement.post, numbers), _block_key(statement.body, numbers)
    if kind is Block:
        return kind, _block_key(statement, numbers)
    if kind is FunctionDefinition:
        return kind, statement.name, function_key(statement)
    return (kind,)
