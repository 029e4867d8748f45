"""Yul code as a graph of basic blocks over stack slots: what a generator that lays out whole stacks works on.

An operation takes its inputs from the top of the stack and leaves its outputs there. Blocks end in a jump, a branch, a
return from the function, or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from fusevm.yul.analysis.callgraph import call_graph
from fusevm.yul.analysis.controlflow import ControlFlow, function_flows
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
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import functions_of


class SlotKind(Enum):
    VARIABLE = "variable"
    LITERAL = "literal"
    TEMPORARY = "temporary"  # the result of a call
    CALL_LABEL = "where a called function returns to"
    RETURN_LABEL = "where this function returns to"
    JUNK = "anything"


@dataclass(slots=True, eq=False)
class LayoutSlot:
    """A value on the stack. Equal values are the same object."""

    kind: SlotKind
    name: str = ""
    value: int = 0  # of a literal

    @property
    def is_free(self) -> bool:
        """Whether it can be pushed anywhere."""
        return self.kind in _FREE


_FREE = frozenset({SlotKind.LITERAL, SlotKind.CALL_LABEL, SlotKind.JUNK})
JUNK = LayoutSlot(SlotKind.JUNK)
Stack = list[LayoutSlot]


@dataclass(slots=True, eq=False)
class FlowOperation:
    """A call, or a comparison with a case's label, or values that are given to variables (neither of the two)."""

    input: Stack
    output: Stack
    is_recursive: bool = False
    call: FunctionCall | None = None


@dataclass(slots=True, eq=False)
class FlowBlock:
    """`targets` has one block for a jump and two for a branch: where the condition is zero, and where it isn't."""

    operations: list[FlowOperation] = field(default_factory=list)
    targets: list[FlowBlock] = field(default_factory=list)
    entries: list[FlowBlock] = field(default_factory=list)
    condition: LayoutSlot | None = None
    jumps_back: bool = False
    returns: bool = False  # from the function; otherwise a block without targets ends the program
    allows_junk: bool = False

    @property
    def forward_targets(self) -> list[FlowBlock]:
        return [] if self.jumps_back else self.targets


@dataclass(slots=True)
class FunctionGraph:
    """One function, or the main code."""

    name: str
    entry: FlowBlock
    parameters: Stack
    exit_stack: Stack  # what has to be there when the function returns; its return label comes last
    can_continue: bool


def flow_graphs(dialect: Dialect, block: Block) -> Iterator[FunctionGraph]:
    """The main code, then every function. Names must be unique."""
    flows = function_flows(dialect, block)
    graph = call_graph(block)
    functions = list(functions_of(block))
    component = {name: number for number, part in enumerate(graph.components()) for name in part}
    cycles: dict[int, set[str]] = {}  # by component, its functions that may be active twice
    for each in graph.recursive():
        cycles.setdefault(component[each], set()).add(each)
    returns = {each.name: len(each.returns) for each in functions}
    for function in (None, *functions):
        name = "" if function is None else function.name
        builder = _Builder(dialect, flows, returns, cycles.get(component[name], set()))
        yield builder.main(block) if function is None else builder.function(function, flows[name])


