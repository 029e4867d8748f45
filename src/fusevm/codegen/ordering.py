"""Orders a block's instructions: operands are computed just before their use.

Operands are computed from the last to the first, so that the first ends on top. An operand that needs no computation (a
constant, or a value on the stack) can be pushed or duplicated early (`early`), below operands that are computed after
it; otherwise this happens just before the instruction, when the others are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import cached_property

from fusevm.codegen.blocks import LABEL
from fusevm.evm.assembler import Source
from fusevm.evm.opcodes import OPCODES_TABLE, Effect
from fusevm.ir.functions import DependencyBlock
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.roots import is_root, reads_before_writes
from fusevm.ir.values import CONST, Value, traits_of

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
    block: DependencyBlock,
    unseen: Effect,
    early: FreshNumbers | None = None,
    returns: Callable[[Value], bool] | None = None,
    spilled: range = range(0),
) -> list[Value]:
    """The instructions in order; an instruction with early operands is a copy whose operands are the early ones.

    `returns` says whether a call returns: then its return label is pushed early too, as the last operand. `spilled` is
    memory in which nothing changes: a load from there waits for its use.
    """
    return _Order(block, unseen, early, returns, spilled).run()


def lean_order(block: DependencyBlock, unseen: Effect, spilled: range, live: Set[int]) -> list[Value]:
    """The instructions in an order that keeps few words on the stack, whatever moves that takes.

    Operands that need more of the stack are computed first, and what takes the last of a word as soon as it can be.
    `live`: values that are needed after the block.
    """
    return _LeanOrder(block, unseen, spilled, live).run()


class _Order:
    def __init__(
        self,
        block: DependencyBlock,
        unseen: Effect,
        early: FreshNumbers | None,
        returns: Callable[[Value], bool] | None,
        spilled: range,
    ) -> None:
        self.block, self.unseen, self.early, self.returns = block, unseen, early, returns
        self.spilled = spilled
        self.local = {value.id: value for value in block.instructions}
        bound = [each for each in block.instructions if not self.is_reload(each)]
        self.before = reads_before_writes(bound, unseen)
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
            for place in self.last_first(args):
                if made[place]:
                    work.append((args[place], None))
                elif self.early is not None and any(made[:place]) and not self.may_swap(top, place):
                    work.append((self.brought(args, place, top.where), None))
            if self.returns is not None and top.op == "CALLFN" and self.returns(top) and any(made):
                work.append((self.label(args, top), None))
            work += [(read, None) for read in self.first(top)]

    def first(self, value: Value) -> list[Value]:
        """The reads that must precede it and are not for it, the one that is needed last on the stack at the bottom."""
        reads = self.before.get(value.id, ())
        if len(reads) < 2:
            return list(reads)
        for_it, work = {value.id}, [value]
        while work:
            for arg in work.pop().args:
                if arg.id in self.local and arg.id not in for_it and arg.id not in self.done:
                    for_it.add(arg.id)
                    work.append(arg)
        others = [read for read in reads if read.id not in for_it]
        return sorted(others, key=lambda read: self.wanted.get(read.id, len(self.local)))

    @cached_property
    def wanted(self) -> dict[int, int]:
        """The place of the first use of each value, if it is in this block and no read had to precede a write."""
        free = _Order(self.block, self.unseen, None, None, range(0))
        free.before = {}
        order = free.run()
        found: dict[int, int] = {}
        for place, value in enumerate(order):
            for arg in value.args:
                found.setdefault(arg.id, place)
        return found

    def is_reload(self, value: Value) -> bool:
        return value.op == "MLOAD" and value.args[0].op == CONST and value.args[0].number in self.spilled

    def last_first(self, args: Sequence[Value]) -> Sequence[int]:
        """The operands in the order in which they are computed, the last one first."""
        return range(len(args))

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
            copy.prechecked, copy.where = value.prechecked, value.where
            value = copy
        self.order.append(value)


class _LeanOrder(_Order):
    def __init__(self, block: DependencyBlock, unseen: Effect, spilled: range, live: Set[int]) -> None:
        super().__init__(block, unseen, None, None, spilled)
        self.needs: dict[int, int] = {}
        self.finished: set[int] = set()
        self.users: dict[int, list[Value]] = {}  # of what is not computed yet
        self.kept = live | {arg.id for arg in block.end.args}
        for value in block.instructions:
            for arg in dict.fromkeys(value.args):
                self.users.setdefault(arg.id, []).append(value)

    def last_first(self, args: Sequence[Value]) -> Sequence[int]:
        return sorted(range(len(args)), key=lambda at: self.need(args[at]))

    def need(self, value: Value) -> int:
        """How many words the computation of the value has on the stack at once (Sethi and Ullman)."""
        work = [value]
        while work:
            top = work[-1]
            args = [arg for arg in dict.fromkeys(top.args) if self.is_made(arg)]
            later = [arg for arg in args if arg.id not in self.needs]
            if top.id in self.needs:
                work.pop()
            elif not later:
                words = sorted((self.needs[arg.id] for arg in args), reverse=True)
                self.needs[top.id] = max((held + more for held, more in enumerate(words)), default=1)
                work.pop()
            else:
                work += later
        return self.needs[value.id]

    def finish(self, value: Value, args: list[Value]) -> None:
        """Then computes what takes the last of a word that is there."""
        work = [value]
        while work:
            made = work.pop()
            super().finish(made, list(made.args))
            self.done.add(made.id)
            results = [each for each in self.users.get(made.id, ()) if each.op == "RESULT"]
            self.finished.update(each.id for each in (made, *results))
            for arg in made.args:
                if made in self.users.get(arg.id, ()):
                    self.users[arg.id].remove(made)
            for word in (made, *results, *made.args):
                users = self.users.get(word.id, ())
                if len(users) == 1 and word.id not in self.kept and self.can_come(users[0]) and users[0] not in work:
                    work.append(users[0])

    def can_come(self, value: Value) -> bool:
        return (
            traits_of(value).pure
            and value.op != "RESULT"
            and value.id not in self.done
            and all(is_free(arg) or arg.id not in self.local or arg.id in self.finished for arg in value.args)
        )
