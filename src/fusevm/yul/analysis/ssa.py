"""Variables that are given a value once and for all."""

from __future__ import annotations

from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import Assignment, Block, Expression, FunctionDefinition, VariableDeclaration
from fusevm.yul.syntax.walk import assigned_names, count_variables, nodes

_ZERO = literals.zero()


def ssa_values(block: Block) -> dict[str, Expression]:
    """The variables never assigned to, with their value. Parameters and variables declared together are left out."""
    values: dict[str, Expression] = {}
    assigned: set[str] = set()
    for node in nodes(block):
        kind = node.__class__
        if kind is VariableDeclaration:
            if node.value is None:
                values.update((variable.name, _ZERO) for variable in node.variables)
            elif len(node.variables) == 1:
                values[node.variables[0].name] = node.value
        elif kind is Assignment:
            assigned.update(target.name for target in node.targets)
        elif kind is FunctionDefinition:
            values.update((variable.name, _ZERO) for variable in node.returns)
    for name in assigned:
        values.pop(name, None)
    return values


def fixed_names(block: Block) -> set[str]:
    """The variables never assigned to, parameters included; but those declared together are left out."""
    functions = (node for node in nodes(block) if isinstance(node, FunctionDefinition))
    parameters = {each.name for function in functions for each in function.parameters}
    return ssa_values(block).keys() | (parameters - assigned_names(block))


def fixed_values(block: Block) -> tuple[dict[str, Expression], set[str]]:
    """For variables never assigned to: the values that stay true for as long as the variable lives, and their names.

    A value that mentions a variable which is assigned to later says nothing about what the two hold at the same time.
    """
    values = ssa_values(block)
    assigned = assigned_names(block)
    names = set(values)
    true = {name: value for name, value in values.items() if count_variables(value).keys().isdisjoint(assigned)}
    return true, names
