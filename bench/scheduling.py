"""What preparing unseen code costs: the schedule of every contract of the bench and corpus files, and of hostile code.

python bench/scheduling.py [FOLDER OF FIXTURES]
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fusevm.evm.forks import LATEST
from fusevm.native.emit.build import library
from fusevm.native.host.tiers import engine
from fusevm.schedule.build import build_schedule

LEAST = 256  # bytes: shorter code costs what a call costs
SIZE = 24_576
REPEAT = 9
CODE_KEYS = ("code", "creation", "runtime")
HOSTILE = {
    "zeros": bytes(SIZE),
    "JUMPDESTs": b"\x5b" * SIZE,
    "JUMPDEST PUSH0 and so on": b"\x5b\x5f" * (SIZE // 2),
    "JUMPDEST PUSH0 JUMP": b"\x5b\x5f\x56" * (SIZE // 3),
    "JUMPDEST STOP": b"\x5b\0" * (SIZE // 2),
    "JUMPI and so on": b"\x57" * SIZE,
    "GAS and so on": b"\x5a" * SIZE,
    "ADD and so on": b"\x01" * SIZE,
    "JUMPDEST PUSH2 JUMPI to the next": b"".join(
        b"\x5b\x5f\x61%b\x57" % ((6 * n + 6) % SIZE).to_bytes(2, "big") for n in range(SIZE // 6)
    ),
    "ways into a loop": bytes.fromhex("5f5b60088110156012576001016001565b00")
    + b"\x5b\x5f\x60\x01\x56" * (SIZE // 5 - 4),
    "random bytes": random.Random(0).randbytes(SIZE),
    "JUMPDESTs among random bytes": bytes(
        byte if n % 3 else 0x5B for n, byte in enumerate(random.Random(1).choices(range(0x60), k=SIZE))
    ),
}


def codes_in(found: Any) -> Iterator[bytes]:
    if isinstance(found, dict):
        for key, value in found.items():
            if key in CODE_KEYS and isinstance(value, str):
                yield bytes.fromhex(value.removeprefix("0x"))
            else:
                yield from codes_in(value)
    elif isinstance(found, list):
        for each in found:
            yield from codes_in(each)


def contracts(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted([*(folder / "bench").glob("*.json"), *(folder / "corpus").glob("*.json")]):
        seen = {code for code in codes_in(json.loads(path.read_text())) if len(code) >= LEAST}
        for code in sorted(seen, key=len):
            yield path.stem, code


def per_byte(code: bytes, build: Callable[[bytes], object]) -> float:
    """Microseconds, the best of several."""
    clock, fastest = time.perf_counter, float("inf")
    for _ in range(REPEAT):
        started = clock()
        build(code)
        fastest = min(fastest, clock() - started)
    return fastest / len(code) * 1e6


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
    handlers = library().handlers
    plain = engine(tiered=True).codes.maker.plain

    def begun(code: bytes) -> None:
        plain.forget()
        plain.schedule(code, LATEST)

    for title, some in (("contract", list(contracts(folder))), ("made up", list(HOSTILE.items()))):
        bytes_in_all = sum(len(code) for _, code in some)
        fused = [per_byte(code, lambda code: build_schedule(code, LATEST, handlers)) for _, code in some]
        plainly = [per_byte(code, begun) for _, code in some]
        print(f"{title:40}   bytes   µs per byte: fused, and plain as far as its first block")
        for cost, short, (name, code) in sorted(zip(fused, plainly, some, strict=True), reverse=True)[:12]:
            print(f"{name:40} {len(code):7} {cost:9.2f} {short:9.3f}")
        for kind, costs in (("fused", fused), ("plain", plainly)):
            total = sum(cost * len(code) for cost, (_, code) in zip(costs, some, strict=True)) / bytes_in_all
            print(f"{len(some)} {kind}: {total:.3f} µs per byte, from {min(costs):.3f} to {max(costs):.3f}")
        print()


if __name__ == "__main__":
    main()
