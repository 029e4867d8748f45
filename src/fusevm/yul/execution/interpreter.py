"""Runs Yul: the tree is compiled once to Python closures over a frame of variables, then run against a host.

The words' meanings are the EVM's own (`evm.words`); everything that is not a pure word operation is asked of the host.
Arguments are evaluated from the last to the first. A statement's closure returns None, or a signal that leaves blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.yul.execution.host import Ended, Host, LimitReached, Limits, RunEnd, YulOutcome
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
    Identifier,
    If,
    Literal,
    Object,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Builtin, Dialect, dialect_for

Frame = list[int]
Evaluate = Callable[[Frame], Any]  # an int; a tuple where a function returns several; None where nothing
Run = Callable[[Frame], "Signal | None"]

UNLIMITED = 1 << 62


class Signal(Enum):
    BREAK = "break"
    CONTINUE = "continue"
    LEAVE = "leave"


class _Function:
    """A user function, compiled when first called. Its slots: parameters, returns, then what the body declares."""

    __slots__ = ("body", "definition", "parameters", "returns", "scope", "slots")

    def __init__(self, definition: FunctionDefinition | None = None) -> None:
        self.definition = definition
        self.parameters = len(definition.parameters) if definition else 0
        self.returns = len(definition.returns) if definition else 0
        self.slots = 0
        self.scope = _Scope({}, {})
        self.body: Run | None = None


class _Scope:
    """Names in sight while compiling: variables to their slot, functions to what they become."""

    __slots__ = ("functions", "variables")

    def __init__(self, variables: dict[str, int], functions: dict[str, _Function]) -> None:
        self.variables = variables
        self.functions = functions

    def inner(self) -> _Scope:
        return _Scope(dict(self.variables), self.functions)


def _nothing(frame: Frame) -> Signal | None:
    return None


def _break(frame: Frame) -> Signal | None:
    return Signal.BREAK


def _continue(frame: Frame) -> Signal | None:
    return Signal.CONTINUE


def _leave(frame: Frame) -> Signal | None:
    return Signal.LEAVE


class _Compiler:
    def __init__(self, host: Host, dialect: Dialect, limits: Limits) -> None:
        self.host = host
        self.dialect = dialect
        self.budget = [limits.steps or UNLIMITED]
        self.calls_left = [limits.calls or UNLIMITED]
        self.nesting = limits.nesting or UNLIMITED
        self.operands = 0  # so far in the expression being compiled
        self.function = _Function()
        self.operations: dict[str, Callable[..., Any]] = {}  # builtins met before, by name

    def program(self, block: Block) -> Callable[[], None]:
        run = self.block(block, _Scope({}, {}))
        main = self.function

        def start() -> None:
            run([0] * main.slots)

        return start

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self, block: Block, outer: _Scope) -> Run:
        scope = self.enter(block, outer)
        statements = [self.statement(statement, scope) for statement in block.statements]
        return self.sequence(statements)

    def enter(self, block: Block, outer: _Scope) -> _Scope:
        """A scope that knows the block's functions."""
        scope = outer.inner()
        definitions = [statement for statement in block.statements if isinstance(statement, FunctionDefinition)]
        if definitions:
            scope.functions = outer.functions | {one.name: _Function(one) for one in definitions}
            for definition in definitions:
                scope.functions[definition.name].scope = _Scope({}, scope.functions)
        return scope

    def body_of(self, function: _Function) -> Run:
        definition = function.definition
        assert definition is not None
        saved, self.function = self.function, function
        for name in (*definition.parameters, *definition.returns):
            self.declare(name.name, function.scope)
        function.body = self.block(definition.body, function.scope)
        self.function = saved
        return function.body

    def declare(self, name: str, scope: _Scope) -> int:
        slot = scope.variables[name] = self.function.slots
        self.function.slots += 1
        return slot

    def sequence(self, statements: list[Run]) -> Run:
        budget = self.budget

        def run(frame: Frame) -> Signal | None:
            for statement in statements:
                budget[0] -= 1
                if budget[0] <= 0:
                    _out_of_steps()
                signal = statement(frame)
                if signal is not None:
                    return signal
            return None

        return run if statements else _nothing

    def statement(self, statement: Statement, scope: _Scope) -> Run:
        if isinstance(statement, ExpressionStatement):
            return _ignoring(self.expression(statement.expression, scope))
        if isinstance(statement, VariableDeclaration):
            value = self.expression(statement.value, scope) if statement.value is not None else None
            return _store([self.declare(variable.name, scope) for variable in statement.variables], value)
        if isinstance(statement, Assignment):
            slots = [scope.variables[target.name] for target in statement.targets]
            return _store(slots, self.expression(statement.value, scope))
        if isinstance(statement, If):
            return _if(self.expression(statement.condition, scope), self.block(statement.body, scope))
        if isinstance(statement, Block):
            return self.block(statement, scope)
        if isinstance(statement, ForLoop):
            return self.loop(statement, scope)
        if isinstance(statement, Switch):
            return self.switch(statement, scope)
        if isinstance(statement, FunctionDefinition):
            return _nothing
        if isinstance(statement, Break):
            return _break
        return _continue if isinstance(statement, Continue) else _leave

    def switch(self, switch: Switch, scope: _Scope) -> Run:
        value = self.expression(switch.expression, scope)
        bodies = {case.value.value: self.block(case.body, scope) for case in switch.cases if case.value is not None}
        others = [self.block(case.body, scope) for case in switch.cases if case.value is None]
        default = others[0] if others else _nothing

        def run(frame: Frame) -> Signal | None:
            return bodies.get(value(frame), default)(frame)

        return run

    def loop(self, loop: ForLoop, outer: _Scope) -> Run:
        scope = outer.inner()
        pre = [self.statement(statement, scope) for statement in loop.pre.statements]
        condition = self.expression(loop.condition, scope)
        body, post = self.block(loop.body, scope), self.block(loop.post, scope)
        # An empty loop counts its rounds: nothing else in it would.
        idle, budget = not loop.body.statements and not loop.post.statements, self.budget
        broken, left = Signal.BREAK, Signal.LEAVE

        def run(frame: Frame) -> Signal | None:
            for statement in pre:
                signal = statement(frame)
                if signal is not None:
                    return signal
            while condition(frame):
                if idle:
                    budget[0] -= 1
                    if budget[0] <= 0:
                        _out_of_steps()
                signal = body(frame)
                if signal is broken:
                    break
                if signal is left or post(frame) is left:
                    return left
            return None

        return run

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, expression: Expression, scope: _Scope) -> Evaluate:
        self.operands = 0
        return self.operand(expression, scope)

    def operand(self, expression: Expression, scope: _Scope) -> Evaluate:
        self.operands += 1
        if self.operands > self.nesting:
            return _too_nested
        if isinstance(expression, Literal):
            return _constant(expression.value)
        if isinstance(expression, Identifier):
            return _variable(scope.variables[expression.name])
        name = expression.function.name
        operation = self.operations.get(name)
        if operation is None:
            builtin = self.dialect.builtin(name)
            if builtin is not None and builtin.has_literals:
                return self.special(builtin, expression, scope)
            if builtin is not None:
                operation = self.operations[name] = self.meaning(builtin)
        arguments = [self.operand(argument, scope) for argument in reversed(expression.arguments)]
        if operation is not None:
            return _apply(operation, arguments)
        return self.user_call(scope.functions[name], arguments)

    def meaning(self, builtin: Builtin) -> Callable[..., Any]:
        pure = INTEGER_MEANINGS.get(builtin.opcode.name) if builtin.opcode is not None else None
        if pure is not None:
            return pure
        return _drop if builtin.name == "pop" else self.host.operation(builtin)

    def special(self, builtin: Builtin, call: FunctionCall, scope: _Scope) -> Evaluate:
        """Builtins that take names or literals: datasize and the like, immutables, memoryguard, verbatim."""
        literal = next(argument for argument in call.arguments if isinstance(argument, Literal))
        if builtin.name == "memoryguard":
            return _constant(literal.value)
        if builtin.is_verbatim:
            return _verbatim
        host = self.host
        if builtin.name == "setimmutable":
            value = self.operand(call.arguments[2], scope)
            offset, name = self.operand(call.arguments[0], scope), _name_argument(call, 1)

            def assign(frame: Frame) -> None:
                word = value(frame)
                host.set_immutable(offset(frame), name, word)

            return assign
        function, name = builtin.name, _name_argument(call, 0)
        return lambda frame: host.named(function, name)

    def user_call(self, function: _Function, backwards: list[Evaluate]) -> Evaluate:
        left, count, returns, body_of = self.calls_left, function.parameters, function.returns, self.body_of

        def run(frame: Frame) -> Any:
            values = [argument(frame) for argument in backwards]
            values.reverse()
            if left[0] <= 0:
                _too_many_calls()
            left[0] -= 1
            body = function.body or body_of(function)
            callee = values + [0] * (function.slots - count)
            body(callee)
            left[0] += 1
            if returns == 1:
                return callee[count]
            return tuple(callee[count : count + returns]) if returns else None

        return run


