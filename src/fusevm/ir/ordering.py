"""Schedules a dependency block: effects keep their order, everything else is computed just before its first use.

Words are read from the run-time stack as late as possible and written to it as early as possible, so that few of them
are live at once. A call into the runtime clobbers all registers: a word that has a slot on the run-time stack is
reloaded after the call instead of being kept live across it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from fusevm.evm.opcodes import Effect
from fusevm.ir.functions import CONTINUES, DependencyBlock
from fusevm.ir.roots import is_root, reads_before_writes
from fusevm.ir.values import CONST, SPILL, UNSPILL, Value, traits_of


class StackSlot(int):
    """An operand read directly from that slot of the run-time stack."""


Operand = Value | StackSlot


class OrderedStep(NamedTuple):
    value: Value  # what is computed, spilled, or read from `slot`
    operands: tuple[Operand, ...] = ()
    slot: int | None = None  # set: the value is read from the run-time stack


@dataclass(slots=True)
class BlockOrder:
    block: DependencyBlock
    steps: list[OrderedStep] = field(default_factory=list)
    operands: tuple[Operand, ...] = ()  # of the terminator
    live_across_calls: int = 0  # words live in registers across calls to the runtime, summed over the calls


def schedule(block: DependencyBlock, unseen: Effect | None = None, inline: bool = False) -> BlockOrder:
    """`unseen`: gas may fall, and these effects are not observed. `inline`: Unspills as operands."""
    return _Scheduler(block, unseen, inline).run()


def left_words(params: Sequence[Value], words: Sequence[Value]) -> list[tuple[int, Value]]:
    """Slot and word, from the top down, of what is left on the run-time stack and is not in its slot already."""
    slots = range(-len(params), len(words) - len(params))
    left = [(slot, word) for slot, word in zip(slots, words, strict=True) if slot >= 0 or word is not params[-1 - slot]]
    return left[::-1]


def spills_of(block: DependencyBlock) -> list[Value]:
    """What a block on its own writes to the run-time stack, if another one follows."""
    if block.end.op not in CONTINUES:
        return []
    fresh = count(1 + max([value.id for value in (*block.params, *block.instructions)], default=-1))
    left = left_words(block.params, block.end.words)
    return [Value(SPILL, (word,), slot, next(fresh), block.start) for slot, word in left]


class _Scheduler:
    def __init__(self, block: DependencyBlock, unseen: Effect | None, inline: bool) -> None:
        self.block, self.unseen, self.inline = block, unseen, inline
        self.to_spill = spills_of(block)
        self.result = BlockOrder(block)
        self.roots = [value for value in block.instructions if is_root(value, self.unseen)]
        self.local = {value.id for value in block.instructions}
        self.pending: dict[int, int] = {}  # remaining uses
        self.needed: set[int] = set()
        self.count_uses()
        needed = [value for value in self.block.instructions if value.id in self.needed]
        self.before = reads_before_writes(needed, self.unseen)
        self.done: set[int] = set()
        self.live: set[int] = set()
        self.home: dict[int, int] = {}  # the slot of the run-time stack that holds a value
        self.holder: dict[int, Value] = {}  # and the value that a slot holds
        for value in block.params:
            self.home[value.id] = value.number
            self.holder[value.number] = value
        self.spills = {spill.number: spill for spill in self.to_spill}
        self.waiting: dict[int, list[int]] = {}  # value to the slots its spills go to
        for spill in self.to_spill:
            self.waiting.setdefault(spill.args[0].id, []).append(spill.number)

    # -- what is needed ---------------------------------------------------------------------------------------------

    def count_uses(self) -> None:
        work = [*self.roots, *self.to_spill]
        for value in self.block.end.args:
            self.pending[value.id] = self.pending.get(value.id, 0) + 1
            work.append(value)
        while work:
            value = work.pop()
            if value.id in self.needed or (value.id not in self.local and value.op != SPILL):
                continue
            self.needed.add(value.id)
            for arg in value.args:
                self.pending[arg.id] = self.pending.get(arg.id, 0) + 1
                work.append(arg)

    # -- placing ----------------------------------------------------------------------------------------------------

    def run(self) -> BlockOrder:
        for spill in self.to_spill:
            value = spill.args[0]
            if value.op != UNSPILL and not (value.id in self.local and value.op != CONST):
                self.spill_if_free(spill.number)  # a literal, or a word from another block
        for root in self.roots:
            self.evaluate(root)
        for value in self.block.end.args:
            self.evaluate(value)
        self.spill_the_rest()
        args = self.block.end.args
        self.result.operands = tuple([self.operand(value, args) for value in args])
        return self.result

    def evaluate(self, value: Value) -> None:
        """Schedules the value and, before it, its operands and the reads that must precede it."""
        work = [value]
        while work:
            top = work[-1]
            if top.id in self.done or top.id not in self.local:
                work.pop()
                continue
            missing = [
                need
                for need in (*self.before.get(top.id, ()), *top.args)
                if need.id in self.local and need.id not in self.done
            ]
            if missing:
                work += reversed(missing)
                continue
            self.place(top)
            work.pop()

    def place(self, value: Value) -> None:
        operands = tuple([self.operand(arg, value.args) for arg in value.args])
        self.result.steps.append(OrderedStep(value, operands))
        self.done.add(value.id)
        freed = self.consume(value.args)
        if traits_of(value).calls:
            self.live = {each for each in self.live if each not in self.home}
            self.result.live_across_calls += len(self.live)
        if self.pending.get(value.id):
            self.live.add(value.id)
        for slot in (*self.waiting.get(value.id, ()), *freed):
            self.spill_if_free(slot)

    def consume(self, args: tuple[Value, ...]) -> list[int]:
        """Decrements the use counts; returns the slots that have no reader left."""
        freed = []
        for arg in args:
            if arg.op == CONST:
                continue
            self.pending[arg.id] -= 1
            if not self.pending[arg.id]:
                self.live.discard(arg.id)
                if arg.id in self.home:
                    freed.append(self.home[arg.id])
        return freed

    def operand(self, arg: Value, siblings: tuple[Value, ...]) -> Operand:
        if arg.op == CONST or arg.id in self.live or arg.id not in self.home:
            return arg
        slot = self.home[arg.id]
        if self.inline and self.pending[arg.id] == sum(each is arg for each in siblings):
            return StackSlot(slot)
        self.load(arg)
        return arg

    def load(self, value: Value) -> None:
        self.result.steps.append(OrderedStep(value, (), self.home[value.id]))
        self.live.add(value.id)

    # -- spilling ---------------------------------------------------------------------------------------------------

    def is_free(self, slot: int) -> bool:
        """Whether the slot may be overwritten: the word in it has no remaining use, or has another home."""
        holder = self.holder.get(slot)
        return holder is None or self.home.get(holder.id) != slot or not self.pending.get(holder.id)

    def spill_if_free(self, slot: int) -> bool:
        spill = self.spills.get(slot)
        if spill is None or not self.is_free(slot):
            return False
        value = spill.args[0]
        if value.op == UNSPILL or (value.id in self.local and value.id not in self.done and value.op != CONST):
            return False
        self.spill(spill)
        return True

    def spill(self, spill: Value) -> None:
        value, slot = spill.args[0], spill.number
        del self.spills[slot]
        operand = self.operand(value, (value,))
        self.result.steps.append(OrderedStep(spill, (operand,)))
        self.done.add(spill.id)
        holder = self.holder.get(slot)
        if holder is not None and self.home.get(holder.id) == slot:
            del self.home[holder.id]
        if value.op != CONST:
            self.holder[slot] = value
            self.home.setdefault(value.id, slot)
        for freed in self.consume((value,)):
            self.spill_if_free(freed)

    def spill_the_rest(self) -> None:
        """Moves within the stack: free slots first; a cycle is broken by holding one word in a register."""
        for spill in self.to_spill:
            if spill.number in self.spills:
                self.evaluate(spill.args[0])
                self.move_chain(spill.number)
        for spill in self.to_spill:
            if spill.number in self.spills:
                if not self.is_free(spill.number):
                    holder = self.holder[spill.number]
                    if holder.id not in self.live:
                        self.load(holder)
                self.move(spill.number)

    def move_chain(self, slot: int) -> None:
        """Starts a chain of moves at the slot, if it is free."""
        if slot in self.spills and self.is_free(slot):
            self.move(slot)

    def move(self, slot: int) -> None:
        """Spills to the slot, then to the slots that this frees."""
        while True:
            spill = self.spills[slot]
            self.evaluate(spill.args[0])
            if slot not in self.spills:  # evaluating it has spilled it
                return
            source = self.home.get(spill.args[0].id)
            self.spill(spill)
            if source is None or source not in self.spills or not self.is_free(source):
                return
            slot = source
