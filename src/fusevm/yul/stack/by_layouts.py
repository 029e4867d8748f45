"""Yul code to stack code by whole stack layouts, for what the plainer generator cannot reach.

Layouts are those of `yul/stack/layout.py`: what the stack is to hold at both ends of every block and before every
operation. Here the moves between them become SWAP, DUP, PUSH and POP, and the operations their code. Variables need not
stay where they were declared, so that much more is within reach of DUP16 and SWAP16.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.evm.assembler import CALLS, RETURNS, STOP, Assembly
from fusevm.yul.stack.flowgraph import BasicBlock, FlowGraph, Operation, Slot, SlotKind, Stack, flow_graphs
from fusevm.yul.stack.layout import Layouts, OutOfBudget
from fusevm.yul.stack.plain import perform
from fusevm.yul.stack.shuffler import REACH, StackShuffle, shuffle
from fusevm.yul.syntax.ast import Block, FunctionCall
from fusevm.yul.syntax.dialect import Dialect

_BUDGET = 50_000_000  # units of work for the layouts of a function: some seconds, after which it is given up


class Unreachable(Exception):
    """A slot that no SWAP or DUP reaches, or a function too large to be laid out."""


def generate(block: Block, dialect: Dialect) -> Assembly | None:
    """The code, or None where even this cannot reach everything. Names must be unique."""
    assembly = Assembly(dialect.fork)
    assembly.at(block.location)
    labels: dict[str, int] = {}
    try:
        for graph in flow_graphs(dialect, block):
            _Function(dialect, assembly, labels, graph).generate()
    except (Unreachable, OutOfBudget):
        return None
    return assembly


@dataclass(slots=True)
class _Pending:
    """A block whose code is still to be written; it is jumped to."""

    block: BasicBlock
    label: int


class _Function:
    def __init__(self, dialect: Dialect, assembly: Assembly, labels: dict[str, int], graph: FlowGraph) -> None:
        self.dialect = dialect
        self.assembly = assembly
        self.functions = labels  # where functions begin
        self.graph = graph
        self.layouts = Layouts(graph, _BUDGET)
        self.blocks: dict[BasicBlock, int] = {}  # where blocks begin, of those that were jumped to
        self.written: set[BasicBlock] = set()
        self.returns: dict[Slot, int] = {}  # where calls return to
        self.stack: Stack = []

    def generate(self) -> None:
        graph = self.graph
        if graph.name:
            self.assembly.label(self._function(graph.name))
            self.stack = [*(graph.exit_stack[-1:] if graph.can_continue else ()), *reversed(graph.parameters)]
        self._arrange(self.layouts.ends[graph.entry].entry)
        pending = [_Pending(graph.entry, -1)]
        while pending:
            next_ = pending.pop()
            if next_.block not in self.written:
                if next_.label >= 0:
                    self.assembly.label(next_.label)
                self._write(next_.block, pending)

    def _function(self, name: str) -> int:
        if name not in self.functions:
            self.functions[name] = self.assembly.new_label()
        return self.functions[name]

    def _label(self, block: BasicBlock) -> int:
        if block not in self.blocks:
            self.blocks[block] = self.assembly.new_label()
        return self.blocks[block]

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _write(self, block: BasicBlock, pending: list[_Pending]) -> None:
        """The block, and what to write next: a block that this one flows into is pushed last."""
        self.written.add(block)
        self.stack = list(self.layouts.ends[block].entry)
        for operation in block.operations:
            if operation.call is not None:
                self.assembly.at(operation.call.location)
            self._arrange(self.layouts.before[operation])
            self._operate(operation)
        if block.condition is not None:
            zero, non_zero = block.targets
            self._arrange(self.layouts.ends[block].exit)
            self.assembly.jump_if(self._label(non_zero))
            pending.append(_Pending(non_zero, self._label(non_zero)))
            self._flow_into(zero, pending)
        elif block.targets:
            self._arrange(self.layouts.ends[block.targets[0]].entry)
            self._flow_into(block.targets[0], pending)
        elif block.returns:
            self._arrange(self.graph.exit_stack)
            self.assembly.at(None, RETURNS)
            self.assembly.named_op("JUMP")
            self.assembly.at(None)
        else:
            self.assembly.raw(STOP, 0)

    def _flow_into(self, block: BasicBlock, pending: list[_Pending]) -> None:
        if block in self.written:
            self.assembly.jump(self._label(block))
        else:
            pending.append(_Pending(block, self._label(block) if len(block.entries) > 1 else -1))

    # -- operations ---------------------------------------------------------------------------------------------------

    def _operate(self, operation: Operation) -> None:
        if operation.call is not None:
            self._call(operation, operation.call)
        elif operation.compares:
            self.assembly.named_op("EQ")
        # Else variables are given values, which takes no code: what they held before is in no layout from here on.
        kept = len(self.stack) - len(operation.input)
        self.stack = self.stack[:kept] + operation.output

    def _call(self, operation: Operation, call: FunctionCall) -> None:
        builtin = self.dialect.builtin(call.function.name)
        if builtin is not None:
            perform(self.assembly, builtin, call)
            return
        self.assembly.at(call.location, CALLS)
        self.assembly.jump(self._function(call.function.name))
        self.assembly.at(call.location)
        if operation.input and operation.input[0].kind is SlotKind.CALL_LABEL:
            self.assembly.label(self._return(operation.input[0]))

    def _return(self, slot: Slot) -> int:
        if slot not in self.returns:
            self.returns[slot] = self.assembly.new_label()
        return self.returns[slot]

    # -- moves --------------------------------------------------------------------------------------------------------

    def _arrange(self, target: Stack) -> None:
        try:
            shuffle(StackShuffle(self.stack, target, self._swap, self._bring, self.assembly.pop))
        except RuntimeError as error:
            raise Unreachable from error
        self.stack = list(target)
        self.assembly.height = len(target)
        self.assembly.highest = max(self.assembly.highest, len(target))

    def _swap(self, depth: int) -> None:
        if depth > REACH:
            raise Unreachable
        self.assembly.swap(depth)

    def _bring(self, slot: Slot) -> None:
        for depth in range(1, min(REACH, len(self.stack)) + 1):
            if self.stack[-depth] is slot and slot.kind is not SlotKind.JUNK:
                self.assembly.dup(depth)
                return
        if slot.kind is SlotKind.CALL_LABEL:
            self.assembly.label_reference(self._return(slot))
        elif slot.is_free:
            self.assembly.constant(slot.value)
        elif slot in self.graph.exit_stack[:-1] and slot not in self.stack:
            self.assembly.constant(0)  # a return variable that nothing was assigned to yet
        else:
            raise Unreachable
