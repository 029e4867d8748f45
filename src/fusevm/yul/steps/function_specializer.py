"""FunctionSpecializer (F): a copy of a function for each call that hands it a literal.

Needs: Disambiguator, FunctionHoister; LiteralRematerialiser, to have literals as arguments.
Does: `f(2, x)` becomes `f_1(x)`, where f_1 is f with its first parameter declared as 2 at the head of the body.
Recursive functions are left alone, and nothing is copied beyond the budget for growth.
Why: the body shrinks around the constant; if it doesn't, EquivalentFunctionCombiner and the inliners clean up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusevm.yul.analysis.callgraph import call_graph
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import (
    Block,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Literal,
    Statement,
    VariableDeclaration,
)
from fusevm.yul.syntax.names import by_hash
from fusevm.yul.syntax.walk import Modifier, RenamingCopier, declared_names, functions_of


def run(context: StepContext, block: Block) -> None:
    graph = call_graph(block)
    definitions = {each.name: each for each in functions_of(block)}
    specializer = _Specializer(context, set(graph.calls) - graph.recursive(), definitions)
    specializer.block(block)
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, FunctionDefinition):
            wanted = specializer.wanted.get(statement.name, [])
            statements += [_specialized(context, statement, each) for each in wanted]
        statements.append(statement)
    block.statements = statements


@dataclass(slots=True)
class _Wanted:
    """A function as one call needs it: its new name, and the literals for its parameters where they are known."""

    name: str
    arguments: list[Literal | None]


class _Specializer(Modifier):
    """Redirects the calls and notes which functions they need."""

    def __init__(
        self, context: StepContext, functions: set[str], definitions: Mapping[str, FunctionDefinition]
    ) -> None:
        super().__init__()
        self.context = context
        self.dispenser = context.dispenser
        self.definitions = definitions
        self.functions = functions
        self.wanted: dict[str, list[_Wanted]] = {}

    def call(self, call: FunctionCall) -> None:
        super().call(call)
        old = call.function.name
        if old not in self.functions or not any(isinstance(each, Literal) for each in call.arguments):
            return
        if not self.context.may_copy(self.definitions[old]):
            return
        new = self.dispenser.new_name(old)
        arguments = [each if isinstance(each, Literal) else None for each in call.arguments]
        self.wanted.setdefault(old, []).append(_Wanted(new, arguments))
        call.function = Identifier(new, call.function.location)
        call.arguments = [each for each in call.arguments if not isinstance(each, Literal)]


def _specialized(context: StepContext, function: FunctionDefinition, wanted: _Wanted) -> FunctionDefinition:
    names = by_hash(declared_names(function, functions=False))
    copy = RenamingCopier({name: context.dispenser.new_name(name) for name in names}).function(function)
    known: list[Statement] = [
        VariableDeclaration([parameter], argument, function.location)
        for parameter, argument in zip(copy.parameters, wanted.arguments, strict=True)
        if argument is not None
    ]
    copy.body.statements[:0] = known
    copy.parameters = [p for p, argument in zip(copy.parameters, wanted.arguments, strict=True) if argument is None]
    copy.name = wanted.name
    return copy
