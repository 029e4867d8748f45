"""UnusedStoreEliminator (S): drops stores to memory and storage that nobody reads.

Needs: Disambiguator, ForLoopInitRewriter; sees addresses only in SSA form with split expressions.
Does: removes mstore, mstore8, sstore and the copying builtins (returndatacopy, which may fail, and mcopy aside) whose
target is overwritten, or out of anybody's reach, before it may be read. Memory ends with the call, storage survives it
unless the call is undone.
Why: stores are dear; inlined code sets up memory that later turns out not to be used.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.yul.accesses import ACCESSES, Access, Place
from fusevm.yul.ast import (
    Block,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Leave,
)
from fusevm.yul.context import Context
from fusevm.yul.controlflow import flow_of_call, function_flows
from fusevm.yul.effects import (
    READS_MEMORY,
    READS_STORAGE,
    WRITES_MEMORY,
    WRITES_STORAGE,
    program_effects,
    uses_msize,
)
from fusevm.yul.knowledge import KnowledgeBase, Offset
from fusevm.yul.ssa import fixed_values
from fusevm.yul.steps.statement_remover import remove_statements
from fusevm.yul.steps.unused_stores import StoreWalker
from fusevm.yul.walk import declared_names

_WORD = 32
_MASK = (1 << 256) - 1
_REMOVABLE = frozenset({"sstore", "mstore", "mstore8", "calldatacopy", "codecopy", "extcodecopy"})


class Operation(NamedTuple):
    """A range of memory or a slot of storage; None where nothing is known."""

    start: Offset | None
    length: Offset | None

    @property
    def bases(self) -> set[str]:
        """The variables that say where it is."""
        return {each.base for each in self if each is not None and each.base is not None}


_ANYWHERE = Operation(None, None)

# A store is known by its statement's identity and whether its place is still what the statement says now: a store of
# the last round of a loop may be somewhere else than this round's.
Key = tuple[int, bool]
Active = dict[Place, dict[Key, Operation]]


def run(context: Context, block: Block) -> None:
    remove_statements(block, _Walker(context, block).finished(block))


class _Walker(StoreWalker[Active]):
    def __init__(self, context: Context, block: Block) -> None:
        super().__init__()
        self.dialect = context.dialect
        self.effects = program_effects(context.dialect, block)
        self.flows = function_flows(context.dialect, block)
        values, self.fixed = fixed_values(block)
        self.knowledge = KnowledgeBase(values)
        self.keeps_memory = uses_msize(block)

    def nothing(self) -> Active:
        return {Place.MEMORY: {}, Place.STORAGE: {}}

    def copied(self, state: Active) -> Active:
        return {place: stores.copy() for place, stores in state.items()}

    def merge(self, target: Active, other: Active) -> None:
        for place, stores in other.items():
            target[place].update(stores)

    def use(self, place: Place) -> None:
        """Whatever is stored there may be read from now on."""
        self.used.update(statement for statement, _ in self.active[place])
        self.active[place] = {}

    def use_new(self, before: Active) -> None:
        for place, stores in self.active.items():
            self.used.update(key[0] for key in stores if key not in before[place])

    def next_round(self, loop: ForLoop) -> None:
        """Stores whose place depends on what the loop declares were made somewhere else than this round's will be."""
        changing = declared_names(loop)
        for stores in self.active.values():
            for key, operation in list(stores.items()):
                if not operation.bases.isdisjoint(changing):
                    del stores[key]
                    stores[key[0], False] = _ANYWHERE

    def end_program(self) -> None:
        self.use(Place.STORAGE)

    def end_function(self, function: FunctionDefinition) -> None:
        self.use(Place.STORAGE)
        self.use(Place.MEMORY)

    def leave(self, statement: Leave) -> None:
        self.use(Place.STORAGE)
        self.use(Place.MEMORY)

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, FunctionCall):
            self.call(expression)
            self.perform(expression)
            flow = flow_of_call(self.dialect, self.flows, expression.function.name)
            if flow.can_terminate:
                self.use(Place.STORAGE)
            if not flow.can_continue:
                self.active[Place.MEMORY] = {}
                if not flow.can_terminate:
                    self.active[Place.STORAGE] = {}
        return expression

    def expression_statement(self, statement: ExpressionStatement) -> None:
        self.expression(statement.expression)
        call = statement.expression
        if not isinstance(call, FunctionCall) or call.function.name not in _REMOVABLE:
            return
        if any(isinstance(argument, FunctionCall) for argument in call.arguments):
            return
        (access,) = ACCESSES[call.function.name]
        if access.place is Place.STORAGE or not self.keeps_memory:
            self.all.add(id(statement))
            self.active[access.place][id(statement), True] = self.operation(call, access)

    def perform(self, call: FunctionCall) -> None:
        accesses = ACCESSES.get(call.function.name)
        if accesses is not None:
            for access in accesses:
                operation = self.operation(call, access)
                if access.writes:
                    self.write(access.place, operation)
                else:
                    self.read(access.place, operation)
            return
        builtin = self.dialect.builtin(call.function.name)
        if builtin is not None and builtin.opcode is not None:
            return  # it touches neither
        effects = self.effects[call.function.name]
        if effects & (READS_MEMORY | WRITES_MEMORY):
            self.use(Place.MEMORY)
        if effects & (READS_STORAGE | WRITES_STORAGE):
            self.use(Place.STORAGE)

    def read(self, place: Place, operation: Operation) -> None:
        stores = self.active[place]
        for key in [each for each, store in stores.items() if not _unrelated(place, store, operation)]:
            self.used.add(key[0])
            del stores[key]

    def write(self, place: Place, operation: Operation) -> None:
        stores = self.active[place]
        for key in [each for each, store in stores.items() if _covered(place, store, operation)]:
            del stores[key]

    def operation(self, call: FunctionCall, access: Access) -> Operation:
        start = None if access.start is None else self.offset(call.arguments[access.start])
        if access.size is not None:
            return Operation(start, Offset(None, access.size))
        return Operation(start, None if access.length is None else self.offset(call.arguments[access.length]))

    def offset(self, argument: Expression) -> Offset | None:
        if isinstance(argument, Identifier) and argument.name in self.fixed:
            return self.knowledge.offset(argument.name)
        return None


