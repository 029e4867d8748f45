"""Yul code to stack code: variables live on the stack, functions return through a label.

The layout is that of solc's older generator, on purpose: which variables "cannot be reached" decides what
StackCompressor and StackLimitEvader do, and their texts are compared to the letter. In short:
- a function is entered with its return label below and its parameters above it, the first on top;
- return variables are pushed only before the first statement that could need them;
- a variable's slot is free after its last reference, at the end of a statement of the block that declares it; free
  slots on top are popped, others are taken by the next declaration within reach (the lowest first);
- a read reaches 16 slots deep, an assignment 17.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.evm import assembler
from fusevm.evm.assembler import CALLS, RETURNS, Assembly, ItemKind
from fusevm.yul.stack.slots import FunctionLabel, ReferenceCounter, SlotScope, VariableSlot
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
    LiteralKind,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Builtin, Dialect

REACH = 16  # DUP16 and SWAP16


@dataclass(frozen=True, slots=True)
class TooDeep:
    """A variable out of reach; without name, a function whose parameters and returns cannot be put in order."""

    function: str  # empty in the main code
    variable: str


@dataclass(slots=True, eq=False)
class _Body:
    """The function (or main code) being generated."""

    name: str = ""
    delayed: list[TypedName] = field(default_factory=list)  # return variables not on the stack yet
    exit_label: int | None = None  # None in the main code
    exit_height: int | None = None  # None until the return variables are on the stack
    free: set[int] = field(default_factory=set)  # slots no longer needed
    finished: dict[SlotScope, list[VariableSlot]] = field(
        default_factory=dict
    )  # referenced for the last time, not freed yet


@dataclass(frozen=True, slots=True)
class _LoopLabels:
    post: int
    end: int
    height: int


class Generator:
    """Generates one code block. `too_deep` is filled instead of raising: the code is then not to be used."""

    def __init__(self, dialect: Dialect, assembly: Assembly) -> None:
        self.dialect = dialect
        self.assembly = assembly
        self.too_deep: list[TooDeep] = []
        self.body = _Body()
        self.loops: list[_LoopLabels] = []
        self.scopes: dict[int, SlotScope] = {}
        self.scope = SlotScope()

    def program(self, block: Block) -> None:
        counter = ReferenceCounter()
        counter.block(block)
        self.assembly.at(block.location)
        self.scopes = counter.scopes
        self.block(block)

    # -- slots --------------------------------------------------------------------------------------------------------

    def release(self, pop: bool = True) -> None:
        """Free the slots of this scope's variables that are no longer needed, and take free ones off the top."""
        self.release_in(self.scope)
        parent = self.scope.parent
        # Parameters live one scope further out; they are freed only until the return variables lie above them.
        waiting = self.body.exit_label is not None and self.body.exit_height is None
        if waiting and not self.scope.is_function and parent is not None and parent.is_function:
            self.release_in(parent)
        while pop and self.assembly.height - 1 in self.body.free:
            self.body.free.remove(self.assembly.height - 1)
            self.assembly.pop()

    def release_in(self, scope: SlotScope) -> None:
        for variable in self.body.finished.pop(scope, ()):
            self.delete(variable)

    def delete(self, variable: VariableSlot) -> None:
        self.body.free.add(variable.height)
        variable.height = -1

    def used(self, variable: VariableSlot) -> None:
        variable.references -= 1
        if variable.references == 0:
            self.finish(variable)

    def finish(self, variable: VariableSlot) -> None:
        self.body.finished.setdefault(variable.scope, []).append(variable)

    def distance(self, variable: VariableSlot, reach: int) -> int | None:
        """How deep the variable's slot is, None (and a complaint) if it is beyond reach."""
        distance = self.assembly.height - variable.height
        if distance <= reach:
            return distance
        self.too_deep.append(TooDeep(self.body.name, variable.name))
        return None

    def store(self, variable: VariableSlot) -> None:
        """Move the top of the stack into the variable's slot."""
        distance = self.distance(variable, REACH + 1)
        self.assembly.swap(distance - 1 if distance is not None else 1)
        self.assembly.pop()

    # -- blocks -------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        outer, self.scope = self.scope, self.scopes[id(block)]
        for statement in block.statements:
            if isinstance(statement, FunctionDefinition):
                self.scope.functions[statement.name] = FunctionLabel(self.assembly.new_label(), len(statement.returns))
        self.statements(block.statements)
        self.release()
        self.scope = outer

    def statements(self, statements: list[Statement]) -> None:
        """Function definitions stand in place, jumped over."""
        over: int | None = None
        for statement in statements:
            self.release()
            if self.needs_returns(statement):
                self.push_returns()
            is_function = isinstance(statement, FunctionDefinition)
            if is_function and over is None:
                over = self.assembly.new_label()
                self.assembly.jump(over)
            elif not is_function and over is not None:
                self.assembly.label(over)
                over = None
            self.statement(statement)
        if over is not None:
            self.assembly.label(over)
        self.release()

    def needs_returns(self, statement: Statement) -> bool:
        """Calls and assignments that don't name a return variable can go before it is on the stack."""
        if self.body.exit_label is None or self.body.exit_height is not None:
            return False
        if isinstance(statement, ExpressionStatement | Assignment):
            names = names_in(statement)
            return any(variable.name in names for variable in self.body.delayed)
        return True

    def push_returns(self) -> None:
        """Push the return variables as if they were declared now; free slots below are given up."""
        outer = self.scope
        if not self.scope.is_function:
            assert self.scope.parent is not None
            self.scope = self.scope.parent
        self.body.free.clear()
        for variable in self.body.delayed:
            self.declaration(VariableDeclaration([variable], None))
        heights = [self.scope.variables[variable.name].height for variable in self.body.delayed]
        self.body.exit_height = max(heights, default=0) + 1
        self.body.delayed = []
        self.scope = outer

    # -- statements ---------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        outer = self.assembly.source
        self.assembly.at(statement.location)
        self.translate(statement)
        self.assembly.source = outer

    def translate(self, statement: Statement) -> None:
        if isinstance(statement, ExpressionStatement):
            self.expression(statement.expression)
        elif isinstance(statement, VariableDeclaration):
            self.declaration(statement)
        elif isinstance(statement, Assignment):
            self.assignment(statement)
        elif isinstance(statement, Block):
            self.block(statement)
        elif isinstance(statement, If):
            self.if_(statement)
        elif isinstance(statement, Switch):
            self.switch(statement)
        elif isinstance(statement, ForLoop):
            self.loop(statement)
        elif isinstance(statement, FunctionDefinition):
            self.function(statement)
        elif isinstance(statement, Break):
            self.leave_to(self.loops[-1].end, self.loops[-1].height)
        elif isinstance(statement, Continue):
            self.leave_to(self.loops[-1].post, self.loops[-1].height)
        elif isinstance(statement, Leave):
            assert self.body.exit_label is not None
            assert self.body.exit_height is not None
            self.leave_to(self.body.exit_label, self.body.exit_height)

    def leave_to(self, label: int, height: int) -> None:
        """Pop down to the height and jump; what follows here is dead but counts on the height as it was."""
        before = self.assembly.height
        self.pop_to(height)
        self.assembly.jump(label, before - self.assembly.height)

    def pop_to(self, height: int) -> None:
        while self.assembly.height > height:
            self.assembly.pop()

    def declaration(self, declaration: VariableDeclaration) -> None:
        start = self.assembly.height
        if declaration.value is not None:
            self.expression(declaration.value)
            self.release(pop=False)
        else:
            for _ in declaration.variables:
                self.assembly.constant(0)
        on_top = True
        for index in reversed(range(len(declaration.variables))):
            variable = self.scope.variables[declaration.variables[index].name]
            variable.height = start + index
            if variable.references:
                on_top = self.settle(variable) and on_top
            elif on_top:
                variable.height = -1
                self.assembly.pop()
            else:
                self.finish(variable)

    def settle(self, variable: VariableSlot) -> bool:
        """Move the variable from the top into a free slot within reach; whether there was one."""
        for slot in range(max(0, self.assembly.height - REACH - 1), self.assembly.height):
            if slot in self.body.free:
                self.body.free.remove(slot)
                variable.height = slot
                self.store(variable)
                return True
        return False

    def assignment(self, assignment: Assignment) -> None:
        self.expression(assignment.value)
        for target in reversed(assignment.targets):
            variable = self.scope.variable(target.name)
            self.store(variable)
            self.used(variable)

    def if_(self, statement: If) -> None:
        self.expression(statement.condition)
        self.assembly.named_op("ISZERO")
        end = self.assembly.new_label()
        self.assembly.jump_if(end)
        self.block(statement.body)
        self.assembly.label(end)

    def switch(self, switch: Switch) -> None:
        """The value stays on the stack until the end; the default's code stands before the others'."""
        self.expression(switch.expression)
        end = self.assembly.new_label()
        bodies: list[tuple[int, Case]] = []
        for case in switch.cases:
            if case.value is None:
                self.block(case.body)
            else:
                label = self.assembly.new_label()
                bodies.append((label, case))
                self.expression(case.value)
                self.assembly.dup(2)
                self.assembly.named_op("EQ")
                self.assembly.jump_if(label)
        self.assembly.jump(end)
        for label, case in bodies:
            self.assembly.label(label)
            self.block(case.body)
            if case is not bodies[-1][1]:
                self.assembly.jump(end)
        self.assembly.label(end)
        self.assembly.pop()

    def loop(self, loop: ForLoop) -> None:
        outer, self.scope = self.scope, self.scopes[id(loop.pre)]
        self.statements(loop.pre.statements)
        start, post, end = (self.assembly.new_label() for _ in range(3))
        self.assembly.label(start)
        self.expression(loop.condition)
        self.assembly.named_op("ISZERO")
        self.assembly.jump_if(end)
        self.loops.append(_LoopLabels(post, end, self.assembly.height))
        self.block(loop.body)
        self.assembly.label(post)
        self.block(loop.post)
        self.assembly.jump(start)
        self.assembly.label(end)
        self.loops.pop()
        self.release()
        self.scope = outer

    # -- functions ----------------------------------------------------------------------------------------------------

    def function(self, function: FunctionDefinition) -> None:
        assembly, height, outer_body, outer_scope = self.assembly, self.assembly.height, self.body, self.scope
        label = self.scope.functions[function.name].label
        assembly.label(label)
        assembly.entries[function.name] = assembler.EntryLabel(label, len(function.parameters), len(function.returns))
        self.scope = self.scopes[id(function)]
        self.body = _Body(function.name, list(function.returns), assembly.new_label())
        assembly.height = 1 + len(function.parameters)
        for slot, parameter in enumerate(reversed(function.parameters), start=1):
            variable = self.scope.variables[parameter.name]
            variable.height = slot
            if not variable.references:
                self.delete(variable)
        self.block(function.body)
        if self.body.exit_height is None:
            self.push_returns()
        assert self.body.exit_label is not None
        assert self.body.exit_height is not None
        self.pop_to(self.body.exit_height)
        assembly.label(self.body.exit_label)
        self.arrange_returns(function)
        assembly.at(function.location, RETURNS)
        assembly.named_op("JUMP")
        self.body, self.scope, assembly.height = outer_body, outer_scope, height

    def arrange_returns(self, function: FunctionDefinition) -> None:
        """From [label, leftovers, returns] to [returns, label]: every slot knows its target and is swapped there."""
        targets = [-1] * self.assembly.height
        targets[0] = len(function.returns)
        for index, variable in enumerate(function.returns):
            targets[self.scope.variables[variable.name].height] = index
        if len(targets) > REACH + 1:
            self.too_deep.append(TooDeep(function.name, ""))
            return
        while targets and targets[-1] != len(targets) - 1:
            target = targets[-1]
            if target < 0:
                self.assembly.pop()
                targets.pop()
            else:
                self.assembly.swap(len(targets) - target - 1)
                targets[-1], targets[target] = targets[target], target

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, expression: Expression) -> None:
        outer = self.assembly.source
        self.assembly.at(expression.location)
        self.push(expression)
        self.assembly.source = outer

    def push(self, expression: Expression) -> None:
        if isinstance(expression, Literal):
            self.assembly.constant(expression.value)
        elif isinstance(expression, Identifier):
            variable = self.scope.variable(expression.name)
            self.assembly.dup(self.distance(variable, REACH) or 1)
            self.used(variable)
        else:
            builtin = self.dialect.builtin(expression.name)
            if builtin is not None:
                self.builtin_call(builtin, expression)
            else:
                self.user_call(expression)

    def user_call(self, call: FunctionCall) -> None:
        assembly, before, back = self.assembly, self.assembly.height, self.assembly.new_label()
        assembly.label_reference(back)
        for argument in reversed(call.arguments):
            self.expression(argument)
        entry = self.scope.entry(call.name)
        assembly.at(call.location, CALLS)
        assembly.jump(entry.label)
        assembly.at(call.location)
        assembly.label(back)
        assembly.height = before + entry.returns

    def builtin_call(self, builtin: Builtin, call: FunctionCall) -> None:
        for index in reversed(range(len(call.arguments))):
            if builtin.literal_kind(index) is None:
                self.expression(call.arguments[index])
        perform(self.assembly, builtin, call)


