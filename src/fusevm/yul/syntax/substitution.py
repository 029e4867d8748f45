"""Expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.yul.syntax.ast import Expression, FunctionCall, Identifier
from fusevm.yul.syntax.walk import copy_expression


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """A copy in which copies of the values stand where their variables stood."""
    if isinstance(expression, Identifier):
        value = values.get(expression.name)
        return expression if value is None else copy_expression(value)
    if isinstance(expression, FunctionCall):
        arguments = [substituted(each, values) for each in expression.arguments]
        return FunctionCall(expression.function, arguments, expression.location)
    return expression
