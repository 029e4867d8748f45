"""Variables as the stack generator sees them: a slot each, and how many references are still to come."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ForLoop,
    FunctionDefinition,
    Identifier,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.walk import Modifier


@dataclass(slots=True, eq=False)
class VariableSlot:
    name: str
    scope: SlotScope  # that declares it
    references: int = 0  # still to come: reads, assignments, and one for being returned
    height: int = -1  # its slot, counted from the bottom


@dataclass(frozen=True, slots=True)
class FunctionLabel:
    """Where a function begins, and how many values it leaves."""

    label: int
    returns: int


@dataclass(slots=True, eq=False)
class SlotScope:
    parent: SlotScope | None = None
    is_function: bool = False
    variables: dict[str, VariableSlot] = field(default_factory=dict)
    functions: dict[str, FunctionLabel] = field(default_factory=dict)

    def declare(self, names: list[TypedName]) -> None:
        for each in names:
            self.variables[each.name] = VariableSlot(each.name, self)

    def variable(self, name: str) -> VariableSlot:
        scope: SlotScope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        raise KeyError(name)

    def entry(self, name: str) -> FunctionLabel:
        scope: SlotScope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.parent
        raise KeyError(name)


class ReferenceCounter(Modifier):
    """Builds the scopes and counts every variable's references."""

    def __init__(self) -> None:
        super().__init__()
        self.scopes: dict[int, SlotScope] = {}
        self.scope = SlotScope()

    def block(self, block: Block) -> None:
        outer = self.scope
        self.scope = self.scopes[id(block)] = SlotScope(outer)
        super().block(block)
        self.scope = outer

    def declaration(self, declaration: VariableDeclaration) -> None:
        super().declaration(declaration)
        self.scope.declare(declaration.variables)

    def assignment(self, assignment: Assignment) -> None:
        super().assignment(assignment)
        for target in assignment.targets:
            self.expression(target)

    def loop(self, loop: ForLoop) -> None:
        outer = self.scope
        self.block(loop.pre)
        self.scope = self.scopes[id(loop.pre)]
        self.expression(loop.condition)
        self.block(loop.post)
        self.block(loop.body)
        self.scope = outer

    def function(self, function: FunctionDefinition) -> None:
        outer = self.scope
        self.scope = self.scopes[id(function)] = SlotScope(outer, is_function=True)
        self.scope.declare([*function.parameters, *function.returns])
        for variable in function.returns:
            self.scope.variables[variable.name].references += 1
        self.block(function.body)
        self.scope = outer

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Identifier):
            self.scope.variable(expression.name).references += 1
        return super().expression(expression)
