"""A campaign on recordings: random programs recorded on several tiers, whatever is asked for; all must be equal.

    python -m fusevm.lab.recordings --programs 1000 --seed 1

The reference tier's recording is the judge. It is itself held against a count by hooks, and against the gas used.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, NamedTuple

from fusevm.api import EVM
from fusevm.chain.reasons import Rejected
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.generator import program
from fusevm.lab.fuzz.program import Program
from fusevm.lab.fuzz.shrink import shrink
from fusevm.lab.fuzz.starve import critical_gas, random_gas
from fusevm.lab.peers.ours import transact
from fusevm.lab.peers.work import PeerWork
from fusevm.lab.regions.cases import KINDS as REGION_KINDS
from fusevm.lab.regions.cases import case
from fusevm.reference.hooks import Hooks, Step
from fusevm.tracing.recording import CodeCoverage, Event, RecordedFrame, Recording, Wanted

TIERS = ("native", "auto", "native-unfused", "regions")
KINDS = (*REGION_KINDS, "forks", "forks")  # random programs of any fork
CRITICAL, RANDOM = 6, 3  # gas limits that a program is run with besides its own
_CHUNK = 10  # programs handed to a worker at a time


class Seen(NamedTuple):
    """A transaction and what was recorded of it."""

    result: str
    frames: list[RecordedFrame]
    coverage: dict[bytes, CodeCoverage]
    gas: dict[bytes, dict[int, int]]


@dataclass(slots=True)
class RecordingFailure:
    seed: str
    difference: str
    wanted: Wanted
    limits: list[int]
    shrunk: Program


@dataclass(slots=True)
class RecordingTally:
    programs: int = 0
    runs: int = 0
    frames: int = 0
    events: int = 0
    halts: int = 0
    failures: list[RecordingFailure] = field(default_factory=list)

    def add(self, other: RecordingTally) -> None:
        self.programs += other.programs
        self.runs += other.runs
        self.frames += other.frames
        self.events += other.events
        self.halts += other.halts
        self.failures += other.failures


def random_wanted(rng: Random) -> Wanted:
    """Anything that may be asked for; calls mostly, and often nothing else, so that regions are entered."""
    if rng.random() < 0.25:
        return Wanted(True, rng.random() < 0.8)
    if rng.random() < 0.1:
        return Wanted(False, False, False, False, rng.random() < 0.7, True)
    return Wanted(True, *(rng.random() < 0.5 for _ in range(5)))


def limits_for(work: PeerWork, rng: Random) -> list[int]:
    """The program's own gas limit, twice, and some that are too little."""
    critical = critical_gas(work)
    own = work.transaction.gas_limit
    return [own, *rng.sample(critical, min(CRITICAL, len(critical))), *random_gas(work, rng, RANDOM), own]


def seen_on(tier: str, work: PeerWork, wanted: Wanted, limits: Sequence[int]) -> list[Seen]:
    """The transaction with each of these gas limits, one after another on one machine, each in its own recording."""
    evm = EVM(work.fork, tier, block=work.block, state=work.state())
    found = []
    for limit in limits:
        with evm.record(**wanted._asdict()) as recording:
            result = _outcome(evm, replace(work.transaction, gas_limit=limit, nonce=None))
        found.append(Seen(result, recording.frames, recording.coverage, recording.gas))
    return found


def _outcome(evm: EVM, tx: Transaction) -> str:
    try:
        result = transact(evm, tx)
    except Rejected as rejected:
        return str(rejected)
    return f"{result.status.value} {result.gas_used} {result.gas_refunded} {result.output.hex()} {result.error}"


# -- comparing ---------------------------------------------------------------------------------------------------------


def difference(one: Seen, other: Seen) -> str | None:
    """The first thing in which two recordings differ."""
    if one.result != other.result:
        return f"result: {one.result} and {other.result}"
    for left, right in zip_longest(one.frames, other.frames):
        if left != right:
            return "\n".join(_first_difference(left, right, "call"))
    for name, lefts, rights in (("coverage", one.coverage, other.coverage), ("gas", one.gas, other.gas)):
        for key in {*lefts, *rights}:
            a, b = lefts.get(key), rights.get(key)
            if a != b:
                return f"{name} of 0x{key.hex()[:8]}: {_apart(a, b)}"
    return None


def _first_difference(left: Event | None, right: Event | None, place: str) -> Iterator[str]:
    if not (isinstance(left, RecordedFrame) and isinstance(right, RecordedFrame)):
        yield f"{place}: {left} and {right}"
        return
    for name in RecordedFrame.__dataclass_fields__:
        a, b = getattr(left, name), getattr(right, name)
        if name != "events" and a != b:
            yield f"{place}: {name}: {a} and {b}"
    for number, (a, b) in enumerate(zip_longest(left.events, right.events)):
        if a != b:
            yield from _first_difference(a, b, f"{place}.{number}")
            return


def _apart(one: Any, other: Any) -> str:
    """Only what differs of two counts."""
    if isinstance(one, CodeCoverage) and isinstance(other, CodeCoverage):
        pairs = [(name, getattr(one, name), getattr(other, name)) for name in ("hits", "taken", "passed")]
        return ", ".join(f"{name} {_apart(a, b)}" for name, a, b in pairs if a != b)
    if isinstance(one, dict) and isinstance(other, dict):
        return str({pc: (one.get(pc), other.get(pc)) for pc in {*one, *other} if one.get(pc) != other.get(pc)})
    return f"{one} and {other}"


