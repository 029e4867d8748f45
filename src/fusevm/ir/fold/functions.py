"""Folding functions: every instruction passes through the fold engine again, with the facts that hold at its place.

Besides the engine's own facts these are: conditions implied by dominating branches, ranges (`ir/ranges.py`), which of
two words is the smaller, and the contents of memory and storage, kept across joins if no block in between writes them.
Gas may only fall; everything else that a caller can observe is preserved.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import TypeVar

from fusevm.evm.opcodes import MEMORY, MSIZE, STORAGE, TRANSIENT
from fusevm.ir import analyses
from fusevm.ir.builder import NeverReached
from fusevm.ir.fold import stores
from fusevm.ir.fold.engine import fuel_for
from fusevm.ir.fold.facts import LESS, FoldFacts, RangeFolder
from fusevm.ir.fold.memory_facts import BITS, MemoryFacts
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.fold.summaries import EffectSummary, summaries, unseen_in
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, NEVER, SWITCH, Arc, DependencyBlock, End, Function, Unit
from fusevm.ir.ranges import TOP
from fusevm.ir.values import CONST, Value, traits_of

F = TypeVar("F", bound="FunctionFolder")

_OWN = frozenset(("CALLFN", "RESULT", "SYMBOL", "SETIMMUTABLE", "VERBATIM"))
_MEMORY, _STORAGE, _TRANSIENT = MEMORY.value, STORAGE.value, TRANSIENT.value
ATTEMPTS = 6  # to find the reachable blocks
_JOIN_WORK = 500_000  # budget of visited blocks per function, to find what is written between a join and its dominator


class ReachedLate(Exception):
    """Blocks skipped as unreachable turned out to be successors of a later block: the result cannot be used."""

    def __init__(self, blocks: set[int]) -> None:
        self.blocks = blocks
        super().__init__(blocks)


class FunctionFolder(RangeFolder):
    def __init__(
        self,
        unit: Unit,
        function: Function,
        effects: dict[str, EffectSummary],
        keeps_growth: bool,
        reached: frozenset[int] = frozenset(),
        mode: Mode = Mode.OPTIMISATION,
        stages: Stage = EVERYTHING,
        recorder: FoldRecorder | None = None,
    ) -> None:
        super().__init__(unit.fork, mode, stages, keeps_growth=keeps_growth, recorder=recorder)
        self.unit, self.function, self.effects = unit, function, effects
        self.order = analyses.order(function)
        self.tree = analyses.dominators(function)
        self.predecessors = analyses.predecessors(function)
        self.position = {block.start: number for number, block in enumerate(self.order)}
        self.writes = {block.start: self.written_by(block) for block in self.order}
        self.made: dict[int, DependencyBlock] = {}  # the new blocks
        self.values: dict[int, Value] = {}  # old to new
        self.wanted = analyses.use_counts(function)  # old values
        self.expected: dict[int, int] = {}  # new values: the uses of the old ones
        self.worlds: dict[int, MemoryFacts] = {}
        self.known: dict[int, FoldFacts] = {}  # at the end of each block
        self.symbols: dict[int, Value] = {}
        self.reached = {function.entry.start, *reached}
        self.arcs: list[tuple[int, Arc, Arc]] = []  # the predecessor, the new arc, the old arc
        self.join_work = _JOIN_WORK
        self.fuel = fuel_for(sum(len(block.instructions) for block in self.order))
        self.constants_used = {
            arg.number
            for block in self.order
            for value in block.instructions
            if value.op not in ("LT", "GT")
            for arg in value.args
            if arg.op == CONST
        }

    def written_by(self, block: DependencyBlock) -> int:
        written = 0
        for value in block.instructions:
            if value.op == "CALLFN":
                written |= self.effects[self.unit.names[value.number]].writes
            else:
                written |= traits_of(value).writes
        return written

    def run(self) -> Function:
        self.aliases = self.same_everywhere()
        for block in self.order:
            if block.start in self.reached:
                self.fold_block(block)
        if self.reached - self.known.keys():
            raise ReachedLate(self.reached - self.known.keys())
        for source, new, old in self.arcs:
            kept = {param.id for param in new.target.params}
            new.args = [
                self.new(arg, self.known[source])
                for param, arg in zip(old.target.params, old.args, strict=True)
                if self.values[param.id].id in kept and param.id not in self.aliases
            ]
        entry = self.made[self.function.entry.start]
        return Function(self.function.name, entry, self.function.results, self.function.returns, self.function.where)

    # -- blocks -----------------------------------------------------------------------------------------------------

    def same_everywhere(self) -> dict[int, Value]:
        """Parameters that receive the same value from all predecessors."""
        arguments = analyses.arguments(self.function)
        found: dict[int, Value] = {}

        def resolved(value: Value) -> Value:
            while value.id in found:
                value = found[value.id]
            return value

        changed = True
        while changed:
            changed = False
            for block in self.order:
                for param in block.params:
                    if param.id in found or param.id not in arguments:
                        continue
                    values = {self.key(each): each for each in map(resolved, arguments[param.id])}
                    values.pop(self.key(param), None)
                    if len(values) == 1:
                        found[param.id] = next(iter(values.values()))
                        changed = True
        return {number: resolved(value) for number, value in found.items()}

    @staticmethod
    def key(value: Value) -> tuple[bool, int]:
        return (True, value.number) if value.op == CONST else (False, value.id)

    def fold_block(self, block: DependencyBlock) -> None:
        made = self.block_of(block)
        self.begin(made)
        self.enter_block(block, made)
        try:
            for value in block.instructions:
                self.where = value.where
                result = self.again(value)
                if result is not None:
                    self.values[value.id] = result
                    self.expected[result.id] = max(self.expected.get(result.id, 0), self.wanted[value.id])
            self.where = block.end.where
            made.end = self.ended(block.end)
        except NeverReached:
            made.end = End("INVALID")
            for value in block.instructions:  # blocks that are folded although nothing leads to them may use the rest
                self.values.setdefault(value.id, self.const(0))
        made.end.where = self.where
        for arc in made.end.arcs:
            self.reached.add(arc.target.start)
        self.sweep()
        self.worlds[block.start] = self.world
        self.known[block.start] = self.facts

    def block_of(self, block: DependencyBlock) -> DependencyBlock:
        if block.start not in self.made:
            self.made[block.start] = DependencyBlock(block.start)
        return self.made[block.start]

    def enter_block(self, block: DependencyBlock, made: DependencyBlock) -> None:
        sources = [source for source in self.predecessors[block] if self.may_come_from(source, block)]
        self.know_world(block, sources)
        above = self.tree.above[block.start]
        is_sole = len(sources) == 1 and sources[0].start in self.known and block is not self.function.entry
        sole = sources[0] if is_sole else None
        base = self.known.get(sole.start if sole is not None else above)
        self.facts = base.copy() if base is not None else FoldFacts()
        if sole is not None:
            self.assume_edge(self.made[sole.start], made)
        for param in block.params:
            if param.id in self.aliases:
                self.values[param.id] = self.new(self.aliases[param.id])
                continue
            handed = self.handed(param, block, sources)
            if handed is not None and all(each is handed[0] for each in handed) and handed:
                self.values[param.id] = handed[0]
                continue
            value = self.param(made)
            self.values[param.id] = value
            if handed:
                found = self.range(handed[0], self.known[sources[0].start])
                for each, source in zip(handed[1:], sources[1:], strict=True):
                    found = found.with_(self.range(each, self.known[source.start]))
                self.range_at[value.id] = found

    def may_come_from(self, source: DependencyBlock, block: DependencyBlock) -> bool:
        """Whether the edge may exist: of a folded predecessor, if it still leads here; of a later block, always."""
        made = self.made.get(source.start)
        if made is None or source.start not in self.known:
            return self.position[source.start] >= self.position[block.start]
        return any(arc.target.start == block.start for arc in made.end.arcs)

    def handed(self, param: Value, block: DependencyBlock, sources: list[DependencyBlock]) -> list[Value] | None:
        """The argument from each predecessor; None if one of them is not known yet."""
        if block is self.function.entry:
            return None
        number = block.params.index(param)
        found: list[Value] = []
        for source in sources:
            if source.start not in self.known:
                return None
            arcs = [arc for arc in source.end.arcs if arc.target is block]
            if len(arcs) != 1:
                return None
            found.append(self.new(arcs[0].args[number], self.known[source.start]))
        return found

    def know(self, block: object) -> None:
        """Done by `enter_block`."""

    def know_world(self, block: DependencyBlock, sources: list[DependencyBlock]) -> None:
        if block is self.function.entry:
            self.world = MemoryFacts(zeroed=not self.function.name and not self.predecessors[block])
        elif len(sources) == 1 and sources[0].start in self.worlds:
            self.world = self.worlds[sources[0].start].copy()
        else:
            self.world = self.world_over_join(block)

    def world_over_join(self, block: DependencyBlock) -> MemoryFacts:
        """The facts at the end of the dominator that no block between it and this one invalidates."""
        above = self.tree.above[block.start]
        written = 0
        seen: set[int] = set()  # contains the block itself if it is in a loop
        work = list(self.predecessors[block])
        while work:
            source = work.pop()
            start = source.start
            if start != above and start not in seen:
                self.join_work -= 1
                if self.join_work <= 0:  # over budget: assume that everything is written
                    written = -1
                    break
                seen.add(start)
                written |= self.writes[start]
                work += self.predecessors[source]
        before = self.worlds.get(above)
        self.clock += 1
        world = before.copy() if before is not None else MemoryFacts()
        for bit in BITS:
            if written & bit or before is None:
                world.epochs[bit] = self.clock
        if written & _MEMORY or before is None:
            world.memory, world.zeroed = [], False
        if written & _STORAGE or before is None:
            world.storage = []
        if written & _TRANSIENT or before is None:
            world.transient = []
        return world

    # -- values -----------------------------------------------------------------------------------------------------

    def is_shared(self, value: Value) -> bool:
        """Folding sees the uses before, the old graph has those to come."""
        return self.expected.get(value.id, 0) > 1

    def is_available(self, value: Value) -> bool:
        return value.block == self.block.start or self.tree.dominates(value.block, self.block.start)

    def new(self, old: Value, facts: FoldFacts | None = None) -> Value:
        """The replacement of an old value, here or given these facts."""
        if old.op == CONST:
            return self.const(old.number)
        value = self.symbol(old.number) if old.op == "SYMBOL" else self.values[old.id]
        return (facts or self.facts).equal.get(value.id, value)

    def again(self, value: Value) -> Value | None:
        args = tuple([self.new(arg) for arg in value.args])
        if self.recorder is not None:
            for old, new in zip(value.args, args, strict=True):
                if new.op == CONST != old.op:
                    self.recorder.absorbed(value.where, old.where)
        if value.op not in _OWN:
            return self.emit(value.op, args, value.number)
        if value.op == "SYMBOL":
            return self.symbol(value.number)
        if value.op == "RESULT":
            return self.raw("RESULT", args, value.number)
        return self.effect(value.op, args, value.number)

    def symbol(self, number: int) -> Value:
        """Like a literal, it belongs to no block."""
        found = self.symbols.get(number)
        if found is None:
            found = self.symbols[number] = self.make("SYMBOL", (), number)
            found.block = self.function.entry.start
        return found

    def note(self, value: Value) -> None:
        if value.op != "CALLFN":
            super().note(value)
            if value.op in ("VERBATIM", "SETIMMUTABLE"):
                self.world.memory, self.world.zeroed = [], False
            self.note_reach(value)
            return
        summary = self.effects[self.unit.names[value.number]]
        world = self.world
        if summary.ends:
            world.ender = value.id
        self.clock += 1
        world.write(summary.writes, self.clock)
        touched = summary.writes | summary.reads
        if touched & _MEMORY or touched & MSIZE.value:
            world.remember_memory(value)
        if summary.writes & _MEMORY:
            world.memory, world.zeroed = [], False
        if touched & _STORAGE:
            world.remember(world.storage, value)
        if touched & _TRANSIENT:
            world.remember(world.transient, value)
        if summary.writes & _STORAGE:
            world.storage = []
        if summary.writes & _TRANSIENT:
            world.transient = []

    # -- facts implied by branches ----------------------------------------------------------------------------------

    def assume_edge(self, source: DependencyBlock, block: DependencyBlock) -> None:
        """Records what the branch or switch at the end of the sole predecessor implies about this edge."""
        if Stage.FACTS not in self.stages:
            return
        end = source.end
        edges = [number for number, arc in enumerate(end.arcs) if arc.target.start == block.start]
        if len(edges) != 1:
            return
        if end.op == BRANCH:
            self.assume(end.args[0], edges[0] == 0)
        elif end.op == SWITCH and edges[0] < len(end.cases):
            self.assume_equal(end.args[0], self.const(end.cases[edges[0]]))

    # -- ends -------------------------------------------------------------------------------------------------------

    def ended(self, end: End) -> End:
        args = tuple([self.new(arg) for arg in end.args])
        if end.op == BRANCH:
            return self.branch(args[0], end.arcs)
        if end.op == SWITCH:
            return self.switch(args[0], end)
        if end.op not in (JUMP, LEAVE, NEVER) and self.unmakes:
            stores.kill_unread(self, end.op, args)
        return End(end.op, args, [self.arc(arc) for arc in end.arcs])

    def arc(self, old: Arc) -> Arc:
        new = Arc(self.block_of(old.target))
        self.arcs.append((self.block.start, new, old))
        return new

    def branch(self, condition: Value, arcs: list[Arc]) -> End:
        taken, other = arcs
        while True:
            if condition.op == "ISZERO":
                condition, taken, other = condition.args[0], other, taken
                condition = self.facts.equal.get(condition.id, condition)
            elif condition.op == "EQ" and condition.args[1].op == CONST and condition.args[1].number == 0:
                condition, taken, other = condition.args[0], other, taken
            else:
                break
        if condition.op == CONST or self.range(condition).low > 0:
            known = condition.op != CONST or condition.number != 0
            return End(JUMP, (), [self.arc(taken if known else other)])
        if taken.target is other.target and all(
            self.key(one) == self.key(two) for one, two in zip(taken.args, other.args, strict=True)
        ):
            return End(JUMP, (), [self.arc(taken)])
        if condition.op in LESS:
            inverted = self.inverted_comparison(condition, _fails(taken.target))
            if inverted is not None:
                condition, taken, other = inverted, other, taken
        return End(BRANCH, (condition,), [self.arc(taken), self.arc(other)])

    def inverted_comparison(self, condition: Value, fails: bool) -> Value | None:
        """The inverted comparison, if that is better: its constant is shorter or used elsewhere too; or, for x + c < y,
        the edge taken so far does not fail (a taken branch should be the failing one)."""
        one, other = (condition.args[place] for place in LESS[condition.op])  # one < other
        if one.op == CONST and one.number < TOP:  # c < x: not x < c + 1
            moved = self.const(one.number + 1)
            if self.is_better(moved.number, one.number):
                return self.pure("LT", (other, moved))
        elif other.op == CONST and other.number > 0:  # x < c: not c - 1 < x
            moved = self.const(other.number - 1)
            if self.is_better(moved.number, other.number):
                return self.pure("LT", (moved, one))
        elif not fails and self.is_moved_freely(one):
            more = self.pure("ADD", (one.args[0], self.const(one.args[1].number + 1)))
            return self.pure("LT", (other, more))  # x + c < y: not y < x + (c + 1)
        return None

    def is_moved_freely(self, value: Value) -> bool:
        """Whether x + c + 1 can take the place of the value x + c: nothing else needs that, and it does not wrap."""
        is_sum = value.op == "ADD" and value.args[1].op == CONST
        return is_sum and not self.is_shared(value) and self.range(value).high < TOP

    def is_better(self, number: int, than: int) -> bool:
        size, other = _plain_size(number), _plain_size(than)
        shared = number in self.constants_used and than not in self.constants_used
        return size < other or (size == other and size > 4 and shared)

    def switch(self, value: Value, end: End) -> End:
        *others, default = end.arcs
        if value.op == CONST:
            found = next((arc for case, arc in zip(end.cases, others, strict=True) if case == value.number), default)
            return End(JUMP, (), [self.arc(found)])
        possible = self.range(value)
        kept = [number for number, case in enumerate(end.cases) if case in possible]
        if not kept:
            return End(JUMP, (), [self.arc(default)])
        arcs = [self.arc(others[number]) for number in kept]
        made = End(SWITCH, (value,), [*arcs, self.arc(default)], tuple([end.cases[number] for number in kept]))
        made.places = tuple([end.places[number] for number in kept]) if end.places else ()
        return made


def _plain_size(number: int) -> int:
    """The size of the constant in bytes without trailing zeros, which are made by a shift."""
    low = (number & -number).bit_length() - 1 if number else 0
    return (number.bit_length() + 7) // 8 - max(low // 8 - 3, 0)


def _fails(block: DependencyBlock) -> bool:
    return block.end.op in ("REVERT", "INVALID", NEVER)


def fold_unit(
    unit: Unit, recorder: FoldRecorder | None = None, stages: Stage = EVERYTHING, unshared: Set[str] = frozenset()
) -> Stats:
    """Folds every function of the unit in place; in those `unshared` no value is kept to be used again."""
    if recorder is not None:
        recorder.number(unit)
    effects, stats = summaries(unit), Stats()
    keeps_growth = not unseen_in(unit) & MSIZE
    for name, function in list(unit.functions.items()):
        run = stages & ~Stage.CSE if name in unshared else stages
        make = partial(FunctionFolder, unit, function, effects, keeps_growth, stages=run, recorder=recorder)
        unit.functions[name], folder = folded(function, make)
        stats.add(folder.stats)
    return stats


def folded(function: Function, folder_of: Callable[[frozenset[int]], F]) -> tuple[Function, F]:
    """The new function, and the folder that made it, which is given the blocks that are reached for certain.

    An irreducible loop may be entered at a block that was assumed to be unreachable: then folding is repeated. After
    `ATTEMPTS` rounds, in code that jumps everywhere, all blocks are assumed to be reachable."""
    reached: frozenset[int] = frozenset()
    attempts = 0
    while True:
        attempts += 1
        if attempts > ATTEMPTS:
            reached = frozenset([block.start for block in analyses.order(function)])
        folder = folder_of(reached)
        try:
            return folder.run(), folder
        except ReachedLate as late:
            reached |= late.blocks
