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
from fusevm.evm.opcodes import opcodes_of
from fusevm.ir.builder import Builder
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import LEAVE, DependencyBlock, End, Function, Unit
from fusevm.ir.ranges import Range
from fusevm.ir.recovery.build import FunctionBuilder, UnitBuilder, name_of
from fusevm.ir.recovery.finder import FoundFunction, Key, StackSummary
from fusevm.ir.recovery.unit import ROUNDS, candidates
from fusevm.ir.recovery.walk import Lifter
from fusevm.ir.recovery.words import StackWord, WordStack
from fusevm.ir.regions.find import RegionFinder
from fusevm.ir.values import TRAITS, FrameState, Value

EXIT, FAIL = "EXIT", "FAIL"


@dataclass(slots=True)
class FunctionShape:
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
    shapes: dict[str, FunctionShape] = field(default_factory=dict)
    entries: dict[int, str] = field(default_factory=dict)  # the functions that the schedule may enter, by pc
    ranges: dict[str, dict[int, Range]] = field(default_factory=dict)  # of the values of each function, after folding
    stats: Stats = field(default_factory=Stats)  # of folding
    refused: dict[int, str] = field(default_factory=dict)  # executed blocks that are in no region, and why


class RegionLifter(Lifter):
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


class RegionFunctionBuilder(FunctionBuilder):
    lifter: RegionLifter

    def enter(self, block: DependencyBlock, key: Key, source: BasicBlock, stack: WordStack) -> bool:
        assert isinstance(self.finder, RegionFinder)
        block.pc = key.pc
        if key in self.finder.cold[self.found.entry]:
            self.lifter.taken = self.found.taken
            block.end = End(EXIT, self.lifter.all_words(stack), cases=(key.pc,))
            return False
        block.gas = self.lifter.start(source, self.found.taken)
        block.state = FrameState(key.pc, self.lifter.all_words(stack), block.gas)
        return True

    def leave(self, block: DependencyBlock, stack: WordStack) -> None:
        block.end = End(LEAVE, self.lifter.all_words(stack))

    def call(self, pc: int, stack: WordStack) -> StackWord | None:
        assert isinstance(self.builder, StateBuilder)
        stack.reach(self.finder.functions[pc].summary.taken)
        self.builder.state = FrameState(pc, self.lifter.all_words(stack))
        return super().call(pc, stack)

    def results(self, callee: StackSummary) -> Iterable[tuple[int, int]]:
        """They are numbered by their places: all words that a call leaves are on the stack in memory."""
        return [(place, place) for place, left in enumerate(callee.left) if left is None]

    def drop_unused(self, function: Function) -> list[int]:
        return list(range(1, self.found.taken + 1))


class RegionUnitBuilder(UnitBuilder):
    of_function = RegionFunctionBuilder


def outside(region: RegionUnit, code: bytes, fork: Fork) -> list[BasicBlock]:
    """The basic blocks that are in no function, or from the middle of which one is left."""
    inside: set[int] = set()
    left: set[int] = set()
    for function in region.unit.functions.values():
        for block in function.blocks():
            if block.end.op == EXIT:
                left.add(block.end.cases[0])
            else:
                inside.add(block.pc)
    return [each for each in basic_blocks(code, fork) if each.start not in inside or _within(each, left)]


def _within(block: BasicBlock, pcs: Collection[int]) -> bool:
    return any(block.start < pc < block.end for pc in pcs)


def pieces_of(code: bytes, fork: Fork, cuts: Collection[int]) -> dict[int, BasicBlock]:
    """Basic blocks, split further at the cuts, of which one may be the end of the code."""
    pieces: dict[int, BasicBlock] = {}
    for block in basic_blocks(code, fork):
        current: list[Instruction] = []
        for instruction in block.instructions:
            if current and instruction.pc in cuts:
                pieces[current[0].pc] = BasicBlock(current[0].pc, tuple(current))
                current = []
            current.append(instruction)
        pieces[current[0].pc] = BasicBlock(current[0].pc, tuple(current))
    end = len(code)
    if end in cuts:  # control may fall off the code, which is a STOP
        pieces[end] = BasicBlock(end, (Instruction(end, 0, opcodes_of(fork)[0], None, 0),))
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
    lifter = RegionLifter(fork, labels, {}, StateBuilder(), unit, moves=False)
    RegionUnitBuilder(finder, unit, lifter).run()
    region = RegionUnit(unit)
    for pc, found in finder.functions.items():
        region.shapes[name_of(pc)] = _shape(found)
    region.entries = {pc: name_of(pc) for pc in finder.functions}  # callees may be entered from the schedule, too
    return region


def _shape(found: FoundFunction) -> FunctionShape:
    summary = found.summary
    return FunctionShape(found.entry, found.taken, found.highest, summary.returns, summary.place, len(summary.left))


def finder_of(
    pieces: dict[int, BasicBlock], dests: frozenset[int], fork: Fork, is_cold: Callable[[BasicBlock], bool]
) -> RegionFinder:
    """A finder for exploration: it takes every PUSH of a jump target for a code address."""
    return RegionFinder(pieces, dests, Lifter(fork, candidates(pieces, dests), {}, moves=False), is_cold, {})


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
        finder = RegionFinder(pieces, dests, Lifter(fork, labels, {}, moves=False), is_cold, bounds)
        for entry in entries:
            finder.function(entry)
        if finder.used >= labels.keys() or number == ROUNDS - 1:  # code does not move: a label is a number as well
            break
        labels = {pc: word for pc, word in labels.items() if pc in finder.used}
    return finder, labels
