"""ExpressionInliner (e, once FunctionalInliner): puts the expression of a one-expression function in place of its call.

Needs: Disambiguator.
Does: for `function f(…) -> r { r := E }`, E mentioning neither r nor f, a call with movable arguments becomes E with
the arguments put in; an argument that would be doubled must be cheap. Copies no more than the budget for growth allows.
Why: it makes no statements, so it works inside expressions.
"""

from __future__ import annotations

from fusevm.yul.analysis.effects import builtin_effects, is_movable
from fusevm.yul.analysis.metrics import code_cost
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Assignment, Block, Expression, FunctionCall, FunctionDefinition, Identifier
from fusevm.yul.syntax.substitution import substituted
from fusevm.yul.syntax.walk import Modifier, copy_expression, count_variables, functions_of, nodes


def run(context: StepContext, block: Block) -> None:
    functions = {each.name: each for each in functions_of(block) if _is_expression(each)}
    if functions:
        _Inliner(context, functions).block(block)


def _is_expression(function: FunctionDefinition) -> bool:
    if len(function.returns) != 1 or len(function.body.statements) != 1:
        return False
    statement = function.body.statements[0]
    own = function.returns[0].name
    if not isinstance(statement, Assignment) or [each.name for each in statement.targets] != [own]:
        return False
    for node in nodes(statement.value):
        if (isinstance(node, Identifier) and node.name == own) or (
            isinstance(node, FunctionCall) and node.function.name == function.name
        ):
            return False
    return True


class _Inliner(Modifier):
    def __init__(self, context: StepContext, functions: dict[str, FunctionDefinition]) -> None:
        super().__init__()
        self.context = context
        self.dialect = context.dialect
        self.effects = builtin_effects(context.dialect)
        self.functions = functions

    def expression(self, expression: Expression) -> Expression:
        super().expression(expression)
        if isinstance(expression, FunctionCall):
            function = self.functions.get(expression.function.name)
            if function is not None:
                return self.inlined(expression, function)
        return expression

    def inlined(self, call: FunctionCall, function: FunctionDefinition) -> Expression:
        mentions = count_variables(function.body)
        values: dict[str, Expression] = {}
        for parameter, argument in zip(function.parameters, call.arguments, strict=True):
            if not is_movable(argument, self.effects):
                return call
            if mentions.get(parameter.name, 0) > 1 and code_cost(self.dialect, argument) > 1:
                return call
            values[parameter.name] = argument
        body = function.body.statements[0]
        assert isinstance(body, Assignment)
        if not self.context.may_copy(body.value):
            return call
        value = body.value
        if self.context.keeps_calls:
            value = copy_expression(value)
            self.context.mark_inlined(value, call.location)
        return substituted(value, values)
