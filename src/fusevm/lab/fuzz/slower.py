"""Looks for random programs that a tier runs slower than the reference tier, and says by how much.

    python -m fusevm.lab.fuzz.slower --programs 900                  `auto` against the reference tier
    python -m fusevm.lab.fuzz.slower --tier native --fork osaka      another tier, one fork

A program's transaction runs on a new copy of its state each time, the tiers taking turns. The best of a few runs of
which each begins with no code known counts as "first", the best of the rest as "warm". What seems slower is measured
again, so that a disturbance is not reported.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import math
import pstats
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fusevm.api import EVM
from fusevm.chain.reasons import Rejected
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.fuzz.generator import program
from fusevm.lab.peers.bench import geometric_mean
from fusevm.lab.peers.ours import OurTier, transact
from fusevm.lab.peers.work import PeerWork
from fusevm.native.emit.crypto import FAMILIES, library
from fusevm.native.host.tiers import engines
from fusevm.reference.frame import jump_map, padded

JUDGE = "reference"
TOLERANCE, MOMENT = 1.1, 5e-6  # a tier is slower if it takes more than this factor, and this many seconds longer
FIRST_ROUNDS, ROUNDS = 3, 16
AGAIN = 3  # times as many rounds for what seems slower
PROFILED = 200  # runs of a program whose time is broken down


@dataclass(slots=True)
class Times:
    """Seconds on the reference tier and on the other."""

    judge: float = math.inf
    tier: float = math.inf

    @property
    def ratio(self) -> float:
        return self.tier / self.judge

    @property
    def slower(self) -> bool:
        return self.tier > self.judge * TOLERANCE + MOMENT

    def as_json(self) -> dict[str, float]:
        return {JUDGE: self.judge, "tier": self.tier, "ratio": self.ratio}


@dataclass(slots=True)
class SlowerRow:
    seed: str
    fork: Fork
    status: str
    first: Times
    warm: Times

    def as_json(self) -> dict[str, Any]:
        times = {"first": self.first.as_json(), "warm": self.warm.as_json()}
        return {"seed": self.seed, "fork": self.fork.label, "status": self.status, **times}


def run_once(work: PeerWork, tier: str) -> tuple[float, str]:
    """Seconds the transaction takes on a new copy of the state, and how it ends."""
    evm = EVM(work.fork, tier, block=work.block, state=work.state())
    started = perf_counter()
    result = transact(evm, work.transaction)
    return perf_counter() - started, result.status.value


def measure(seed: str, fork: Fork, tier: str, rounds: int = ROUNDS) -> SlowerRow | None:
    """None where the transaction is rejected."""
    work = program(seed, fork).work()
    try:
        _, status = run_once(work, JUDGE)
    except Rejected:
        return None
    row = SlowerRow(seed, fork, status, Times(), Times())
    better(row.first, work, tier, FIRST_ROUNDS, forgets=True)
    if row.first.slower:
        better(row.first, work, tier, AGAIN * FIRST_ROUNDS, forgets=True)
    better(row.warm, work, tier, rounds)
    if row.warm.slower:
        better(row.warm, work, tier, AGAIN * rounds)
    return row


def better(times: Times, work: PeerWork, tier: str, rounds: int, *, forgets: bool = False) -> None:
    for _ in range(rounds):
        if forgets:
            forget_code()
        times.judge = min(times.judge, run_once(work, JUDGE)[0])
        times.tier = min(times.tier, run_once(work, tier)[0])


def forget_code() -> None:
    """What this thread's engines and the reference tier know of code; what is on disk stays."""
    for engine in engines():
        engine.codes.forget()
        engine.choice.forget()
    jump_map.clear()
    padded.clear()


def survey(programs: int, seed: int, forks: Sequence[Fork], tier: str) -> list[SlowerRow]:
    for name in (JUDGE, tier):
        OurTier(name)  # whatever must be loaded, or built, is so before any clock starts
    if tier != JUDGE:
        for family in FAMILIES:
            library(family)
    rows = []
    enabled = gc.isenabled()
    gc.disable()  # a collection would be charged to the run it interrupts
    try:
        for index in range(programs):
            row = measure(f"{seed}.{index}", forks[index % len(forks)], tier)
            if row is not None:
                rows.append(row)
            if index % 50 == 0:
                gc.collect()
    finally:
        if enabled:
            gc.enable()
    return rows


def spent_on(row: SlowerRow, tier: str) -> list[str]:
    """The functions that a program's run spends most of its time in, with their share."""
    work = program(row.seed, row.fork).work()
    machines = [EVM(work.fork, tier, block=work.block, state=work.state()) for _ in range(PROFILED)]
    profile = cProfile.Profile()
    for evm in machines:
        profile.enable()
        transact(evm, work.transaction)
        profile.disable()
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(each[2] for each in stats.values())
    worst = sorted(stats.items(), key=lambda item: -item[1][2])[:3]
    return [f"{Path(place[0]).name}:{place[2]} {100 * each[2] / total:.0f} %" for place, each in worst]


def summary(rows: Sequence[SlowerRow], kind: str) -> dict[str, Any]:
    times: list[Times] = [getattr(row, kind) for row in rows]
    return {
        "programs": len(rows),
        "slower": sum(each.slower for each in times),
        "worst": max((each.ratio for each in times), default=1.0),
        "geometric_mean": geometric_mean(each.ratio for each in times),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fork", action="append", help="only this fork; may be given again (default: all)")
    parser.add_argument("--tier", default="auto")
    parser.add_argument("--shown", type=int, default=8, help="how many of the slower programs are shown")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    forks = [fork_named(name) for name in options.fork] if options.fork else list(Fork)
    rows = survey(options.programs, options.seed, forks, options.tier)
    if options.json:
        slower = [row.as_json() for row in _worst(rows, "warm") if row.warm.slower]
        kinds = {kind: summary(rows, kind) for kind in ("first", "warm")}
        print(json.dumps({"tier": options.tier, "seed": options.seed, **kinds, "slower": slower}, indent=1))
        return
    for kind in ("first", "warm"):
        found = summary(rows, kind)
        print(
            f"{kind} runs: {found['slower']:,} of {found['programs']:,} programs slower on {options.tier} than on "
            f"{JUDGE}, at worst {found['worst']:.2f} times; geometric mean {found['geometric_mean']:.3f}"
        )
        for row in _worst(rows, kind)[: options.shown]:
            times: Times = getattr(row, kind)
            if times.slower:
                where = ", ".join(spent_on(row, options.tier)) if kind == "warm" else ""
                told = f"{times.tier * 1e6:7.0f} against {times.judge * 1e6:.0f} µs"
                print(f"{told}  {row.seed} {row.fork.label} {row.status}  {where}")


def _worst(rows: Sequence[SlowerRow], kind: str) -> list[SlowerRow]:
    return sorted(rows, key=lambda row: -getattr(row, kind).ratio)


if __name__ == "__main__":
    main()
