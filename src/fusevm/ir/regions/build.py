"""Functions in SSA form for regions: gas is exact, and another tier can continue from any point that may fail.

Blocks are split where the schedule's sections begin. Each charges its static gas on entry. An instruction that may fail
carries the state of the frame before it. There is one more terminator, EXIT: the words of the stack, to be written
back, and the pc at which the schedule continues. LEAVE has all words that a call leaves, in stack order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from fusevm.analysis.symbolic import actions_of, bounds_of
from fusevm.evm.bytecode import BasicBlock, Instruction, basic_blocks, jumpdests
from fusevm.evm.forks import Fork
from fusevm.ir.builder import Builder
from fusevm.ir.functions import LEAVE, End, Function, GraphBlock, Unit
from fusevm.ir.ranges import Range
from fusevm.ir.recovery.build import FunctionBuilder, UnitBuilder
from fusevm.ir.recovery.finder import Found, Key, returned, ways_on
from fusevm.ir.recovery.unit import ROUNDS, candidates
from fusevm.ir.recovery.walk import Reading, walk
from fusevm.ir.recovery.words import Word, WordStack
from fusevm.ir.regions.find import RegionFinder
from fusevm.ir.values import TRAITS, FrameState, Value

EXIT, FAIL = "EXIT", "FAIL"


@dataclass(slots=True, eq=False)
class RegionBlock(GraphBlock):
    pc: int = -1  # its place in the code; -1 if it only splits an edge
    state: FrameState | None = None  # the frame on entry


@dataclass(slots=True)
class Shape:
    """A function's entry, and its effect on the stack."""

    entry: int
    taken: int  # words of the entry stack that it may read
    rises: int  # the maximum height above the entry height, calls not counted
    returns: bool
    place: int  # the depth of the return address
    left: int  # words that replace those taken when it returns


@dataclass(slots=True)
class RegionUnit:
    unit: Unit
    shapes: dict[str, Shape] = field(default_factory=dict)
    entries: dict[int, str] = field(default_factory=dict)  # the functions that the schedule may enter, by pc
    ranges: dict[str, dict[int, Range]] = field(default_factory=dict)  # of the values of each function, after folding
    refused: dict[int, str] = field(default_factory=dict)  # executed blocks that are in no region, and why


class RegionReading(Reading):
    """Records the frame before every instruction that may fail."""

    __slots__ = ("ahead", "now", "taken")

    def start(self, block: BasicBlock, taken: int) -> int:
        """Starts a block; returns its static gas."""
        self.taken, self.ahead, ahead = taken, {}, 0
        for instruction in reversed(block.instructions):
            ahead += instruction.op.gas_at(self.fork) if instruction.op else 0
            self.ahead[instruction.pc] = ahead
        return ahead

    def before(self, instruction: Instruction, stack: WordStack) -> None:
        assert instruction.op is not None
        if not isinstance(self.builder, StateBuilder):
            return
        if instruction.op.ends or instruction.op.name == "JUMPI" or TRAITS[instruction.op.name].pure:
            self.builder.state = None
            return
        stack.reach(instruction.op.pops)
        self.builder.state = FrameState(instruction.pc, self.all_words(stack), self.ahead[instruction.pc])

    def all_words(self, stack: WordStack) -> tuple[Value, ...]:
        stack.take(self.taken)
        return tuple([self.number(word) for word in stack.words])


