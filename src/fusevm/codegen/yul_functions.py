"""Yul code to functions in SSA form.

Yul is structured, so all joins are known in advance: a variable becomes a block parameter at a join whose predecessors
have different values for it, and in a loop header if the loop assigns to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fusevm.evm.assembler import Source
from fusevm.ir.builder import Builder
from fusevm.ir.functions import (
    BRANCH,
    JUMP,
    LEAVE,
    NEVER,
    SWITCH,
    Arc,
    DependencyBlock,
    End,
    Function,
    SymbolKind,
    Unit,
    Verbatim,
)
from fusevm.ir.values import Value
from fusevm.yul.analysis.controlflow import function_flows
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
    Leave,
    Literal,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Builtin, Dialect
from fusevm.yul.syntax.walk import calls_of, functions_of

Variables = dict[str, Value]
_SYMBOLS = {kind.value: kind for kind in SymbolKind}


def unit_of(code: Block, dialect: Dialect, reserved: int = 0) -> Unit:
    """The functions of a block of Yul, whose names must be unique; memoryguard reserves `reserved` more bytes."""
    unit = Unit(dialect.fork, reserved=reserved, keeps_warmth=False)
    functions = list(functions_of(code))
    builder = Builder()
    flows = function_flows(dialect, code)
    returns = {each.name: len(each.returns) for each in functions}
    continues = {each.name: flows[each.name].can_continue for each in functions}
    unit.functions[""] = _Translator(unit, dialect, builder, returns, continues).main(code)
    for each in functions:
        unit.functions[each.name] = _Translator(unit, dialect, builder, returns, continues).function(each)
    operands = [guard.arguments[0] for guard in calls_of(code, "memoryguard")]
    guards = {operand.value for operand in operands if isinstance(operand, Literal)}
    if len(guards) == 1:  # if they differ, the program may use memory above the lower one, where spills would lie
        unit.guard = guards.pop()
    return unit


@dataclass(slots=True)
class _Join:
    """A join block that is not begun yet, and its predecessors so far."""

    block: DependencyBlock
    sources: list[tuple[DependencyBlock, Variables]] = field(default_factory=list)


class _Translator:
    def __init__(
        self, unit: Unit, dialect: Dialect, builder: Builder, returns: dict[str, int], continues: dict[str, bool]
    ) -> None:
        self.unit, self.dialect, self.builder = unit, dialect, builder
        self.returns, self.continues = returns, continues
        self.count = 0
        self.variables: Variables = {}
        self.alive = True  # whether the current position is reachable
        self.loops: list[tuple[_Join, _Join]] = []  # the targets of `break` and `continue`
        self.results: list[str] = []
        self.block = self.new_block()
        self.begin(self.block)

    def main(self, code: Block) -> Function:
        entry = self.block
        self.builder.where = code.location
        self.statements(code)
        if self.alive:
            self.block.end = self.end("STOP")
        return Function("", entry, where=code.location)

    def function(self, definition: FunctionDefinition) -> Function:
        entry = self.block
        self.builder.where = definition.location
        for parameter in definition.parameters:
            self.variables[parameter.name] = self.builder.param(entry)
        self.results = [each.name for each in definition.returns]
        for name in self.results:
            self.variables[name] = self.builder.const(0)
        self.statements(definition.body)
        self.leave()
        continues = self.continues[definition.name]
        return Function(definition.name, entry, len(self.results), continues, definition.location)

    # -- source locations ---------------------------------------------------------------------------------------------

    def at(self, node: Statement | Expression) -> Source | None:
        """Sets the source location to that of the node; returns the previous one, to be restored.

        Nodes that optimiser steps inserted have none: they keep the location of the enclosing node.
        """
        outer = self.builder.where
        if node.location.start >= 0:
            self.builder.where = node.location
        return outer

    def end(self, op: str, args: tuple[Value, ...] = (), arcs: Sequence[Arc] = (), cases: tuple[int, ...] = ()) -> End:
        return End(op, args, list(arcs), cases, self.builder.where)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def new_block(self) -> DependencyBlock:
        self.count += 1
        return DependencyBlock(self.count - 1)

    def begin(self, block: DependencyBlock) -> None:
        self.block = block
        self.builder.block = block

    def go(self, join: _Join) -> None:
        """Jumps from the current block to the join."""
        if self.alive:
            join.sources.append((self.block, dict(self.variables)))
            self.block.end = self.end(JUMP, (), [Arc(join.block)])
            self.alive = False

    def land(self, join: _Join, names: Iterable[str]) -> None:
        """Continues at a join: a variable whose values differ between predecessors becomes a parameter."""
        self.alive = bool(join.sources)
        self.begin(join.block)
        if not join.sources:
            self.variables = {name: self.builder.const(0) for name in names}
            return
        found: Variables = {}
        for name in names:
            values = [variables[name] for _, variables in join.sources]
            if all(value is values[0] for value in values):
                found[name] = values[0]
            else:
                found[name] = self.builder.param(join.block)
                for (source, _), value in zip(join.sources, values, strict=True):
                    _arc_to(source, join.block).args.append(value)
        self.variables = found

    def leave(self) -> None:
        if self.alive:
            self.block.end = self.end(LEAVE, tuple([self.variables[name] for name in self.results]))
            self.alive = False

    # -- statements ---------------------------------------------------------------------------------------------------

    def statements(self, block: Block) -> None:
        outside = list(self.variables)
        for statement in block.statements:
            if not self.alive:
                break
            self.statement(statement)
        self.variables = {name: self.variables[name] for name in outside}

    def statement(self, statement: Statement) -> None:
        outer = self.at(statement)
        self.translate(statement)
        self.builder.where = outer

    def translate(self, statement: Statement) -> None:
        match statement:
            case ExpressionStatement(expression):
                self.values(expression)
            case VariableDeclaration(variables, value):
                values = [self.builder.const(0)] * len(variables) if value is None else self.values(value)
                self.variables.update(zip([each.name for each in variables], values, strict=False))
            case Assignment(targets, value):
                self.variables.update(zip([each.name for each in targets], self.values(value), strict=False))
            case Block():
                self.statements(statement)
            case If():
                self.condition(statement)
            case Switch():
                self.switch(statement)
            case ForLoop():
                self.loop(statement)
            case Break():
                self.go(self.loops[-1][0])
            case Continue():
                self.go(self.loops[-1][1])
            case Leave():
                self.leave()

    def condition(self, statement: If) -> None:
        value = self.value(statement.condition)
        if not self.alive:
            return
        names, before = list(self.variables), dict(self.variables)
        here, inside, join = self.block, self.new_block(), _Join(self.new_block())
        past = self.new_block()  # the edge past the body is split, so that it can pass arguments
        here.end = self.end(BRANCH, (value,), [Arc(inside), Arc(past)])
        self.begin(past)
        self.go(join)
        self.alive, self.variables = True, before
        self.begin(inside)
        self.statements(statement.body)
        self.go(join)
        self.land(join, names)

    def switch(self, statement: Switch) -> None:
        value = self.value(statement.expression)
        if not self.alive:
            return
        names, before = list(self.variables), dict(self.variables)
        here, join = self.block, _Join(self.new_block())
        arcs: list[Arc] = []
        for case in sorted(statement.cases, key=lambda case: case.value is None):
            arcs.append(Arc(self.new_block()))
            self.alive, self.variables = True, dict(before)
            self.begin(arcs[-1].target)
            self.statements(case.body)
            self.go(join)
        if all(case.value is not None for case in statement.cases):
            arcs.append(Arc(self.new_block()))
            self.alive, self.variables = True, dict(before)
            self.begin(arcs[-1].target)
            self.go(join)
        valued = [case for case in statement.cases if case.value is not None]
        here.end = self.end(SWITCH, (value,), arcs, tuple([case.value.value for case in valued if case.value]))
        if all(case.location.start >= 0 for case in valued):
            here.end.places = tuple([case.location for case in valued])
        self.land(join, names)

    def loop(self, statement: ForLoop) -> None:
        outside = list(self.variables)
        for each in statement.pre.statements:
            if self.alive:
                self.statement(each)
        if not self.alive:
            self.variables = {name: self.variables.get(name, self.builder.const(0)) for name in outside}
            return
        names = list(self.variables)
        assigned = _assigned(statement.condition, statement.body, statement.post)
        header, body = self.new_block(), self.new_block()
        post, after = _Join(self.new_block()), _Join(self.new_block())
        into = Arc(header)
        self.block.end = self.end(JUMP, (), [into])
        changing = [name for name in names if name in assigned]
        for name in changing:
            into.args.append(self.variables[name])
            self.variables[name] = self.builder.param(header)
        self.begin(header)
        condition = self.value(statement.condition)
        if self.alive:
            past = self.new_block()
            self.block.end = self.end(BRANCH, (condition,), [Arc(body), Arc(past)])
            before = dict(self.variables)
            self.begin(past)
            self.go(after)
            self.alive, self.variables = True, before
            self.begin(body)
            self.loops.append((after, post))
            self.statements(statement.body)
            self.loops.pop()
            self.go(post)
            self.land(post, names)
            if self.alive:
                self.statements(statement.post)
            if self.alive:
                self.block.end = self.end(JUMP, (), [Arc(header, [self.variables[name] for name in changing])])
        self.land(after, names)
        self.variables = {name: self.variables[name] for name in outside}

    # -- expressions --------------------------------------------------------------------------------------------------

    def value(self, expression: Expression) -> Value:
        values = self.values(expression)
        return values[0] if values else self.builder.const(0)

    def values(self, expression: Expression) -> list[Value]:
        if isinstance(expression, Identifier):
            return [self.variables[expression.name]]
        if isinstance(expression, Literal):
            return [self.builder.const(expression.value)]
        outer = self.at(expression)
        found = self.called(expression)
        self.builder.where = outer
        return found

    def called(self, expression: FunctionCall) -> list[Value]:
        builtin = self.dialect.builtin(expression.name)
        if builtin is None:
            return self.call(expression)
        if builtin.opcode is not None:
            return self.operation(builtin, expression)
        return self.special(builtin, expression)

    def arguments(self, call: FunctionCall, builtin: Builtin | None = None) -> list[Value]:
        """Evaluates from the last to the first, as Yul does; literal arguments are left out."""
        found: list[Value] = []
        for index in range(len(call.arguments) - 1, -1, -1):
            if builtin is None or builtin.literal_kind(index) is None:
                found.append(self.value(call.arguments[index]))
        return found[::-1]

    def call(self, call: FunctionCall) -> list[Value]:
        args = tuple(self.arguments(call))
        if not self.alive:
            return [self.builder.const(0)] * self.returns[call.name]
        value = self.builder.raw("CALLFN", args, self.unit.number_of(call.name))
        if not self.continues[call.name]:
            self.block.end = self.end(NEVER)
            self.alive = False
            return [self.builder.const(0)] * self.returns[call.name]
        return self.outputs(value, self.returns[call.name])

    def outputs(self, value: Value, count: int) -> list[Value]:
        return [self.builder.raw("RESULT", (value,), number) for number in range(count)]

    def operation(self, builtin: Builtin, call: FunctionCall) -> list[Value]:
        args = tuple(self.arguments(call))
        op = builtin.opcode
        assert op is not None
        if not self.alive:
            return [self.builder.const(0)] * op.pushes
        if op.ends:
            self.block.end = self.end(op.name, args)
            self.alive = False
            return []
        if op.name == "POP":
            return []
        value = self.builder.raw(op.name, args)
        return [value] if op.pushes else []

    def special(self, builtin: Builtin, call: FunctionCall) -> list[Value]:
        args = tuple(self.arguments(call, builtin))
        if not self.alive:
            return [self.builder.const(0)] * builtin.returns
        build = self.builder
        literals = [each for each in call.arguments if isinstance(each, Literal)]
        if builtin.is_verbatim:
            self.unit.verbatims.append(Verbatim(literals[0].text.encode("latin-1"), len(args), builtin.returns))
            value = build.raw("VERBATIM", args, len(self.unit.verbatims) - 1)
            return self.outputs(value, builtin.returns)
        if builtin.name in _SYMBOLS:
            return [build.raw("SYMBOL", (), self.unit.symbol(_SYMBOLS[builtin.name], literals[0].text))]
        if builtin.name == "datacopy":
            build.raw("CODECOPY", args)
            return []
        if builtin.name == "setimmutable":
            name = call.arguments[1]
            assert isinstance(name, Literal)
            build.raw("SETIMMUTABLE", args, self.unit.symbol(SymbolKind.IMMUTABLE, name.text))
            return []
        assert builtin.name == "memoryguard"
        return [build.const(literals[0].value + self.unit.reserved)]


def _arc_to(source: DependencyBlock, target: DependencyBlock) -> Arc:
    return next(arc for arc in source.end.arcs if arc.target is target)


def _assigned(*parts: Expression | Block) -> set[str]:
    """The variables that code assigns to, nested functions excluded."""
    found: set[str] = set()
    work: list[object] = list(parts)
    while work:
        match work.pop():
            case Assignment(targets, _):
                found.update(each.name for each in targets)
            case Block(statements):
                work += statements
            case If(_, body):
                work.append(body)
            case Switch(_, cases):
                work += [case.body for case in cases]
            case ForLoop(pre, _, post, body):
                work += [pre, post, body]
    return found