def own_fault(work: PeerWork, limit: int) -> str | None:
    """What is wrong with the reference tier's own recording, held against hooks and the gas used."""
    steps: Counter[tuple[int, int]] = Counter()

    def count(step: Step) -> None:
        steps[step.pc, step.op] += 1

    evm = EVM(work.fork, "reference", block=work.block, state=work.state(), hooks=Hooks(on_opcode=count))
    with evm.record(coverage=True, gas=True) as recording:
        _outcome(evm, replace(work.transaction, gas_limit=limit, nonce=None))
    covered: Counter[tuple[int, int]] = Counter()
    for each in recording.coverage.values():
        for pc, hits in each.hits.items():
            covered[pc, each.code[pc] if pc < len(each.code) else 0] += hits
    if covered != steps:
        return f"coverage and hooks differ: {covered - steps} {steps - covered}"
    used = sum(frame.gas_used for frame in recording.frames)
    if recording.coverage and (spent := _spent(recording)) != used:
        return f"gas by instruction is {spent}, and {used} was used"
    return None


def _spent(recording: Recording) -> int:
    return sum(sum(each.values()) for each in recording.gas.values())


# -- running -----------------------------------------------------------------------------------------------------------


def fault_of(
    made: Program, wanted: Wanted, limits: Sequence[int], tiers: Sequence[str], tally: RecordingTally
) -> str | None:
    """The first difference between the tiers, a crash being one."""
    work = made.work()
    try:
        expected = seen_on("reference", work, wanted, limits)
        for each in expected:
            frames = [frame for top in each.frames for frame in top.walk()]
            tally.frames += len(frames)
            tally.events += sum(len(frame.events) for frame in frames)
            tally.halts += sum(frame.failure is not None for frame in frames)
        for tier in tiers:
            tally.runs += len(limits)
            for limit, one, other in zip(limits, expected, seen_on(tier, work, wanted, limits), strict=True):
                if found := difference(one, other):
                    return f"reference and {tier}, gas limit {limit}: {found}"
        return own_fault(work, limits[0])
    except Exception:
        return "crash: " + "\n".join(traceback.format_exc().strip().splitlines()[-6:])


@dataclass(frozen=True, slots=True)
class RecordingPlan:
    """What a campaign runs."""

    kind: str | None = None  # of programs; drawn where none is given
    fixtures: Path | None = None  # with real code
    tiers: tuple[str, ...] = TIERS
    shrink: int = 400  # attempts to make a program smaller
    stop: int = 0  # after this many differences, if any
    seconds: float = 0.0  # after so long, if that is set


def judge(seed: str, plan: RecordingPlan, tally: RecordingTally) -> None:
    rng = Random(seed)
    kind = plan.kind or rng.choice(KINDS)
    made = program(seed, rng.choice(tuple(Fork))) if kind == "forks" else case(seed, plan.fixtures, kind)
    wanted = random_wanted(rng)
    limits = limits_for(made.work(), rng)
    tally.programs += 1
    found = fault_of(made, wanted, limits, plan.tiers, tally)
    if found is None:
        return

    def fails(tried: Program) -> bool:
        return fault_of(tried, wanted, limits, plan.tiers, RecordingTally()) is not None

    shrunk = shrink(made, fails, plan.shrink) if plan.shrink else made
    again = fault_of(shrunk, wanted, limits, plan.tiers, RecordingTally()) or found
    tally.failures.append(RecordingFailure(seed, again, wanted, limits, shrunk))


def _run_chunk(given: tuple[list[str], RecordingPlan]) -> RecordingTally:
    seeds, plan = given
    tally = RecordingTally()
    for seed in seeds:
        judge(seed, plan, tally)
    return tally


def campaign(programs: int, seed: int, plan: RecordingPlan | None = None, *, jobs: int = 1) -> RecordingTally:
    seeds = [f"{seed}.{number}" for number in range(programs)]
    plan = plan or RecordingPlan()
    chunks = [(seeds[at : at + _CHUNK], plan) for at in range(0, programs, _CHUNK)]
    total, started = RecordingTally(), perf_counter()
    with multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else nullcontext() as pool:
        for tally in map(_run_chunk, chunks) if pool is None else pool.imap_unordered(_run_chunk, chunks):
            total.add(tally)
            if plan.stop and len(total.failures) >= plan.stop:
                break
            if plan.seconds and perf_counter() - started > plan.seconds:
                break
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.recordings", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same programs")
    parser.add_argument("--only", metavar="SEED.NUMBER", help="one program of a campaign")
    parser.add_argument("--kind", choices=sorted(set(KINDS)), help="of program (all)")
    parser.add_argument("--tier", action="append", help=f"compared with the reference tier ({', '.join(TIERS)})")
    parser.add_argument("--fixtures", type=Path, help="folder with real code (FUSEVM_FIXTURES)")
    parser.add_argument("--shrink", type=int, default=400, help="attempts to make a program smaller; 0: none")
    parser.add_argument("--stop", type=int, default=0, help="end after so many differences")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    options = parser.parse_args()
    fixtures = options.fixtures or Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
    plan = RecordingPlan(
        options.kind,
        fixtures.resolve() if fixtures.is_dir() else None,
        tuple(options.tier or TIERS),
        options.shrink,
        options.stop,
        options.seconds,
    )
    if options.only:
        total = RecordingTally()
        judge(options.only, plan, total)
    else:
        total = campaign(options.programs, options.seed, plan, jobs=options.jobs)
    for failure in total.failures:
        print(f"seed {failure.seed}: {failure.wanted}\n{failure.difference}\n{failure.shrunk.listing()}")
        print(json.dumps(failure.shrunk.as_json()))
    print(
        f"{total.programs:,} programs, {total.runs:,} recordings compared, {total.frames:,} frames, {total.halts:,} of"
        f" them failed, {total.events:,} events: {len(total.failures):,} differences"
    )
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())
