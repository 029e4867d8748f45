"""SSATransform (a): a new variable for every value an assigned variable takes.

Needs: Disambiguator, ForLoopInitRewriter; best after ExpressionSplitter and CommonSubexpressionEliminator.
Does: `a := v` becomes `let a_1 := v a := a_1`, later mentions of a become a_1; where control flow joins, `let a_2 := a`
catches whatever value came. UnusedAssignEliminator then removes the assignments that are not needed.
Why: variables that never change can be moved, compared and replaced freely.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ForLoop,
    FunctionDefinition,
    Identifier,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.names import NameDispenser, by_hash
from fusevm.yul.syntax.walk import AssignedNames, Modifier, Rewriter, assigned_names


def run(context: StepContext, block: Block) -> None:
    assigned = assigned_names(block)
    if assigned:
        _Splitter(context.dispenser, assigned).block(block)
        _Catcher(context.dispenser, assigned).block(block)
        _Propagator(assigned).block(block)


class _Splitter(Rewriter):
    """First: every declaration and assignment of an assigned variable goes through a new variable."""

    def __init__(self, dispenser: NameDispenser, assigned: set[str]) -> None:
        super().__init__()
        self.dispenser = dispenser
        self.assigned = assigned

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        if statement.__class__ is VariableDeclaration:
            return self.split_declaration(statement)
        if statement.__class__ is Assignment:
            return self.split_assignment(statement)
        self.statement(statement)
        return None

    def split_declaration(self, declaration: VariableDeclaration) -> list[Statement] | None:
        if not any(each.name in self.assigned for each in declaration.variables):
            return None
        place = declaration.location
        new = [TypedName(self.dispenser.new_name(each.name), place) for each in declaration.variables]
        result: list[Statement] = [VariableDeclaration(new, declaration.value, place)]
        for old, name in zip(declaration.variables, new, strict=True):
            result.append(VariableDeclaration([old], Identifier(name.name, place), place))
        return result

    def split_assignment(self, assignment: Assignment) -> list[Statement]:
        place = assignment.location
        new = [TypedName(self.dispenser.new_name(each.name), place) for each in assignment.targets]
        result: list[Statement] = [VariableDeclaration(new, assignment.value, place)]
        for old, name in zip(assignment.targets, new, strict=True):
            result.append(Assignment([old], Identifier(name.name, place), place))
        return result


class _Catcher(Rewriter):
    """Second: after joins, variables assigned on the paths there are copied to new ones before the next statement."""

    def __init__(self, dispenser: NameDispenser, assigned: set[str]) -> None:
        super().__init__()
        self.dispenser = dispenser
        self.assigned = assigned
        self.assigned_in = AssignedNames().inside
        self.visible: set[str] = set()
        self.here: dict[str, None] = {}  # assigned in the block we are in, in order
        self.pending: dict[str, None] = {}  # to be caught before the next statement, in order

    def function(self, function: FunctionDefinition) -> None:
        outer = self.visible, self.here, self.pending
        parameters = [each.name for each in function.parameters if each.name in self.assigned]
        self.visible, self.here, self.pending = set(parameters), {}, dict.fromkeys(parameters)
        self.block(function.body)
        self.visible, self.here, self.pending = outer

    def loop(self, loop: ForLoop) -> None:
        for name in by_hash(self.assigned_in(loop.body) | self.assigned_in(loop.post)):
            if name in self.visible:
                self.pending[name] = None
        self.block(loop.body)
        self.block(loop.post)

    def switch(self, statement: Switch) -> None:
        pending: dict[str, None] = {}
        for case in statement.cases:
            self.block(case.body)
            pending |= self.pending
        self.pending |= pending

    def block(self, block: Block) -> None:
        outer, self.here = self.here, {}
        declared = {
            variable.name
            for statement in block.statements
            if statement.__class__ is VariableDeclaration
            for variable in statement.variables
            if variable.name in self.assigned
        }
        super().block(block)
        self.pending.update((name, None) for name in self.here if name not in declared)
        for name in declared:
            self.pending.pop(name, None)
        self.visible -= declared
        self.here = outer

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        caught: list[Statement] = []
        for name in self.pending:
            place = statement.location
            new = TypedName(self.dispenser.new_name(name), place)
            caught.append(VariableDeclaration([new], Identifier(name, place), place))
            self.here[name] = None
        self.pending = {}
        if statement.__class__ is VariableDeclaration:
            for variable in statement.variables:
                if variable.name in self.assigned:
                    self.visible.add(variable.name)
        elif statement.__class__ is Assignment:
            for target in statement.targets:
                self.here[target.name] = None
        else:
            self.statement(statement)
        return [*caught, statement] if caught else None


class _Propagator(Modifier):
    """Third: mentions of an assigned variable become mentions of the variable that holds its current value."""

    def __init__(self, assigned: set[str]) -> None:
        super().__init__()
        self.assigned = assigned
        self.assigned_in = AssignedNames().inside
        self.current: dict[str, str] = {}
        self.set_here: set[str] = set()

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            current = self.current.get(expression.name)
            return expression if current is None else Identifier(current, expression.location)
        return super().expression(expression)

    def declaration(self, declaration: VariableDeclaration) -> None:
        super().declaration(declaration)
        value = declaration.value
        if len(declaration.variables) != 1 or not isinstance(value, Identifier):
            return
        name = declaration.variables[0].name
        if name in self.assigned:
            self.current[name] = value.name
            self.set_here.add(name)
        elif value.name in self.assigned:
            self.current[value.name] = name  # it caught the value after a join
            self.set_here.add(value.name)

    def assignment(self, assignment: Assignment) -> None:
        super().assignment(assignment)
        if len(assignment.targets) == 1 and isinstance(assignment.value, Identifier):
            name = assignment.targets[0].name
            self.current[name] = assignment.value.name
            self.set_here.add(name)

    def loop(self, loop: ForLoop) -> None:
        for name in self.assigned_in(loop.body) | self.assigned_in(loop.post):
            self.current.pop(name, None)
        loop.condition = self.expression(loop.condition)
        self.block(loop.body)
        self.block(loop.post)

    def block(self, block: Block) -> None:
        outer, self.set_here = self.set_here, set()
        super().block(block)
        for name in self.set_here:
            self.current.pop(name, None)
        self.set_here = outer
