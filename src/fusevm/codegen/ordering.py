"""The order of a block's instructions: operands come up right before they are used.

Operands are made from the last to the first, so that the first ends on top. What need not be made, being pushed or on
the stack already, can be brought up at once (`early`), below an operand that is still to be made; or else by the
instruction itself, when the others are there.
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
    """It is pushed wherever it is used."""
    return value.op in (CONST, "SYMBOL") or value.op in FREE


def ordered(
    block: GraphBlock, unseen: Effect, early: Numbers | None = None, returns: Callable[[Value], bool] | None = None
) -> list[Value]:
    """The instructions in order; those that bring operands up early replace the operands of copies.

    `returns` says of a call whether it comes back: then its label is brought up early too, as the last operand.
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
        """The value, and before it whatever it needs and is not there yet."""
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
            # What is pushed last is done first.
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
        """An instruction that brings the operand up."""
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
        """An instruction that pushes the label a call returns to, below its operands."""
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
