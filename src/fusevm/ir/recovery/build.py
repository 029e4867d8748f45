"""Builds functions in SSA form from the finder's result: stack words become values, with PHIs at joins."""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.evm.bytecode import BasicBlock
from fusevm.ir.builder import Builder
from fusevm.ir.functions import BRANCH, JUMP, LEAVE, NEVER, Arc, End, Function, GraphBlock, Unit
from fusevm.ir.recovery.finder import Edge, Finder, Found, Key, WayOn, returned, ways_on
from fusevm.ir.recovery.walk import Leaving, Reading, walk
from fusevm.ir.recovery.words import Known, Label, NotUnderstood, Number, Param, Shifted, Word, WordStack
from fusevm.ir.values import PHI, Value, traits_of


@dataclass(slots=True)
class Built:
    function: Function
    needs: list[int]  # the depths of the words it takes as arguments


class UnitBuilder:
    def __init__(self, finder: Finder, unit: Unit, how: Reading) -> None:
        self.finder, self.unit, self.how = finder, unit, how
        self.built: dict[int, Built] = {}
        self.sources: dict[GraphBlock, BasicBlock] = {}

    def run(self) -> None:
        for entry, found in self.finder.functions.items():
            self.how.is_main = False
            self.built[entry] = FunctionBuilder(self, found, f"f_{entry:x}").run()
        self.how.is_main = True
        main = FunctionBuilder(self, self.finder.main, "").run()
        self.unit.functions[""] = main.function
        for built in self.built.values():
            self.unit.functions[built.function.name] = built.function


