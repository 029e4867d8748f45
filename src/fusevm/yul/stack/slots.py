"""Variables as the stack generator sees them: a slot each, and how many references are still to come."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)


@dataclass(slots=True, eq=False)
class Variable:
    name: str
    scope: Scope  # that declares it
    references: int = 0  # still to come: reads, assignments, and one for being returned
    height: int = -1  # its slot, counted from the bottom


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a function begins, and how many values it leaves."""

    label: int
    returns: int


@dataclass(slots=True, eq=False)
class Scope:
    parent: Scope | None = None
    is_function: bool = False
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Entry] = field(default_factory=dict)

    def declare(self, names: list[TypedName]) -> None:
        for each in names:
            self.variables[each.name] = Variable(each.name, self)

    def variable(self, name: str) -> Variable:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        raise KeyError(name)

    def entry(self, name: str) -> Entry:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.parent
        raise KeyError(name)


class ReferenceCounter:
    """Builds the scopes and counts every variable's references."""

    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}

    def block(self, block: Block, outer: Scope | None) -> None:
        scope = self.scopes[id(block)] = Scope(outer)
        for statement in block.statements:
            self.statement(statement, scope)

    def statement(self, statement: Statement, scope: Scope) -> None:
        if isinstance(statement, ExpressionStatement):
            self.expression(statement.expression, scope)
        elif isinstance(statement, VariableDeclaration):
            if statement.value is not None:
                self.expression(statement.value, scope)
            scope.declare(statement.variables)
        elif isinstance(statement, Assignment):
            self.expression(statement.value, scope)
            for target in statement.targets:
                scope.variable(target.name).references += 1
        elif isinstance(statement, Block):
            self.block(statement, scope)
        elif isinstance(statement, If):
            self.expression(statement.condition, scope)
            self.block(statement.body, scope)
        elif isinstance(statement, Switch):
            self.expression(statement.expression, scope)
            for case in statement.cases:
                self.block(case.body, scope)
        elif isinstance(statement, ForLoop):
            self.loop(statement, scope)
        elif isinstance(statement, FunctionDefinition):
            self.function(statement, scope)

    def loop(self, loop: ForLoop, scope: Scope) -> None:
        self.block(loop.pre, scope)
        inner = self.scopes[id(loop.pre)]
        self.expression(loop.condition, inner)
        self.block(loop.post, inner)
        self.block(loop.body, inner)

    def function(self, function: FunctionDefinition, scope: Scope) -> None:
        own = self.scopes[id(function)] = Scope(scope, is_function=True)
        own.declare([*function.parameters, *function.returns])
        for variable in function.returns:
            own.variables[variable.name].references += 1
        self.block(function.body, own)

    def expression(self, expression: Expression, scope: Scope) -> None:
        if isinstance(expression, Identifier):
            scope.variable(expression.name).references += 1
        elif isinstance(expression, FunctionCall):
            for argument in expression.arguments:
                self.expression(argument, scope)