class StateBuilder(Builder):
    """Attaches the current frame state to every instruction that may fail."""

    state: FrameState | None = None

    def raw(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        value = super().raw(op, args, number)
        if not TRAITS[op].pure:
            value.state = self.state
        return value


class RegionUnitBuilder(UnitBuilder):
    finder: RegionFinder
    how: RegionReading

    def run(self) -> None:
        for entry, found in self.finder.functions.items():
            self.built[entry] = RegionFunctionBuilder(self, found, name_of(entry)).run()
        for built in self.built.values():
            self.unit.functions[built.function.name] = built.function


class RegionFunctionBuilder(FunctionBuilder):
    how: RegionReading

    def new_block(self) -> RegionBlock:
        self.count += 1
        return RegionBlock(self.count - 1)

    def write(self, key: Key) -> None:
        block, source = self.blocks[key], self.finder.blocks[key.pc]
        assert isinstance(block, RegionBlock)
        assert isinstance(self.finder, RegionFinder)
        self.begin(block)
        stack = self.entries[key].copy()
        block.pc = key.pc
        if key in self.finder.cold[self.found.entry]:
            self.how.taken = self.found.taken
            block.end = End(EXIT, self.how.all_words(stack), cases=(key.pc,))
            return
        block.gas = self.how.start(source, self.found.taken)
        block.state = FrameState(key.pc, self.how.all_words(stack), block.gas)
        leaving = walk(source, stack, self.how)
        ways = ways_on(source, leaving, stack)
        if len(ways) > 1:
            self.branch(key, leaving, ways)
        else:
            self.go(block, (key, ways[0].number), ways[0].target, ways[0].stack)

    def leave(self, block: GraphBlock, stack: WordStack) -> None:
        block.end = End(LEAVE, self.how.all_words(stack))

    def call(self, pc: int, stack: WordStack) -> Word | None:
        callee = self.finder.functions[pc].summary
        stack.reach(callee.taken)
        words = self.how.all_words(stack)
        args = words[::-1][: callee.taken]
        assert isinstance(self.builder, StateBuilder)
        self.builder.state = FrameState(pc, words)
        call = self.builder.raw("CALLFN", args, self.unit.number_of(name_of(pc)))
        below = len(stack.words) - callee.taken
        onward = returned(callee, stack, self.how)
        if onward is None:
            return None
        for place, left in enumerate(callee.left):
            if left is None:
                stack.words[below + place] = Word(None, self.builder.raw("RESULT", (call,), place))
        return onward

    def drop_unused(self, function: Function) -> list[int]:
        return list(range(1, self.found.taken + 1))


def name_of(entry: int) -> str:
    return f"f_{entry:x}"


def pieces_of(code: bytes, fork: Fork, cuts: Collection[int]) -> dict[int, BasicBlock]:
    """Basic blocks, split further at the cuts."""
    pieces: dict[int, BasicBlock] = {}
    for block in basic_blocks(code, fork):
        current: list[Instruction] = []
        for instruction in block.instructions:
            if current and instruction.pc in cuts:
                pieces[current[0].pc] = BasicBlock(current[0].pc, tuple(current))
                current = []
            current.append(instruction)
        pieces[current[0].pc] = BasicBlock(current[0].pc, tuple(current))
    return pieces


def bounds_by_block(code: bytes, fork: Fork) -> dict[int, tuple[int, int]]:
    """The words that each basic block needs, and how far the stack rises in it."""
    return {block.start: bounds_of(actions_of(block.instructions)) for block in basic_blocks(code, fork)}


def build_regions(
    code: bytes,
    fork: Fork,
    cuts: Collection[int],
    entries: Iterable[int],
    is_cold: Callable[[BasicBlock], bool],
) -> RegionUnit:
    """Builds the functions at these entries, and their callees."""
    pieces, dests = pieces_of(code, fork, cuts), jumpdests(code)
    entries = [pc for pc in entries if pc in pieces and not is_cold(pieces[pc])]
    finder, labels = _found(pieces, dests, fork, entries, is_cold, bounds_by_block(code, fork))
    unit = Unit(fork)
    how = RegionReading(fork, labels, {}, StateBuilder(), unit, moves=False)
    RegionUnitBuilder(finder, unit, how).run()
    region = RegionUnit(unit)
    for pc, found in finder.functions.items():
        region.shapes[name_of(pc)] = _shape(found)
    region.entries = {pc: name_of(pc) for pc in finder.functions}  # callees may be entered from the schedule, too
    return region


def _shape(found: Found) -> Shape:
    summary = found.summary
    return Shape(found.entry, found.taken, found.highest, summary.returns, summary.place, len(summary.left))


def finder_of(
    pieces: dict[int, BasicBlock], dests: frozenset[int], fork: Fork, is_cold: Callable[[BasicBlock], bool]
) -> RegionFinder:
    """A finder for exploration: it takes every PUSH of a jump target for a code address."""
    return RegionFinder(pieces, dests, Reading(fork, candidates(pieces, dests), {}, moves=False), is_cold, {})


def _found(
    pieces: dict[int, BasicBlock],
    dests: frozenset[int],
    fork: Fork,
    entries: list[int],
    is_cold: Callable[[BasicBlock], bool],
    bounds: dict[int, tuple[int, int]],
) -> tuple[RegionFinder, dict[int, int]]:
    labels = candidates(pieces, dests)
    for number in range(ROUNDS):
        finder = RegionFinder(pieces, dests, Reading(fork, labels, {}, moves=False), is_cold, bounds)
        for entry in entries:
            finder.function(entry)
        if finder.used >= labels.keys() or number == ROUNDS - 1:  # code does not move: a label is a number as well
            break
        labels = {pc: word for pc, word in labels.items() if pc in finder.used}
    return finder, labels