class FunctionBuilder:
    def __init__(self, units: UnitBuilder, found: Found, name: str) -> None:
        self.units, self.found, self.name, self.how = units, found, name, units.how
        self.finder, self.unit = units.finder, units.unit
        self.builder: Builder = self.how.builder
        self.count = 0
        self.blocks: dict[Key, GraphBlock] = {}
        self.entries: dict[Key, WordStack] = {}
        self.phis: dict[Key, list[int]] = {}  # the stack positions that are block parameters
        self.params: list[Word] = []
        self.work: list[Key] = []
        self.ways = self._ways_into()

    def _ways_into(self) -> dict[Key, int]:
        count = dict.fromkeys(self.found.states, 0)
        for target in self.found.edges.values():
            count[target] += 1
        return count

    def run(self) -> Built:
        found = self.found
        entry = self.new_block()
        self.begin(entry)
        for depth in range(1, found.taken + 1):
            self.params.append(Word(Param(depth), self.param(entry)))
        stack = WordStack(params=self.params)
        stack.take(found.taken)
        first = Key(found.entry, 0, ())
        self.ways[first] += 1
        entry.end = End(JUMP, (), [self.arc_to(first, stack)])
        while self.work:
            self.write(self.work.pop())
        function = Function(
            self.name, entry, sum(each is None for each in found.summary.left), found.summary.returns or not self.name
        )
        return Built(function, self.drop_unused(function))

    # -- blocks -------------------------------------------------------------------------------------------------------

    def new_block(self) -> GraphBlock:
        self.count += 1
        return GraphBlock(self.count - 1)

    def begin(self, block: GraphBlock) -> None:
        self.builder.block = block  # type: ignore[assignment]

    def param(self, block: GraphBlock) -> Value:
        value = self.builder.make(PHI, (), len(block.params))
        value.block = block.start
        block.params.append(value)
        return value

    def arc_to(self, key: Key, stack: WordStack) -> Arc:
        stack.take(self.found.taken)
        if key not in self.blocks:
            self.open(key, stack)
        args = [self.how.number(stack.words[place]) for place in self.phis[key]]
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
        words: list[Word] = []
        for place, word in enumerate(seen.words):
            if isinstance(word.known, Label | Number | Shifted):
                words.append(word)
            elif isinstance(word.known, Param):
                words.append(self.params[word.known.depth - 1])
            elif self.ways[key] == 1:
                words.append(Word(None, self.how.number(stack.words[place])))
            else:
                self.phis[key].append(place)
                words.append(Word(None, self.param(block)))
        self.entries[key] = WordStack(self.found.taken, words, self.params)

    def write(self, key: Key) -> None:
        block, source = self.blocks[key], self.finder.blocks[key.pc]
        self.units.sources[block] = source
        self.begin(block)
        self.builder.where = (source.start, source.end, source.start)
        stack = self.entries[key].copy()
        leaving = walk(source, stack, self.how)
        ways = ways_on(source, leaving, stack)
        if len(ways) > 1:
            self.branch(key, leaving, ways)
        elif ways:
            self.go(block, (key, ways[0].number), ways[0].target, ways[0].stack)
        else:
            block.end = End(leaving.op, tuple([self.how.number(arg) for arg in leaving.args]))
        block.end.where = self.builder.where

    def branch(self, key: Key, leaving: Leaving, ways: list[WayOn]) -> None:
        block = self.blocks[key]
        condition = self.how.number(leaving.args[0])
        sides = [self.new_block(), self.new_block()]
        block.end = End(BRANCH, (condition,), [Arc(side) for side in sides])
        for side, way in zip(sides, ways, strict=True):
            self.begin(side)
            self.go(side, (key, way.number), way.target, way.stack)
            side.end.where = self.builder.where

    def go(self, block: GraphBlock, edge: Edge, target: Known, stack: WordStack) -> None:
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

    def leave(self, block: GraphBlock, stack: WordStack) -> None:
        stack.take(self.found.taken)
        words = [word for word, left in zip(stack.words, self.found.summary.left, strict=True) if left is None]
        block.end = End(LEAVE, tuple([self.how.number(word) for word in words]))

    def call(self, pc: int, stack: WordStack) -> Word | None:
        if pc == self.found.entry:
            callee, name, needs = self.found.summary, self.name, self.all_params()
        else:
            built = self.units.built.get(pc)
            if built is None:  # a condition that was certain when ways were looked for is not any more
                raise NotUnderstood("a way that was not looked into", pc)
            callee, name, needs = self.finder.functions[pc].summary, built.function.name, built.needs
        if self.how.is_main and callee.taken > len(stack.words):
            raise NotUnderstood("a function takes more words than there are", pc)
        stack.reach(callee.taken)
        args = tuple([self.how.number(stack.words[-depth]) for depth in needs])
        call = self.builder.raw("CALLFN", args, self.unit.number_of(name))
        below = len(stack.words) - callee.taken
        onward = returned(callee, stack, self.how)
        if onward is None:
            return None
        number = 0
        for place, left in enumerate(callee.left):
            if left is None:
                stack.words[below + place] = Word(None, self.builder.raw("RESULT", (call,), number))
                number += 1
        return onward

    def all_params(self) -> list[int]:
        """The depths of all words that the function takes, except its return address."""
        summary = self.found.summary
        return [depth for depth in range(1, summary.taken + 1) if not summary.returns or depth != summary.place]

    # -- dead values --------------------------------------------------------------------------------------------------

    def drop_unused(self, function: Function) -> list[int]:
        """Removes dead instructions, PHIs and parameters; returns the depths of the parameters that are left."""
        blocks = function.blocks()
        needed = needed_values(blocks)
        for block in blocks:
            block.instructions = [
                value for value in block.instructions if value.id in needed or not traits_of(value).pure
            ]
            for arc in block.end.arcs:
                params = arc.target.params
                arc.args = [arg for param, arg in zip(params, arc.args, strict=True) if param.id in needed]
        if self.found.growth:  # recursive calls were built with all arguments, before it was known which are needed
            needed.update(self.params[depth - 1].value.id for depth in self.all_params())  # type: ignore[union-attr]
        for block in blocks:
            block.params = [param for param in block.params if param.id in needed]
        values = [word.value.id if word.value is not None else -1 for word in self.params]
        kept = [depth for depth, number in enumerate(values, 1) if number in needed]
        if self.found.summary.returns and self.found.summary.place in kept:
            raise NotUnderstood("a return address is used as a number", self.found.entry)
        return kept


def needed_values(blocks: list[GraphBlock]) -> set[int]:
    incoming: dict[int, list[Value]] = {}
    work: list[Value] = []
    for block in blocks:
        work += block.end.args
        for value in block.instructions:
            if not traits_of(value).pure:
                work += value.args
        for arc in block.end.arcs:
            for param, arg in zip(arc.target.params, arc.args, strict=True):
                incoming.setdefault(param.id, []).append(arg)
    needed: set[int] = set()
    while work:
        value = work.pop()
        if value.id >= 0 and value.id not in needed:
            needed.add(value.id)
            work += value.args
            work += incoming.get(value.id, ())
    return needed
