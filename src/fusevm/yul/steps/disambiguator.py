"""Disambiguator: gives every declaration a name of its own.

Needs: nothing. Every other step needs it.
Does: copies the tree; a name met a second time in another scope gets a number (`x`, `x_1`, `x_2`).
Why: with unique names scopes need not be considered any more: a name alone says which variable is meant.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, ForLoop, FunctionDefinition, VariableDeclaration
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.names import NameDispenser
from fusevm.yul.syntax.walk import Copier


def run(context: StepContext, block: Block) -> None:
    block.statements = disambiguated(context.dialect, block, context.reserved).statements


def disambiguated(dialect: Dialect, block: Block, reserved: frozenset[str] = frozenset()) -> Block:
    """A copy in which no name is declared twice."""
    return _Disambiguator(dialect, reserved).block(block)


class _Disambiguator(Copier):
    """Each scope maps the names it declares to what they were given, None until someone mentions them."""

    def __init__(self, dialect: Dialect, reserved: frozenset[str]) -> None:
        super().__init__()
        self.dialect = dialect
        self.reserved = reserved
        self.dispenser = NameDispenser(dialect, reserved)
        self.scopes: list[dict[str, str | None]] = []

    def translate(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                given = scope[name]
                if given is None:
                    given = scope[name] = self.dispenser.new_name(name)
                return given
        return name  # a builtin, or a name from outside

    def declare(self, *names: str) -> None:
        self.scopes[-1].update((name, None) for name in names if name not in self.reserved)

    def block(self, block: Block) -> Block:
        self.scopes.append({})
        self.declare_functions(block)
        copy = super().block(block)
        self.scopes.pop()
        return copy

    def declare_functions(self, block: Block) -> None:
        """Functions are visible in their whole block, before they are defined too."""
        self.declare(*(each.name for each in block.statements if isinstance(each, FunctionDefinition)))

    def declaration(self, declaration: VariableDeclaration) -> VariableDeclaration:
        self.declare(*(variable.name for variable in declaration.variables))
        return super().declaration(declaration)

    def function(self, function: FunctionDefinition) -> FunctionDefinition:
        name = self.translate(function.name)
        self.scopes.append({})
        self.declare(*(each.name for each in (*function.parameters, *function.returns)))
        parameters, returns = self.names(function.parameters), self.names(function.returns)
        body = self.block(function.body)
        self.scopes.pop()
        return FunctionDefinition(name, parameters, returns, body, function.location)

    def loop(self, loop: ForLoop) -> ForLoop:
        """What the init block declares is visible in the whole loop."""
        self.scopes.append({})
        self.declare_functions(loop.pre)
        pre = Block(self.statements(loop.pre.statements), loop.pre.location)
        condition, post, body = self.expression(loop.condition), self.block(loop.post), self.block(loop.body)
        self.scopes.pop()
        return ForLoop(pre, condition, post, body, loop.location)
