"""Looks for the program that costs most per unit of gas: wall time, or memory. Hill climbing over looping programs.

    python -m fusevm.lab.fuzz.costs --tier auto --seconds 300          worst time per gas
    python -m fusevm.lab.fuzz.costs --tier native --what memory        worst memory per gas

A program is a loop of statements, the code it calls, a fork and an amount of gas. A climb changes one of these at a
time and keeps what costs more; climbs start again from random programs until the time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from fusevm.api import EVM
from fusevm.chain.outcome import EngineLimit
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME

HERE, OTHER = bytes.fromhex("c0" * 20), bytes.fromhex("07" * 20)
PRECOMPILES = range(1, 18)
STALL = 12  # changes without improvement before a climb ends
GASES = (30_000, 300_000, 3_000_000, 30_000_000)
LEAST_FOR_MEMORY = 3_000_000  # gas

# Statements find a counter on top of the stack and leave it there.
_WORDS = (
    "DUP1",
    "PUSH1 0",
    "PUSH1 1",
    "PUSH2 0x1234",
    "PUSH32 0x" + "f7" * 32,
    "DUP1 PUSH1 7 SHL",
    "CALLER",
    "ADDRESS",
)
_PURE = [
    name for name, op in BY_NAME.items() if op.pushes == 1 and 1 <= op.pops <= 3 and not op.dynamic and not op.reads
]
_ASKING = ["BALANCE", "EXTCODESIZE", "EXTCODEHASH", "SLOAD", "TLOAD", "BLOCKHASH", "BLOBHASH", "CALLDATALOAD"]
_ALONE = ["GAS", "MSIZE", "PC", "SELFBALANCE", "CALLDATASIZE", "RETURNDATASIZE", "BLOBBASEFEE", "NUMBER", "CODESIZE"]
_SIZES = ("PUSH1 0", "PUSH1 32", "PUSH2 0x0400", "PUSH3 0x006000", "PUSH3 0x020000")
_ENDS = (
    *("STOP", "INVALID", "ADD ADD ADD", "PUSH1 3 JUMP", "PUSH1 32 PUSH1 0 RETURN", "PUSH1 32 PUSH1 0 REVERT"),
    *("PUSH3 0x006000 PUSH1 0 RETURN", "DUP1 SELFDESTRUCT", "CALLER SELFDESTRUCT", "ADDRESS SELFDESTRUCT"),
)


def statement(rng: random.Random) -> str:
    word, size = rng.choice(_WORDS), rng.choice(_SIZES)
    kinds: list[Callable[[], str]] = [
        lambda: _pure(rng),
        lambda: f"{word} {rng.choice(_ASKING)} POP",
        lambda: f"{rng.choice(_ALONE)} POP",
        lambda: f"{word} DUP2 SSTORE" if rng.random() < 0.5 else f"DUP1 {word} SSTORE",
        lambda: f"{word} DUP2 TSTORE" if rng.random() < 0.5 else f"DUP1 {word} TSTORE",
        lambda: f"{size} PUSH1 0 KECCAK256 POP",
        lambda: f"{size} {rng.choice(_SIZES)} PUSH1 0 {rng.choice(('CALLDATACOPY', 'CODECOPY', 'MCOPY'))}",
        lambda: f"{size} PUSH1 0 PUSH1 0 {rng.choice(('DUP4', 'ADDRESS'))} EXTCODECOPY",
        lambda: f"{'DUP1 ' * (count := rng.randrange(5))}{size} PUSH1 0 LOG{count}",
        lambda: f"DUP1 {rng.choice(_SIZES)} {rng.choice(('MSTORE', 'MSTORE8'))}",
        lambda: _call(rng, f"PUSH20 0x{OTHER.hex()}"),
        lambda: _call(rng, "DUP{depth}"),
        lambda: _call(rng, f"PUSH2 {rng.choice(PRECOMPILES)}"),
        lambda: _call(rng, "ADDRESS"),
        lambda: f"{size} PUSH1 0 PUSH1 {rng.choice((0, 0, 1))} CREATE POP",
        lambda: f"DUP1 {size} PUSH1 0 PUSH1 0 CREATE2 POP",
        lambda: f"PUSH{(n := rng.choice((3, 4, 10)))} 0x{rng.choice(('00', '5b', 'fe')) * n} PUSH1 0 MSTORE",
    ]
    return rng.choice(kinds)()


def _pure(rng: random.Random) -> str:
    op = BY_NAME[rng.choice(_PURE)]
    words = " ".join(rng.choice([word for word in _WORDS if "DUP" not in word]) for _ in range(op.pops))
    return f"{words} {op.name} POP"


def _call(rng: random.Random, target: str) -> str:
    kind = rng.choice(("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"))
    gas = rng.choice(("PUSH1 0", "PUSH2 105", "PUSH2 2700", "PUSH3 60000", "GAS"))
    data, out = rng.choice(("PUSH1 0", "PUSH1 32", "PUSH2 192")), rng.choice(("PUSH1 0", "PUSH1 32"))
    value = f"PUSH1 {rng.choice((0, 0, 1))} " if kind in ("CALL", "CALLCODE") else ""
    depth = 5 + bool(value)
    return f"DUP1 PUSH1 0 MSTORE {out} PUSH1 0 {data} PUSH1 0 {value}{target.format(depth=depth)} {gas} {kind} POP"


@dataclass(frozen=True)
class Genome:
    body: tuple[str, ...]
    callee: tuple[str, ...]  # runs with the caller's counter, if that was handed over
    ending: str  # of the callee
    padding: int  # bytes of JUMPDESTs after the callee
    fork: Fork
    gas: int

    def code(self) -> bytes:
        return assemble("PUSH1 1 loop: JUMPDEST " + " ".join(self.body) + " PUSH1 1 ADD PUSH2 @loop JUMP")

    def callee_code(self) -> bytes:
        return assemble("PUSH1 0 CALLDATALOAD " + " ".join(self.callee) + " " + self.ending) + b"\x5b" * self.padding

    def changed(self, rng: random.Random) -> Genome:
        what = rng.choice(("body", "body", "body", "callee", "ending", "fork", "gas", "padding"))
        if what in ("body", "callee"):
            statements = list(getattr(self, what))
            at = rng.randrange(len(statements) + 1)
            statements[at : at + rng.randrange(2)] = [statement(rng) for _ in range(rng.choice((0, 1, 1, 2)))]
            kept = tuple(statements[:12])
            return replace(self, body=kept) if what == "body" else replace(self, callee=kept)
        if what == "ending":
            return replace(self, ending=rng.choice(_ENDS))
        if what == "fork":
            return replace(self, fork=rng.choice(list(Fork)))
        if what == "gas":
            return replace(self, gas=rng.choice(GASES))
        return replace(self, padding=rng.choice((0, 0, 1000, 24_000)))


def random_genome(rng: random.Random, forks: list[Fork]) -> Genome:
    body = tuple(statement(rng) for _ in range(rng.randrange(1, 4)))
    callee = tuple(statement(rng) for _ in range(rng.randrange(3)))
    return Genome(body, callee, rng.choice(_ENDS), 0, rng.choice(forks), rng.choice(GASES))


def machine(genome: Genome, tier: str) -> EVM:
    evm = EVM(genome.fork, tier)
    evm.set_code(HERE, genome.code())
    evm.set_code(OTHER, genome.callee_code())
    for address in (HERE, OTHER):
        evm.set_balance(address, 1 << 100)
    return evm


def time_per_gas(genome: Genome, tier: str) -> float:
    """Nanoseconds per gas, the best of two runs on a new state; the engine itself has run before."""
    best = float("inf")
    for _ in range(2):
        evm = machine(genome, tier)
        started = time.perf_counter()
        used = evm.call(HERE, gas=genome.gas, caller=OTHER).gas_used
        best = min(best, (time.perf_counter() - started) * 1e9 / max(used, 21_000))
    return best


def memory_per_gas(genome: Genome, tier: str) -> float:
    """Bytes of resident memory per gas, at the highest point of a run in a process of its own.

    With little gas it is the engine's own memory that counts.
    """
    genome = replace(genome, gas=max(genome.gas, LEAST_FOR_MEMORY))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer = "0"
        try:
            evm = machine(genome, tier)
            before = _resident()
            used = evm.call(HERE, gas=genome.gas, caller=OTHER).gas_used
            answer = str(max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before, 0) / max(used, 21_000))
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return float(answer or 0)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


MEASURES = {"time": (time_per_gas, "ns/gas"), "memory": (memory_per_gas, "bytes/gas")}


def climb(rng: random.Random, forks: list[Fork], cost: Callable[[Genome], float], until: float) -> tuple[float, Genome]:
    genome = random_genome(rng, forks)
    worst, vain = cost(genome), 0
    while vain < STALL and time.monotonic() < until:
        other = genome.changed(rng)
        if not other.body or other.fork not in forks:
            continue
        found = cost(other)
        if found > worst * 1.02:
            genome, worst, vain = other, found, 0
        else:
            vain += 1
    return worst, genome


def search(
    tier: str, what: str, seconds: float, seed: int, forks: list[Fork], shown: int
) -> list[tuple[float, Genome]]:
    measure, unit = MEASURES[what]
    rng, until = random.Random(seed), time.monotonic() + seconds

    def cost(genome: Genome) -> float:
        try:
            return measure(genome, tier)
        except EngineLimit as error:
            print(f"{type(error).__name__}: {error}: {genome}", file=sys.stderr)
            return 1e9

    cost(random_genome(rng, forks))  # the engine is made ready
    found: list[tuple[float, Genome]] = []
    climbs = 0
    while time.monotonic() < until:
        found.append(climb(rng, forks, cost, until))
        climbs += 1
        found = sorted(found, key=lambda each: -each[0])[:shown]
        print(f"\r{climbs} climbs, worst {found[0][0]:.1f} {unit}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [(max(cost(genome), 0.0), genome) for _, genome in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", default="auto")
    parser.add_argument("--what", choices=list(MEASURES), default="time")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fork", action="append", help="only this fork; may be given again (default: all)")
    parser.add_argument("--shown", type=int, default=8, help="how many programs are shown")
    parser.add_argument("--against", help="another tier, to show what the same programs cost there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from fusevm.evm.forks import fork_named

    forks = [fork_named(name) for name in options.fork] if options.fork else list(Fork)
    found = search(options.tier, options.what, options.seconds, options.seed, forks, options.shown)
    found.sort(key=lambda each: -each[0])
    measure, unit = MEASURES[options.what]
    if options.json:
        rows = [
            {
                "cost": cost,
                "unit": unit,
                "fork": g.fork.label,
                "gas": g.gas,
                "code": g.code().hex(),
                "callee": g.callee_code().hex(),
                **({options.against: measure(g, options.against)} if options.against else {}),
            }
            for cost, g in found
        ]
        print(json.dumps(rows, indent=1))
        return
    for cost, genome in found:
        other = f" ({options.against}: {measure(genome, options.against):.2f})" if options.against else ""
        where = f"{genome.fork.label}, {genome.gas:,} gas, {genome.padding:,} bytes of padding"
        print(f"{cost:9.2f} {unit}{other}  {where}")
        print("    loop:   " + " | ".join(genome.body))
        print("    callee: " + " | ".join((*genome.callee, genome.ending)))


if __name__ == "__main__":
    main()
