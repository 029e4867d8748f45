"""What a state root costs: once, after one change, and in a copy. `python bench/roots.py [--size N]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from fusevm import tiers  # noqa: F401  (native code hashes what is large)
from fusevm.chain.state import State
from fusevm.evm.keccak import keccak256

TIMES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="accounts, and slots of one account (100,000)")
    size = parser.parse_args().size
    print(f"{size:,} of each                 once    after one change   a copy's, after one change")
    for name, make, change in (("accounts", accounts, one_balance), ("slots", slots, one_slot)):
        state = make(size)
        once = seconds(state.root)
        again = min(changed(state, change, number) for number in range(TIMES))
        branched = min(changed(state.branch(), change, number) for number in range(TIMES))
        print(f"{name:24} {once * 1e3:10.1f} ms {again * 1e3:13.3f} ms {branched * 1e3:20.3f} ms")


def changed(state: State, change: Callable[[State, int], None], number: int) -> float:
    change(state, number)
    return seconds(state.root)


def accounts(size: int) -> State:
    state = State()
    for number in range(size):
        state.set_balance(keccak256(number.to_bytes(32, "big"))[:20], number)
    return state


def one_balance(state: State, number: int) -> None:
    state.set_balance(keccak256(number.to_bytes(32, "big"))[:20], 10**18 + number)


def slots(size: int) -> State:
    state = State()
    for number in range(size):
        state.set_storage(b"\1" * 20, number, number + 1)
    return state


def one_slot(state: State, number: int) -> None:
    state.set_storage(b"\1" * 20, number, 10**18 + number)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
