"""Engines that compile regions before anything runs, for each method of choosing them, and what they observe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.lab.peers.work import Observation, Work
from fusevm.native.emit.build import library
from fusevm.native.host import engine as host
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.region_lockstep import RegionLockstep
from fusevm.native.host.regions import counted, counting_schedule
from fusevm.native.region.choice import every_block, functions_and_loops, hot_parts
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.schedule.build import Handlers, Schedule


class Counting(Regions):
    """Schedules that count what is run, instead of regions."""

    def __init__(self) -> None:
        super().__init__()
        self.schedules: dict[tuple[bytes, Fork], Schedule] = {}

    def schedule(self, code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
        made = self.schedules[code, fork] = counting_schedule(code, fork, handlers)
        return made

    def counts(self, code: bytes, fork: Fork) -> dict[int, int]:
        found = self.schedules.get((code, fork))
        return {} if found is None else counted(found)


class HotRegions(Regions):
    """Regions of what was counted."""

    def __init__(self, counting: Counting, speed: int = 0) -> None:
        super().__init__(speed=speed)
        self.counting = counting

    def schedule(self, code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
        self.choose = partial(hot_parts, counts=self.counting.counts(code, fork))
        return super().schedule(code, fork, handlers)


class RegionEngine:
    """One method of choosing regions, at one of LLVM's levels."""

    def __init__(self, regions: Regions) -> None:
        native = library()
        self.engine = NativeEngine(native, native.handlers, regions=regions)

    @property
    def reruns(self) -> int:
        return self.engine.reruns

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self.engine.execute_surely(message, state, context)

    def run(self, work: Work) -> Observation:
        return observed(self.execute, work)


class LockstepEngine(RegionEngine):
    """Raises Disagreement if the state at a side exit differs from the reference tier's."""

    def __init__(self) -> None:
        self.lockstep = RegionLockstep(every_block, 0)
        self.engine = self.lockstep.engine

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self.lockstep.execute(message, state, context)


WAYS = ("every", "every-1", "chosen", "hot", "lockstep")


def engine_for(way: str, work: Work) -> RegionEngine:
    if way == "hot":
        counting = Counting()
        RegionEngine(counting).run(work)
        return RegionEngine(HotRegions(counting))
    if way == "chosen":
        return RegionEngine(Regions(functions_and_loops, speed=0))
    if way == "lockstep":
        return LockstepEngine()
    return RegionEngine(Regions(every_block, speed=1 if way == "every-1" else 0))


def reference(work: Work) -> Observation:
    return observed(execute_reference, work)


def observed(execute: Executor, work: Work) -> Observation:
    state = work.state()
    try:
        done = process(work.transaction, state, work.block, work.fork, execute)
    except Rejected as rejected:
        return Observation("rejected", accounts=state.accounts, reason=str(rejected))
    state.settle()
    out = done.outcome
    return Observation(
        out.status.value, done.gas_used, done.gas_refunded, out.output, list(done.logs), state.accounts,
        reason=str(out.failure or ""),
    )  # fmt: skip


@contextmanager
def slices_of(gas: int) -> Iterator[None]:
    """Sets the slice of gas that native code gets at a time."""
    before, host.SLICE = host.SLICE, gas
    try:
        yield
    finally:
        host.SLICE = before
