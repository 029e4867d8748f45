"""What going back and copying cost: snapshots, checkpoints, copies of a small and of a large state.

python bench/copies.py [--repeat N] [--json]

Times are the best of many short batches, in microseconds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from copy import deepcopy

from calls import ALICE, HERE, best
from fusevm import EVM
from fusevm.evm.assembly import assemble

STORES = assemble("PUSH1 1 SLOAD PUSH1 1 ADD PUSH1 1 SSTORE STOP")
SIZES = (100, 10_000, 100_000)


def machine(size: int) -> EVM:
    """With so many accounts, and one contract that has so many slots."""
    evm = EVM()
    evm.set_code(HERE, STORES)
    for number in range(1, size + 1):
        evm.set_balance(number, 1)
        evm.set_storage(HERE, number, 1)
    evm.call(HERE)
    return evm


def works(evm: EVM) -> dict[str, Callable[[], object]]:
    def snapshot() -> None:
        with evm.snapshot():
            evm.call(HERE, caller=ALICE)

    def checkpoint() -> None:
        before = evm.checkpoint()
        evm.call(HERE, caller=ALICE)
        evm.revert(before)

    def transaction() -> None:
        with evm.transaction(ALICE) as tx:
            tx.call(HERE)
            tx.call(HERE)

    return {
        "snapshot, call": snapshot,
        "checkpoint, call, revert": checkpoint,
        "two messages in a transaction": transaction,
        "copy": lambda: evm.copy(),
        "copy, call on the copy": lambda: evm.copy().call(HERE, caller=ALICE),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    columns: dict[int, dict[str, float]] = {}
    for size in SIZES:
        evm = machine(size)
        columns[size] = {name: best(work, options.repeat, 10) for name, work in works(evm).items()}
        columns[size]["deepcopy"] = best(lambda evm=evm: deepcopy(evm), 2, 1)  # type: ignore[misc]
    if options.json:
        print(json.dumps(columns, indent=1))
        return
    print(f"{'µs, by accounts and slots':36}" + "".join(f"{size:>12,}" for size in SIZES))
    for name in columns[SIZES[0]]:
        print(f"{name:36}" + "".join(f"{columns[size][name]:>12,.1f}" for size in SIZES))


if __name__ == "__main__":
    main()