def perform(assembly: Assembly, builtin: Builtin, call: FunctionCall) -> None:
    """The builtin itself, its arguments being on the stack."""
    if builtin.opcode is not None:
        assembly.op(builtin.opcode)
    elif builtin.name == "datacopy":
        assembly.named_op("CODECOPY")
    else:
        _special(assembly, builtin, call)


def _special(assembly: Assembly, builtin: Builtin, call: FunctionCall) -> None:
    """Builtins that take a literal: it is a name, a number, or code."""
    index = next(i for i in range(len(call.arguments)) if builtin.literal_kind(i) is not None)
    literal = call.arguments[index]
    assert isinstance(literal, Literal)
    if literal.kind is LiteralKind.NUMBER:
        assembly.constant(literal.value)
    elif builtin.is_verbatim:
        assembly.raw(literal.text.encode("latin-1"), builtin.returns - builtin.parameters + 1)
    else:
        kind = _NAMED[builtin.name]
        assembly.reference(kind, literal.text, -2 if kind is ItemKind.ASSIGN_IMMUTABLE else 1)


_NAMED = {
    "datasize": ItemKind.DATA_SIZE,
    "dataoffset": ItemKind.DATA_OFFSET,
    "loadimmutable": ItemKind.IMMUTABLE,
    "setimmutable": ItemKind.ASSIGN_IMMUTABLE,
    "linkersymbol": ItemKind.LIBRARY,
}


def names_in(node: ExpressionStatement | Assignment) -> set[str]:
    """The variables a simple statement reads or assigns."""
    pending: list[Expression] = [node.expression if isinstance(node, ExpressionStatement) else node.value]
    names = {target.name for target in node.targets} if isinstance(node, Assignment) else set()
    while pending:
        expression = pending.pop()
        if isinstance(expression, Identifier):
            names.add(expression.name)
        elif isinstance(expression, FunctionCall):
            pending += expression.arguments
    return names
