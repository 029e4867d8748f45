"""A folder with value analysis: ranges of words, their known-zero bits, and which of two words is the smaller.

Some facts hold wherever a value is used; others only in blocks dominated by a branch that implies them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from fusevm.evm.forks import Fork
from fusevm.ir.block import Mode
from fusevm.ir.builder import NeverReached
from fusevm.ir.fold.engine import Folder
from fusevm.ir.fold.recorder import Recorder
from fusevm.ir.fold.stages import Stage
from fusevm.ir.ranges import ANYTHING, SIZE, TOP, Range, assumed, bits_of, decided, range_of
from fusevm.ir.values import CONST, READS_MEMORY, TRAITS, WRITES_MEMORY, Value

K = TypeVar("K")
V = TypeVar("V")
LESS = {"LT": (0, 1), "GT": (1, 0)}  # operand indices of the smaller word and the greater one
_MOST_FACTS = 256
_DEEP = 6  # how deep an assumption is propagated into the operands of a condition
_BITWISE = ("AND", "SHL", "SHR", "MUL", "SIGNEXTEND")


@dataclass(slots=True)
class Knowledge:
    """Facts that hold at one program point and in the blocks it dominates, in addition to the facts per value."""

    equal: dict[int, Value] = field(default_factory=dict)  # value to its replacement here
    ranges: dict[int, Range] = field(default_factory=dict)
    less: dict[tuple[int, int], bool] = field(default_factory=dict)  # True: the first is less; False: less or equal

    def copy(self) -> Knowledge:
        return Knowledge(_newest(self.equal), _newest(self.ranges), _newest(self.less))


def _newest(facts: dict[K, V]) -> dict[K, V]:
    """A copy, without the oldest facts if there are too many."""
    return dict(facts) if len(facts) <= _MOST_FACTS else dict(list(facts.items())[-_MOST_FACTS // 2 :])


class KnowingFolder(Folder):
    def __init__(
        self, fork: Fork, mode: Mode, stages: Stage, *, keeps_growth: bool, recorder: Recorder | None = None
    ) -> None:
        super().__init__(fork, mode, stages, keeps_growth=keeps_growth)
        self.recorder = recorder
        self.knowledge = Knowledge()
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
                    self.knowledge.ranges[place.id] = known.within(SIZE)
                    value.stays = self.mode is Mode.OPTIMISATION

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
                    self.knowledge.less[part.id, value.id] = other.low > 0
        bits = self.bits_of(op, args, found.high)
        if bits != TOP:
            self.bits_at[value.id] = bits
        return value

    def range(self, value: Value, knowledge: Knowledge | None = None) -> Range:
        if value.op == CONST:
            return Range(value.number, value.number)
        always = self.range_at.get(value.id, ANYTHING)
        here = (knowledge or self.knowledge).ranges.get(value.id)
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

    # -- what is decided --------------------------------------------------------------------------------------------

    def fold(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]]:
        for _ in range(8):
            result = super().fold(op, args)
            if isinstance(result, Value):
                return self.knowledge.equal.get(result.id, result)
            op, args = result
            known = self.by_knowledge(op, args)
            if known is None:
                break
            if self.recorder is not None:
                self.recorder.changed(self.where, "known", op, args, known)
            if isinstance(known, Value):
                return known
            op, args = known
        return op, args

    def by_knowledge(self, op: str, args: tuple[Value, ...]) -> Value | tuple[str, tuple[Value, ...]] | None:
        """Simplifies an instruction by ranges, bits and known inequalities."""
        ranges = [self.range(arg) for arg in args]
        verdict = decided(op, ranges)
        if verdict is None:
            verdict = self.by_order(op, args)
        if verdict is not None:
            return self.const(int(verdict))
        if op in ("SLT", "SGT") and all(each.high <= TOP >> 1 for each in ranges):
            return ("LT" if op == "SLT" else "GT"), args
        if op in _BITWISE and not self.bits_of(op, args):
            return self.const(0)
        if op == "EQ" and any(args[one].op == CONST and args[one].number & ~self.bits(args[1 - one]) for one in (0, 1)):
            return self.const(0)
        if op == "AND":
            for one, other in ((0, 1), (1, 0)):
                if args[other].op == CONST and not self.bits(args[one]) & ~args[other].number:
                    return args[one]
        if op in ("LT", "GT"):
            return self.without_offset(op, args)
        if op == "ISZERO" and args[0].op == "ISZERO" and self.range(args[0].args[0]).high <= 1:
            return args[0].args[0]
        if op == "SIGNEXTEND" and args[0].op == CONST and range_of(op, ranges) == ranges[1] != ANYTHING:
            return args[1]
        if op == "MOD" and ranges[0].high < ranges[1].low:
            return args[0]
        if op == "DIV" and ranges[0].high < ranges[1].low:
            return self.const(0)
        return None

    def without_offset(self, op: str, args: tuple[Value, ...]) -> tuple[str, tuple[Value, ...]] | None:
        """x - k < n → x < n + k, where neither wraps."""
        for one, other in ((0, 1), (1, 0)):
            sum_, bound = args[one], args[other]
            if sum_.op in ("ADD", "SUB") and bound.op == CONST and sum_.args[1].op == CONST:
                number = sum_.args[1].number
                taken = TOP + 1 - number if sum_.op == "ADD" else number
                if self.range(sum_.args[0]).low >= taken and bound.number + taken <= TOP:
                    moved = [sum_.args[0], self.const(bound.number + taken)]
                    return op, (moved[one], moved[other])
        return None

    def is_less(self, one: Value, other: Value) -> bool | None:
        """True: one < other. False: only one <= other is known."""
        return self.knowledge.less.get((one.id, other.id)) if CONST not in (one.op, other.op) else None

    def by_order(self, op: str, args: tuple[Value, ...]) -> bool | None:
        if op == "EQ":
            less = self.is_less(args[0], args[1]) or self.is_less(args[1], args[0])
            return False if less else None
        if op not in LESS:
            return None
        one, other = (args[place] for place in LESS[op])
        if self.is_less(one, other):
            return True
        return False if self.is_less(other, one) is not None else None

    # -- facts implied by conditions --------------------------------------------------------------------------------

    def assume(self, condition: Value, holds: bool, depth: int = _DEEP) -> None:
        """Records the facts that follow from the condition being not zero, or zero."""
        if condition.op == CONST or not depth:
            return
        knowledge = self.knowledge
        whole = self.range(condition)
        if not holds:
            knowledge.equal[condition.id] = self.const(0)
        elif whole.high == 1:
            knowledge.equal[condition.id] = self.const(1)
        else:
            knowledge.ranges[condition.id] = whole.within(Range(1, TOP))
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
                self.knowledge.less[one.id, other.id] = True
            else:
                self.knowledge.less.setdefault((other.id, one.id), False)

    def narrow(self, value: Value, found: Range) -> None:
        if value.op == CONST or found == self.range(value):
            return
        self.knowledge.ranges[value.id] = found
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
            self.knowledge.equal[one.id] = other
            if one.op == "ISZERO":
                self.assume(one.args[0], other.number == 0)
            return
        both = self.range(one).within(self.range(other))
        self.knowledge.ranges[one.id] = self.knowledge.ranges[other.id] = both
