"""Range analysis over loops, to a fixed point.

The fold engine makes one pass over a function, so it knows nothing about loop-carried words. Here the ranges of all
values are computed together, with what branches and memory accesses imply, starting from empty ranges. A range that
keeps growing is widened to the next of a few bounds, so that the analysis ends soon.
"""

from __future__ import annotations

from fusevm.ir import analyses
from fusevm.ir.functions import BRANCH, Function
from fusevm.ir.ranges import ANYTHING, TOP, Range, assumed, bits_of, range_of
from fusevm.ir.values import CONST, TRAITS, Value

BOUNDS = tuple([(1 << bits) - 1 for bits in (1, 8, 16, 32, 64, 128, 160, 255, 256)])
ROUNDS = 40
PATIENT = 3  # rounds before ranges are widened
MAX_CONDITIONS = 12
PAYABLE = (1 << 42) - 1  # bytes of memory: no gas of 64 bits pays for more (3w + w²/512, for w words)

Condition = tuple[Value, bool]
Reached = dict[int, Range]  # by the offset's id
REACH = "REACH"


class RangeFinder:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.order = analyses.order(function)
        self.ranges: dict[int, Range] = {}
        self.above = analyses.dominators(function).above
        self.conditions = self._conditions()
        self.reached, self.reached_after = self._reached()
        self.incoming: dict[int, list[tuple[Value, int, Condition | None]]] = {}
        for block in self.order:
            for number, arc in enumerate(block.end.arcs):
                implied = (block.end.args[0], number == 0) if block.end.op == BRANCH else None
                for param, arg in zip(arc.target.params, arc.args, strict=True):
                    self.incoming.setdefault(param.id, []).append((arg, block.start, implied))

    def _conditions(self) -> dict[int, tuple[Condition, ...]]:
        """The conditions known to hold, or not to, in each block: those of its dominator, and the branch to it."""
        found: dict[int, tuple[Condition, ...]] = {}
        for block, before in analyses.predecessors(self.function).items():
            known = found.get(self.above[block.start], ())
            if len(before) == 1 and before[0].end.op == BRANCH:
                source = before[0]
                known = (*known, (source.end.args[0], source.end.arcs[0].target is block))
            found[block.start] = known[-MAX_CONDITIONS:]
        return found

    def _reached(self) -> tuple[dict[int, Reached], dict[int, Reached]]:
        """The offsets that memory was accessed at before each block, and before its end: these could be paid for."""
        before: dict[int, Reached] = {}
        after: dict[int, Reached] = {}
        for block in self.order:
            before[block.start] = after.get(self.above[block.start], {})
            own = {id_: range_ for value in block.instructions for id_, range_ in _paid(value)}
            after[block.start] = before[block.start] | own if own else before[block.start]
        return before, after

    def run(self) -> dict[int, Range]:
        for param in self.function.entry.params:
            self.ranges[param.id] = ANYTHING
        for turn in range(ROUNDS):
            if not self._round(turn):
                return self.ranges
        return {}

    def _round(self, turn: int) -> bool:
        changed = False
        for block in self.order:
            for param in block.params:
                if param.id in self.incoming:
                    changed |= self._put(param, self._joined(param), turn)
            reached = self.reached[block.start]
            for value in block.instructions:
                changed |= self._put(value, self._made(value, block.start, reached), turn)
                if value.op == REACH:
                    reached = reached | dict(_paid(value))
        return changed

    def _joined(self, param: Value) -> Range | None:
        whole: Range | None = None
        for arg, start, implied in self.incoming[param.id]:
            found = self.at(arg, start, self.reached_after[start], implied)
            if found is not None:
                whole = found if whole is None else whole.with_(found)
        return whole

    def _made(self, value: Value, start: int, reached: Reached) -> Range | None:
        if TRAITS[value.op].opcode is None:
            return ANYTHING
        operands = [self.at(arg, start, reached) for arg in value.args]
        known = [each for each in operands if each is not None]
        if len(known) < len(operands):
            return None  # an operand was not reached yet
        found = range_of(value.op, known)
        constants = [arg.number if arg.op == CONST else None for arg in value.args]
        bits = bits_of(value.op, [(1 << each.high.bit_length()) - 1 for each in known], constants, found.high)
        return found.within(Range(0, bits))

    def at(self, value: Value, start: int, reached: Reached, implied: Condition | None = None) -> Range | None:
        """The range of a value in a block, after these accesses, or on an edge out of it."""
        if value.op == CONST:
            return Range(value.number, value.number)
        found = self.ranges.get(value.id)
        if found is None or found.is_one_word:
            return found
        if value.id in reached:
            found = found.within(reached[value.id])
        for condition, holds in (*self.conditions[start], *((implied,) if implied else ())):
            found = self._told(value, found, condition, holds)
        return found

    def _told(self, value: Value, found: Range, condition: Value, holds: bool) -> Range:
        while (
            condition.op == "ISZERO" and condition is not value and condition.args[0].op in ("LT", "GT", "EQ", "ISZERO")
        ):
            condition, holds = condition.args[0], not holds
        if condition is value:
            return found.within(Range(1, TOP) if holds else Range(0, 0))
        if condition.op in ("LT", "GT", "EQ", "ISZERO") and value in condition.args:
            operands = [self._plain(arg) for arg in condition.args]
            place = condition.args.index(value)
            operands[place] = found
            return found.within(assumed(condition.op, operands, holds)[place])
        return found

    def _plain(self, value: Value) -> Range:
        return Range(value.number, value.number) if value.op == CONST else self.ranges.get(value.id, ANYTHING)

    def _put(self, value: Value, found: Range | None, turn: int) -> bool:
        if found is None:
            return False
        before = self.ranges.get(value.id)
        if before is not None:
            found = found.with_(before)  # only ever wider, so that it ends
            if found == before:
                return False
            if turn >= PATIENT:
                low = found.low if found.low == before.low else 0
                high = found.high if found.high == before.high else next(each for each in BOUNDS if each >= found.high)
                found = Range(low, high)
        self.ranges[value.id] = found
        return True


def _paid(value: Value) -> list[tuple[int, Range]]:
    """What an access that did not fail tells of its offset."""
    if value.op != REACH or value.args[0].op == CONST:
        return []
    offset, size = value.args
    return [(offset.id, Range(0, PAYABLE - size.number))] if size.op == CONST and 0 < size.number <= PAYABLE else []
