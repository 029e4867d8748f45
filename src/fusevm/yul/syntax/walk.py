"""Going through a syntax tree: visitors that read or change it in a fixed order, iteration in any order, and copies.

Literals and identifiers are never changed in place, so they may be shared; calls and statements may not. The order of a
visit is part of a step's meaning, for it decides which new names come first: arguments go right to left, a loop goes
pre, condition, post, body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Break,
    Case,
    Continue,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Leave,
    Literal,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Builtin


class Modifier:
    """Visits a tree and may change it: `expression` gives what shall stand in its argument's place."""

    def __init__(self) -> None:
        self._visitors: dict[type, Callable[[Any], None]] = {
            ExpressionStatement: self.expression_statement,
            Assignment: self.assignment,
            VariableDeclaration: self.declaration,
            FunctionDefinition: self.function,
            If: self.if_,
            Switch: self.switch,
            ForLoop: self.loop,
            Block: self.block,
            Break: self.break_,
            Continue: self.continue_,
            Leave: self.leave,
        }

    def statement(self, statement: Statement) -> None:
        self._visitors[statement.__class__](statement)

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is FunctionCall:
            self.call(expression)
        return expression

    def call(self, call: FunctionCall) -> None:
        arguments = call.arguments
        for index in range(len(arguments) - 1, -1, -1):
            arguments[index] = self.expression(arguments[index])

    def free_arguments(self, call: FunctionCall, builtin: Builtin | None) -> None:
        """Visits the arguments but those that must stay literals."""
        arguments = call.arguments
        for index in range(len(arguments) - 1, -1, -1):
            if builtin is None or builtin.literal_kind(index) is None:
                arguments[index] = self.expression(arguments[index])

    def expression_statement(self, statement: ExpressionStatement) -> None:
        statement.expression = self.expression(statement.expression)

    def assignment(self, assignment: Assignment) -> None:
        assignment.value = self.expression(assignment.value)

    def declaration(self, declaration: VariableDeclaration) -> None:
        if declaration.value is not None:
            declaration.value = self.expression(declaration.value)

    def function(self, function: FunctionDefinition) -> None:
        self.block(function.body)

    def if_(self, statement: If) -> None:
        statement.condition = self.expression(statement.condition)
        self.block(statement.body)

    def switch(self, statement: Switch) -> None:
        statement.expression = self.expression(statement.expression)
        for case in statement.cases:
            self.block(case.body)

    def loop(self, loop: ForLoop) -> None:
        self.block(loop.pre)
        loop.condition = self.expression(loop.condition)
        self.block(loop.post)
        self.block(loop.body)

    def block(self, block: Block) -> None:
        visitors = self._visitors
        for statement in block.statements:
            visitors[statement.__class__](statement)

    def break_(self, statement: Break) -> None:
        pass

    def continue_(self, statement: Continue) -> None:
        pass

    def leave(self, statement: Leave) -> None:
        pass


class Rewriter(Modifier):
    """A modifier that may put other statements in a statement's place."""

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        """Its replacement, None for the statement itself. An override must visit the statement."""
        self.statement(statement)
        return None

    def block(self, block: Block) -> None:
        block.statements = self.rewritten(block.statements)

    def rewritten(self, statements: list[Statement]) -> list[Statement]:
        result: list[Statement] = []
        for statement in statements:
            replacement = self.rewrite(statement)
            if replacement is None:
                result.append(statement)
            else:
                result += replacement
        return result


def rewrite_pairs(
    statements: list[Statement], rewrite: Callable[[Statement, Statement], list[Statement] | None]
) -> list[Statement]:
    """Slide over neighbours; a pair that was rewritten is stepped over as a whole."""
    result: list[Statement] = []
    index = 0
    while index < len(statements):
        replacement = rewrite(statements[index], statements[index + 1]) if index + 1 < len(statements) else None
        if replacement is None:
            result.append(statements[index])
            index += 1
        else:
            result += replacement
            index += 2
    return result


def remove_empty_blocks(block: Block) -> None:
    block.statements = [each for each in block.statements if each.__class__ is not Block or each.statements]


# -- iteration ------------------------------------------------------------------------------------------------------


