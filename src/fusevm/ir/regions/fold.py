"""Folds the functions of regions in execution mode, so that gas and memory are exact at every side exit."""

from __future__ import annotations

from typing import cast

from fusevm.evm.opcodes import ACCESS, MSIZE, OPCODES_TABLE
from fusevm.ir.block import Mode
from fusevm.ir.fold.functions import ATTEMPTS, FunctionFolder, ReachedLate
from fusevm.ir.fold.stages import Stage
from fusevm.ir.fold.summaries import Summary, summaries
from fusevm.ir.functions import End, Function, GraphBlock, Unit
from fusevm.ir.ranges import ANYTHING, Range
from fusevm.ir.regions.build import EXIT, FAIL, RegionBlock, RegionUnit
from fusevm.ir.regions.ranges import RangeFinder
from fusevm.ir.values import PHI, TRAITS, FrameState, Value

REACH = "REACH"
# Memory and storage must be exact at side exits: no dead store elimination.
STAGES = Stage.FOLD | Stage.CSE | Stage.FWD
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
        effects: dict[str, Summary],
        reached: frozenset[int] = frozenset(),
        known: dict[int, Range] | None = None,
    ) -> None:
        super().__init__(unit, function, effects, True, reached, Mode.EXECUTION, STAGES)
        self.foreknown = known or {}  # ranges of parameters
        self.result = function
        self.state: FrameState | None = None
        self.anchor: FrameState | None = None  # the state from which everything since can be repeated
        self.prepaid = 0  # dynamic gas of the block's instructions so far that was added to its static gas

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
        made.gas, self.prepaid = block.gas, 0  # gas prepaid in the last block does not count in this one
        self.anchor = made.state = self.mapped(block.state)

    def is_shared(self, value: Value) -> bool:
        """An instruction more is cheap in native code; the forms that narrowing looks for are not."""
        return False

    def charge(self, gas: int) -> None:
        super().charge(gas)
        self.prepaid += gas

    def fold_block(self, block: GraphBlock) -> None:
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
        elif not (value.raw or TRAITS[value.op].pure):
            self.world.observer, self.constant_guard = value.id, None

    def prepay(self, op: str, args: tuple[Value, ...]) -> bool:
        return op in PREPAID and super().prepay(op, args)

    def ended(self, end: End) -> End:
        if end.op == EXIT:
            return End(EXIT, tuple([self.new(word) for word in end.args]), [], end.cases)
        return super().ended(end)


def fold_regions(region: RegionUnit) -> dict[str, dict[int, Range]]:
    """Folds every function in place; returns the ranges of their values.

    Functions with loops are folded twice: the ranges of loop-carried words are known only after the first time.
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
        for number, range_ in RangeFinder(folder.result).run().items():
            ranges[name][number] = range_.within(ranges[name].get(number, ANYTHING))
    return ranges


def _folded(
    unit: Unit, function: Function, effects: dict[str, Summary], known: dict[int, Range] | None = None
) -> RegionFolder:
    reached: frozenset[int] = frozenset()
    attempts = 0
    while True:
        attempts += 1
        if attempts > ATTEMPTS:  # each may find one more block: all are taken for reachable
            reached = frozenset([block.start for block in function.blocks()])
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
