"""Finds the functions that regions are made of: from any entry in the code, with side exits where nothing is known.

Works like recovery (`ir/recovery/finder.py`), except that not everything must be understood. A block that a region
cannot run, or whose jump has an unknown target, is cold: control leaves the region there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fusevm.evm.bytecode import BasicBlock
from fusevm.evm.limits import STACK_LIMIT
from fusevm.ir.builder import Builder
from fusevm.ir.recovery.finder import (
    FALLEN,
    JUMPED,
    Edge,
    Finder,
    Found,
    Key,
    returned,
    ways_on,
)
from fusevm.ir.recovery.walk import Reading, walk
from fusevm.ir.recovery.words import Known, Label, NotUnderstood, Param, WordStack, join_stacks, nameless

MOST_STATES = 2_000  # walked for one set of entries
MOST_HEIGHTS = 4  # stack heights of one block in one function
MOST_CALLS = 24  # maximum call depth


class RegionFinder(Finder):
    def __init__(
        self,
        pieces: dict[int, BasicBlock],
        dests: frozenset[int],
        how: Reading,
        is_cold: Callable[[BasicBlock], bool],
        bounds: dict[int, tuple[int, int]],
        budget: int = MOST_STATES,
    ) -> None:
        super().__init__(pieces, dests, how)
        self.bounds = bounds  # of each basic block: words it needs, and how far it raises the stack
        self.is_cold = is_cold
        self.cold: dict[int, set[Key]] = {}  # by function
        self.budget = budget

    def explore(self, found: Found) -> None:
        self.active.add(found.entry)
        self.cold[found.entry] = set()
        self.walk_through(found)
        if found.taken + found.highest > STACK_LIMIT:  # no stack has room for the words it takes and those it adds
            self._abandon(found)
        self._agree(found)
        found.summary = found.summarise()
        self.active.discard(found.entry)

    def _abandon(self, found: Found) -> None:
        """The function is left where it begins."""
        start = Key(found.entry, 0, ())
        found.states, found.edges, found.exits = {start: WordStack()}, {}, {}
        found.taken = found.highest = 0
        self.cold[found.entry] = {start}

    def _agree(self, found: Found) -> None:
        """All returns must use the same parameter and height: the blocks of those that differ from most become cold."""
        ways = Counter((place, stack.height) for place, stack in found.exits.values())
        if len(ways) > 1:
            (kept, _), *_ = ways.most_common(1)
            for edge, (place, stack) in list(found.exits.items()):
                if (place, stack.height) != kept:
                    self._cool(found, edge[0])

    def _cool(self, found: Found, key: Key) -> None:
        self.cold[found.entry].add(key)
        for number in (JUMPED, FALLEN):
            found.edges.pop((key, number), None)
            found.exits.pop((key, number), None)

    def step(self, found: Found, key: Key, work: list[Key]) -> None:
        block, cold = self.blocks[key.pc], self.cold[found.entry]
        self.budget -= 1 + len(found.states[key].words) // 16
        if key in cold:
            return
        if self.budget < 0 or self.is_cold(block):
            found.taken = max(found.taken, found.states[key].taken)
            self._cool(found, key)
            return
        self.how.builder = Builder()
        stack = self.how.named(found.states[key])
        if key.pc in self.bounds:  # for the whole basic block: after an exit in its middle nothing checks again
            needs, rises = self.bounds[key.pc]
            stack.reach(needs)
            found.highest = max(found.highest, stack.height + rises)
        try:
            leaving = walk(block, stack, self.how)
        except NotUnderstood:  # the stack exceeds its limit
            self._cool(found, key)
            return
        self.measure(found, stack)
        for number in (JUMPED, FALLEN):
            found.edges.pop((key, number), None)
            found.exits.pop((key, number), None)
        for way in ways_on(block, leaving, stack):
            if not self.follows(found, (key, way.number), way.target, way.stack, work):
                self._cool(found, key)
                return

    def follows(self, found: Found, edge: Edge, target: Known, stack: WordStack, work: list[Key]) -> bool:
        """Follows an edge, through the functions it calls; returns whether its target is known."""
        while True:
            self.budget -= 1
            if self.budget < 0:
                return False
            if isinstance(target, Param):
                found.exits[edge] = target.depth, nameless(stack)
                return True
            if not isinstance(target, Label):
                return False
            pc = target.target
            if pc not in self.blocks or (target.pushes and pc not in self.dests):
                return False
            self.used |= target.pushes
            if not self._calls(pc):
                self._arrive(found, edge, pc, stack, work, leaves=self._repeats(found, pc, stack))
                return True
            onward = returned(self.function(pc).summary, stack, self.how)
            self.measure(found, stack)
            if onward is None:
                return True
            target = onward.known

    def _calls(self, pc: int) -> bool:
        return self.is_call(pc) and len(self.active) < MOST_CALLS and not self.is_cold(self.blocks[pc])

    def _repeats(self, found: Found, pc: int, stack: WordStack) -> bool:
        """Whether this is a direct or indirect recursive call."""
        return (
            pc in self.active and pc in self.known and bool(stack.labels()) and (pc != found.entry or stack.height > 0)
        )

    def _arrive(self, found: Found, edge: Edge, pc: int, stack: WordStack, work: list[Key], *, leaves: bool) -> None:
        key = Key(pc, stack.height, stack.labels())
        found.edges[edge] = key
        stack = nameless(stack)
        found.taken = max(found.taken, stack.taken)
        before = found.states.get(key)
        after = stack if before is None else join_stacks(before, stack)
        if before is None:
            heights = found.heights.setdefault(pc, set())
            heights.add(stack.height)
            leaves = leaves or len(heights) > MOST_HEIGHTS
        if after is not None:
            found.states[key] = after
            work.append(key)
        if leaves:
            self._cool(found, key)
