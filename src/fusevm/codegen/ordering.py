"""Orders a block's instructions: operands are computed just before their use.

Operands are computed from the last to the first, so that the first ends on top. An operand that needs no computation (a
constant, or a value on the stack) can be pushed or duplicated early (`early`), below operands that are computed after
it; otherwise this happens just before the instruction, when the others are there.
"""

from __future__ import annotations

from collections.abc import Callable

from fusevm.codegen.blocks import LABEL
from fusevm.evm.assembler import Source
from fusevm.evm.opcodes import OPCODES_TABLE, Effect
from fusevm.ir.functions import GraphBlock
from fusevm.ir.inline import Numbers
from fusevm.ir.liveness import is_root, reads_before_writes
from fusevm.ir.values import CONST, Value

# Instructions without operands that are cheaper than a DUP: never kept on the stack.
FREE = frozenset(
    {"ADDRESS", "ORIGIN", "CALLER", "CALLVALUE", "CALLDATASIZE", "CODESIZE", "GASPRICE", "COINBASE", "TIMESTAMP"}
    | {"NUMBER", "PREVRANDAO", "GASLIMIT", "CHAINID", "BASEFEE", "BLOBBASEFEE"}
)
COMMUTATIVE = frozenset(op.name for op in OPCODES_TABLE if op.commutes)
EITHER_WAY = COMMUTATIVE | {"LT", "GT", "SLT", "SGT"}


def is_free(value: Value) -> bool:
    """Whether it is pushed at each use instead of being kept on the stack."""
    return value.op in (CONST, "SYMBOL") or value.op in FREE


def ordered(
    block: GraphBlock, unseen: Effect, early: Numbers | None = None, returns: Callable[[Value], bool] | None = None
) -> list[Value]:
    """The instructions in order; an instruction with early operands is a copy whose operands are the early ones.

    `returns` says whether a call returns: then its return label is pushed early too, as the last operand.
    """
    return _Order(block, unseen, early, returns).run()


class _Order:
    def __init__(
        self, block: GraphBlock, unseen: Effect, early: Numbers | None, returns: Callable[[Value], bool] | None
    ) -> None:
        self.block, self.unseen, self.early, self.returns = block, unseen, early, returns
        self.local = {value.id: value for value in block.instructions}
        self.before = reads_before_writes(block.instructions, unseen)
        self.done: set[int] = set()
        self.order: list[Value] = []

    def run(self) -> list[Value]:
        roots = [
            value
            for value in self.block.instructions
            if is_root(value, self.unseen) or value.op in ("CALLFN", "VERBATIM")
        ]
        for value in roots:
            self.place(value)
        at_end = {id(arg) for arg in self.block.end.args}
        for value in self.block.instructions:
            if id(value) not in at_end:
                self.place(value)
        for value in reversed(self.block.end.args):
            self.place(value)
        return self.order

    def place(self, value: Value) -> None:
        """Appends the value, and before it its operands and the reads that must precede it."""
        work: list[tuple[Value, list[Value] | None]] = [(value, None)]
        while work:
            top, args = work.pop()
            if args is not None:
                self.finish(top, args)
                continue
            if top.id in self.done or top.id not in self.local:
                continue
            self.done.add(top.id)
            args = list(top.args)
            work.append((top, args))
            made = [self.is_made(arg) for arg in top.args]
            # The worklist is a stack: what is pushed last is done first.
            for place in range(len(args)):
                if made[place]:
                    work.append((args[place], None))
                elif self.early is not None and any(made[:place]) and not self.may_swap(top, place):
                    work.append((self.brought(args, place, top.where), None))
            if self.returns is not None and top.op == "CALLFN" and self.returns(top) and any(made):
                work.append((self.label(args, top), None))
            work += [(read, None) for read in self.before.get(top.id, ())]

    def is_made(self, value: Value) -> bool:
        known = value.id in self.done or value.id not in self.local
        return not (known or is_free(value) or value.op in ("CALLFN", "RESULT"))

    @staticmethod
    def may_swap(value: Value, place: int) -> bool:
        return value.op in EITHER_WAY and place < 2

    def brought(self, args: list[Value], place: int, where: Source | None) -> Value:
        """Replaces the operand by an instruction that pushes or duplicates it early."""
        assert self.early is not None
        arg = args[place]
        if arg.op == CONST:
            made = self.early.new(self.block, "LITERAL", (), arg.number)
        else:
            made = self.early.new(self.block, "COPY", (arg,))
        made.where = where
        args[place] = made
        self.local[made.id] = made
        return made

    def label(self, args: list[Value], call: Value) -> Value:
        """Adds an instruction that pushes the return label of a call, below its operands."""
        assert self.early is not None
        made = self.early.new(self.block, LABEL, (), call.id)
        made.where = call.where
        args.append(made)
        self.local[made.id] = made
        return made

    def finish(self, value: Value, args: list[Value]) -> None:
        if args != list(value.args):
            copy = Value(value.op, tuple(args), value.number, value.id, value.block)
            copy.raw, copy.where = value.raw, value.where
            value = copy
        self.order.append(value)