def nodes(root: Any, into_functions: bool = True) -> Iterator[Any]:
    """Every expression and statement below the root and itself, parents first, in no order one may rely on."""
    stack = [root]
    push, extend, pop = stack.append, stack.extend, stack.pop
    while stack:
        node = pop()
        yield node
        kind = node.__class__
        if kind is Identifier or kind is Literal:
            continue
        if kind is FunctionCall:
            extend(node.arguments)
        elif kind is VariableDeclaration:
            if node.value is not None:
                push(node.value)
        elif kind is Assignment:
            extend(node.targets)
            push(node.value)
        elif kind is ExpressionStatement:
            push(node.expression)
        elif kind is Block:
            extend(node.statements)
        elif kind is If:
            push(node.condition)
            push(node.body)
        elif kind is FunctionDefinition:
            if into_functions:
                push(node.body)
        elif kind is Switch:
            push(node.expression)
            for case in node.cases:
                push(case.body)
        elif kind is ForLoop:
            extend((node.pre, node.condition, node.post, node.body))


def children(node: Any) -> list[Any]:
    """The expressions and blocks right below a node, or the statements of a block."""
    kind = node.__class__
    if kind is FunctionCall:
        return list(node.arguments)
    if kind is Block:
        return list(node.statements)
    if kind is If:
        return [node.condition, node.body]
    if kind is Switch:
        return [node.expression, *(case.body for case in node.cases)]
    if kind is ForLoop:
        return [node.pre, node.condition, node.post, node.body]
    if kind is FunctionDefinition:
        return [node.body]
    if kind is ExpressionStatement:
        return [node.expression]
    if kind is Assignment or (kind is VariableDeclaration and node.value is not None):
        return [node.value]
    return []


def count_nodes(root: Any) -> int:
    count = 0
    for _ in nodes(root):
        count += 1
    return count


def calls_of(root: Any, name: str) -> list[FunctionCall]:
    """Every call of that function."""
    return [node for node in nodes(root) if node.__class__ is FunctionCall and node.function.name == name]