def _number(offset: Offset | None) -> int | None:
    return offset.distance if offset is not None and offset.base is None else None


def _unrelated(place: Place, one: Operation, other: Operation) -> bool:
    """The two certainly have no byte in common."""
    if place is Place.STORAGE:
        distance = _distance(one.start, other.start)
        return distance is not None and distance != 0
    one_length, other_length = _number(one.length), _number(other.length)
    if one_length == 0 or other_length == 0:
        return True
    if _ends_before(one, other) or _ends_before(other, one):
        return True
    if one_length is None or other_length is None or one_length > _WORD or other_length > _WORD:
        return False
    distance = _distance(one.start, other.start)
    return distance is not None and _WORD <= distance <= _MASK + 1 - _WORD


def _distance(one: Offset | None, other: Offset | None) -> int | None:
    if one is None or other is None or one.base != other.base:
        return None
    return (one.distance - other.distance) & _MASK


def _ends_before(one: Operation, other: Operation) -> bool:
    start, length, limit = _number(one.start), _number(one.length), _number(other.start)
    return start is not None and length is not None and limit is not None and start + length <= min(limit, _MASK)


def _covered(place: Place, store: Operation, write: Operation) -> bool:
    """The write certainly overwrites all of the store."""
    if store.start is None or write.start is None or store.length is None or write.length is None:
        return place is Place.MEMORY and _number(store.length) == 0
    if store == write:
        return True
    if place is Place.STORAGE:
        return False
    length, covering = _number(store.length), _number(write.length)
    if length == 0:
        return True
    if length is None or covering is None:
        return False
    if store.start == write.start:
        return length <= covering
    start, from_ = _number(store.start), _number(write.start)
    if start is None or from_ is None or from_ + covering > _MASK:
        return False
    return from_ <= start and start + length <= from_ + covering
