"""Builds functions in SSA form from the finder's result: stack words become values, with PHIs at joins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fusevm.evm.bytecode import BasicBlock
from fusevm.ir import analyses
from fusevm.ir.builder import Builder
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, NEVER, Arc, DependencyBlock, End, Function, Unit
from fusevm.ir.graphs import drop_others, needed_values
from fusevm.ir.recovery.finder import Edge, Finder, FoundFunction, Key, OutEdge, StackSummary, out_edges, returned
from fusevm.ir.recovery.walk import Leaving, Lifter, walk
from fusevm.ir.recovery.words import Known, Label, Number, Param, RecoveryFailed, Shifted, StackWord, WordStack
from fusevm.ir.values import traits_of


@dataclass(slots=True)
class Built:
    function: Function
    needs: list[int]  # the depths of the words it takes as arguments


def name_of(entry: int) -> str:
    return f"f_{entry:x}"


class FunctionBuilder:
    def __init__(self, units: UnitBuilder, found: FoundFunction, name: str) -> None:
        self.units, self.found, self.name, self.lifter = units, found, name, units.lifter
        self.finder, self.unit = units.finder, units.unit
        self.builder: Builder = self.lifter.builder
        self.count = 0
        self.blocks: dict[Key, DependencyBlock] = {}
        self.entries: dict[Key, WordStack] = {}
        self.phis: dict[Key, list[int]] = {}  # the stack positions that are block parameters
        self.params: list[StackWord] = []
        self.work: list[Key] = []
        self.edges_in = self._edges_in()

    def _edges_in(self) -> dict[Key, int]:
        count = dict.fromkeys(self.found.states, 0)
        for target in self.found.edges.values():
            count[target] += 1
        return count

    def run(self) -> Built:
        found = self.found
        entry = self.new_block()
        self.begin(entry)
        for depth in range(1, found.taken + 1):
            self.params.append(StackWord(Param(depth), self.builder.param(entry)))
        stack = WordStack(params=self.params)
        stack.take(found.taken)
        first = Key(found.entry, 0, ())
        self.edges_in[first] += 1
        entry.end = End(JUMP, (), [self.arc_to(first, stack)])
        while self.work:
            self.write(self.work.pop())
        function = Function(
            self.name, entry, sum(each is None for each in found.summary.left), found.summary.returns or not self.name
        )
        return Built(function, self.drop_unused(function))

    # -- blocks -------------------------------------------------------------------------------------------------------

    def new_block(self) -> DependencyBlock:
        self.count += 1
        return DependencyBlock(self.count - 1)

    def begin(self, block: DependencyBlock) -> None:
        self.builder.block = block

    def arc_to(self, key: Key, stack: WordStack) -> Arc:
        stack.take(self.found.taken)
        if key not in self.blocks:
            self.open(key, stack)
        args = [self.lifter.number(stack.words[place]) for place in self.phis[key]]
        return Arc(self.blocks[key], args)

    def open(self, key: Key, stack: WordStack) -> None:
        """Creates a block: with the values of its only predecessor, or with parameters for words that may differ.

        Of its words no more is known than the finder knew. It names words anew in every block, so a branch tells it
        less: here the copies of a tested word are the same value, and the edges must be those that it found.
        """
        block = self.blocks[key] = self.new_block()
        self.work.append(key)
        self.phis[key] = []
        seen = self.found.states[key].copy()
        seen.take(self.found.taken)
        words: list[StackWord] = []
        for place, word in enumerate(seen.words):
            if isinstance(word.known, Label | Number | Shifted):
                words.append(word)
            elif isinstance(word.known, Param):
                words.append(self.params[word.known.depth - 1])
            elif self.edges_in[key] == 1:
                words.append(StackWord(None, self.lifter.number(stack.words[place])))
            else:
                self.phis[key].append(place)
                words.append(StackWord(None, self.builder.param(block)))
        self.entries[key] = WordStack(self.found.taken, words, self.params)

    def write(self, key: Key) -> None:
        block, source = self.blocks[key], self.finder.blocks[key.pc]
        self.units.sources[block] = source
        self.begin(block)
        self.builder.where = (source.start, source.end, source.start)
        stack = self.entries[key].copy()
        if not self.enter(block, key, source, stack):
            return
        leaving = walk(source, stack, self.lifter)
        edges = out_edges(source, leaving, stack)
        if len(edges) > 1:
            self.branch(key, leaving, edges)
        elif edges:
            self.go(block, (key, edges[0].number), edges[0].target, edges[0].stack)
        else:
            block.end = End(leaving.op, tuple([self.lifter.number(arg) for arg in leaving.args]))
        block.end.where = self.builder.where

    def enter(self, block: DependencyBlock, key: Key, source: BasicBlock, stack: WordStack) -> bool:
        """Hook: whether the block is lifted, which begins with this stack."""
        return True

    def branch(self, key: Key, leaving: Leaving, edges: list[OutEdge]) -> None:
        block = self.blocks[key]
        condition = self.lifter.number(leaving.args[0])
        sides = [self.new_block(), self.new_block()]
        block.end = End(BRANCH, (condition,), [Arc(side) for side in sides])
        for side, edge in zip(sides, edges, strict=True):
            self.begin(side)
            self.go(side, (key, edge.number), edge.target, edge.stack)
            side.end.where = self.builder.where

    def go(self, block: DependencyBlock, edge: Edge, target: Known, stack: WordStack) -> None:
        """Follows an edge and terminates the block: calls, then a jump to a block, a return or a halt."""
        while True:
            if isinstance(target, Param):
                self.leave(block, stack)
                return
            assert isinstance(target, Label)
            pc = target.target
            if pc not in self.finder.blocks or (target.pushes and pc not in self.finder.dests):
                block.end = End("INVALID" if target.pushes else "STOP")
                return
            key = self.found.edges.get(edge)
            if key is not None and key == Key(pc, stack.height, stack.labels()):
                block.end = End(JUMP, (), [self.arc_to(key, stack)])
                return
            onward = self.call(pc, stack)
            if onward is None:
                block.end = End(NEVER)
                return
            target = onward.known

    def leave(self, block: DependencyBlock, stack: WordStack) -> None:
        stack.take(self.found.taken)
        words = [word for word, left in zip(stack.words, self.found.summary.left, strict=True) if left is None]
        block.end = End(LEAVE, tuple([self.lifter.number(word) for word in words]))

    def call(self, pc: int, stack: WordStack) -> StackWord | None:
        if pc == self.found.entry:
            callee, name, needs = self.found.summary, self.name, self.all_params()
        else:
            built = self.units.built.get(pc)
            if built is None:  # a condition that was certain when edges were followed is not any more
                raise RecoveryFailed("an edge that was not followed", pc)
            callee, name, needs = self.finder.functions[pc].summary, built.function.name, built.needs
        if self.lifter.is_main and callee.taken > len(stack.words):
            raise RecoveryFailed("a function takes more words than there are", pc)
        stack.reach(callee.taken)
        args = tuple([self.lifter.number(stack.words[-depth]) for depth in needs])
        call = self.builder.raw("CALLFN", args, self.unit.number_of(name))
        below = len(stack.words) - callee.taken
        onward = returned(callee, stack, self.lifter)
        if onward is None:
            return None
        for number, place in self.results(callee):
            stack.words[below + place] = StackWord(None, self.builder.raw("RESULT", (call,), number))
        return onward

    def results(self, callee: StackSummary) -> Iterable[tuple[int, int]]:
        """The numbers of a call's results, and their places among the words that it leaves."""
        return enumerate(place for place, left in enumerate(callee.left) if left is None)

    def all_params(self) -> list[int]:
        """The depths of all words that the function takes, except its return address."""
        summary = self.found.summary
        return [depth for depth in range(1, summary.taken + 1) if not summary.returns or depth != summary.place]

    # -- dead values --------------------------------------------------------------------------------------------------

    def drop_unused(self, function: Function) -> list[int]:
        """Removes dead instructions, PHIs and parameters; returns the depths of the parameters that are left."""
        needed = needed_values(function, lambda value: not traits_of(value).pure)
        drop_others(function, needed)
        if self.found.growth:  # recursive calls were built with all arguments, before it was known which are needed
            needed.update(self.params[depth - 1].value.id for depth in self.all_params())  # type: ignore[union-attr]
        function.entry.params = [param for param in function.params if param.id in needed]
        analyses.forget(function)
        values = [word.value.id if word.value is not None else -1 for word in self.params]
        kept = [depth for depth, number in enumerate(values, 1) if number in needed]
        if self.found.summary.returns and self.found.summary.place in kept:
            raise RecoveryFailed("a return address is used as a number", self.found.entry)
        return kept


class UnitBuilder:
    of_function = FunctionBuilder

    def __init__(self, finder: Finder, unit: Unit, lifter: Lifter) -> None:
        self.finder, self.unit, self.lifter = finder, unit, lifter
        self.built: dict[int, Built] = {}
        self.sources: dict[DependencyBlock, BasicBlock] = {}

    def run(self) -> None:
        for entry, found in self.finder.functions.items():
            self.built[entry] = self.of_function(self, found, name_of(entry)).run()
        if self.finder.main.states:
            self.lifter.is_main = True
            self.unit.functions[""] = self.of_function(self, self.finder.main, "").run().function
        for built in self.built.values():
            self.unit.functions[built.function.name] = built.function
