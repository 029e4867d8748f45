"""UnusedStoreEliminator (S): drops stores to memory and storage that are never read.

Needs: Disambiguator, ForLoopInitRewriter; sees addresses only in SSA form with split expressions.
Does: removes mstore, mstore8, sstore and the copying builtins (returndatacopy, which may fail, and mcopy aside) whose
target is overwritten, or out of reach, before it may be read. Memory ends with the call, storage survives it
unless the call is undone.
Why: stores are expensive; inlined code sets up memory that later turns out not to be used.
"""

from __future__ import annotations

from fusevm.yul.analysis.accesses import ACCESSES, Access, AccessPlace
from fusevm.yul.analysis.controlflow import flow_of_call, function_flows
from fusevm.yul.analysis.distances import KnowledgeBase, Offset
from fusevm.yul.analysis.effects import (
    READS_MEMORY,
    READS_STORAGE,
    WRITES_MEMORY,
    WRITES_STORAGE,
    program_effects,
    uses_msize,
)
from fusevm.yul.analysis.ssa import fixed_values
from fusevm.yul.context import StepContext
from fusevm.yul.steps.statement_remover import remove_statements
from fusevm.yul.steps.store_index import MemoryIndex, StorageIndex, StoreOperation
from fusevm.yul.steps.unused_stores import StoreWalker
from fusevm.yul.syntax.ast import (
    Block,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Leave,
)
from fusevm.yul.syntax.walk import declared_names

_REMOVABLE = frozenset({"sstore", "mstore", "mstore8", "calldatacopy", "codecopy", "extcodecopy"})
_ANYWHERE = StoreOperation(None, None)


def run(context: StepContext, block: Block) -> None:
    remove_statements(block, _Walker(context, block).finished(block))


class _Walker(StoreWalker):
    """A store has two bits: it was made at the place that the statement says now, or (the bit above) at one that it
    said in an earlier round of a loop, which may be anywhere.
    """

    def __init__(self, context: StepContext, block: Block) -> None:
        super().__init__()
        self.dialect = context.dialect
        self.effects = program_effects(context.dialect, block)
        self.flows = function_flows(context.dialect, block)
        values, self.fixed = fixed_values(block)
        self.knowledge = KnowledgeBase(values)
        self.keeps_memory = uses_msize(block)
        self.begin_function()

    def begin_function(self) -> None:
        self.memory, self.storage = MemoryIndex(), StorageIndex()
        self.of_place = {AccessPlace.MEMORY: 0, AccessPlace.STORAGE: 0}
        self.of_base: dict[str, int] = {}  # by variable, the stores to places which it says

    def function(self, function: FunctionDefinition) -> None:
        outer = self.memory, self.storage, self.of_place, self.of_base
        super().function(function)
        self.memory, self.storage, self.of_place, self.of_base = outer

    def use(self, place: AccessPlace) -> None:
        """Whatever is stored there may be read from now on."""
        self.used |= self.active & self.of_place[place]
        self.drop(place)

    def drop(self, place: AccessPlace) -> None:
        self.active &= ~self.of_place[place]

    def next_round(self, loop: ForLoop) -> None:
        """Stores whose place depends on what the loop declares were made somewhere else than this round's will be."""
        changing = 0
        for name in declared_names(loop):
            changing |= self.of_base.get(name, 0)
        moved = self.active & changing
        self.active = self.active & ~moved | moved << 1

    def end_program(self) -> None:
        self.use(AccessPlace.STORAGE)

    def end_function(self, function: FunctionDefinition) -> None:
        self.use(AccessPlace.STORAGE)
        self.use(AccessPlace.MEMORY)

    def leave(self, statement: Leave) -> None:
        self.use(AccessPlace.STORAGE)
        self.use(AccessPlace.MEMORY)

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, FunctionCall):
            self.call(expression)
            self.perform(expression)
            flow = flow_of_call(self.dialect, self.flows, expression.function.name)
            if flow.can_terminate:
                self.use(AccessPlace.STORAGE)
            if not flow.can_continue:
                self.drop(AccessPlace.MEMORY)
                if not flow.can_terminate:
                    self.drop(AccessPlace.STORAGE)
        return expression

    def expression_statement(self, statement: ExpressionStatement) -> None:
        self.expression(statement.expression)
        call = statement.expression
        if not isinstance(call, FunctionCall) or call.function.name not in _REMOVABLE:
            return
        if any(isinstance(argument, FunctionCall) for argument in call.arguments):
            return
        (access,) = ACCESSES[call.function.name]
        if access.place is AccessPlace.STORAGE or not self.keeps_memory:
            self.active |= self.store_of(statement, access.place, self.operation(call, access))

    def store_of(self, statement: ExpressionStatement, place: AccessPlace, operation: StoreOperation) -> int:
        """The bit of a store at the place that the statement says now."""
        both = self.stores.get(id(statement))
        if both is None:
            store = 1 << 2 * len(self.stores)
            both = self.stores[id(statement)] = store | store << 1
            self.of_place[place] |= both
            (self.memory if place is AccessPlace.MEMORY else self.storage).add(store, operation)
            for base in operation.bases:
                self.of_base[base] = self.of_base.get(base, 0) | store
        return both & both >> 1

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
            self.read(AccessPlace.MEMORY, _ANYWHERE)
        if effects & (READS_STORAGE | WRITES_STORAGE):
            self.read(AccessPlace.STORAGE, _ANYWHERE)

    def read(self, place: AccessPlace, operation: StoreOperation) -> None:
        index = self.memory if place is AccessPlace.MEMORY else self.storage
        touched = index.touched(self.active & self.of_place[place], operation)
        self.used |= touched
        self.active ^= touched

    def write(self, place: AccessPlace, operation: StoreOperation) -> None:
        index = self.memory if place is AccessPlace.MEMORY else self.storage
        self.active ^= index.covered(self.active, operation)

    def operation(self, call: FunctionCall, access: Access) -> StoreOperation:
        start, name = self.offset(call, access.start)
        if access.size is not None:
            return StoreOperation(start, Offset(None, access.size), name)
        length, length_name = self.offset(call, access.length)
        return StoreOperation(start, length, name, length_name)

    def offset(self, call: FunctionCall, number: int | None) -> tuple[Offset | None, str]:
        """What is known of an argument, and the variable that it is."""
        argument = None if number is None else call.arguments[number]
        if isinstance(argument, Identifier) and argument.name in self.fixed:
            return self.knowledge.offset(argument.name), argument.name
        return None, ""