class _Builder:
    def __init__(
        self, dialect: Dialect, flows: dict[str, ControlFlow], returns: dict[str, int], recursive: set[str]
    ) -> None:
        self.dialect = dialect
        self.flows = flows
        self.returns = returns
        self.recursive = recursive  # the functions whose calls may come back to this one
        self.slots: dict[object, LayoutSlot] = {}
        self.current = FlowBlock()
        self.loops: list[tuple[FlowBlock, FlowBlock]] = []  # where `break` and `continue` go
        self.ghosts = 0

    def main(self, block: Block) -> FunctionGraph:
        entry = self.current
        self.block(block)
        _finish(entry)
        return FunctionGraph("", entry, [], [], True)

    def function(self, function: FunctionDefinition, flow: ControlFlow) -> FunctionGraph:
        entry = self.current
        parameters = [self.variable(each.name) for each in function.parameters]
        exit_stack = [self.variable(each.name) for each in function.returns]
        exit_stack.append(LayoutSlot(SlotKind.RETURN_LABEL, function.name))
        self.block(function.body)
        self.current.returns = True
        _finish(entry)
        return FunctionGraph(function.name, entry, parameters, exit_stack, flow.can_continue)

    # -- slots --------------------------------------------------------------------------------------------------------

    def slot(self, key: object, kind: SlotKind, name: str = "", value: int = 0) -> LayoutSlot:
        found = self.slots.get(key)
        if found is None:
            found = self.slots[key] = LayoutSlot(kind, name, value)
        return found

    def variable(self, name: str) -> LayoutSlot:
        return self.slot(name, SlotKind.VARIABLE, name)

    def literal(self, value: int) -> LayoutSlot:
        return self.slot(value, SlotKind.LITERAL, value=value)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def jump(self, target: FlowBlock, back: bool = False) -> None:
        self.current.targets = [target]
        self.current.jumps_back = back
        target.entries.append(self.current)
        self.current = target

    def branch(self, condition: LayoutSlot, non_zero: FlowBlock, zero: FlowBlock) -> None:
        self.current.condition = condition
        self.current.targets = [zero, non_zero]
        non_zero.entries.append(self.current)
        zero.entries.append(self.current)

    def operate(self, inputs: Stack, outputs: Stack) -> None:
        self.current.operations.append(FlowOperation(inputs, outputs))

    # -- code ---------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for statement in block.statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case ExpressionStatement(expression):
                self.values(expression)
            case VariableDeclaration(variables, value):
                zeros = [self.literal(0)] * len(variables)
                inputs = zeros if value is None else self.values(value)
                self.operate(inputs, [self.variable(each.name) for each in variables])
            case Assignment(targets, value):
                inputs = self.values(value)
                self.operate(inputs, [self.variable(each.name) for each in targets])
            case If(condition, body):
                inside, after = FlowBlock(), FlowBlock()
                self.branch(self.value(condition), inside, after)
                self.current = inside
                self.block(body)
                self.jump(after)
            case Switch():
                self.switch(statement)
            case ForLoop():
                self.loop(statement)
            case Block():
                self.block(statement)
            case Break():
                self.jump(self.loops[-1][0])
                self.current = FlowBlock()
            case Continue():
                self.jump(self.loops[-1][1])
                self.current = FlowBlock()
            case Leave():
                self.current.returns = True
                self.current = FlowBlock()

    def switch(self, switch: Switch) -> None:
        """The value is kept in a variable of its own and compared with each case."""
        self.ghosts += 1
        ghost = self.slot(("ghost", self.ghosts), SlotKind.VARIABLE, f"GHOST[{self.ghosts - 1}]")
        self.operate([self.value(switch.expression)], [ghost])
        after = FlowBlock()
        for case in switch.cases:
            rest = after
            if case.value is not None:
                inside = FlowBlock()
                rest = after if case is switch.cases[-1] else FlowBlock()
                equal = LayoutSlot(SlotKind.TEMPORARY)
                inputs = [ghost, self.literal(case.value.value)]
                self.current.operations.append(FlowOperation(inputs, [equal]))
                self.branch(equal, inside, rest)
                self.current = inside
            self.block(case.body)
            self.jump(after)
            self.current = rest
        self.current = after

    def loop(self, loop: ForLoop) -> None:
        self.block(loop.pre)
        body, post, after = FlowBlock(), FlowBlock(), FlowBlock()
        self.loops.append((after, post))
        if isinstance(loop.condition, Literal):
            if loop.condition.value:
                self.jump(body)
                self.block(loop.body)
                self.jump(post)
                self.block(loop.post)
                self.jump(body, back=True)
            else:
                self.jump(after)
        else:
            test = FlowBlock()
            self.jump(test)
            self.branch(self.value(loop.condition), body, after)
            self.current = body
            self.block(loop.body)
            self.jump(post)
            self.block(loop.post)
            self.jump(test, back=True)
        self.loops.pop()
        self.current = after

    def value(self, expression: Expression) -> LayoutSlot:
        (slot,) = self.values(expression)
        return slot

    def values(self, expression: Expression) -> Stack:
        """Where the expression's values are, after the operations that make them."""
        if isinstance(expression, Identifier):
            return [self.variable(expression.name)]
        if isinstance(expression, Literal):
            return [self.literal(expression.value)]
        return self.call(expression)

    def call(self, call: FunctionCall) -> Stack:
        name = call.function.name
        builtin = self.dialect.builtin(name)
        inputs: Stack = []
        if builtin is None and self.flows[name].can_continue:
            inputs.append(LayoutSlot(SlotKind.CALL_LABEL))
        for index in range(len(call.arguments) - 1, -1, -1):
            if builtin is None or builtin.literal_kind(index) is None:
                inputs.append(self.value(call.arguments[index]))
        count = self.returns[name] if builtin is None else builtin.returns
        outputs = [LayoutSlot(SlotKind.TEMPORARY) for _ in range(count)]
        is_recursive = builtin is None and name in self.recursive
        self.current.operations.append(FlowOperation(inputs, outputs, is_recursive, call))
        continues = self.flows[name].can_continue if builtin is None else builtin.can_continue
        if not continues:
            self.current = FlowBlock()
        return outputs


