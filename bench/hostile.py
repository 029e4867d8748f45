"""Code made to be slow to compile, on `auto` against `native`: wall time of many calls, and memory with the compiler's.

python bench/hostile.py [--calls N] [--gas GAS] [--rounds 3] [NAME …]

Each code runs in a process of its own, on each tier, with a cache folder that has handlers and no regions of it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.lab.ir.hostile import HOSTILE
from fusevm.native.host.compiler import compiler

HERE = b"\xc0" * 20
LARGEST = 24_576  # bytes of a contract


def straight_line() -> bytes:
    """Arithmetic that nothing folds, again and again."""
    piece = assemble("DUP1 CALLER ADD MUL NUMBER XOR")
    start, end = assemble("PUSH0 go: JUMPDEST"), assemble("PUSH1 1 JUMP")
    return start + piece * ((LARGEST - len(start) - len(end)) // len(piece)) + end


def nested_loops(depth: int = 1_000) -> bytes:
    """Each goes round twice, the innermost until gas runs out."""
    heads = [3 * level + 2 for level in range(depth)]
    turns = [assemble(f"PUSH1 1 SWAP1 SUB DUP1 PUSH2 {head} JUMPI POP") for head in reversed(heads)]
    return b"\x60\x02\x5b" * depth + b"".join(turns)


def maze(blocks: int = 2_000) -> bytes:
    """Every block leads to two others."""
    rng, size = random.Random(blocks), len(assemble("JUMPDEST PUSH2 0 CALLDATASIZE JUMPI PUSH2 0 JUMP"))
    ways = [(size * rng.randrange(blocks), size * rng.randrange(blocks)) for _ in range(blocks)]
    return b"".join(assemble(f"JUMPDEST PUSH2 {one} CALLDATASIZE JUMPI PUSH2 {two} JUMP") for one, two in ways)


def exp_tower() -> bytes:
    piece = assemble("CALLER EXP NUMBER ADD")
    start, end = assemble("CALLER go: JUMPDEST"), assemble("PUSH1 1 JUMP")
    return start + piece * ((LARGEST - len(start) - len(end)) // len(piece)) + end


CODES: dict[str, Callable[[], bytes]] = {
    "24 KB in a straight line": straight_line,
    "1,000 nested loops": nested_loops,
    "a maze of jumps": maze,
    "a tower of EXPs": exp_tower,
    "calls into each other": lambda: HOSTILE["calls into each other"](18_000),
    "jumps into each other": lambda: HOSTILE["jumps into each other"](LARGEST),
    "memory that may alias": lambda: HOSTILE["may-alias memory"](LARGEST),
}


def measure(name: str, tier: str, calls: int, gas: int) -> dict[str, float]:
    evm = EVM(tier=tier)
    evm.call(bytes(20))  # handlers are loaded before the clock starts
    evm.set_code(HERE, CODES[name]())
    started, worked = perf_counter(), thread_time()
    for number in range(calls):
        evm.call(HERE, number.to_bytes(32, "big"), gas=gas)
    whole, work = perf_counter() - started, thread_time() - worked
    compiler().stop()  # or nothing is known of its memory
    most = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"seconds": whole, "work": work, "own": most[0], "compiler": most[1]}


def in_process(name: str, tier: str, given: argparse.Namespace, cache: Path) -> dict[str, float]:
    rmtree(cache / "regions", ignore_errors=True)
    command = [sys.executable, __file__, "--measure", tier, "--calls", str(given.calls), "--gas", str(given.gas), name]
    done = subprocess.run(
        command, env=os.environ | {"FUSEVM_CACHE": str(cache)}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(name: str, given: argparse.Namespace, cache: Path) -> None:
    """Of several rounds the least: what else the machine does only adds to it."""
    found = {}
    for tier in ("native", "auto"):
        rounds = [in_process(name, tier, given, cache) for _ in range(given.rounds)]
        found[tier] = {what: min(each[what] for each in rounds) for what in rounds[0]}
    native, auto = found["native"], found["auto"]
    print(
        f"| {name} | {native['seconds']:.2f} | {auto['seconds']:.2f} | {auto['seconds'] / native['seconds']:.2f} "
        f"| {auto['work'] / native['work']:.2f} "
        f"| {native['own']:.0f} | {auto['own']:.0f} | {auto['own'] / native['own']:.2f} | {auto['compiler']:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CODES))
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--gas", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.names[0], given.measure, given.calls, given.gas)))
        return
    print("| code | native, s | auto, s | wall time | caller's work | native, MB | auto, MB | memory | compiler, MB |")
    print("| --- " * 9 + "|")
    with TemporaryDirectory() as folder:
        for name in given.names:
            show(name, given, Path(folder))


if __name__ == "__main__":
    main()
