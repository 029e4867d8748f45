"""Finds the functions that regions are made of: from any entry in the code, with side exits where nothing is known.

Works like recovery (`ir/recovery/finder.py`), except that not everything must be understood. A block that a region
cannot run, or whose jump has an unknown target, is cold: control leaves the region there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fusevm.evm.bytecode import BasicBlock
from fusevm.evm.limits import STACK_LIMIT
from fusevm.ir.recovery.finder import Edge, Finder, FoundFunction, Key, StackSummary
from fusevm.ir.recovery.walk import Lifter
from fusevm.ir.recovery.words import Label, RecoveryFailed, WordStack

MAX_STATES = 2_000  # walked for one set of entries
MAX_HEIGHTS = 4  # stack heights of one block in one function
MAX_CALLS = 24  # maximum call depth


class RegionFinder(Finder):
    def __init__(
        self,
        pieces: dict[int, BasicBlock],
        dests: frozenset[int],
        lifter: Lifter,
        is_cold: Callable[[BasicBlock], bool],
        bounds: dict[int, tuple[int, int]],
        budget: int = MAX_STATES,
    ) -> None:
        super().__init__(pieces, dests, lifter)
        self.bounds = bounds  # of each basic block: words it needs, and how far it raises the stack
        self.is_cold = is_cold
        self.cold: dict[int, dict[Key, str]] = {}  # by function, and why
        self.budget = budget

    def explore(self, found: FoundFunction) -> None:
        self.active.add(found.entry)
        self.cold[found.entry] = {}
        self.walk_through(found)
        if found.taken + found.highest > STACK_LIMIT:  # no stack has room for the words it takes and those it adds
            self._abandon(found)
        self._agree(found)
        found.summary = found.summarise()
        self.active.discard(found.entry)

    def _abandon(self, found: FoundFunction) -> None:
        """The function is left where it begins."""
        start = Key(found.entry, 0, ())
        found.states, found.edges, found.exits = {start: WordStack()}, {}, {}
        found.taken = found.highest = 0
        self.cold[found.entry] = {start: "no stack has room for all its words"}

    def _agree(self, found: FoundFunction) -> None:
        """All returns must use the same parameter and height: the blocks of those that differ from most become cold."""
        exits = Counter((place, stack.height) for place, stack in found.exits.values())
        if len(exits) > 1:
            (kept, _), *_ = exits.most_common(1)
            for edge, (place, stack) in list(found.exits.items()):
                if (place, stack.height) != kept:
                    self._cool(found, edge[0], "the function returns in more than one way")

    def _cool(self, found: FoundFunction, key: Key, why: str) -> None:
        self.cold[found.entry].setdefault(key, why)
        self.forget(found, key)

    def step(self, found: FoundFunction, key: Key, work: list[Key]) -> None:
        try:
            super().step(found, key, work)
        except RecoveryFailed as refusal:  # cold before, or no budget, a target not known, a stack beyond its limit
            self._cool(found, key, refusal.reason)

    def prepare(self, found: FoundFunction, key: Key, stack: WordStack) -> None:
        if key in self.cold[found.entry] or self.is_cold(self.blocks[key.pc]):
            raise RecoveryFailed("a region cannot run the block", key.pc)
        if key.pc in self.bounds:  # for the whole basic block: after an exit in its middle nothing checks again
            needs, rises = self.bounds[key.pc]
            stack.reach(needs)
            found.highest = max(found.highest, stack.height + rises)

    def halts(self, target: Label) -> None:
        raise RecoveryFailed("a jump to an invalid target", target.target)

    def callee(self, found: FoundFunction, pc: int, stack: WordStack) -> StackSummary | None:
        calls = pc in self.known and pc not in self.active and len(self.active) < MAX_CALLS
        return self.function(pc).summary if calls and not self.is_cold(self.blocks[pc]) else None

    def reach(self, found: FoundFunction, edge: Edge, pc: int, stack: WordStack, work: list[Key]) -> None:
        super().reach(found, edge, pc, stack, work)
        found.taken = max(found.taken, stack.taken)
        if self._repeats(found, pc, stack):
            self._cool(found, found.edges[edge], "a function calls itself")

    def limit(self, found: FoundFunction, key: Key, heights: int) -> None:
        if heights > MAX_HEIGHTS:
            self._cool(found, key, f"the stack has more than {MAX_HEIGHTS} heights there")

    def _repeats(self, found: FoundFunction, pc: int, stack: WordStack) -> bool:
        """Whether this is a direct or indirect recursive call."""
        return (
            pc in self.active and pc in self.known and bool(stack.labels()) and (pc != found.entry or stack.height > 0)
        )
