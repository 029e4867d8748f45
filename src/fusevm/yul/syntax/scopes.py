"""Which names are in sight where: solc's rules, under which a name may not hide another, whatever that is."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.yul.syntax.ast import (
    Block,
    Expression,
    ForLoop,
    FunctionDefinition,
    Location,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.errors import ErrorKind, ErrorList
from fusevm.yul.syntax.walk import Modifier


@dataclass(slots=True, eq=False)
class VariableSymbol:
    active: bool = False  # its declaration has been passed


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSymbol:
    parameters: int
    returns: int


@dataclass(slots=True, eq=False)
class Scope:
    parent: Scope | None = None
    is_function: bool = False  # variables outside are out of sight
    names: dict[str, VariableSymbol | FunctionSymbol] = field(default_factory=dict)

    def is_taken(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.parent
        return False

    def find(self, name: str) -> VariableSymbol | FunctionSymbol | None:
        scope: Scope | None = self
        outside = False
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return None if outside and isinstance(found, VariableSymbol) else found
            outside = outside or scope.is_function
            scope = scope.parent
        return None


class ScopeFiller(Modifier):
    """First pass: `scopes` by the identity of the block or function they belong to."""

    def __init__(self, errors: ErrorList) -> None:
        super().__init__()
        self.errors = errors
        self.scopes: dict[int, Scope] = {}
        self.scope: Scope | None = None

    def open(self, node: Block | FunctionDefinition) -> Scope:
        self.scope = self.scopes[id(node)] = Scope(self.scope, isinstance(node, FunctionDefinition))
        return self.scope

    def block(self, block: Block) -> None:
        outer, scope = self.scope, self.open(block)
        for statement in block.statements:
            if isinstance(statement, FunctionDefinition):
                self.declare_function(statement, scope)
        super().block(block)
        self.scope = outer

    def expression(self, expression: Expression) -> Expression:
        return expression  # it declares nothing

    def declaration(self, declaration: VariableDeclaration) -> None:
        assert self.scope is not None
        self.declare_variables(declaration.variables, declaration.location, self.scope)

    def loop(self, loop: ForLoop) -> None:
        """What the init block declares is seen by the rest of the loop."""
        outer = self.scope
        self.block(loop.pre)
        self.scope = self.scopes[id(loop.pre)]
        self.block(loop.post)
        self.block(loop.body)
        self.scope = outer

    def function(self, function: FunctionDefinition) -> None:
        outer, scope = self.scope, self.open(function)
        for name in (*function.parameters, *function.returns):
            self.declare_variables([name], function.location, scope)
        self.block(function.body)
        self.scope = outer

    def declare_variables(self, names: list[TypedName], location: Location, scope: Scope) -> None:
        for name in names:
            if scope.is_taken(name.name):
                self.errors.add(
                    ErrorKind.DECLARATION, 1395, f"the name '{name.name}' is already taken in this scope", location
                )
                return
            scope.names[name.name] = VariableSymbol()

    def declare_function(self, function: FunctionDefinition, scope: Scope) -> None:
        if scope.is_taken(function.name):
            message = f"the function name '{function.name}' is already taken in this scope"
            self.errors.add(ErrorKind.DECLARATION, 6052, message, function.location)
        else:
            scope.names[function.name] = FunctionSymbol(len(function.parameters), len(function.returns))