# -- after building ---------------------------------------------------------------------------------------------------


def reachable(entry: FlowBlock) -> list[FlowBlock]:
    """Breadth first."""
    found = {id(entry): entry}
    queue = [entry]
    for block in queue:
        for target in block.targets:
            if id(target) not in found:
                found[id(target)] = target
                queue.append(target)
    return queue


def _finish(entry: FlowBlock) -> None:
    """Forget entries from unreachable blocks, and find where junk may be left on the stack."""
    blocks = reachable(entry)
    known = {id(block) for block in blocks}
    for block in blocks:
        block.entries = [each for each in block.entries if id(each) in known]
    _mark_junk(entry, blocks)


def _mark_junk(entry: FlowBlock, blocks: list[FlowBlock]) -> None:
    """Junk is allowed from a block on that has no path to one visited before, if it never leads to a return."""
    needs_clean = {id(block) for block in blocks if block.returns}
    work = [block for block in blocks if block.returns]
    while work:
        for before in work.pop().entries:
            if id(before) not in needs_clean:
                needs_clean.add(id(before))
                work.append(before)
    for block in [*_after_bridges(entry), *(block for block in blocks if not block.targets)]:
        block.allows_junk = id(block) not in needs_clean


def _after_bridges(entry: FlowBlock) -> Iterator[FlowBlock]:
    """The blocks that a bridge of the undirected graph leads to. (Tarjan's, without recursion.)"""
    order: dict[int, int] = {id(entry): 0}
    low: dict[int, int] = {id(entry): 0}
    work: list[tuple[FlowBlock, FlowBlock | None, Iterator[FlowBlock]]] = [(entry, None, iter(_around(entry)))]
    while work:
        block, parent, around = work[-1]
        for other in around:
            if other is parent:
                continue
            if id(other) in order:
                low[id(block)] = min(low[id(block)], order[id(other)])
            else:
                order[id(other)] = low[id(other)] = len(order)
                work.append((other, block, iter(_around(other))))
                break
        else:
            work.pop()
            if parent is not None:
                low[id(parent)] = min(low[id(parent)], low[id(block)])
                if low[id(block)] > order[id(parent)]:
                    yield block if any(target is block for target in parent.targets) else parent


def _around(block: FlowBlock) -> list[FlowBlock]:
    return [*block.targets, *block.entries]
