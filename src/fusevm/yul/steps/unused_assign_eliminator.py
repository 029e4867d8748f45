"""UnusedAssignEliminator (r, once RedundantAssignEliminator): drops assignments whose value nobody reads.

Needs: Disambiguator, ForLoopInitRewriter.
Does: removes `a := E`, E movable, if on every path a is assigned again, goes out of scope or the call ends before a is
read. Return variables are read at the function's end and at `leave`.
Why: completes SSATransform, which leaves an assignment behind at every step.
"""

from __future__ import annotations

from fusevm.yul.ast import (
    Assignment,
    Block,
    Expression,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Leave,
    VariableDeclaration,
)
from fusevm.yul.context import Context
from fusevm.yul.controlflow import flow_of_call, function_flows
from fusevm.yul.effects import builtin_effects, is_movable
from fusevm.yul.steps.statement_remover import remove_statements
from fusevm.yul.steps.unused_stores import StoreWalker

Active = dict[str, frozenset[int]]  # by variable, the assignments whose value it may hold
_NONE: frozenset[int] = frozenset()


def run(context: Context, block: Block) -> None:
    remove_statements(block, _Walker(context, block).finished(block))


class _Walker(StoreWalker[Active]):
    def __init__(self, context: Context, block: Block) -> None:
        super().__init__()
        self.effects = builtin_effects(context.dialect)
        self.dialect = context.dialect
        self.flows = function_flows(context.dialect, block)
        self.returns: list[str] = []
        self.ending: dict[str, bool] = {}

    def nothing(self) -> Active:
        return {}

    def copied(self, state: Active) -> Active:
        return state.copy()

    def merge(self, target: Active, other: Active) -> None:
        for name, stores in other.items():
            mine = target.get(name)
            target[name] = stores if mine is None or mine == stores else mine | stores

    def use(self, name: str) -> None:
        stores = self.active.pop(name, None)
        if stores:
            self.used |= stores

    def use_new(self, before: Active) -> None:
        for name, stores in self.active.items():
            self.used |= stores - before.get(name, _NONE)

    def function(self, function: FunctionDefinition) -> None:
        outer, self.returns = self.returns, [each.name for each in function.returns]
        super().function(function)
        self.returns = outer

    def end_function(self, function: FunctionDefinition) -> None:
        for name in self.returns:
            self.use(name)

    def leave(self, statement: Leave) -> None:
        for name in self.returns:
            self.use(name)
        self.active = {}

    def expression(self, expression: Expression) -> Expression:
        if expression.__class__ is Identifier:
            self.use(expression.name)
        elif expression.__class__ is FunctionCall:
            self.call(expression)
            if self.never_returns(expression.function.name):
                self.active = {}
        return expression

    def never_returns(self, name: str) -> bool:
        answer = self.ending.get(name)
        if answer is None:
            answer = self.ending[name] = not flow_of_call(self.dialect, self.flows, name).can_continue
        return answer

    def assignment(self, assignment: Assignment) -> None:
        self.expression(assignment.value)
        if is_movable(assignment.value, self.effects):
            self.all.add(id(assignment))
            store = frozenset((id(assignment),))
        else:
            store = _NONE
        for target in assignment.targets:
            self.active[target.name] = store

    def block(self, block: Block) -> None:
        super().block(block)
        for statement in block.statements:
            if statement.__class__ is VariableDeclaration:
                for variable in statement.variables:
                    self.active.pop(variable.name, None)
