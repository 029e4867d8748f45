"""Folding whole programs: values are shared along the dominator tree, loop invariants are hoisted.

Facts about memory and storage are carried into a block only from its sole predecessor; at joins they are discarded. The
known size of memory is always kept, since memory does not shrink.
"""

from __future__ import annotations

from fusevm.analysis.cfg import control_flow
from fusevm.analysis.graphs import Loop
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import MSIZE
from fusevm.ir.block import DependencyBlock, Mode, Program, Terminator
from fusevm.ir.flow import ROOT, Flow, flow_of
from fusevm.ir.fold.engine import Folder, fuel_for
from fusevm.ir.fold.facts import BITS, KnownState
from fusevm.ir.fold.recorder import Recorder
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.program import build_program, unseen_by
from fusevm.ir.values import CONST, Value


class ProgramEngine(Folder):
    def __init__(self, flow: Flow, mode: Mode, stages: Stage) -> None:
        self.flow = flow
        self.worlds: dict[int, KnownState] = {}  # the facts at the end of each block
        self.blocks: dict[int, DependencyBlock] = {}
        self.loop_of = flow.loops.innermost()
        super().__init__(flow.cfg.fork, mode, stages, flow.cfg.dests, not unseen_by(flow.cfg) & MSIZE)
        self.fuel = fuel_for(sum(block.opcodes for block in flow.plain.values()))

    def know(self, block: DependencyBlock) -> None:
        self.blocks[block.start] = block
        self.world = self.world_at(block.start)

    def world_at(self, start: int) -> KnownState:
        flow = self.flow
        ways = flow.predecessors[start]
        if not ways and start == 0 and flow.open == {0}:
            return KnownState(zeroed=True)
        if len(ways) == 1 and start not in flow.open and ways[0] in self.worlds:
            return self.worlds[ways[0]].copy()
        self.clock += 1
        world = KnownState(dict.fromkeys(BITS, self.clock))
        above = flow.tree.above[start]
        if above in self.worlds:
            world.reach = self.worlds[above].reach
        return world

    def finish_block(self) -> None:
        self.sweep()
        self.worlds[self.block.start] = self.world

    def is_available(self, value: Value) -> bool:
        return value.block == self.block.start or self.flow.tree.dominates(value.block, self.block.start)

    def emit(self, op: str, args: tuple[Value, ...] = (), pc: int = 0) -> Value | None:
        if self.recorder is not None:
            self.where = self.recorder.numbered_place((self.block.start, pc))
        return super().emit(op, args, pc)

    # -- loops ------------------------------------------------------------------------------------------------------

    def append(self, op: str, args: tuple[Value, ...], pc: int = 0) -> Value:
        """Appends a pure instruction, hoisted out of every enclosing loop in which its operands are invariant."""
        home = self.invariant_home(args)
        if home is None:
            return self.raw(op, args, pc)
        current, self.block = self.block, self.blocks[home]
        value = self.raw(op, args, pc)
        self.block = current
        self.stats.hoisted += 1
        return value

    def invariant_home(self, args: tuple[Value, ...]) -> int | None:
        home: int | None = None
        loop = self.loop_of.get(self.block.start)
        while loop is not None and self.always_runs(loop):
            if any(arg.op != CONST and arg.block in loop.body for arg in args):
                break
            above = self.flow.tree.above[loop.header]
            if above == ROOT:
                break
            home = above
            loop = self.flow.loops.by_header[loop.parent] if loop.parent is not None else None
        return home

    def always_runs(self, loop: Loop) -> bool:
        """Whether the block dominates all latches: every complete iteration uses what is hoisted from it."""
        tree, start = self.flow.tree, self.block.start
        return all(tree.dominates(start, latch) for latch in loop.latches)

    def guard(self, offset: Value, size: Value) -> None:
        home = self.guard_home(offset, size)
        if home is None:
            super().guard(offset, size)
            return
        here = self.block, self.world, self.constant_guard
        self.block, self.world, self.constant_guard = home, self.worlds[home.start], None
        before, there = len(home.instructions), self.world
        try:
            super().guard(offset, size)
        finally:  # a guard that always fails raises NeverReached
            self.block, self.world, self.constant_guard = here
        self.stats.hoisted += len(home.instructions) - before
        self.world.reach = max(self.world.reach, there.reach)

    def guard_home(self, offset: Value, size: Value) -> DependencyBlock | None:
        """The preheader, if this is a loop header that does an invariant check before it reads gas or MSIZE."""
        start = self.block.start
        loop = self.flow.loops.by_header.get(start)
        if loop is None or self.world.observer >= self.first_id:
            return None
        if any(value.op != CONST and value.block in loop.body for value in (offset, size)):
            return None
        before = [way for way in self.flow.predecessors[start] if way not in loop.body]
        if len(before) != 1 or start in self.flow.open or before[0] not in self.worlds:
            return None
        home = self.blocks[before[0]]
        return home if self.flow.successors[before[0]] == (start,) and not home.halts else None

    # -- ends -------------------------------------------------------------------------------------------------------

    def needs_valid(self, terminator: Terminator) -> bool:
        """A jump whose targets are known needs no check."""
        node = self.flow.last[self.block.start]
        return node.unknown or node.bad_jump


def fold_program(
    code: bytes,
    fork: Fork = LATEST,
    mode: Mode = Mode.EXECUTION,
    stages: Stage = EVERYTHING,
    peel: bool = False,
    recorder: Recorder | None = None,
) -> tuple[Program, Stats]:
    return fold_flow(flow_of(control_flow(code, fork), peel), mode, stages, recorder)


def fold_flow(
    flow: Flow, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING, recorder: Recorder | None = None
) -> tuple[Program, Stats]:
    engine = ProgramEngine(flow, mode, stages)
    engine.recorder = recorder
    program = build_program(flow, engine, mode)
    return program, engine.stats
