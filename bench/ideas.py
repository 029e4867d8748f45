"""What each idea brings: contracts and short calls on `auto`, with one idea after another switched off.

python bench/ideas.py [--rounds 3] [--seconds 0.5] [--dir FOLDER] [NAME …]

A figure says how many times as long a call takes without the idea (`FUSEVM_WITHOUT`, `native/switches.py`). Each
combination runs in a process of its own, one after another, in rounds; the best run counts, and all are checked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter, thread_time

from fusevm.lab.peers.bench import bench_files, geometric_mean
from fusevm.lab.peers.ours import OurTier
from fusevm.native.host.compiler import compiler
from fusevm.native.switches import SWITCHES

FILES = (
    "snailtracer", "evmone-snailtracer", "evmone-blake2b_shifts", "evmone-sha1_shifts", "evmone-structarray_alloc",
    "erc20-transfer", "erc20-mint", "ten-thousand-hashes", "revmc-hash_10k", "revmc-fibonacci-calldata",
    "revmc-weth", "revmc-counter", "revmc-push0_proxy",
)  # fmt: skip
LEAST = 20  # runs


def measure(folder: Path, names: list[str], seconds: float) -> dict[str, float]:
    """Seconds a call takes by this process, at best, once hot code is compiled."""
    tier, found = OurTier("auto"), {}
    tier.settles = True
    for file in bench_files(folder, names):
        run = tier.stopwatch(file.work)
        tier.settle(run)
        best, turns, began = float("inf"), 0, perf_counter()
        while turns < LEAST or perf_counter() - began < seconds:
            started = thread_time()
            seen = run()
            # A run that was interrupted took longer than this thread worked; a short one less than the clock can tell.
            best = min(best, seen.seconds, max(thread_time() - started, 0.0))
            turns += 1
            fault = file.fault(seen)
            if fault:
                raise SystemExit(f"{file.name}: {fault}")
        found[file.name] = best
        if compiler().failed:
            print(f"{file.name}: a compilation was given up, the machine is too busy", file=sys.stderr)
            compiler().failed = 0
    return found


def in_process(without: str, folder: Path, names: list[str], seconds: float) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", "--seconds", str(seconds), "--dir", str(folder), *names]
    done = subprocess.run(
        command, env=os.environ | {"FUSEVM_WITHOUT": without}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(FILES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument(
        "--dir", type=Path, default=Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")) / "bench"
    )
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.dir, given.names, given.seconds)))
        return
    kinds = ["", *SWITCHES, ",".join(SWITCHES)]
    best: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
    for _ in range(given.rounds):
        for kind in kinds:
            for name, taken in in_process(kind, given.dir, given.names, given.seconds).items():
                best[kind][name] = min(taken, best[kind].get(name, taken))
    print(f"| contract | µs | {' | '.join(f'without {name}' for name in SWITCHES)} | without all |")
    print("| --- " * (len(kinds) + 1) + "|")
    for name, whole in best[""].items():
        print(f"| {name} | {whole * 1e6:,.0f} |" + "".join(f" {best[kind][name] / whole:.2f} |" for kind in kinds[1:]))
    means = [geometric_mean([best[kind][name] / best[""][name] for name in best[""]]) for kind in kinds[1:]]
    print("| geometric mean | |" + "".join(f" {mean:.2f} |" for mean in means))


if __name__ == "__main__":
    main()