def _name_argument(call: FunctionCall, index: int) -> str:
    argument = call.arguments[index]
    assert isinstance(argument, Literal)
    return argument.text


def _out_of_steps() -> NoReturn:
    raise LimitReached("Interpreter execution step limit reached.")


def _too_many_calls() -> NoReturn:
    raise LimitReached("Function call nesting limit reached.")


def _too_nested(frame: Frame) -> NoReturn:
    raise LimitReached("Maximum expression nesting level reached.")


def _verbatim(frame: Frame) -> NoReturn:
    raise LimitReached("Verbatim bytecode cannot be interpreted.")


def _drop(value: int) -> None:
    return None


def _constant(value: int) -> Evaluate:
    return lambda frame: value


def _variable(slot: int) -> Evaluate:
    return lambda frame: frame[slot]


def _ignoring(evaluate: Evaluate) -> Run:
    def run(frame: Frame) -> None:
        evaluate(frame)

    return run


def _if(condition: Evaluate, body: Run) -> Run:
    def run(frame: Frame) -> Signal | None:
        return body(frame) if condition(frame) else None

    return run


def _store(slots: list[int], value: Evaluate | None) -> Run:
    """Into one slot, into several, or zeros where there is no value."""
    slot = slots[0]
    if value is None:

        def clear(frame: Frame) -> None:
            for one in slots:
                frame[one] = 0

        return clear
    evaluate = value
    if len(slots) == 1:

        def store(frame: Frame) -> None:
            frame[slot] = evaluate(frame)

        return store

    def store_all(frame: Frame) -> None:
        for one, word in zip(slots, evaluate(frame), strict=True):
            frame[one] = word

    return store_all


