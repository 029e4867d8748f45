"""NameSimplifier: shorter names for what Solidity's code generator named at length.

Needs: Disambiguator.
Does: drops numbers of the syntax tree, type prefixes and the like from declared names, as long as the result is free.
Why: readers.
"""

from __future__ import annotations

import re

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.names import NameDispenser, by_hash
from fusevm.yul.syntax.walk import Modifier, declared_names

# One after the other, each applied to what the last one left.
_REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"_\$|\$_", "_"),  # marks around mangled types
        (r"_[0-9]+([^0-9a-fA-Fx])", r"\1"),  # numbers of the syntax tree, if they are not hex
        (r"_[0-9]+$", ""),
        (r"_t_", "_"),
        (r"__", "_"),
        (r"(abi_..code.*)_to_.*", r"\1"),
        (r"(stringliteral_?[0-9a-f]{4})[0-9a-f]*", r"\1"),
        (r"tuple_", ""),
        (r"_memory_ptr", ""),
        (r"_calldata_ptr", "_calldata"),
        (r"_fromStack", ""),
        (r"_storage_storage", "_storage"),
        (r"(storage.*)_?storage", r"\1"),
        (r"_memory_memory", "_memory"),
        (r"_contract\$_([^_]*)_?", r"\1_"),
        (r"index_access_(t_)?array", "index_access"),
        (r"[0-9]*_$", ""),
    )
)


def run(context: StepContext, block: Block) -> None:
    renamed: dict[str, str] = {}
    for name in by_hash(declared_names(block) - context.reserved):
        simple = _simplified(context.dispenser, name)
        if simple != name:
            context.dispenser.mark_used(simple)
            renamed[name] = simple
    Renamer(renamed).block(block)


def _simplified(dispenser: NameDispenser, name: str) -> str:
    for pattern, replacement in _REPLACEMENTS:
        candidate = pattern.sub(replacement, name)
        if candidate and not dispenser.is_illegal(candidate):
            name = candidate
    return name


class Renamer(Modifier):
    """Renames variables and functions by a table."""

    def __init__(self, renamed: dict[str, str]) -> None:
        super().__init__()
        self.renamed = renamed

    def identifier(self, identifier: Identifier) -> Identifier:
        new = self.renamed.get(identifier.name)
        return identifier if new is None else Identifier(new, identifier.location)

    def declared(self, variables: list[TypedName]) -> list[TypedName]:
        return [TypedName(self.renamed.get(each.name, each.name), each.location) for each in variables]

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            return self.identifier(expression)
        return super().expression(expression)

    def call(self, call: FunctionCall) -> None:
        call.function = self.identifier(call.function)
        super().call(call)

    def assignment(self, assignment: Assignment) -> None:
        assignment.targets = [self.identifier(each) for each in assignment.targets]
        super().assignment(assignment)

    def declaration(self, declaration: VariableDeclaration) -> None:
        declaration.variables = self.declared(declaration.variables)
        super().declaration(declaration)

    def function(self, function: FunctionDefinition) -> None:
        function.name = self.renamed.get(function.name, function.name)
        function.parameters = self.declared(function.parameters)
        function.returns = self.declared(function.returns)
        super().function(function)
