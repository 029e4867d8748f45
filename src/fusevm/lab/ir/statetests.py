"""Ethereum's state tests with every frame run from the IR that becomes native code: gas must be exact.

python -m fusevm.lab.ir.statetests ../shared/fixtures/state_tests.tar.xz [--every 10] [--plain]
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fusevm.ir.fold.stages import EVERYTHING
from fusevm.lab.ir.evaluate import BrokenPromise
from fusevm.lab.ir.functions import functions_of
from fusevm.lab.ir.region_tier import RegionTier
from fusevm.lab.official.statetest import CaseVerdict, StateCase, cases_in, run_case


def cases(archive: Path) -> Iterator[StateCase]:
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.name.endswith(".json") else None
            if content is not None:
                yield from cases_in(json.load(content))


def judged(case: StateCase, tier: RegionTier) -> CaseVerdict:
    try:
        return run_case(case, tier)
    except (BrokenPromise, KeyError, AssertionError) as broken:
        return CaseVerdict(False, f"breaks a promise: {broken!r}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.ir.statetests")
    parser.add_argument("archive", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only every so many cases")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--plain", action="store_true", help="lifted, not folded")
    chosen = parser.parse_args()
    make = partial(functions_of, stages=None if chosen.plain else EVERYTHING)
    tier, began, passed, failed = RegionTier(make), time.perf_counter(), 0, 0
    for number, case in enumerate(cases(chosen.archive)):
        if number % chosen.every != chosen.first:
            continue
        verdict = judged(case, tier)
        passed, failed = passed + verdict.passed, failed + (not verdict.passed)
        if not verdict.passed:
            print(f"FAILED {case.name}: {verdict.reason[:300]}", flush=True)
    print(f"{tier.entered:,} times a function was entered")
    print(f"{passed} passed, {failed} failed, {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
