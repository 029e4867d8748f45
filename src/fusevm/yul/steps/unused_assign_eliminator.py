"""UnusedAssignEliminator (r, once RedundantAssignEliminator): drops assignments whose value is never read.

Needs: Disambiguator, ForLoopInitRewriter.
Does: removes `a := E`, E movable, if on every path a is assigned again, goes out of scope or the call ends before a is
read. Return variables are read at the function's end and at `leave`.
Why: completes SSATransform, which leaves an assignment at every step.
"""

from __future__ import annotations

from fusevm.yul.analysis.controlflow import flow_of_call, function_flows
from fusevm.yul.analysis.effects import builtin_effects, is_movable
from fusevm.yul.context import StepContext
from fusevm.yul.steps.statement_remover import remove_statements
from fusevm.yul.steps.unused_stores import StoreWalker
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Leave,
    VariableDeclaration,
)


def run(context: StepContext, block: Block) -> None:
    remove_statements(block, _Walker(context, block).finished(block))


class _Walker(StoreWalker):
    def __init__(self, context: StepContext, block: Block) -> None:
        super().__init__()
        self.effects = builtin_effects(context.dialect)
        self.dialect = context.dialect
        self.flows = function_flows(context.dialect, block)
        self.returns: list[str] = []
        self.ending: dict[str, bool] = {}
        self.of_variable: dict[str, int] = {}  # by variable, the assignments to it

    def use(self, name: str) -> None:
        stores = self.of_variable.get(name)
        if stores is not None:
            self.used |= self.active & stores
            self.active &= ~stores

    def overwrite(self, name: str) -> None:
        stores = self.of_variable.get(name)
        if stores is not None:
            self.active &= ~stores

    def function(self, function: FunctionDefinition) -> None:
        outer = self.returns, self.of_variable
        self.returns, self.of_variable = [each.name for each in function.returns], {}
        super().function(function)
        self.returns, self.of_variable = outer

    def end_function(self, function: FunctionDefinition) -> None:
        for name in self.returns:
            self.use(name)

    def leave(self, statement: Leave) -> None:
        for name in self.returns:
            self.use(name)
        self.active = 0

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            self.use(expression.name)
        elif expression.__class__ is FunctionCall:
            self.call(expression)
            if self.never_returns(expression.function.name):
                self.active = 0
        return expression

    def never_returns(self, name: str) -> bool:
        answer = self.ending.get(name)
        if answer is None:
            answer = self.ending[name] = not flow_of_call(self.dialect, self.flows, name).can_continue
        return answer

    def assignment(self, assignment: Assignment) -> None:
        self.expression(assignment.value)
        for target in assignment.targets:
            self.overwrite(target.name)
        if is_movable(assignment.value, self.effects):
            self.active |= self.store_of(assignment)

    def store_of(self, assignment: Assignment) -> int:
        """Its bit. (What is movable gives one value, so that it has one target.)"""
        store = self.stores.get(id(assignment))
        if store is None:
            store = self.stores[id(assignment)] = 1 << len(self.stores)
            for target in assignment.targets:
                self.of_variable[target.name] = self.of_variable.get(target.name, 0) | store
        return store

    def block(self, block: Block) -> None:
        super().block(block)
        for statement in block.statements:
            if statement.__class__ is VariableDeclaration:
                for variable in statement.variables:
                    self.overwrite(variable.name)
