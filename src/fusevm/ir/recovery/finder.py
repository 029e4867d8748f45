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
from fusevm.ir.recovery.walk import Leaving, Reading, told, walk
from fusevm.ir.recovery.words import (
    GrowingStack,
    Known,
    Label,
    NotUnderstood,
    Number,
    Param,
    Word,
    WordStack,
    join_stacks,
    joined,
    nameless,
)

STATES_PER_BLOCK = 24
STATES_AT_LEAST = 2_000
DEEPEST_CALLS = 100
MOST_HEIGHTS = 16  # of the stack at a function entry; elsewhere twice that, so that the entry is reported first
MOST_SUMMARIES = 8  # of a recursive function


class Key(NamedTuple):
    """A block in a function, at a given stack height and with given code addresses on the stack."""

    pc: int
    height: int
    labels: tuple[tuple[int, int], ...]


JUMPED, FALLEN = 0, 1
Edge = tuple[Key, int]  # a state, and JUMPED or FALLEN


@dataclass(frozen=True, slots=True)
class Summary:
    """What a call of a function does to the stack."""

    entry: int
    returns: bool
    taken: int = 0  # words of the caller's stack that it reads, the return address included
    place: int = 0  # the depth of the return address
    left: tuple[Known, ...] = ()  # the words that replace those taken, the top last


@dataclass(slots=True)
class Found:
    """A function, or the main code."""

    entry: int
    states: dict[Key, WordStack] = field(default_factory=dict)
    heights: dict[int, set[int]] = field(default_factory=dict)  # the stack heights at which each block is entered
    edges: dict[Edge, Key] = field(default_factory=dict)
    exits: dict[Edge, tuple[int, WordStack]] = field(default_factory=dict)  # returns: depth of the address, stack
    taken: int = 0  # words of the caller's stack that it reads, the return address included
    highest: int = 0  # relative to the height on entry, calls included
    summary: Summary = Summary(0, returns=False)
    growth: list[int] = field(default_factory=list)  # the stack heights at which it calls itself

    def summarise(self) -> Summary:
        places = {place for place, _ in self.exits.values()}
        heights = {stack.height for _, stack in self.exits.values()}
        if len(places) > 1:
            raise NotUnderstood("a function returns to more than one address", self.entry)
        if len(heights) > 1:
            raise NotUnderstood("a function returns with stacks of different heights", self.entry)
        if not places:
            return Summary(self.entry, False, self.taken)
        for _, stack in self.exits.values():
            stack.take(self.taken)
        first, *others = [[word.known for word in stack.words] for _, stack in self.exits.values()]
        for other in others:
            first = [joined(one, two) for one, two in zip(first, other, strict=True)]
        return Summary(self.entry, True, self.taken, places.pop(), tuple(first))


