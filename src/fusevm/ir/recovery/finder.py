"""Finds the functions of bytecode: which blocks belong to each, what it takes from the stack and what it leaves there.

A function entry is the target of a jump from a block that leaves a return address on the stack. Each function is walked
once, callees first, over a stack whose lower words are its parameters; callers then use its summary. Blocks are
distinguished by the code addresses on the stack as well, so the walk is exact whatever is taken for a function: a wrong
guess costs code size, not correctness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.bytecode import BasicBlock
from fusevm.ir.builder import Builder
from fusevm.ir.recovery.walk import Leaving, Lifter, refine_by_condition, walk
from fusevm.ir.recovery.words import (
    GrowingStack,
    Known,
    Label,
    Number,
    Param,
    RecoveryFailed,
    StackWord,
    WordStack,
    join_stacks,
    joined,
    nameless,
)

STATES_PER_BLOCK = 24
STATES_AT_LEAST = 2_000
DEEPEST_CALLS = 100
MAX_HEIGHTS = 16  # of the stack at a function entry; elsewhere twice that, so that the entry is reported first
MAX_SUMMARIES = 8  # of a recursive function


class Key(NamedTuple):
    """A block in a function, at a given stack height and with given code addresses on the stack."""

    pc: int
    height: int
    labels: tuple[tuple[int, int], ...]


JUMPED, FALLEN = 0, 1
Edge = tuple[Key, int]  # a state, and JUMPED or FALLEN


@dataclass(frozen=True, slots=True)
class StackSummary:
    """What a call of a function does to the stack."""

    entry: int
    returns: bool
    taken: int = 0  # words of the caller's stack that it reads, the return address included
    place: int = 0  # the depth of the return address
    left: tuple[Known, ...] = ()  # the words that replace those taken, the top last


@dataclass(slots=True)
class FoundFunction:
    """A function, or the main code."""

    entry: int
    states: dict[Key, WordStack] = field(default_factory=dict)
    heights: dict[int, set[int]] = field(default_factory=dict)  # the stack heights at which each block is entered
    edges: dict[Edge, Key] = field(default_factory=dict)
    exits: dict[Edge, tuple[int, WordStack]] = field(default_factory=dict)  # returns: depth of the address, stack
    taken: int = 0  # words of the caller's stack that it reads, the return address included
    highest: int = 0  # relative to the height on entry, calls included
    summary: StackSummary = StackSummary(0, returns=False)
    growth: list[int] = field(default_factory=list)  # the stack heights at which it calls itself

    def summarise(self) -> StackSummary:
        places = {place for place, _ in self.exits.values()}
        heights = {stack.height for _, stack in self.exits.values()}
        if len(places) > 1:
            raise RecoveryFailed("a function returns to more than one address", self.entry)
        if len(heights) > 1:
            raise RecoveryFailed("a function returns with stacks of different heights", self.entry)
        if not places:
            return StackSummary(self.entry, False, self.taken)
        for _, stack in self.exits.values():
            stack.take(self.taken)
        first, *others = [[word.known for word in stack.words] for _, stack in self.exits.values()]
        for other in others:
            first = [joined(one, two) for one, two in zip(first, other, strict=True)]
        return StackSummary(self.entry, True, self.taken, places.pop(), tuple(first))


class Finder:
    def __init__(
        self,
        blocks: dict[int, BasicBlock],
        dests: frozenset[int],
        lifter: Lifter,
        recursive: frozenset[int] = frozenset(),
    ) -> None:
        self.blocks, self.dests, self.lifter = blocks, dests, lifter
        self.recursive = recursive  # recursive functions
        self.known = entries(blocks, dests, lifter) | recursive
        self.functions: dict[int, FoundFunction] = {}  # callees first, the main code last
        self.active: set[int] = set()
        self.used: set[int] = set()  # PUSHes of addresses that are jumped to
        self.budget = STATES_PER_BLOCK * len(blocks) + STATES_AT_LEAST
        self.main = FoundFunction(0)

    def run(self) -> None:
        self.lifter.is_main = True
        self.explore(self.main)
        self.lifter.is_main = False

    def function(self, entry: int) -> FoundFunction:
        if entry not in self.functions:
            if len(self.active) > DEEPEST_CALLS:
                raise RecoveryFailed("calls are nested too deeply", entry)
            was_main, self.lifter.is_main = self.lifter.is_main, False
            self.explore(found := FoundFunction(entry))
            self.functions[entry] = found
            self.lifter.is_main = was_main
        return self.functions[entry]

    def explore(self, found: FoundFunction) -> None:
        """Walks through the function; a recursive one until its summary reaches a fixed point."""
        self.active.add(found.entry)
        thought = found.summary = StackSummary(found.entry, returns=False)
        for _ in range(MAX_SUMMARIES):
            self.walk_through(found)
            found.summary = found.summarise()
            if not found.growth or found.summary == thought:
                self.active.discard(found.entry)
                return
            thought = found.summary
        raise RecoveryFailed("what a function that calls itself does to the stack is not certain", found.entry)

    def walk_through(self, found: FoundFunction) -> None:
        start = Key(found.entry, 0, ())
        found.states, found.edges, found.exits, found.heights = {start: WordStack()}, {}, {}, {}
        found.growth = []
        work = [start]
        while work:
            self.step(found, work.pop(), work)

    def step(self, found: FoundFunction, key: Key, work: list[Key]) -> None:
        waiting = len(found.states[key].words) // 16
        self.spend(1 + waiting, "addresses wait on the stack in too many combinations", key.pc)
        block = self.blocks[key.pc]
        self.lifter.builder = Builder()
        stack = self.lifter.named(found.states[key])
        self.prepare(found, key, stack)
        leaving = walk(block, stack, self.lifter)
        self.measure(found, stack)
        self.forget(found, key)
        for edge in self.out_edges(block, leaving, stack):
            self.go(found, (key, edge.number), edge.target, edge.stack, work)

    def spend(self, units: int, reason: str, pc: int) -> None:
        self.budget -= units
        if self.budget < 0:
            raise RecoveryFailed(reason, pc)

    def prepare(self, found: FoundFunction, key: Key, stack: WordStack) -> None:
        """Hook: called before a block is walked."""

    def out_edges(self, block: BasicBlock, leaving: Leaving, stack: WordStack) -> list[OutEdge]:
        return out_edges(block, leaving, stack)

    @staticmethod
    def forget(found: FoundFunction, key: Key) -> None:
        """Results of an earlier walk over this block may not hold any more."""
        for number in (JUMPED, FALLEN):
            found.edges.pop((key, number), None)
            found.exits.pop((key, number), None)

    @staticmethod
    def measure(found: FoundFunction, stack: WordStack, above: int = 0) -> None:
        found.taken = max(found.taken, stack.taken)
        found.highest = max(found.highest, stack.peak, stack.height + above)

    def go(self, found: FoundFunction, edge: Edge, target: Known, stack: WordStack, work: list[Key]) -> None:
        """Follows an edge, through the functions it calls."""
        pc = edge[0].pc
        while True:
            self.spend(1, "functions return to functions in too many combinations", pc)
            if target is None:
                raise RecoveryFailed("a jump to an address that is not known", self.blocks[pc].last.pc)
            if isinstance(target, Param):
                found.exits[edge] = target.depth, nameless(stack)
                return
            if not isinstance(target, Label):
                raise RecoveryFailed("a jump to an address that is computed", self.blocks[pc].last.pc)
            if not self.is_valid(target):
                self.halts(target)
                return
            self.used |= target.pushes
            callee = self.callee(found, target.target, stack)
            if callee is None:
                self.reach(found, edge, target.target, stack, work)
                return
            onward = returned(callee, stack, self.lifter)
            self.measure(found, stack)
            if onward is None:
                return
            target = onward.known

    def is_valid(self, target: Label) -> bool:
        """Whether there is a block. Control may also fall through to one that is not a JUMPDEST."""
        return target.target in self.blocks and (not target.pushes or target.target in self.dests)

    def halts(self, target: Label) -> None:
        """A jump to an invalid target."""
        self.used |= target.pushes

    def callee(self, found: FoundFunction, pc: int, stack: WordStack) -> StackSummary | None:
        """What a jump there does if it is a call."""
        if self.calls_itself(found, pc, stack):
            found.growth.append(stack.height)
            return found.summary
        if pc not in self.known or pc in self.active:
            return None
        callee = self.function(pc)
        self.measure(found, stack, callee.highest)
        return callee.summary

    def calls_itself(self, found: FoundFunction, pc: int, stack: WordStack) -> bool:
        """A jump to the entry with a return address on the stack; without one it is a loop."""
        calls = pc == found.entry and pc in self.recursive and bool(stack.labels())
        if calls and found is self.main:
            raise RecoveryFailed("the code calls its own beginning", pc)
        return calls

    def reach(self, found: FoundFunction, edge: Edge, pc: int, stack: WordStack, work: list[Key]) -> None:
        key = Key(pc, stack.height, stack.labels())
        found.edges[edge] = key
        stack = nameless(stack)
        before = found.states.get(key)
        after = stack if before is None else join_stacks(before, stack)
        if before is None:
            heights = found.heights.setdefault(pc, set())
            heights.add(stack.height)
            self.limit(found, key, len(heights))
        if after is not None:
            found.states[key] = after
            work.append(key)

    def limit(self, found: FoundFunction, key: Key, heights: int) -> None:
        """A block is reached at a further stack height."""
        if heights > (MAX_HEIGHTS if key.pc in self.known else 2 * MAX_HEIGHTS):
            raise GrowingStack(found.entry if key.pc in self.recursive else key.pc)


class OutEdge(NamedTuple):
    number: int
    target: Known
    stack: WordStack


def out_edges(block: BasicBlock, leaving: Leaving, stack: WordStack) -> list[OutEdge]:
    """The edges out of a block; a branch on a known condition has one."""
    after = Label(block.end, frozenset())
    if leaving.op == "FALL":
        return [OutEdge(FALLEN, after, stack)]
    if leaving.target is None:
        return []
    if leaving.op == "JUMP":
        return [OutEdge(JUMPED, leaving.target.known, stack)]
    condition = leaving.args[0]
    jumped = OutEdge(JUMPED, leaving.target.known, refine_by_condition(stack, condition, True))
    fallen = OutEdge(FALLEN, after, refine_by_condition(stack, condition, False))
    if isinstance(condition.known, Number):
        return [jumped if condition.known.number else fallen]
    return [jumped, fallen]


def returned(callee: StackSummary, stack: WordStack, lifter: Lifter) -> StackWord | None:
    """Applies a call's summary to the stack; returns the address it returns to, or None if it never does."""
    if lifter.is_main and callee.taken > len(stack.words):
        raise RecoveryFailed("a function takes more words than there are", callee.entry)
    stack.reach(callee.taken)
    args = stack.words[len(stack.words) - callee.taken :][::-1]  # the top first
    del stack.words[len(stack.words) - callee.taken :]
    if not callee.returns:
        return None
    for left in callee.left:
        if isinstance(left, Param):
            stack.push(args[left.depth - 1])
        else:
            stack.push(StackWord(left, None if left else lifter.builder.make("UNSPILL")))
    return args[callee.place - 1]


def entries(blocks: dict[int, BasicBlock], dests: frozenset[int], lifter: Lifter) -> set[int]:
    """Function entries: targets of jumps from blocks that leave a code address on the stack."""
    found: set[int] = set()
    for block in blocks.values():
        if block.last.name != "JUMP":
            continue
        stack = WordStack()
        try:
            leaving = walk(block, stack, lifter)
        except RecoveryFailed:
            continue  # reported when the walk reaches the block
        target = None if leaving.target is None else leaving.target.known
        if isinstance(target, Label) and target.target in dests and stack.labels():
            found.add(target.target)
    return found