def _apply(operation: Callable[..., Any], backwards: list[Evaluate]) -> Evaluate:
    """Call an operation on its arguments, which are given and evaluated from the last to the first."""
    if not backwards:
        return lambda frame: operation()
    if len(backwards) == 1:
        only = backwards[0]
        return lambda frame: operation(only(frame))
    if len(backwards) == 2:
        right, left = backwards

        def binary(frame: Frame) -> Any:
            second = right(frame)
            return operation(left(frame), second)

        return binary

    def general(frame: Frame) -> Any:
        values = [argument(frame) for argument in backwards]
        values.reverse()
        return operation(*values)

    return general


def interpret(
    code: Block | Object,
    host: Host,
    dialect: Dialect | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> YulOutcome:
    """Run analysed code to its end. What it did is in the host; how it ended is the result."""
    block = code.code if isinstance(code, Object) else code
    try:
        start = _Compiler(host, dialect or dialect_for(), limits).program(block)
        start()
    except LimitReached as limit:
        return YulOutcome(RunEnd.LIMIT, reason=limit.reason)
    except Ended as ended:
        return YulOutcome(ended.end, ended.data)
    except RecursionError:
        return YulOutcome(RunEnd.LIMIT, reason="Function call nesting limit reached.")
    return YulOutcome(RunEnd.FINISHED)