class Finder:
    def __init__(
        self,
        blocks: dict[int, BasicBlock],
        dests: frozenset[int],
        how: Reading,
        recursive: frozenset[int] = frozenset(),
    ) -> None:
        self.blocks, self.dests, self.how = blocks, dests, how
        self.recursive = recursive  # recursive functions
        self.known = entries(blocks, dests, how) | recursive
        self.functions: dict[int, Found] = {}  # callees first, the main code last
        self.active: set[int] = set()
        self.used: set[int] = set()  # PUSHes of addresses that are jumped to
        self.budget = STATES_PER_BLOCK * len(blocks) + STATES_AT_LEAST
        self.main = Found(0)

    def run(self) -> None:
        self.how.is_main = True
        self.explore(self.main)
        self.how.is_main = False

    def function(self, entry: int) -> Found:
        if entry not in self.functions:
            if len(self.active) > DEEPEST_CALLS:
                raise NotUnderstood("calls are nested too deeply", entry)
            was_main, self.how.is_main = self.how.is_main, False
            self.explore(found := Found(entry))
            self.functions[entry] = found
            self.how.is_main = was_main
        return self.functions[entry]

    def explore(self, found: Found) -> None:
        """Walks through the function; a recursive one until its summary reaches a fixed point."""
        self.active.add(found.entry)
        thought = found.summary = Summary(found.entry, returns=False)
        for _ in range(MOST_SUMMARIES):
            self.walk_through(found)
            found.summary = found.summarise()
            if not found.growth or found.summary == thought:
                self.active.discard(found.entry)
                return
            thought = found.summary
        raise NotUnderstood("what a function that calls itself does to the stack is not certain", found.entry)

    def walk_through(self, found: Found) -> None:
        start = Key(found.entry, 0, ())
        found.states, found.edges, found.exits, found.heights = {start: WordStack()}, {}, {}, {}
        found.growth = []
        work = [start]
        while work:
            self.step(found, work.pop(), work)

    def step(self, found: Found, key: Key, work: list[Key]) -> None:
        self.budget -= 1 + len(found.states[key].words) // 16
        if self.budget < 0:
            raise NotUnderstood("addresses wait on the stack in too many combinations", key.pc)
        block = self.blocks[key.pc]
        self.how.builder = Builder()
        stack = self.how.named(found.states[key])
        leaving = walk(block, stack, self.how)
        self.measure(found, stack)
        for number in (JUMPED, FALLEN):  # results of an earlier walk over this block may not hold any more
            found.edges.pop((key, number), None)
            found.exits.pop((key, number), None)
        for way in ways_on(block, leaving, stack):
            self.go(found, (key, way.number), way.target, way.stack, work)

    @staticmethod
    def measure(found: Found, stack: WordStack, above: int = 0) -> None:
        found.taken = max(found.taken, stack.taken)
        found.highest = max(found.highest, stack.peak, stack.height + above)

    def go(self, found: Found, edge: Edge, target: Known, stack: WordStack, work: list[Key]) -> None:
        pc = edge[0].pc
        while True:
            self.budget -= 1
            if self.budget < 0:
                raise NotUnderstood("functions return to functions in too many combinations", pc)
            if target is None:
                raise NotUnderstood("a jump to an address that is not known", self.blocks[pc].last.pc)
            if isinstance(target, Param):
                found.exits[edge] = target.depth, nameless(stack)
                return
            if not isinstance(target, Label):
                raise NotUnderstood("a jump to an address that is computed", self.blocks[pc].last.pc)
            self.used |= target.pushes
            if target.target not in self.blocks or (target.pushes and target.target not in self.dests):
                return
            if self.calls_itself(found, target.target, stack):
                found.growth.append(stack.height)
                summary = found.summary
            elif self.is_call(target.target):
                callee = self.function(target.target)
                self.measure(found, stack, callee.highest)
                summary = callee.summary
            else:
                self.reach(found, edge, target.target, stack, work)
                return
            onward = returned(summary, stack, self.how)
            self.measure(found, stack)
            if onward is None:
                return
            target = onward.known

    def calls_itself(self, found: Found, pc: int, stack: WordStack) -> bool:
        """A jump to the entry with a return address on the stack; without one it is a loop."""
        calls = pc == found.entry and pc in self.recursive and bool(stack.labels())
        if calls and found is self.main:
            raise NotUnderstood("the code calls its own beginning", pc)
        return calls

    def is_call(self, pc: int) -> bool:
        return pc in self.known and pc not in self.active

    def reach(self, found: Found, edge: Edge, pc: int, stack: WordStack, work: list[Key]) -> None:
        key = Key(pc, stack.height, stack.labels())
        found.edges[edge] = key
        stack = nameless(stack)
        before = found.states.get(key)
        after = stack if before is None else join_stacks(before, stack)
        if before is None:
            heights = found.heights.setdefault(pc, set())
            heights.add(stack.height)
            if len(heights) > (MOST_HEIGHTS if pc in self.known else 2 * MOST_HEIGHTS):
                raise GrowingStack(found.entry if pc in self.recursive else pc)
        if after is not None:
            found.states[key] = after
            work.append(key)


class WayOn(NamedTuple):
    number: int
    target: Known
    stack: WordStack


def ways_on(block: BasicBlock, leaving: Leaving, stack: WordStack) -> list[WayOn]:
    """The edges out of a block; a branch on a known condition has one."""
    after = Label(block.end, frozenset())
    if leaving.op == "FALL":
        return [WayOn(FALLEN, after, stack)]
    if leaving.target is None:
        return []
    if leaving.op == "JUMP":
        return [WayOn(JUMPED, leaving.target.known, stack)]
    condition = leaving.args[0]
    jumped = WayOn(JUMPED, leaving.target.known, told(stack, condition, True))
    fallen = WayOn(FALLEN, after, told(stack, condition, False))
    if isinstance(condition.known, Number):
        return [jumped if condition.known.number else fallen]
    return [jumped, fallen]


def returned(callee: Summary, stack: WordStack, how: Reading) -> Word | None:
    """Applies a call's summary to the stack; returns the address it returns to, or None if it never does."""
    if how.is_main and callee.taken > len(stack.words):
        raise NotUnderstood("a function takes more words than there are", callee.entry)
    stack.reach(callee.taken)
    args = stack.words[len(stack.words) - callee.taken :][::-1]  # the top first
    del stack.words[len(stack.words) - callee.taken :]
    if not callee.returns:
        return None
    for left in callee.left:
        if isinstance(left, Param):
            stack.push(args[left.depth - 1])
        else:
            stack.push(Word(left, None if left else how.builder.make("UNSPILL")))
    return args[callee.place - 1]


def entries(blocks: dict[int, BasicBlock], dests: frozenset[int], how: Reading) -> set[int]:
    """Function entries: targets of jumps from blocks that leave a code address on the stack."""
    found: set[int] = set()
    for block in blocks.values():
        stack = WordStack()
        try:
            leaving = walk(block, stack, how)
        except NotUnderstood:
            continue  # reported when the walk reaches the block
        target = leaving.target.known if leaving.op == "JUMP" and leaving.target is not None else None
        if isinstance(target, Label) and target.target in dests and stack.labels():
            found.add(target.target)
    return found
