"""Folds the functions of regions in execution mode, so that gas and memory are exact at every side exit."""

from __future__ import annotations

from functools import partial

from fusevm.evm.opcodes import ACCESS, MSIZE, OPCODES_TABLE
from fusevm.ir import analyses
from fusevm.ir.fold.functions import FunctionFolder, folded
from fusevm.ir.fold.stages import Mode, Stage
from fusevm.ir.fold.summaries import EffectSummary, summaries
from fusevm.ir.functions import DependencyBlock, End, Function, Unit
from fusevm.ir.ranges import ANYTHING, Range
from fusevm.ir.regions.build import EXIT, FAIL, RegionUnit
from fusevm.ir.regions.ranges import RangeFinder
from fusevm.ir.values import PHI, TRAITS, FrameState, Value

REACH = "REACH"
# Memory and storage must be exact at side exits: no dead store elimination.
STAGES = ~Stage.DSE
# Prepaid instructions: growth by a guard, the rest with the block's static gas. Others are charged when executed.
PREPAID = frozenset(("MLOAD", "MSTORE", "MSTORE8", "KECCAK256"))

# Calls and logs need the stack just before them: they read their operands from it.
OWN_STATE = frozenset(("CALLFN", *(op.name for op in OPCODES_TABLE if op.is_log)))
# Executing them a second time changes and costs nothing more: memory has grown, accounts and slots are warm. Memory may
# be larger already when they are repeated, so MSIZE is not among them.
REPEATABLE = frozenset(
    op.name
    for op in OPCODES_TABLE
    if not op.prices and not op.writes & ~(ACCESS | MSIZE) and not op.reads & MSIZE and op.pushes
)


class RegionFolder(FunctionFolder):
    def __init__(
        self,
        unit: Unit,
        function: Function,
        effects: dict[str, EffectSummary],
        reached: frozenset[int] = frozenset(),
        known: dict[int, Range] | None = None,
        stages: Stage = STAGES,
    ) -> None:
        super().__init__(unit, function, effects, True, reached, Mode.EXECUTION, stages)
        self.foreknown = known or {}  # ranges of parameters
        self.state: FrameState | None = None
        self.anchor: FrameState | None = None  # the state from which everything since can be repeated
        self.prepaid = 0  # dynamic gas of the block's instructions so far that was added to its static gas

    def block_of(self, block: DependencyBlock) -> DependencyBlock:
        if block.start not in self.made:
            self.made[block.start] = DependencyBlock(block.start, pc=block.pc)
        return self.made[block.start]

    def enter_block(self, block: DependencyBlock, made: DependencyBlock) -> None:
        super().enter_block(block, made)
        for param in block.params:
            found, value = self.foreknown.get(param.id), self.values[param.id]
            if found is not None and value.op == PHI and value.block == made.start:
                self.range_at[value.id] = found.within(self.range_at.get(value.id, ANYTHING))
        made.gas, self.prepaid = block.gas, 0  # gas prepaid in the last block does not count in this one
        self.anchor = made.state = self.mapped(block.state)

    def is_shared(self, value: Value) -> bool:
        """An instruction more is cheap in native code; the forms that narrowing looks for are not."""
        return False

    def charge(self, gas: int) -> None:
        super().charge(gas)
        self.prepaid += gas

    def fold_block(self, block: DependencyBlock) -> None:
        super().fold_block(block)
        made = self.made[block.start]
        states: dict[int, FrameState] = {}
        for value in made.instructions:
            state = value.state
            if state is not None:  # everything prepaid from there on was charged on entry to the block
                if id(state) not in states:
                    states[id(state)] = state._replace(gas=state.gas + self.prepaid)
                value.state = states[id(state)]
        if made.end.op == "INVALID":  # an access that no gas can pay for
            assert self.state is not None
            made.end = End(FAIL, self.state.words, cases=(self.state.pc, self.state.gas + self.prepaid))

    def mapped(self, state: FrameState | None) -> FrameState | None:
        """The state with the new values; its gas excludes what was prepaid before it."""
        if state is None:
            return None
        return FrameState(state.pc, tuple([self.new(word) for word in state.words]), state.gas - self.prepaid)

    def again(self, value: Value) -> Value | None:
        """A failure is explained by repeating everything from the anchor, the last state after which all instructions
        are repeatable. There are fewer anchors than instructions, so fewer words must be kept live for them."""
        if value.state is not None:
            if self.anchor is None or value.op in OWN_STATE:
                self.anchor = self.mapped(value.state)
            self.state = self.anchor
        found = super().again(value)
        if value.op not in REPEATABLE and not TRAITS[value.op].pure:
            self.anchor = None
        return found

    def raw(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        value = super().raw(op, args, number)
        if not TRAITS[op].pure:
            value.state = self.state
        return value

    def note(self, value: Value) -> None:
        """Growth for a later access must not be charged before an instruction that may fail: the failure would report
        too little gas."""
        super().note(value)
        if value.op == REACH:
            self.world.observer, self.constant_guard = value.id - 1, None
        elif not (value.prechecked or TRAITS[value.op].pure):
            self.world.observer, self.constant_guard = value.id, None

    def prepay(self, op: str, args: tuple[Value, ...]) -> bool:
        return op in PREPAID and super().prepay(op, args)

    def ended(self, end: End) -> End:
        if end.op == EXIT:
            return End(EXIT, tuple([self.new(word) for word in end.args]), [], end.cases)
        return super().ended(end)


def fold_regions(region: RegionUnit, stages: Stage = STAGES) -> dict[str, dict[int, Range]]:
    """Folds every function in place; returns the ranges of their values.

    Functions with loops are folded twice: the ranges of loop-carried words are known only after the first time.
    """
    unit, ranges = region.unit, {}
    effects = summaries(unit)
    for name, function in list(unit.functions.items()):
        make = partial(RegionFolder, unit, function, effects, stages=stages & STAGES)
        new, folder = folded(function, make)
        loops = analyses.loops(new)
        if loops.by_header or loops.irreducible or not loops.complete:
            found = RangeFinder(new).run()
            params = [param.id for block in analyses.order(function) for param in block.params]
            known = {each: found.get(folder.values[each].id, ANYTHING) for each in params if each in folder.values}
            new, folder = folded(function, partial(make, known=known))
        unit.functions[name] = new
        region.stats.add(folder.stats)
        ranges[name] = folder.range_at
        for number, range_ in RangeFinder(new).run().items():
            ranges[name][number] = range_.within(ranges[name].get(number, ANYTHING))
    return ranges
