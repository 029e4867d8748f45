"""Where control goes: whether functions return, end the call or undo it, and where a block ends early."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fusevm.yul.analysis.callgraph import CallGraph
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Break,
    Continue,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    If,
    Leave,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import functions_of, nodes

_NEXT, _BREAK, _CONTINUE, _LEAVE = 1, 2, 4, 8  # the exits of a statement, as a set of bits


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """What a call may lead to."""

    can_terminate: bool = False
    can_revert: bool = False
    can_continue: bool = True


class _Reach:
    """Walks what can be reached of one function, given which functions are known to return."""

    def __init__(self, dialect: Dialect, returning: Callable[[str], bool]) -> None:
        self.dialect = dialect
        self.returning = returning
        self.called: set[str] = set()

    def expression(self, expression: Expression) -> bool:
        """Whether evaluation terminates."""
        if expression.__class__ is not FunctionCall:
            return True
        for argument in reversed(expression.arguments):
            if argument.__class__ is FunctionCall and not self.expression(argument):
                return False
        name = expression.function.name
        self.called.add(name)
        builtin = self.dialect.builtin(name)
        return builtin.can_continue if builtin is not None else self.returning(name)

    def block(self, block: Block) -> int:
        ways = 0
        for statement in block.statements:
            out = self.statement(statement)
            ways |= out & ~_NEXT
            if not out & _NEXT:
                return ways
        return ways | _NEXT

    def statement(self, statement: Any) -> int:
        kind = statement.__class__
        if kind is ExpressionStatement:
            return _NEXT if self.expression(statement.expression) else 0
        if kind is VariableDeclaration:
            return _NEXT if statement.value is None or self.expression(statement.value) else 0
        if kind is Assignment:
            return _NEXT if self.expression(statement.value) else 0
        if kind is If:
            return _NEXT | self.block(statement.body) if self.expression(statement.condition) else 0
        if kind is Switch:
            return self.switch(statement)
        if kind is ForLoop:
            return self.loop(statement)
        if kind is Block:
            return self.block(statement)
        return _SIMPLE_EXITS.get(kind, _NEXT)

    def switch(self, switch: Switch) -> int:
        if not self.expression(switch.expression):
            return 0
        has_default = any(case.value is None for case in switch.cases)
        ways = 0 if has_default else _NEXT
        for case in switch.cases:
            ways |= self.block(case.body)
        return ways

    def loop(self, loop: ForLoop) -> int:
        before = self.block(loop.pre)
        if not before & _NEXT:
            return before
        ways = before & ~_NEXT
        if not self.expression(loop.condition):
            return ways
        body = self.block(loop.body)
        if body & (_NEXT | _CONTINUE):
            ways |= self.block(loop.post) & _LEAVE
        return ways | _NEXT | (body & _LEAVE)


_SIMPLE_EXITS = {Break: _BREAK, Continue: _CONTINUE, Leave: _LEAVE}


def control_flow_of(dialect: Dialect, functions: list[FunctionDefinition]) -> list[ControlFlow]:
    """One answer a function. Names may repeat where scopes allow it: a call means the innermost visible function."""
    return _Flows(dialect, functions).solve()


class _Flows:
    """The least solution: a function returns only if some path to its end calls none but returning functions."""

    def __init__(self, dialect: Dialect, functions: list[FunctionDefinition]) -> None:
        self.dialect = dialect
        self.functions = functions
        self.returns: set[str] = set()
        self.called: dict[str, set[str]] = {}

    def solve(self) -> list[ControlFlow]:
        """Callees come first, so that a function is looked at again only if it is part of a cycle."""
        callers: dict[str, set[int]] = {}
        queue = self._callees_first()[::-1]
        queued = set(queue)
        while queue:
            at = queue.pop()
            queued.discard(at)
            function = self.functions[at]
            reach = _Reach(self.dialect, self.returns.__contains__)
            ways = reach.block(function.body)
            self.called[function.name] = reach.called
            for name in reach.called:
                callers.setdefault(name, set()).add(at)
            if ways & (_NEXT | _LEAVE) and function.name not in self.returns:
                self.returns.add(function.name)
                again = callers.get(function.name, set()) - queued
                queue += again
                queued |= again
        ends = self._ends()
        return [ControlFlow(*ends[each.name], each.name in self.returns) for each in self.functions]

    def _callees_first(self) -> list[int]:
        calls = {
            each.name: dict.fromkeys(node.function.name for node in nodes(each.body) if node.__class__ is FunctionCall)
            for each in self.functions
        }
        rank = {name: at for at, part in enumerate(CallGraph(calls).components()) for name in part}
        return sorted(range(len(self.functions)), key=lambda at: rank[self.functions[at].name])

    def _ends(self) -> dict[str, tuple[bool, bool]]:
        """Whether each function may end the call, and whether it may undo it, itself or through those it calls."""
        called = {name: dict.fromkeys(callees) for name, callees in self.called.items()}
        ends: dict[str, tuple[bool, bool]] = {}
        for part in CallGraph(called).components():
            terminates = reverts = False
            for callee in {callee for name in part for callee in called[name]}:
                builtin = self.dialect.builtin(callee)
                if builtin is None:
                    more = ends.get(callee, (False, False))
                else:
                    more = builtin.can_terminate, builtin.can_revert
                terminates, reverts = terminates or more[0], reverts or more[1]
            for name in part:
                ends[name] = terminates, reverts
        return ends


def function_flows(dialect: Dialect, block: Block) -> dict[str, ControlFlow]:
    """What a call of each user's function may lead to. Names must be unique."""
    functions = list(functions_of(block))
    flows = control_flow_of(dialect, functions)
    return {function.name: flow for function, flow in zip(functions, flows, strict=True)}


