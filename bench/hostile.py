"""Code made to be slow to compile, on `auto` against `native`: wall time of many calls, and memory with the compiler's.

python bench/hostile.py [--seconds S] [--gas GAS] [--rounds 3] [NAME …]

Each code runs in a process of its own, on each tier in turn, with a cache folder that has handlers and nothing else: as
many calls as `native` does in S seconds, which is longer than anything is compiled for.
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


def maze(blocks: int = 1_200) -> bytes:
    """Every block leads to two others, by a bit of a number that cannot be predicted."""
    start = assemble("PUSH0 CALLDATALOAD")
    block = "JUMPDEST PUSH1 5 MUL PUSH1 1 ADD DUP1 PUSH1 128 AND PUSH2 {} JUMPI PUSH2 {} JUMP"
    rng, size = random.Random(blocks), len(assemble(block.format(0, 0)))
    ways = [[len(start) + size * rng.randrange(blocks) for _ in range(2)] for _ in range(blocks)]
    return start + b"".join(assemble(block.format(*each)) for each in ways)


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


def measure(name: str, tier: str, given: argparse.Namespace) -> dict[str, float]:
    """So many calls or, with none given, as many as take some seconds."""
    evm = EVM(tier=tier)
    evm.call(bytes(20))  # handlers are loaded before the clock starts
    evm.set_code(HERE, CODES[name]())
    number, started, worked = 0, perf_counter(), thread_time()
    while number < given.calls or (not given.calls and perf_counter() - started < given.seconds):
        evm.call(HERE, number.to_bytes(32, "big"), gas=given.gas)
        number += 1
    whole, work = perf_counter() - started, thread_time() - worked
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"calls": number, "seconds": whole, "work": work, "own": own, "compiler": memory_of(compiler().pid)}


def memory_of(process: int | None) -> float:
    """The most that a process has had, in megabytes; `getrusage` would count what its parent had."""
    if process is None:
        return 0.0
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def in_process(name: str, tier: str, given: argparse.Namespace, calls: int, cache: Path) -> dict[str, float]:
    for kept in ("regions", "schedules"):
        rmtree(cache / kept, ignore_errors=True)
    command = [sys.executable, __file__, "--measure", tier, "--calls", str(calls), "--gas", str(given.gas)]
    done = subprocess.run(
        [*command, "--seconds", str(given.seconds), name],
        env=os.environ | {"FUSEVM_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(name: str, given: argparse.Namespace, cache: Path) -> None:
    """Of several rounds the least: what else the machine does only adds to it."""
    calls = int(in_process(name, "native", given, 0, cache)["calls"])
    rounds: dict[str, list[dict[str, float]]] = {"native": [], "auto": []}
    for _ in range(given.rounds):
        for tier, done in rounds.items():
            done.append(in_process(name, tier, given, calls, cache))
    native, auto = ({what: min(each[what] for each in done) for what in done[0]} for done in rounds.values())
    compiling = max(each["compiler"] for each in rounds["auto"])
    print(
        f"| {name} | {calls:,} | {native['seconds']:.2f} | {auto['seconds']:.2f} "
        f"| {auto['seconds'] / native['seconds']:.2f} | {auto['work'] / native['work']:.2f} "
        f"| {native['own']:.0f} | {auto['own']:.0f} | {auto['own'] / native['own']:.2f} | {compiling:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CODES))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--gas", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.names[0], given.measure, given)))
        return
    print(
        "| code | calls | native, s | auto, s | wall | caller's work | native, MB | auto, MB | memory | compiler, MB |"
    )
    print("| --- " * 10 + "|")
    with TemporaryDirectory() as folder:
        for name in given.names:
            show(name, given, Path(folder))


if __name__ == "__main__":
    main()