def functions_of(root: Block) -> Iterator[FunctionDefinition]:
    """Every function definition, outer before inner, in the order of the text."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is FunctionDefinition:
            yield node
            stack.append(node.body)
        elif kind is Block:
            stack.extend(reversed(node.statements))
        elif kind is If:
            stack.append(node.body)
        elif kind is Switch:
            stack.extend(case.body for case in reversed(node.cases))
        elif kind is ForLoop:
            stack += (node.body, node.post, node.pre)


def assigned_names(root: Any) -> set[str]:
    """The variables some assignment in there writes to."""
    return {target.name for node in nodes(root) if node.__class__ is Assignment for target in node.targets}


class AssignedNames:
    """The variables assigned to in a block and declared outside of it; found once for each block and kept."""

    def __init__(self) -> None:
        self._known: dict[int, frozenset[str]] = {}

    def inside(self, block: Block) -> frozenset[str]:
        found = self._known.get(id(block))
        if found is None:
            assigned: set[str] = set()
            for statement in block.statements:
                if statement.__class__ is Assignment:
                    assigned.update(target.name for target in statement.targets)
                elif statement.__class__ in _INNER_BLOCKS:
                    for inner in _INNER_BLOCKS[statement.__class__](statement):
                        assigned |= self.inside(inner)
            if assigned:
                assigned -= _declared_in(block)
            found = self._known[id(block)] = frozenset(assigned) if assigned else _NO_NAMES
        return found


_NO_NAMES: frozenset[str] = frozenset()
_INNER_BLOCKS: dict[type, Callable[[Any], Iterable[Block]]] = {
    Block: lambda each: (each,),
    If: lambda each: (each.body,),
    Switch: lambda each: [case.body for case in each.cases],
    ForLoop: lambda each: (each.pre, each.body, each.post),
    FunctionDefinition: lambda each: (each.body,),
}


def _declared_in(block: Block) -> set[str]:
    return {
        variable.name
        for statement in block.statements
        if statement.__class__ is VariableDeclaration
        for variable in statement.variables
    }


def inner_blocks(statement: Any) -> Iterable[Block]:
    """The blocks right below a statement; itself if it is one."""
    find = _INNER_BLOCKS.get(statement.__class__)
    return () if find is None else find(statement)


def count_variables(root: Any) -> dict[str, int]:
    """How often each variable is mentioned; being assigned to is a mention, being declared is none."""
    counts: dict[str, int] = {}
    for node in nodes(root):
        if node.__class__ is Identifier:
            counts[node.name] = counts.get(node.name, 0) + 1
    return counts


def count_names(root: Any) -> dict[str, int]:
    """How often each variable and each function is mentioned."""
    counts: dict[str, int] = {}
    for node in nodes(root):
        kind = node.__class__
        if kind is Identifier:
            counts[node.name] = counts.get(node.name, 0) + 1
        elif kind is FunctionCall:
            name = node.function.name
            counts[name] = counts.get(name, 0) + 1
    return counts


def count_calls(root: Any) -> dict[str, int]:
    """How often each function is called."""
    counts: dict[str, int] = {}
    for node in nodes(root):
        if node.__class__ is FunctionCall:
            name = node.function.name
            counts[name] = counts.get(name, 0) + 1
    return counts


def declared_names(root: Any, functions: bool = True) -> set[str]:
    """Every name declared in there: variables, parameters, return variables and, if asked for, functions."""
    names: set[str] = set()
    for node in nodes(root):
        kind = node.__class__
        if kind is VariableDeclaration:
            names.update(variable.name for variable in node.variables)
        elif kind is FunctionDefinition:
            if functions:
                names.add(node.name)
            names.update(variable.name for variable in node.parameters)
            names.update(variable.name for variable in node.returns)
    return names


# -- copies ---------------------------------------------------------------------------------------------------------


def copy_expression(expression: Expression) -> Expression:
    if expression.__class__ is not FunctionCall:
        return expression
    arguments = [copy_expression(each) for each in expression.arguments]
    return FunctionCall(expression.function, arguments, expression.location)


class Copier:
    """A fresh copy of a tree, left to right, names passing through `translate`.

    A function's name comes before its parameters, returns and body; declared names come before the value.
    """

    def __init__(self) -> None:
        self._copiers: dict[type, Callable[[Any], Any]] = {
            ExpressionStatement: lambda s: ExpressionStatement(self.expression(s.expression), s.location),
            Assignment: self.assignment,
            VariableDeclaration: self.declaration,
            FunctionDefinition: self.function,
            If: self.if_,
            Switch: self.switch,
            ForLoop: self.loop,
            Block: self.block,
            Break: lambda s: Break(s.location),
            Continue: lambda s: Continue(s.location),
            Leave: lambda s: Leave(s.location),
        }

    def translate(self, name: str) -> str:
        return name

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Literal):
            return expression
        if isinstance(expression, Identifier):
            return self.identifier(expression)
        function = self.identifier(expression.function)
        return FunctionCall(function, [self.expression(each) for each in expression.arguments], expression.location)

    def identifier(self, identifier: Identifier) -> Identifier:
        name = self.translate(identifier.name)
        return identifier if name == identifier.name else Identifier(name, identifier.location)

    def names(self, names: Iterable[TypedName]) -> list[TypedName]:
        return [TypedName(self.translate(each.name), each.location) for each in names]

    def statement(self, statement: Statement) -> Any:
        return self._copiers[statement.__class__](statement)

    def statements(self, statements: Iterable[Statement]) -> list[Statement]:
        copiers = self._copiers
        return [copiers[each.__class__](each) for each in statements]

    def block(self, block: Block) -> Block:
        return Block(self.statements(block.statements), block.location)

    def assignment(self, assignment: Assignment) -> Assignment:
        targets = [self.identifier(each) for each in assignment.targets]
        return Assignment(targets, self.expression(assignment.value), assignment.location)

    def declaration(self, declaration: VariableDeclaration) -> VariableDeclaration:
        variables = self.names(declaration.variables)
        value = None if declaration.value is None else self.expression(declaration.value)
        return VariableDeclaration(variables, value, declaration.location)

    def function(self, function: FunctionDefinition) -> FunctionDefinition:
        name = self.translate(function.name)
        parameters, returns = self.names(function.parameters), self.names(function.returns)
        return FunctionDefinition(name, parameters, returns, self.block(function.body), function.location)

    def if_(self, statement: If) -> If:
        return If(self.expression(statement.condition), self.block(statement.body), statement.location)

    def switch(self, statement: Switch) -> Switch:
        expression = self.expression(statement.expression)
        cases = [Case(case.value, self.block(case.body), case.location) for case in statement.cases]
        return Switch(expression, cases, statement.location)

    def loop(self, loop: ForLoop) -> ForLoop:
        pre, condition = self.block(loop.pre), self.expression(loop.condition)
        return ForLoop(pre, condition, self.block(loop.post), self.block(loop.body), loop.location)


class RenamingCopier(Copier):
    """Copies and renames what the table names."""

    def __init__(self, renamed: dict[str, str]) -> None:
        super().__init__()
        self.renamed = renamed

    def translate(self, name: str) -> str:
        return self.renamed.get(name, name)


def copy_block(block: Block) -> Block:
    return Copier().block(block)
