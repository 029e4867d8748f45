"""StackLimitEvader: variables the stack can't hold, in memory.

Needs: Disambiguator, a `memoryguard` in the code (someone must own the memory it takes).
Does: gives each variable the code generator cannot reach a fixed slot between the guarded memory and the free one:
declarations and assignments become mstore, mentions mload, and the guard grows. Slots of functions that are never
active at the same time are shared. Nothing is done if a recursive function would need slots.
Why: the EVM reaches only 16 slots down its stack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from fusevm.yul.analysis.callgraph import CallGraph, call_graph
from fusevm.yul.context import StepContext
from fusevm.yul.steps.stack_compressor import stack_report
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ExpressionStatement,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Literal,
    Location,
    Statement,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.walk import Rewriter, calls_of, functions_of

_REACH = 16
_WORD = 32


def run(context: StepContext, block: Block) -> None:
    unreachable: dict[str, list[str]] = {}
    for function, places in stack_report(context, block).items():
        chosen = [name for place in places for name in place.choices[: place.deficit]]
        unreachable[function] = list(dict.fromkeys(chosen))
    evade(context, block, unreachable)


def evade(context: StepContext, block: Block, unreachable: Mapping[str, list[str]]) -> None:
    """Move the variables named, by function; an empty list stands for a function with too large a signature."""
    guards = calls_of(block, "memoryguard")
    reserved = {guard.arguments[0].value for guard in guards if isinstance(guard.arguments[0], Literal)}
    if len(reserved) != 1:
        return
    graph = call_graph(block)
    if any(name in unreachable for name in graph.recursive()):
        return
    functions = {each.name: each for each in functions_of(block)}
    slots, total = _allocate(graph, functions, unreachable)
    start = reserved.pop()
    offsets = {name: start + _WORD * (total - slot - 1) for name, slot in slots.items()}
    mover = _Mover(context, offsets, {name: [each.name for each in f.returns] for name, f in functions.items()})
    mover.block(block)
    block.statements += mover.new_functions
    for guard in guards:
        guard.arguments = [literals.hexadecimal(start + _WORD * total, guard.arguments[0].location)]


def _allocate(
    graph: CallGraph, functions: dict[str, FunctionDefinition], unreachable: Mapping[str, list[str]]
) -> tuple[dict[str, int], int]:
    """A slot for each variable, after those of everything its function may call; and how many there are.

    Functions that are never called get none: the slots of the main code would not come after theirs.
    """
    slots: dict[str, int] = {}
    needed: dict[str, int] = {}
    reached = graph.reached()
    for part in graph.components():
        if part[0] not in reached:
            continue
        first = max((needed.get(callee, 0) for name in part for callee in graph.calls[name]), default=0)
        for name in part:
            count = first
            for variable in _to_move(functions.get(name), unreachable[name]) if name in unreachable else ():
                if variable not in slots:
                    slots[variable] = count
                    count += 1
            needed[name] = count
    return slots, needed.get("", 0)


def _to_move(function: FunctionDefinition | None, names: Collection[str]) -> Iterable[str]:
    """Parameters and return variables beyond what the stack can hold come first."""
    if function is not None:
        signature = [each.name for each in (*function.parameters, *function.returns)]
        yield from signature[: max(0, len(signature) - _REACH)]
    yield from (name for name in names if name)


def _load(offset: int, place: Location) -> Expression:
    return FunctionCall(Identifier("mload", place), [literals.hexadecimal(offset, place)], place)


def _store(offset: int, value: Expression, place: Location) -> Statement:
    call = FunctionCall(Identifier("mstore", place), [literals.hexadecimal(offset, place), value], place)
    return ExpressionStatement(call, place)


class _Mover(Rewriter):
    """Moves the variables with an offset to memory."""

    def __init__(self, context: StepContext, offsets: dict[str, int], returns: dict[str, list[str]]) -> None:
        super().__init__()
        self.context = context
        self.offsets = offsets
        self.returns = returns
        self.new_functions: list[Statement] = []

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Identifier):
            offset = self.offsets.get(expression.name)
            return expression if offset is None else _load(offset, expression.location)
        return super().expression(expression)

    def function(self, function: FunctionDefinition) -> None:
        self.block(function.body)
        offsets = self.offsets
        inits: list[Statement] = []
        for variable in function.parameters:
            if variable.name in offsets:
                value = Identifier(variable.name, variable.location)
                inits.append(_store(offsets[variable.name], value, variable.location))
        for variable in function.returns:
            if variable.name in offsets:
                inits.append(_store(offsets[variable.name], literals.zero(variable.location), variable.location))
        if len(function.returns) == 1 and function.returns[0].name in offsets:
            self._split(function, inits)
            return
        function.body.statements[:0] = inits
        function.returns = [each for each in function.returns if each.name not in offsets]

    def _split(self, function: FunctionDefinition, inits: list[Statement]) -> None:
        """A function that returns one value from memory still has to be an expression: an inner one does the work."""
        place, new_name = function.location, self.context.dispenser.new_name
        kept = [each for each in function.parameters if each.name not in self.offsets]
        inner = FunctionDefinition(new_name(function.name), kept, [], function.body, place)
        self.new_functions.append(inner)
        renamed = {each.name: new_name(each.name) for each in kept}
        function.parameters = [TypedName(renamed.get(p.name, p.name), p.location) for p in function.parameters]
        arguments: list[Expression] = [Identifier(renamed[each.name], each.location) for each in kept]
        call = FunctionCall(Identifier(inner.name, place), arguments, place)
        result = function.returns[0].name
        load = Assignment([Identifier(result, place)], _load(self.offsets[result], place), place)
        function.body = Block([*inits, ExpressionStatement(call, place), load], place)

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        self.statement(statement)
        if isinstance(statement, Assignment):
            return self._moved(
                statement.targets,
                statement.value,
                statement.location,
                lambda target, value: Assignment([target], value, statement.location),
            )
        if isinstance(statement, VariableDeclaration):
            return self._moved(
                statement.variables,
                statement.value,
                statement.location,
                lambda variable, value: VariableDeclaration([variable], value, statement.location),
            )
        return None

    def _moved(
        self,
        targets: Sequence[Identifier | TypedName],
        value: Expression | None,
        place: Location,
        keep: Callable[..., Statement],
    ) -> list[Statement] | None:
        if len(targets) == 1:
            offset = self.offsets.get(targets[0].name)
            return None if offset is None else [_store(offset, literals.zero(place) if value is None else value, place)]
        sources = self._sources(value, len(targets))
        if not any(each.name in self.offsets for each in targets) and not any(each is not None for each in sources):
            return None
        temporary: list[TypedName] = []
        to_memory: list[Statement] = []
        to_stack: list[Statement] = []
        for target, source in zip(targets, sources, strict=True):
            if source is None:
                temporary.append(TypedName(self.context.dispenser.new_name(target.name), target.location))
                moved: Expression = Identifier(temporary[-1].name, place)
            else:
                moved = _load(source, place)
            if target.name in self.offsets:
                to_memory.append(_store(self.offsets[target.name], moved, place))
            else:
                to_stack.append(keep(target, moved))
        if temporary or value is None:
            first: Statement = VariableDeclaration(temporary, value, place)
        else:
            first = ExpressionStatement(value, place)
        return [first, *reversed(to_memory), *reversed(to_stack)]

    def _sources(self, value: Expression | None, count: int) -> list[int | None]:
        """Where in memory the called function leaves its results, None for those on the stack."""
        if isinstance(value, FunctionCall) and value.function.name in self.returns:
            return [self.offsets.get(name) for name in self.returns[value.function.name]]
        return [None] * count
