"""A folder with value analysis: ranges of words, their known-zero bits, and which of two words is the smaller.

Some facts hold wherever a value is used; others only in blocks dominated by a branch that implies them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from fusevm.evm.forks import Fork
from fusevm.ir.builder import NeverReached
from fusevm.ir.fold.compiled import range_table
from fusevm.ir.fold.engine import Folder
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.fold.stages import Mode, Stage
from fusevm.ir.ranges import ANYTHING, SIZE, TOP, Range, assumed, bits_of, range_of
from fusevm.ir.values import CONST, READS_MEMORY, TRAITS, WRITES_MEMORY, Value

K = TypeVar("K")
V = TypeVar("V")
LESS = {"LT": (0, 1), "GT": (1, 0)}  # operand indices of the smaller word and the greater one
_MAX_FACTS = 256
_DEEP = 6  # how deep an assumption is propagated into the operands of a condition


@dataclass(slots=True)
class FoldFacts:
    """Facts that hold at one program point and in the blocks it dominates, in addition to the facts per value."""

    equal: dict[int, Value] = field(default_factory=dict)  # value to its replacement here
    ranges: dict[int, Range] = field(default_factory=dict)
    less: dict[tuple[int, int], bool] = field(default_factory=dict)  # True: the first is less; False: less or equal

    def copy(self) -> FoldFacts:
        return FoldFacts(_newest(self.equal), _newest(self.ranges), _newest(self.less))


def _newest(facts: dict[K, V]) -> dict[K, V]:
    """A copy, without the oldest facts if there are too many."""
    return dict(facts) if len(facts) <= _MAX_FACTS else dict(list(facts.items())[-_MAX_FACTS // 2 :])


class RangeFolder(Folder):
    def __init__(
        self, fork: Fork, mode: Mode, stages: Stage, *, keeps_growth: bool, recorder: FoldRecorder | None = None
    ) -> None:
        super().__init__(fork, mode, stages, keeps_growth=keeps_growth)
        self.recorder = recorder
        self.facts = FoldFacts()
        self.range_rules = range_table() if Stage.RANGES in stages else {}
        self.range_at: dict[int, Range] = {}  # of every value, valid at all its uses
        self.bits_at: dict[int, int] = {}

    def note_reach(self, value: Value) -> None:
        """After a memory access, its offset is known to be one that gas can pay for.

        So the access has to stay. In execution mode it need not, since the check of its range does.
        """
        for offset, length in READS_MEMORY.get(value.op, ()) + WRITES_MEMORY.get(value.op, ()):
            place = value.args[offset]
            if place.op != CONST and (length < 0 or self.range(value.args[length]).low > 0):
                known = self.range(place)
                if known.high > SIZE.high:
                    self.facts.ranges[place.id] = known.within(SIZE)
                    value.keep = self.mode is Mode.OPTIMISATION

    def emit(self, op: str, args: tuple[Value, ...] = (), pc: int = 0) -> Value | None:
        """An access that no gas can pay for ends the block.

        It must not be dropped as dead: checks of its offset may have been dropped because of it, when the offset was
        not a literal yet.
        """
        if self.mode is Mode.OPTIMISATION:
            for offset, length in READS_MEMORY.get(op, ()) + WRITES_MEMORY.get(op, ()):
                if self.range(args[offset]).low > SIZE.high and (length < 0 or self.range(args[length]).low > 0):
                    raise NeverReached
        return super().emit(op, args, pc)

    def raw(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        value = super().raw(op, args, number)
        ranges = [self.range(arg) for arg in args]
        found = range_of(op, ranges) if TRAITS[op].opcode is not None else ANYTHING
        if op == "SUB" and self.is_less(args[1], args[0]) is not None:
            found = found.within(Range(0, ranges[0].high))
        if found != ANYTHING:
            self.range_at[value.id] = found
        if op == "ADD" and ranges[0].high + ranges[1].high <= TOP:  # a sum that cannot wrap is not less than its parts
            for part, other in ((args[0], ranges[1]), (args[1], ranges[0])):
                if part.op != CONST:
                    self.facts.less[part.id, value.id] = other.low > 0
        bits = self.bits_of(op, args, found.high)
        if bits != TOP:
            self.bits_at[value.id] = bits
        return value

    def range(self, value: Value, facts: FoldFacts | None = None) -> Range:
        if value.op == CONST:
            return Range(value.number, value.number)
        always = self.range_at.get(value.id, ANYTHING)
        here = (facts or self.facts).ranges.get(value.id)
        return always if here is None else here.within(always)

    def bits(self, value: Value) -> int:
        """The bits that may be set."""
        if value.op == CONST:
            return value.number
        high = self.range(value).high
        return self.bits_at.get(value.id, TOP) & (1 << high.bit_length()) - 1

    def bits_of(self, op: str, args: tuple[Value, ...], high: int = TOP) -> int:
        constants = [arg.number if arg.op == CONST else None for arg in args]
        return bits_of(op, [self.bits(arg) for arg in args], constants, high)

    # -- FOLD by facts ----------------------------------------------------------------------------------------------

    def fold(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]]:
        result = super().fold(op, args)
        return self.facts.equal.get(result.id, result) if isinstance(result, Value) else result

    def match(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]] | None:
        return super().match(op, args) or self.fold_by_ranges(op, args)

    def fold_by_ranges(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]] | None:
        """The rules with conditions on ranges, bits and known inequalities."""
        for matcher in self.range_rules.get(op, ()):
            found = matcher.match(self, *args)
            if found is not None:
                return self.rewritten(op, args, found, "known")
        return None

    def is_less(self, one: Value, other: Value) -> bool | None:
        """True: one < other. False: only one <= other is known."""
        return self.facts.less.get((one.id, other.id)) if CONST not in (one.op, other.op) else None

    # -- facts implied by conditions --------------------------------------------------------------------------------

    def assume(self, condition: Value, holds: bool, depth: int = _DEEP) -> None:
        """Records the facts that follow from the condition being not zero, or zero."""
        if condition.op == CONST or not depth:
            return
        facts = self.facts
        whole = self.range(condition)
        if not holds:
            facts.equal[condition.id] = self.const(0)
        elif whole.high == 1:
            facts.equal[condition.id] = self.const(1)
        else:
            facts.ranges[condition.id] = whole.within(Range(1, TOP))
        op, args = condition.op, condition.args
        if op == "ISZERO":
            self.assume(args[0], not holds, depth - 1)
        elif (op == "AND" and holds) or (op == "OR" and not holds):
            for arg in args:
                self.assume(arg, holds, depth - 1)
        elif (op == "EQ" and holds) or (op in ("SUB", "XOR") and not holds):
            self.assume_equal(args[0], args[1])
        elif op in ("LT", "GT", "SLT", "SGT", "EQ"):
            self.assume_ranges(op, args, holds)

    def assume_ranges(self, op: str, args: tuple[Value, ...], holds: bool) -> None:
        for arg, found in zip(args, assumed(op, [self.range(arg) for arg in args], holds), strict=True):
            self.narrow(arg, found)
        if op in LESS and CONST not in (args[0].op, args[1].op):
            one, other = (args[place] for place in LESS[op])
            if holds:
                self.facts.less[one.id, other.id] = True
            else:
                self.facts.less.setdefault((other.id, one.id), False)

    def narrow(self, value: Value, found: Range) -> None:
        if value.op == CONST or found == self.range(value):
            return
        self.facts.ranges[value.id] = found
        if value.op == "ADD" and value.args[1].op == CONST:  # this narrows the other summand as well
            offset, base = value.args[1].number, value.args[0]
            before = self.range(base)
            if before.high + offset <= TOP and found.low >= offset:
                self.narrow(base, before.within(Range(found.low - offset, found.high - offset)))

    def assume_equal(self, one: Value, other: Value) -> None:
        if one.op == CONST:
            one, other = other, one
        if one.op == CONST:
            return
        if other.op == CONST:
            self.facts.equal[one.id] = other
            if one.op == "ISZERO":
                self.assume(one.args[0], other.number == 0)
            return
        both = self.range(one).within(self.range(other))
        self.facts.ranges[one.id] = self.facts.ranges[other.id] = both
