"""What a call costs before any code runs: STOP on every tier, the best of many short batches; and other ways in.

python bench/call_overhead.py [batches]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fusevm import EVM
from fusevm.tiers import TIERS

HERE = b"\xc0" * 20
BATCH = 200
INIT = bytes.fromhex("5f5ff3") + bytes.fromhex("5b600160020150") * 20


def best(tier: str, batches: int) -> float:
    """Seconds a call, in the batch that was disturbed least."""
    evm = EVM(tier=tier)
    evm.set_code(HERE, b"\0")
    call, clock = evm.call, time.perf_counter
    fastest = float("inf")
    for _ in range(batches):
        started = clock()
        for _ in range(BATCH):
            call(HERE)
        fastest = min(fastest, clock() - started)
    return fastest / BATCH


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main(batches: int = 300) -> None:
    for tier in TIERS:
        print(f"{tier:15} {best(tier, batches if tier != 'lockstep' else batches // 10) * 1e6:7.2f} µs a call")

    alice = b"\xa1" * 20
    for tier in ("auto", "native"):
        evm = EVM(tier=tier)
        evm.set_code(HERE, b"\0")
        evm.set_balance(alice, 1 << 100)
        ways = {
            "call with value": lambda evm=evm: evm.call(HERE, value=1, caller=alice),
            "transaction": lambda evm=evm: evm.transact(alice, HERE, gas=100_000),
        }
        for name, way in ways.items():
            print(f"{tier:15} {min(seconds(way) for _ in range(3_000)) * 1e6:7.2f} µs a {name}")
        new = iter(range(1_000))  # init code is new every time
        taken = min(seconds(lambda: evm.deploy(INIT + next(new).to_bytes(7_000, "big"))) for _ in range(20))  # noqa: B023
        print(f"{tier:15} {taken * 1e3:7.2f} ms a deployment of 7 KB, the most of it code that init code does not run")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
