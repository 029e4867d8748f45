"""Folding the functions of regions: in execution mode, so that gas and memory stay exact at every way out."""

from __future__ import annotations

from typing import cast

from fusevm.ir.block import Mode
from fusevm.ir.fold.functions import FunctionFolder, ReachedLate, Summary, summaries
from fusevm.ir.fold.stages import Stage
from fusevm.ir.functions import End, Function, GraphBlock, Unit
from fusevm.ir.ranges import ANYTHING, Range
from fusevm.ir.regions.build import EXIT, FAIL, RegionBlock, RegionUnit
from fusevm.ir.regions.ranges import RangeFinder
from fusevm.ir.values import PHI, TRAITS, FrameState, Value

# Whoever leaves the region must find memory and storage as they should be: no store is ever dropped.
STAGES = Stage.FOLD | Stage.CSE | Stage.FWD
# What is paid for apart: growth by a guard, the rest with the block's static gas. Others are charged where they are done.
PREPAID = frozenset(("MLOAD", "MSTORE", "MSTORE8", "KECCAK256"))


class RegionFolder(FunctionFolder):
    def __init__(
        self,
        unit: Unit,
        function: Function,
        effects: dict[str, Summary],
        reached: frozenset[int] = frozenset(),
        known: dict[int, Range] | None = None,
    ) -> None:
        super().__init__(unit, function, effects, True, reached, Mode.EXECUTION, STAGES)
        self.foreknown = known or {}  # ranges of parameters
        self.result = function
        self.state: FrameState | None = None
        self.prepaid = 0  # gas of the block's instructions so far that was added to its static gas

    def block_of(self, block: GraphBlock) -> GraphBlock:
        if block.start not in self.made:
            self.made[block.start] = RegionBlock(block.start, pc=cast(RegionBlock, block).pc)
        return self.made[block.start]

    def enter_block(self, block: GraphBlock, made: GraphBlock) -> None:
        super().enter_block(block, made)
        assert isinstance(block, RegionBlock)
        assert isinstance(made, RegionBlock)
        for param in block.params:
            found, value = self.foreknown.get(param.id), self.values[param.id]
            if found is not None and value.op == PHI and value.block == made.start:
                self.range_at[value.id] = found.within(self.range_at.get(value.id, ANYTHING))
        made.state = self.mapped(block.state)
        made.gas, self.prepaid = block.gas, 0

    def charge(self, gas: int) -> None:
        super().charge(gas)
        self.prepaid += gas

    def fold_block(self, block: GraphBlock) -> None:
        super().fold_block(block)
        made = self.made[block.start]
        for value in made.instructions:
            if value.state is not None:  # all that is prepaid from there on was taken as the block began
                value.state = value.state._replace(gas=value.state.gas + self.prepaid)
        if made.end.op == "INVALID":  # an access that no gas can pay for
            assert self.state is not None
            made.end = End(FAIL, self.state.words, cases=(self.state.pc, self.state.gas + self.prepaid))

    def mapped(self, state: FrameState | None) -> FrameState | None:
        """The state by the new values, its gas less what has been prepaid before it."""
        if state is None:
            return None
        return FrameState(state.pc, tuple([self.new(word) for word in state.words]), state.gas - self.prepaid)

    def again(self, value: Value) -> Value | None:
        if value.state is not None:
            self.state = self.mapped(value.state)
        return super().again(value)

    def raw(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        value = super().raw(op, args, number)
        if not TRAITS[op].pure:
            value.state = self.state
        return value

    def prepay(self, op: str, args: tuple[Value, ...]) -> bool:
        return op in PREPAID and super().prepay(op, args)

    def ended(self, end: End) -> End:
        if end.op == EXIT:
            return End(EXIT, tuple([self.new(word) for word in end.args]), [], end.cases)
        return super().ended(end)


def fold_regions(region: RegionUnit) -> dict[str, dict[int, Range]]:
    """Folds every function, in place of the old one; the ranges of their values.

    Once is enough but for loops: what they hand on to themselves is known only after the first time.
    """
    unit, ranges = region.unit, {}
    effects = summaries(unit)
    for name, function in list(unit.functions.items()):
        folder = _folded(unit, function, effects)
        if _has_loops(folder.result):
            found = RangeFinder(folder.result).run()
            params = [param for block in function.blocks() for param in block.params if param.id in folder.values]
            known = {param.id: found.get(folder.values[param.id].id, ANYTHING) for param in params}
            folder = _folded(unit, function, effects, known)
        unit.functions[name] = folder.result
        ranges[name] = folder.range_at
        for number, found in RangeFinder(folder.result).run().items():
            ranges[name][number] = found.within(ranges[name].get(number, ANYTHING))
    return ranges


def _folded(
    unit: Unit, function: Function, effects: dict[str, Summary], known: dict[int, Range] | None = None
) -> RegionFolder:
    reached: frozenset[int] = frozenset()
    while True:
        folder = RegionFolder(unit, function, effects, reached, known)
        try:
            folder.result = folder.run()
            return folder
        except ReachedLate as late:
            reached |= late.blocks


def _has_loops(function: Function) -> bool:
    seen: set[int] = set()
    for block in function.blocks():
        seen.add(block.start)
        if any(target.start in seen for target in block.targets):
            return True
    return False
