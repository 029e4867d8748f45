"""UnusedFunctionParameterPruner (p): functions without the parameters and return variables that are not used.

Needs: Disambiguator, FunctionHoister; LiteralRematerialiser makes parameters unused.
Does: the function keeps its name and loses them; a new one with the old signature calls it: `function f_1(x, y) -> z
{ z := f(x) }`. All old calls go to the new one, which is small enough to be inlined everywhere.
Why: arguments that are never read need not be computed.
"""

from __future__ import annotations

from collections.abc import Set

from fusevm.yul.analysis.metrics import code_size
from fusevm.yul.context import StepContext
from fusevm.yul.steps.name_displacer import displace
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    ExpressionStatement,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Statement,
    TypedName,
)
from fusevm.yul.syntax.names import NameDispenser
from fusevm.yul.syntax.walk import count_variables


def run(context: StepContext, block: Block) -> None:
    used = count_variables(block).keys()
    prunable = {
        each.name
        for each in block.statements
        if isinstance(each, FunctionDefinition) and not _is_simple(each) and not _all_used(each, used)
    }
    if not prunable:
        return
    old_names = {new: old for old, new in displace(context.dispenser, block, prunable).items()}
    statements: list[Statement] = []
    for statement in block.statements:
        statements.append(statement)
        if isinstance(statement, FunctionDefinition) and statement.name in old_names:
            linking = statement.name
            statement.name = old_names[linking]
            statements.append(_linking_function(context.dispenser, statement, linking, used))
            statement.parameters = [each for each in statement.parameters if each.name in used]
            statement.returns = [each for each in statement.returns if each.name in used]
    block.statements = statements


def _is_simple(function: FunctionDefinition) -> bool:
    """So small that it will be inlined anyway. Pruning the linking functions again would never end."""
    return len(function.body.statements) <= 1 and code_size(function.body) <= 1


def _all_used(function: FunctionDefinition, used: Set[str]) -> bool:
    return all(each.name in used for each in (*function.parameters, *function.returns))


def _linking_function(
    dispenser: NameDispenser, function: FunctionDefinition, name: str, used: Set[str]
) -> FunctionDefinition:
    """The old signature over the function that is about to lose its unused variables."""
    place = function.location

    def renewed(variables: list[TypedName]) -> tuple[list[TypedName], list[Identifier]]:
        new = [TypedName(dispenser.new_name(each.name), each.location) for each in variables]
        kept = [Identifier(copy.name, place) for each, copy in zip(variables, new, strict=True) if each.name in used]
        return new, kept

    parameters, arguments = renewed(function.parameters)
    returns, targets = renewed(function.returns)
    call = FunctionCall(Identifier(function.name, place), list(arguments), place)
    body: Statement = Assignment(targets, call, place) if targets else ExpressionStatement(call, place)
    return FunctionDefinition(name, parameters, returns, Block([body], place), place)
