"""How long a new process takes until a contract, called in a loop on `auto`, runs at full speed.

python bench/warming.py [NAME] [--seconds 6] [--fixtures ../shared/fixtures]

Twice, each in a process of its own: with a cache folder that has handlers and nothing else, then with what the first
process left there. Counted from the first call on. *Meanwhile* is how long calls take until then, the median and the
longest but one in a hundred, against `native` in a third process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from fusevm import EVM

NEAR = 1.15  # times the settled speed, which is full speed for a machine that is not quiet
SETTLED = 9  # calls whose median is looked at


def durations(path: Path, tier: str, seconds: float) -> list[float]:
    """Of all calls in that time."""
    document = json.loads(path.read_text())
    evm = EVM(fork=document["fork"], tier=tier)
    evm.call(bytes(20))  # handlers are loaded before the clock starts
    for address, account in document["pre"].items():
        evm.set_code(address, account["code"])
        evm.set_balance(address, int(account["balance"], 16))
        for key, value in account["storage"].items():
            evm.set_storage(address, int(key, 16), int(value, 16))
    call, taken, started = document["call"], [], perf_counter()
    while (begun := perf_counter()) - started < seconds:
        with evm.snapshot():
            result = evm.call(call["to"], call["data"], caller=call["caller"], gas=1 << 40)
        taken.append(perf_counter() - begun)
        if not result.ok or result.gas_used != document["expect"]["gas_used"]:
            raise SystemExit(f"{path.stem} on {tier}: {result}")
    return taken


def in_a_process(path: Path, tier: str, seconds: float, cache: str) -> list[float]:
    command = [sys.executable, __file__, path.stem, "--fixtures", str(path.parent.parent), "--child", tier]
    environment = {**os.environ, "FUSEVM_CACHE": cache}
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def until_settled(taken: list[float]) -> int:
    """How many calls came before full speed."""
    best = min(median(taken[at : at + SETTLED]) for at in range(max(len(taken) - SETTLED, 1)))
    return next(at for at in range(len(taken)) if median(taken[at : at + SETTLED]) <= NEAR * best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="snailtracer", help="of a bench file")
    parser.add_argument("--seconds", type=float, default=6.0, help="that each process calls it for")
    parser.add_argument("--fixtures", type=Path, default=Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")))
    parser.add_argument("--child", metavar="TIER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    path = given.fixtures / "bench" / f"{given.name}.json"
    if given.child:
        print(json.dumps(durations(path, given.child, given.seconds)))
        return
    with TemporaryDirectory() as cache:
        in_a_process(path, "native", 0.0, cache)  # which builds the handlers
        native = median(in_a_process(path, "native", 1.0, cache))
        print(f"{given.name} on native: {native * 1e3:.2f} ms")
        for what in ("empty", "warm"):
            taken = in_a_process(path, "auto", given.seconds, cache)
            first = until_settled(taken)
            before = sorted(taken[:first]) or [0.0]
            print(
                f"{what} cache: full speed ({median(taken[first:]) * 1e3:.2f} ms) after {sum(taken[:first]):.2f} s; "
                f"meanwhile {median(before) / native:.2f} and {before[len(before) * 99 // 100] / native:.2f} of native"
            )


if __name__ == "__main__":
    main()
