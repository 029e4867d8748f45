"""What `auto` costs over the life of a program: many contracts, callers and phases, not one file in a loop.

python bench/lives.py [NAME…] [--seconds 5] [--json] [--list]

Each life runs in a process of its own with no regions on disk, on `native`, `regions` and `auto` in turns of 20 ms, so
that noise is shared. Processor time per step:

- *first second*: of `auto`, against `native` for the same steps, from the first call on;
- *settled*: the last third of `auto`'s steps, against the better of `native` and `regions` for these steps;
- *whole*: all steps of `auto`, against `native`;
- *counting*: the share of work that `auto` spent on it;
- *settled after*: seconds of work until the last request, installation or end of a trial.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from fusevm import EVM
from fusevm.native.host.tiers import engine
from life_programs import LIVES, Life

TIERS = "native", "regions", "auto"
TURN = 0.02  # seconds
KEPT_FOLDERS = "regions", "schedules"  # in the cache: what a process leaves for the next


class Curve:
    """Processor time of a life, turn by turn."""

    def __init__(self, steps: Iterator[object]) -> None:
        self._steps = steps
        self.turns: list[tuple[int, float]] = []  # steps, seconds

    def turn(self) -> None:
        done, started = 0, process_time()
        while True:
            next(self._steps)
            done += 1
            seconds = process_time() - started
            if seconds >= TURN:
                break
        self.turns.append((done, seconds))

    @property
    def steps(self) -> int:
        return sum(steps for steps, _ in self.turns)

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.turns)

    def until(self, steps: float) -> float:
        """Seconds that the first steps took; beyond the last turn, as the last third of them."""
        seconds = 0.0
        for done, taken in self.turns:
            if done >= steps:
                return seconds + taken * steps / done
            steps, seconds = steps - done, seconds + taken
        return seconds + steps * self.settled

    @property
    def settled(self) -> float:
        """Seconds per step of the last third: the median turn."""
        late = self.turns[-max(1, len(self.turns) // 3) :]
        return median(seconds / steps for steps, seconds in late)


def live(name: str, seconds: float) -> dict[str, Any]:
    life: Life = LIVES[name]
    for tier in TIERS:
        EVM(tier=tier).call(bytes(20))  # handlers are loaded before the clock starts
    curves = {tier: Curve(life(tier)) for tier in TIERS}
    auto, changed, before = curves["auto"], 0.0, None
    while auto.seconds < seconds:
        for tier in TIERS:
            curves[tier].turn()
        if before != (before := _state()):
            changed = auto.seconds
    first = next(at for at, _ in enumerate(auto.turns) if sum(taken for _, taken in auto.turns[: at + 1]) >= 1.0)
    early = sum(steps for steps, _ in auto.turns[: first + 1])
    native, regions = curves["native"].settled, curves["regions"].settled
    codes = engine(tiered=True).codes
    policy = codes.hot_code.policy
    return {
        "life": name,
        "native": native,
        "regions": regions,
        "first_second": auto.until(early) / curves["native"].until(early),
        "auto": auto.settled,
        "settled": auto.settled / min(native, regions),
        "whole": auto.seconds / curves["native"].until(auto.steps),
        "counting": policy.spent / policy.work if policy and policy.work else 0.0,
        "windows": policy.windows if policy else 0,
        "requests": policy.requests if policy else 0,
        "installed": codes.hot_code.installed,
        "settled_after": changed,
    }


def _state() -> object:
    codes = engine(tiered=True).codes
    policy = codes.hot_code.policy
    return policy and (policy.requests, codes.hot_code.installed, policy.trial is None)


def in_a_process(name: str, seconds: float, cache: Path) -> dict[str, Any]:
    for folder in KEPT_FOLDERS:
        rmtree(cache / folder, ignore_errors=True)
    command = [sys.executable, __file__, "--child", name, "--seconds", str(seconds)]
    environment = {**os.environ, "FUSEVM_CACHE": str(cache)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


HEAD = (
    f"{'life':24} {'native µs':>10} {'regions µs':>10} {'auto µs':>10}  first settled whole  "
    "counting, windows, requests, regions; settled after"
)


def row(found: dict[str, Any]) -> str:
    times = " ".join(f"{found[tier] * 1e6:10.1f}" for tier in TIERS)
    ratios = " ".join(f"{found[each]:6.2f}" for each in ("first_second", "settled", "whole"))
    counts = " ".join(f"{found[each]:4d}" for each in ("windows", "requests", "installed"))
    return f"{found['life']:24} {times}  {ratios}  {found['counting']:6.1%} {counts}  {found['settled_after']:5.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of lives; all of them otherwise")
    parser.add_argument("--seconds", type=float, default=5.0, help="of processor time on `auto`")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the names and what each life does")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(live(given.child, given.seconds)))
        return
    if given.list:
        for name, life in LIVES.items():
            print(f"{name:24} {(life.__doc__ or '').splitlines()[0]}")
        return
    unknown = set(given.names) - LIVES.keys()
    if unknown:
        parser.error(f"no life is called {', '.join(sorted(unknown))}; --list names them")
    found = []
    with TemporaryDirectory() as cache:
        if not given.json:
            print(HEAD)
        for name in given.names or LIVES:
            found.append(in_a_process(name, given.seconds, Path(cache)))
            if not given.json:
                print(row(found[-1]), flush=True)
    if given.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
