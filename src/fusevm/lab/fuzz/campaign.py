"""Many random programs on several engines: counted, and every disagreement shrunk and kept."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.again import Repeating, compare_again
from fusevm.lab.fuzz.differential import EngineDifference, compare, excused, fitted
from fusevm.lab.fuzz.generator import program
from fusevm.lab.fuzz.program import Program
from fusevm.lab.fuzz.shrink import shrink
from fusevm.lab.fuzz.starve import compare_starved, critical_gas, random_gas
from fusevm.lab.fuzz.writer import VOCABULARIES
from fusevm.lab.peers.engines import engine_named
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import Observation, PeerEngine, PeerWork
from fusevm.lab.processes import in_processes
from fusevm.reference.hooks import Hooks, Step

_CHUNK = 25  # programs handed to a worker at a time
_SAMPLE = 20  # one program in this many is also run for coverage
_LIMITS_SHRINKING = 60  # a program is starved at fewer points while it is being shrunk


@dataclass(frozen=True, slots=True)
class FuzzPlan:
    engines: tuple[str, ...]  # the first is the judge
    programs: int
    seed: int = 0
    forks: tuple[Fork, ...] = tuple(Fork)
    starve: bool = False  # every program again at every critical gas limit
    random_limits: int = 0  # every program again at this many random gas limits
    again: int = 6  # every program again so often on one machine, which may learn from each run
    most_limits: int = 600  # of more critical limits than these, this many are drawn
    shrink_attempts: int = 3_000

    def cases(self) -> Iterator[tuple[str, Fork]]:
        """Seed and fork of each program: the forks take turns."""
        for index in range(self.programs):
            yield f"{self.seed}.{index}", self.forks[index % len(self.forks)]


@dataclass(slots=True)
class ProgramFailure:
    seed: str
    fork: Fork
    difference: str
    shrunk: Program

    def as_json(self) -> dict[str, Any]:
        return {"difference": self.difference, "program": self.shrunk.as_json()}


@dataclass(slots=True)
class FuzzTally:
    programs: int = 0
    runs: int = 0  # comparisons: more than programs where gas was starved
    forks: Counter[Fork] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    failures: list[ProgramFailure] = field(default_factory=list)
    starved: int = 0  # programs run again at every one of their critical gas limits
    sampled: int = 0
    instructions: int = 0  # of the sample
    longer_than_30: int = 0  # programs of the sample that ran more than 30 instructions
    opcodes: Counter[tuple[Fork, str]] = field(default_factory=Counter)  # of the sample

    @property
    def agreed(self) -> int:
        return self.programs - len(self.failures) - self.excused.total()

    def add(self, other: FuzzTally) -> None:
        self.programs += other.programs
        self.runs += other.runs
        self.forks += other.forks
        self.statuses += other.statuses
        self.excused += other.excused
        self.failures += other.failures
        self.starved += other.starved
        self.sampled += other.sampled
        self.instructions += other.instructions
        self.longer_than_30 += other.longer_than_30
        self.opcodes += other.opcodes

    def never_run(self) -> dict[Fork, list[str]]:
        """Opcodes of each fork that the sample has never run."""
        seen: dict[Fork, set[str]] = {}
        for fork, name in self.opcodes:
            seen.setdefault(fork, set()).add(name)
        return {fork: sorted(VOCABULARIES[fork].names - names) for fork, names in sorted(seen.items())}

    def as_json(self) -> dict[str, Any]:
        return {
            "programs": self.programs,
            "agreed": self.agreed,
            "excused": dict(self.excused),
            "failures": [failure.as_json() for failure in self.failures],
            "runs": self.runs,
            "starved": self.starved,
            "forks": {fork.label: count for fork, count in sorted(self.forks.items())},
            "statuses": dict(self.statuses),
            "sample": {
                "programs": self.sampled,
                "instructions": self.instructions,
                "longer_than_30": self.longer_than_30,
                "never_run": {fork.label: names for fork, names in self.never_run().items() if names},
            },
        }


def run_campaign(plan: FuzzPlan, jobs: int = 1, progress: Callable[[FuzzTally], None] | None = None) -> FuzzTally:
    """Runs the plan, in several processes. `progress` is called for each finished chunk."""
    total = FuzzTally()
    for tally in _tallies(plan, jobs):
        total.add(tally)
        if progress is not None:
            progress(tally)
    return total


def _tallies(plan: FuzzPlan, jobs: int) -> Iterator[FuzzTally]:
    cases = list(plan.cases())
    chunks = [(plan, cases[start : start + _CHUNK]) for start in range(0, len(cases), _CHUNK)]
    if jobs <= 1:
        yield from map(_run_chunk, chunks)
        return
    yield from in_processes(_run_chunk, chunks, jobs, spawn=True)


def _run_chunk(chunk: tuple[FuzzPlan, list[tuple[str, Fork]]]) -> FuzzTally:
    plan, cases = chunk
    engines = [engine_named(name) for name in plan.engines]
    tally = FuzzTally()
    for index, (seed, fork) in enumerate(cases):
        made = program(seed, fork)
        tally.programs += 1
        tally.forks[fork] += 1
        _judge(made, engines, plan, tally)
        if index % _SAMPLE == 0:
            _cover(made.work(), tally)
    return tally


def _judge(made: Program, engines: Sequence[PeerEngine], plan: FuzzPlan, tally: FuzzTally) -> None:
    watched = [_Watched(engines[0], tally), *engines[1:]]
    difference = _check(made, watched, plan, tally)
    if difference is None:
        return
    if reason := _excuse(made, engines, difference):
        tally.excused[reason] += 1
        return
    shrunk = _shrunk(made, difference, engines, plan)
    final = _check(shrunk, engines, plan) or difference
    tally.failures.append(ProgramFailure(made.seed, made.fork, str(final), shrunk))


def _check(
    made: Program, engines: Sequence[PeerEngine], plan: FuzzPlan, tally: FuzzTally | None = None
) -> EngineDifference | None:
    """What differs, a crash counting as a difference."""
    work = fitted(made.work(), engines)
    try:
        difference = compare(work, engines)
        if difference is None and plan.again:
            difference = compare_again(work, engines, Random(made.seed), plan.again)
        if difference is None and (plan.starve or plan.random_limits):
            difference = compare_starved(work, engines, _limits(work, made.seed, plan, tally))
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        return EngineDifference(engines[0].name, "", [("crash", lines[-1], "")], ("\n".join(lines[-8:]), ""))
    return difference


def _limits(work: PeerWork, seed: str, plan: FuzzPlan, tally: FuzzTally | None) -> Iterable[int]:
    rng = Random(seed)
    limits = random_gas(work, rng, plan.random_limits)
    if plan.starve:
        critical = critical_gas(work)
        if len(critical) > plan.most_limits:
            critical = rng.sample(critical, plan.most_limits)
        elif tally is not None:
            tally.starved += 1
        limits += critical
    return limits


def _excuse(made: Program, engines: Sequence[PeerEngine], difference: EngineDifference) -> str | None:
    work = fitted(made.work(), engines)
    if difference.gas is not None:
        work = work.with_gas(difference.gas)
    try:
        return excused(work, engines)
    except Exception:
        return None  # what crashes our own reference has no excuse


def _shrunk(made: Program, difference: EngineDifference, engines: Sequence[PeerEngine], plan: FuzzPlan) -> Program:
    field_name = difference.fields[0][0]
    if difference.gas is not None:
        made = replace(made, transaction=replace(made.transaction, gas_limit=difference.gas))
        plan = replace(plan, most_limits=_LIMITS_SHRINKING)

    def failing(tried: Program) -> bool:
        found = _check(tried, engines, plan)
        return found is not None and found.fields[0][0] == field_name and not _excuse(tried, engines, found)

    return shrink(made, failing, plan.shrink_attempts)


class _Watched:
    """The judge, its answers counted."""

    def __init__(self, engine: PeerEngine, tally: FuzzTally) -> None:
        self._engine, self._tally = engine, tally
        self.name, self.supports, self.fit, self.excuse = engine.name, engine.supports, engine.fit, engine.excuse
        self.stopwatch = engine.stopwatch

    def run(self, work: PeerWork) -> Observation:
        return self._counted(self._engine.run(work))

    def run_again(self, work: PeerWork, limits: Iterable[int]) -> Iterator[Observation]:
        if isinstance(self._engine, Repeating):
            yield from map(self._counted, self._engine.run_again(work, limits))

    def _counted(self, seen: Observation) -> Observation:
        self._tally.runs += 1
        self._tally.statuses[seen.status] += 1
        return seen


def _cover(work: PeerWork, tally: FuzzTally) -> None:
    """Counts what runs, in the reference tier."""
    count = 0
    opcodes, fork = tally.opcodes, work.fork

    def note(step: Step) -> None:
        nonlocal count
        count += 1
        if step.error is None or step.name == "INVALID":
            opcodes[fork, step.name] += 1

    OurTier("reference", Hooks(on_opcode=note)).run(work)
    tally.sampled += 1
    tally.instructions += count
    tally.longer_than_30 += count > 30
