"""One process that runs for long: the same calls again and again, through every interface, on `auto`.

`python -m fusevm.lab.soak [--seconds N] [--seed S] [--works N] [--sooner N] [--threads N]`

What `auto` knows of code grows with time: code is timed, prepared, counted, compiled, put in place, forgotten. Random
programs and mutated real code are run thousands of times, most often the first ones, and every answer must be the one
that the reference tier gave at the start. Everything that waits for time comes `sooner` by that factor, so that a
minute is like hours.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from fusevm.api import EVM
from fusevm.chain.reasons import Rejected
from fusevm.chain.result import Result
from fusevm.lab.fuzz.differential import differences
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import Observation, PeerWork
from fusevm.lab.regions.cases import case
from fusevm.native.host import choice, code_cache, compiler, tier_policy
from fusevm.native.host import engine as engines
from fusevm.native.host.tiers import engine

IN_A_ROW = 3  # calls on one state, each on what the last one left
MANY = 40  # calls of a batch
MAX_GAS = 3_000_000  # of a call: the reference tier has to answer too
FRESH = 50  # one of this many works is replaced by a new one

Answer = tuple[str, bytes, int, int, str]


@dataclass(slots=True)
class SoakSubject:
    """A program, a machine that keeps running it, and what the reference tier said."""

    seed: str
    work: PeerWork
    machine: EVM
    transacted: Observation
    simulated: Answer
    in_a_row: list[Answer]


class Soak:
    def __init__(self, seed: int, works: int, fixtures: Path | None) -> None:
        self.rng = Random(seed)
        self._seed, self._made, self._fixtures = seed, 0, fixtures
        self._auto, self._reference = OurTier("auto"), OurTier("reference")
        self.subjects = [self._subject() for _ in range(works)]
        self.done: Counter[str] = Counter()

    def _subject(self) -> SoakSubject:
        while True:
            self._made += 1
            seed = f"{self._seed}-{self._made}"
            work = case(seed, self._fixtures).work()
            if work.transaction.to is None or work.transaction.authorizations:
                continue
            work = work.with_gas(min(work.transaction.gas_limit, MAX_GAS))
            model = self._machine(work, "reference")
            simulated = self._answer(model.simulate, work)
            in_a_row = [self._answer(model.call, work) for _ in range(IN_A_ROW)]
            machine = self._machine(work, "auto")
            return SoakSubject(seed, work, machine, self._reference.run(work), simulated, in_a_row)

    @staticmethod
    def _machine(work: PeerWork, tier: str) -> EVM:
        return EVM(work.fork, tier, block=work.block, state=work.state())

    @staticmethod
    def _answer(call: Callable[..., Result], work: PeerWork) -> Answer:
        tx = work.transaction
        try:
            result = call(tx.to, tx.data, value=tx.value, caller=tx.sender, gas=tx.gas_limit)
        except Rejected as rejected:
            return "rejected", b"", 0, 0, str(rejected)
        return result.status.value, result.output, result.gas_used, result.gas_refunded, repr(list(result.logs))

    def step(self) -> str | None:
        """Runs something; what was wrong with it, if anything was."""
        rng = self.rng
        if not rng.randrange(FRESH):
            self.subjects[int(len(self.subjects) * rng.random())] = self._subject()
        subject = self.subjects[int(len(self.subjects) * rng.random() ** 3)]
        way = rng.choice(_WAYS)
        self.done[way.__name__.strip("_")] += 1
        try:
            wrong = way(self, subject)
        except Exception:
            wrong = traceback.format_exc()
        return None if wrong is None else f"program {subject.seed}, {way.__name__.strip('_')}: {wrong}"

    def _simulated(self, subject: SoakSubject) -> str | None:
        for _ in range(self.rng.choice((1, 1, 10, 50))):
            found = self._answer(subject.machine.simulate, subject.work)
            if found != subject.simulated:
                return f"{found} instead of {subject.simulated}"
        return None

    def _called(self, subject: SoakSubject) -> str | None:
        with subject.machine.snapshot():
            found = [self._answer(subject.machine.call, subject.work) for _ in range(IN_A_ROW)]
        return None if found == subject.in_a_row else f"{found} instead of {subject.in_a_row}"

    def _recorded(self, subject: SoakSubject) -> str | None:
        with subject.machine.record(calls=True, storage=True, coverage=self.rng.random() < 0.5):
            found = self._answer(subject.machine.simulate, subject.work)
        return None if found == subject.simulated else f"{found} instead of {subject.simulated}"

    def _transacted(self, subject: SoakSubject) -> str | None:
        found = self._auto.run(subject.work)
        fields = [name for name, _, _ in differences(subject.transacted, found)]
        return f"{', '.join(fields)} differ: {found.reason} instead of {subject.transacted.reason}" if fields else None

    def _batched(self, subject: SoakSubject) -> str | None:
        tx = subject.work.transaction
        given: dict[str, Any] = {"value": tx.value, "caller": tx.sender, "gas": tx.gas_limit}
        found = subject.machine.simulate_many([tx.data] * MANY, to=tx.to, **given)
        if subject.simulated[0] == "rejected":
            return None
        for result in found:
            if (result.status.value, result.output, result.gas_used) != subject.simulated[:3]:
                return f"{result} instead of {subject.simulated}"
        return None

    def _disturbed(self, subject: SoakSubject) -> str | None:
        """The compiler is killed, or the machine is another one from now on."""
        if self.rng.random() < 0.005:  # it takes a second to begin
            process = compiler.compiler()._process
            if process is not None:
                process.kill()
        else:
            subject.machine = self._machine(subject.work, "auto")
        return None


_WAYS = (
    Soak._simulated, Soak._simulated, Soak._simulated, Soak._called, Soak._called, Soak._recorded, Soak._transacted,
    Soak._batched, Soak._disturbed,
)  # fmt: skip


_TIMES = (
    *((tier_policy, name) for name in (
        "FIRST_WINDOW", "WINDOW", "LONG_WINDOW", "MIN_GAP", "MAX_GAP", "MIN_HEAT", "RENT", "ARM", "SWITCHING",
    )),
    (code_cache, "PREPARING"), (choice, "WORTH_PREPARING"), (choice, "UNTIMED"),
    (engines, "REPORTED_AFTER"), (engines, "SLICE"), (engines, "SHORT_SLICE"),
)  # fmt: skip
# Every trial takes regions out and puts them back, and some fail; counting may take all of the time.
_JUDGED = {"FAR_BETTER": 0.0, "WORSE": 0.9, "SHARE": 0.5}


@contextmanager
def sooner(factor: float) -> Iterator[None]:
    """Time that must pass before code is looked at is shorter by the factor, and regions come and go."""
    before = [(module, name, getattr(module, name)) for module, name in _TIMES]
    for module, name, value in before:
        setattr(module, name, type(value)(value / factor))
    before += [(tier_policy, name, getattr(tier_policy, name)) for name in _JUDGED]
    for name, judged in _JUDGED.items():
        setattr(tier_policy, name, judged)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def soak(options: argparse.Namespace, seed: int) -> tuple[Soak, int, int]:
    """On this thread, for as long as asked: what was done, how many codes got regions, and findings."""
    made = Soak(seed, options.works, options.fixtures if options.fixtures.is_dir() else None)
    ends, findings = time.monotonic() + options.seconds, 0
    while time.monotonic() < ends and findings < options.stop:
        wrong = made.step()
        if wrong is not None:
            findings += 1
            print(wrong, flush=True)
    return made, engine(tiered=True).codes.hot_code.installed, findings


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--works", type=int, default=60, help="programs at a time")
    parser.add_argument("--sooner", type=float, default=100)
    parser.add_argument("--threads", type=int, default=1, help="each with programs and an engine of its own")
    parser.add_argument("--stop", type=int, default=3, help="end after so many findings")
    fixtures = os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")
    parser.add_argument("--fixtures", type=Path, default=Path(fixtures), help="folder with real code")
    options = parser.parse_args(arguments)
    with sooner(options.sooner), ThreadPoolExecutor(options.threads) as pool:
        ended = list(pool.map(partial(soak, options), range(options.seed, options.seed + options.threads)))
    for made, regions, findings in ended:
        ways = ", ".join(f"{count} {way}" for way, count in made.done.most_common())
        print(f"{ways}; regions of {regions} codes put in place; {findings} findings")
    return 1 if any(findings for _, _, findings in ended) else 0


if __name__ == "__main__":
    sys.exit(main())
