"""Programs with regions forced into them, against the reference tier: with gas enough and with too little.

`python -m fusevm.lab.regions.campaign --programs N --seed S [--kind functions] [--way every] [--fixtures DIR]` compares
status, gas, refund, output, logs, state, and reason and place of a failure; and requires that no call was silently run
again on another engine. Programs run in child processes: one that ends in a crash of native code is reported like any
other difference, and the campaign goes on after it.
Most programs are small, and have regions at a few of the places that their run comes to: many of those find more in the
same time than few large ones with regions everywhere, which are there too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from fusevm.lab.fuzz.differential import differences
from fusevm.lab.fuzz.generator import CONTRACTS
from fusevm.lab.fuzz.program import Program
from fusevm.lab.fuzz.shrink import shrink
from fusevm.lab.fuzz.starve import random_gas, traced
from fusevm.lab.peers.work import Observation, PeerWork
from fusevm.lab.regions.cases import KINDS, case, with_code, with_gas, without_most
from fusevm.lab.regions.engines import WAYS, engine_for, reference, regions_noted, slices_of
from fusevm.native.emit.build import library
from fusevm.native.host.engine import SLICE

SLICES = (SLICE, SLICE, SLICE, 30_000, 3_000, 400)
CHUNK = 2_000  # programs of one child process
# One of these; the others besides. Where exits are compared too, what they leave wrong need not be seen later.
_FIRST = {"lockstep": 0.5, "reached": 0.4, "every": 0.1}
_CHANCES = {"every-1": 0.02, "chosen": 0.06, "hot": 0.08}
EXERCISED = ("regions", "loops in regions", "calls in regions", "exits")


@dataclass(slots=True)
class CampaignOptions:
    programs: int
    seed: int = 0
    limits: int = 14  # gas limits at which each is starved
    kind: str | None = None
    way: str | None = None
    fixtures: Path | None = None
    shrink: int = 400  # attempts


@dataclass(slots=True)
class RegionFinding:
    seed: str
    way: str
    gas: int
    slice: int
    what: str
    listing: str = ""

    def __str__(self) -> str:
        return (
            f"seed {self.seed} ({self.way}, gas {self.gas}, slice {self.slice}): {self.what}\n{self.listing}".rstrip()
        )


def ways_of(rng: Random, options: CampaignOptions) -> list[str]:
    drawn = rng.choices(list(_FIRST), list(_FIRST.values()))
    drawn += [way for way, chance in _CHANCES.items() if rng.random() < chance]
    return drawn if options.way is None else [options.way]


def check(made: Program, options: CampaignOptions) -> tuple[RegionFinding | None, Counter[str]]:
    """Compares the engines on one program; what differs first, and what was done."""
    rng, done = Random(f"{made.seed}/ways"), Counter[str](programs=1)
    work, slice_ = made.work(), rng.choice(SLICES)
    critical, places = traced(work)
    limits = [work.transaction.gas_limit, *_limits(work, critical, rng, options.limits)]
    expected = {gas: reference(work.with_gas(gas)) for gas in dict.fromkeys(limits)}
    done[expected[limits[0]].status] += 1
    for way in ways_of(rng, options):
        with regions_noted(done):
            found = judged(work, way, slice_, expected, places, done)
        if found is not None:
            found.seed = made.seed
            return found, done
    return None, done


def judged(
    work: PeerWork,
    way: str,
    slice_: int,
    expected: dict[int, Observation],
    places: frozenset[int] = frozenset(),
    done: Counter[str] | None = None,
) -> RegionFinding | None:
    gas = work.transaction.gas_limit
    try:
        with slices_of(slice_):
            engine = engine_for(way, work, places)
            for gas, wanted in expected.items():
                seen, reruns = engine.run(work.with_gas(gas)), engine.reruns
                what = difference(wanted, seen) or (f"{reruns} silent reruns" if reruns else "")
                if done is not None:
                    done["runs"] += 1
                if what:
                    return RegionFinding("", way, gas, slice_, what)
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        return RegionFinding("", way, gas, slice_, "crash: " + "\n".join([lines[-1], *lines[-9:-1]]))
    return None


def difference(expected: Observation, seen: Observation) -> str:
    found = [f"{name}: reference {one}, regions {other}" for name, one, other in differences(expected, seen)]
    if expected.reason != seen.reason:
        found.append(f"failure: reference {expected.reason!r}, regions {seen.reason!r}")
    return "\n".join(found)


def _limits(work: PeerWork, critical: list[int], rng: Random, count: int) -> list[int]:
    most = max(count - 2, 0)
    return [*(rng.sample(critical, most) if len(critical) > most else critical), *random_gas(work, rng, min(count, 2))]


# -- shrinking ------------------------------------------------------------------------------------------------------


def shrunk(made: Program, found: RegionFinding, attempts: int) -> tuple[Program, RegionFinding]:
    """The smallest program that fails in the same field."""
    field = found.what.split(":", 1)[0]
    made = with_gas(made, found.gas)

    def failing(tried: Program) -> bool:
        try:
            work = tried.work()
            wanted = {work.transaction.gas_limit: reference(work)}
            again = judged(work, found.way, found.slice, wanted, traced(work)[1])
        except Exception:
            return False
        return again is not None and again.what.split(":", 1)[0] == field

    smallest = shrink(made, failing, attempts)
    items = smallest.accounts[CONTRACTS[0]].code.items if CONTRACTS[0] in smallest.accounts else []
    if len(items) == 1 and items[0].op == "DATA":
        smallest = _emptied(smallest, failing, attempts)
    work = smallest.work()
    wanted = {work.transaction.gas_limit: reference(work)}
    final = judged(work, found.way, found.slice, wanted, traced(work)[1]) or found
    final.seed = found.seed
    final.listing = smallest.listing()
    return smallest, final


def _emptied(made: Program, failing: Any, attempts: int) -> Program:
    """Code whose jumps are numbers is not cut but overwritten."""
    progress = True
    while progress and attempts > 0:
        progress = False
        for code in without_most(made.accounts[CONTRACTS[0]].code.encode()):
            attempts -= 1
            tried = with_code(made, code)
            if failing(tried):
                made, progress = tried, True
                break
            if attempts <= 0:
                break
    return made


# -- processes ------------------------------------------------------------------------------------------------------


def run_child(options: CampaignOptions, first: int, last: int) -> None:
    """Says which program begins, then what came of it: a line of JSON each."""
    gc.set_threshold(100_000, 50, 100)  # LLVM's text is made of many objects, and a third of the time went into this
    library()
    gc.freeze()  # what is there now stays
    for number in range(first, last):
        seed = f"{options.seed}.{number}"
        print(json.dumps({"begins": seed}), flush=True)
        made = case(seed, options.fixtures, options.kind, small=True)
        found, done = check(made, options)
        if found is not None and options.shrink:
            _, found = shrunk(made, found, options.shrink)
        print(json.dumps({"done": done, "found": None if found is None else str(found)}), flush=True)


def run_parent(options: CampaignOptions, arguments: list[str]) -> Iterator[tuple[Counter[str], str | None]]:
    number = 0
    while number < options.programs:
        last = min(number + CHUNK, options.programs)
        command = [sys.executable, "-m", "fusevm.lab.regions.campaign", *arguments, "--child", str(number), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    said = json.loads(line)
                    if "done" in said:
                        number += 1
                        yield Counter(said["done"]), said["found"]
            except GeneratorExit:  # the rest would be noise
                child.kill()
                raise
        if child.returncode:  # in the middle of a program
            yield (
                Counter(programs=1, crashes=1),
                f"seed {options.seed}.{number}: the process ended with {child.returncode}",
            )
            number += 1


def parsed(arguments: list[str]) -> tuple[CampaignOptions, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.regions.campaign", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same programs")
    parser.add_argument("--limits", type=int, default=14, help="gas limits at which each program is starved")
    parser.add_argument("--kind", choices=sorted(set(KINDS)), help="of program (all)")
    parser.add_argument("--way", choices=WAYS, help="of choosing regions (drawn)")
    parser.add_argument("--fixtures", type=Path, default=None, help="folder with real code (FUSEVM_FIXTURES)")
    parser.add_argument("--shrink", type=int, default=400, help="attempts to make a program smaller; 0: none")
    parser.add_argument("--stop", type=int, default=0, help="end after so many findings")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long")
    parser.add_argument("--only", type=int, help="the program with this number alone, in this process")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    fixtures = given.fixtures or Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
    return CampaignOptions(
        given.programs, given.seed, given.limits, given.kind, given.way,
        fixtures.resolve() if fixtures.is_dir() else None, given.shrink,
    ), given  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options, given = parsed(arguments)
    if given.child or given.only is not None:
        run_child(options, *(given.child or (given.only, given.only + 1)))
        return 0
    total, findings, started = Counter[str](), 0, perf_counter()
    for done, found in run_parent(options, arguments):
        total += done
        if found is not None:
            findings += 1
            print(found, "\n", flush=True)
        if (given.stop and findings >= given.stop) or (given.seconds and perf_counter() - started > given.seconds):
            break
    statuses = ", ".join(f"{total[name]:,} {name}" for name in ("success", "revert", "halt", "rejected") if total[name])
    exercised = ", ".join(f"{total[name]:,} {name}" for name in EXERCISED)
    print(
        f"{total['programs']:,} programs ({statuses}), {total['runs']:,} runs with regions ({exercised}): "
        f"{findings:,} findings, {perf_counter() - started:.0f} s"
    )
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
