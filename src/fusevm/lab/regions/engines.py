"""Engines that compile regions before anything runs, for each method of choosing them, and what they observe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from unittest.mock import patch

from llvmlite import ir

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.ir.regions.build import EXIT, RegionUnit
from fusevm.lab.peers.work import Observation, PeerWork
from fusevm.native.host import engine as host
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.lockstep import Lockstep
from fusevm.native.host.settings import Setting
from fusevm.native.region import build
from fusevm.native.region.choice import ChosenRegions, ExitPlaces, every_block, functions_and_loops, hot_parts
from fusevm.native.region.emit import region_module
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.schedule.build import Handlers, Schedule

FEW, MANY = 2, 30  # places besides the beginning at which regions begin


class CountingEngine:
    """An engine that counts all that it runs."""

    def __init__(self) -> None:
        self.engine = NativeEngine()
        self.engine.codes.hot_code.counts_all = True
        self._counts: dict[tuple[bytes, Fork], dict[int, int]] = {}

    def codes(self) -> list[tuple[bytes, Fork]]:
        """That have run."""
        return list(self.engine.codes.hot_code.counting)

    def counts(self, code: bytes, fork: Fork) -> dict[int, int]:
        known = self._counts.setdefault((code, fork), {})
        for pc, (count, _) in self.engine.codes.hot_code.counted((code, fork)).items():
            known[pc] = known.get(pc, 0) + count
        return known

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self.engine.execute(message, state, context)


class HotRegions(Regions):
    """Regions of what was counted."""

    def __init__(self, counting: CountingEngine, speed: int = 0) -> None:
        super().__init__(speed=speed)
        self.counting = counting

    def schedule(self, code: bytes, fork: Fork, handlers: Handlers, *, probes: bool) -> Schedule:
        self.choose = partial(hot_parts, counts=self.counting.counts(code, fork))
        return super().schedule(code, fork, handlers, probes=probes)


def reached_blocks(schedule: Schedule, fork: Fork, places: frozenset[int], most: int) -> ChosenRegions:
    """The beginning, and so many of the places that a jump landed at: compiling what is never run shows nothing."""
    return _some(every_block(schedule, fork), schedule.code, places, most)


def many_blocks(schedule: Schedule, fork: Fork) -> ChosenRegions:
    """Wherever a jump may land, in codes of ordinary size."""
    chosen = every_block(schedule, fork)
    return _some(chosen, schedule.code, frozenset(chosen.entries), MANY)


def _some(chosen: ChosenRegions, code: bytes, among: frozenset[int], most: int) -> ChosenRegions:
    places = [pc for pc in chosen.entries if pc in among and pc]
    chosen.entries = sorted([0, *Random(code).sample(places, min(most, len(places)))])
    return chosen


class RegionEngine:
    """One method of choosing regions, at one of LLVM's levels."""

    def __init__(self, regions: Regions) -> None:
        self.engine = NativeEngine(regions=regions)

    @property
    def reruns(self) -> int:
        return self.engine.reruns

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self.engine.execute(message, state, context)

    def run(self, work: PeerWork) -> Observation:
        return observed(self.execute, work)


class LockstepEngine(RegionEngine):
    """Raises Disagreement if the state at a side exit differs from the reference tier's."""

    def __init__(self, choose: build.Choose) -> None:
        self.engine = NativeEngine(Setting(compared=True), regions=Regions(choose, 0))
        self.lockstep = Lockstep(self.engine)

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self.lockstep.execute(message, state, context)


WAYS = ("reached", "every", "every-1", "chosen", "hot", "lockstep")


def engine_for(way: str, work: PeerWork, places: frozenset[int] = frozenset(), most: int = FEW) -> RegionEngine:
    """`places`: of instructions that a run of it came to."""
    reached = partial(reached_blocks, places=places, most=most)
    if way == "reached":
        return RegionEngine(Regions(reached, speed=0))
    if way == "hot":
        counting = CountingEngine()
        observed(counting.execute, work)
        return RegionEngine(HotRegions(counting))
    if way == "chosen":
        return RegionEngine(Regions(functions_and_loops, speed=0))
    if way == "lockstep":
        return LockstepEngine(reached)
    return RegionEngine(Regions(many_blocks, speed=1 if way == "every-1" else 0))


@contextmanager
def regions_noted(done: Counter[str]) -> Iterator[None]:
    """Adds up what is compiled within: a campaign that compiles nothing must show."""

    def noted(region: RegionUnit, layout: ExitPlaces) -> ir.Module:
        done["regions"] += len(region.entries)
        for function in region.unit.functions.values():
            seen: set[int] = set()
            for block in function.blocks():
                seen.add(block.start)
                done["loops in regions"] += any(target.start in seen for target in block.targets)
                done["calls in regions"] += sum(value.op == "CALLFN" for value in block.instructions)
                done["exits"] += block.end.op == EXIT
        return region_module(region, layout)

    with patch.object(build, "region_module", noted):
        yield


def reference(work: PeerWork) -> Observation:
    return observed(execute_reference, work)


def observed(execute: Executor, work: PeerWork) -> Observation:
    state = work.state()
    try:
        done = process(work.transaction, state, work.block, work.fork, execute)
    except Rejected as rejected:
        return Observation("rejected", accounts=state.accounts, reason=str(rejected))
    state.settle()
    return Observation(
        done.status.value, done.gas_used, done.gas_refunded, done.output, list(done.logs), state.accounts,
        reason=str(done.failure or ""),
    )  # fmt: skip


@contextmanager
def slices_of(gas: int) -> Iterator[None]:
    """Sets the slice of gas that native code gets at a time."""
    before, host.SLICE = host.SLICE, gas
    try:
        yield
    finally:
        host.SLICE = before
