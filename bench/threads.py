"""Two threads with an EVM each, against one: long calls, whose native code runs without Python's lock, and short ones.

python bench/threads.py [--threads 2] [--seconds 1] [--rounds 5] [--tier auto]

Calls per second of all threads together, rounds with one thread and with several in turns, the best of each.
"""

from __future__ import annotations

import argparse
import threading
import time

from fusevm import EVM
from fusevm.evm.assembly import assemble

HERE = b"\xc0" * 20
COUNTS = 20_000, 1_000, 1  # hashes of a call
CODE = """
    PUSH0 CALLDATALOAD
again: JUMPDEST
    PUSH1 32 PUSH0 KECCAK256 PUSH0 MSTORE
    PUSH1 1 SWAP1 SUB DUP1 PUSH @again JUMPI
    STOP
"""


def calls_in(seconds: float, machines: list[EVM], data: bytes) -> float:
    """Calls per second of all machines, each in a thread of its own."""
    done = [0] * len(machines)
    ready = threading.Barrier(len(machines) + 1)
    until = 0.0

    def work(number: int) -> None:
        evm, count = machines[number], 0
        evm.call(HERE, data)
        ready.wait()
        ready.wait()
        while time.perf_counter() < until:
            assert evm.call(HERE, data).ok
            count += 1
        done[number] = count

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(machines))]
    for each in threads:
        each.start()
    ready.wait()
    started = time.perf_counter()
    until = started + seconds
    ready.wait()
    for each in threads:
        each.join()
    return sum(done) / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tier", default="auto")
    options = parser.parse_args()
    print(f"{'a call of':16}{'1 thread':>14}{f'{options.threads} threads':>14}{'times':>8}")
    for count in COUNTS:
        best = {1: 0.0, options.threads: 0.0}
        for _ in range(options.rounds):
            for number in best:
                machines = [EVM(tier=options.tier) for _ in range(number)]
                for evm in machines:
                    evm.set_code(HERE, assemble(CODE))
                best[number] = max(best[number], calls_in(options.seconds, machines, count.to_bytes(32, "big")))
        one, several = best.values()
        print(f"{f'{count:,} hashes':16}{one:12,.0f}/s{several:12,.0f}/s{several / one:8.2f}", flush=True)


if __name__ == "__main__":
    main()
