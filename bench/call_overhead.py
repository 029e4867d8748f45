"""What a call costs before any code runs: STOP through `EVM.call` on every tier, the best of many short batches.

python bench/call_overhead.py [batches]
"""

from __future__ import annotations

import sys
import time

from fusevm import EVM
from fusevm.tiers import TIERS

HERE = b"\xc0" * 20
BATCH = 200


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


def main(batches: int = 300) -> None:
    for tier in TIERS:
        print(f"{tier:15} {best(tier, batches if tier != 'lockstep' else batches // 10) * 1e6:7.2f} µs a call")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