def flow_of_call(dialect: Dialect, flows: Mapping[str, ControlFlow], name: str) -> ControlFlow:
    """What a call of the builtin or user's function may lead to."""
    builtin = dialect.builtin(name)
    if builtin is None:
        return flows[name]
    return ControlFlow(builtin.can_terminate, builtin.can_revert, builtin.can_continue)


class Exit(Enum):
    """How control leaves a statement."""

    FLOW_OUT = "at its end"
    BREAK = "break"
    CONTINUE = "continue"
    TERMINATE = "ends the call"
    LEAVE = "leave"


class TerminationFinder:
    """Finds statements control never flows out of. Without `flows`, user's functions are taken to return."""

    def __init__(self, dialect: Dialect, flows: Mapping[str, ControlFlow] | None = None) -> None:
        self.dialect = dialect
        self.dead_ends = {name for name, flow in (flows or {}).items() if not flow.can_continue}
        self.dead_ends |= {builtin.name for builtin in dialect.builtins.values() if not builtin.can_continue}

    def first_exit(self, statements: list[Statement]) -> int | None:
        """The index of the first statement control does not flow out of."""
        for index, statement in enumerate(statements):
            if self.exit_of(statement) is not Exit.FLOW_OUT:
                return index
        return None

    def exit_of(self, statement: Any) -> Exit:
        kind = statement.__class__
        if kind is ExpressionStatement:
            value: Expression | None = statement.expression
        elif kind is VariableDeclaration or kind is Assignment:
            value = statement.value
        else:
            return _EXITS.get(kind, Exit.FLOW_OUT)
        return Exit.TERMINATE if self._ends(value) else Exit.FLOW_OUT

    def _ends(self, expression: Expression | None) -> bool:
        if expression.__class__ is not FunctionCall:
            return False
        return any(
            node.__class__ is FunctionCall and node.function.name in self.dead_ends for node in nodes(expression)
        )


_EXITS = {Break: Exit.BREAK, Continue: Exit.CONTINUE, Leave: Exit.LEAVE}
