"""What recording costs: calls with and without it, in turns, the best of several; and decoding what was recorded.

python bench/recording.py [--tier native] [--rounds 15]

A token's transfers in a loop, a ray tracer, and a swap on a Uniswap pair between two tokens: real contracts, from the
fixtures (FUSEVM_FIXTURES). Every call that takes long has a recording of its own; short ones share one, some at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fusevm import EVM
from fusevm.evm.keccak import keccak256
from fusevm.lab.peers.ours import LONGEST, SETTLED
from fusevm.native.host.tiers import engine
from fusevm.tracing.recording import Recording

FIXTURES = Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
WAYS: dict[str, dict[str, bool] | None] = {
    "untraced": None,
    "calls, logs": {},
    "+ storage": {"storage": True},
    "+ keccak": {"storage": True, "keccak": True},
    "coverage": {"coverage": True},
    "gas": {"gas": True},
    "all": {"storage": True, "keccak": True, "coverage": True, "gas": True},
}
PAIR, TOKEN0, TOKEN1, TRADER = (bytes([byte]) * 20 for byte in (0xCC, 0x70, 0x71, 0x11))
SHORT = 0.0005  # seconds: what takes less is simulated, some times in one recording
CLOCK = time.thread_time  # other processes may run

Prepared = tuple[EVM, Callable[[], object]]


def document(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIXTURES / "bench" / f"{name}.json").read_text())
    return loaded


def fixture(name: str, tier: str) -> Prepared:
    found = document(name)
    evm = EVM(found["fork"], tier)
    for address, account in found["pre"].items():
        evm.set_balance(address, account.get("balance", 0))
        evm.set_code(address, account.get("code", "0x"))
        for key, value in account.get("storage", {}).items():
            evm.set_storage(address, key, value)
    call = found["call"]
    caller, to, data = (bytes.fromhex(call[name][2:]) for name in ("caller", "to", "data"))
    return evm, lambda: evm.call(to, data, caller=caller, gas=1_000_000_000).check()


def swap(tier: str) -> Prepared:
    """A swap on a pair that holds both tokens, of which the trader has paid one in."""
    pair = document("revmc-uniswap_v2_pair")["pre"]["0x" + PAIR.hex()]["code"]
    token = document("revmc-weth")["pre"]["0x" + PAIR.hex()]["code"]
    evm = EVM("cancun", tier)
    evm.set_code(PAIR, pair)
    reserve = 10**24
    slots = {6: int.from_bytes(TOKEN0, "big"), 7: int.from_bytes(TOKEN1, "big"), 8: reserve << 112 | reserve, 12: 1}
    for slot, word in slots.items():
        evm.set_storage(PAIR, slot, word)
    held = keccak256(PAIR.rjust(32, b"\0") + (3).to_bytes(32, "big"))  # the token's balanceOf[pair]
    for address in (TOKEN0, TOKEN1):
        evm.set_code(address, token)
        evm.set_storage(address, held, reserve + (10**20 if address == TOKEN0 else 0))
    words = (0, 10**18, int.from_bytes(TRADER, "big"), 128, 0)
    data = bytes.fromhex("022c0d9f") + b"".join(word.to_bytes(32, "big") for word in words)

    def run() -> object:
        return evm.simulate(PAIR, data, caller=TRADER, gas=1_000_000).check()

    return evm, run


def settle(evm: EVM, run: Callable[[], object], recorded: bool) -> None:
    """Until hot code is compiled, where the tier does that."""
    began = time.perf_counter()
    undone(evm, run)
    while evm.tier in ("auto", "native-tiered") and (now := time.perf_counter() - began) < LONGEST:
        policy = engine(tiered=True, recorded=recorded).codes.hot_code.policy
        if now > SETTLED and (policy is None or policy.is_settled):
            return
        undone(evm, run)


def undone(evm: EVM, run: Callable[[], object]) -> None:
    with evm.snapshot():
        run()


def timed(evm: EVM, run: Callable[[], object], wanted: dict[str, bool] | None, times: int) -> tuple[float, Any]:
    """Seconds of this thread per call, the recording begun and ended as well; and the recording."""
    with evm.snapshot():
        started = CLOCK()
        with nullcontext() if wanted is None else evm.record(**wanted) as recording:
            for _ in range(times):
                run()
        taken = CLOCK() - started
    return taken / times, recording


def decoding(recording: Recording) -> float:
    started = CLOCK()
    frames = len(recording.frames)
    recording.coverage, recording.gas  # noqa: B018
    return (CLOCK() - started) / frames


def measure(prepare: Callable[[str], Prepared], tier: str, rounds: int) -> dict[str, tuple[float, float]]:
    """For each way: the best time of a call, and the time to decode what was recorded of one."""
    ready = {}
    for way, wanted in WAYS.items():  # whatever has to be prepared is so before any clock starts
        evm, run = ready[way] = prepare(tier)
        with nullcontext() if wanted is None else evm.record(**wanted):
            settle(evm, run, wanted is not None)
    evm, run = ready["untraced"]
    once = min(timed(evm, run, None, 1)[0] for _ in range(3))
    times = 100 if once < SHORT else 1
    best: dict[str, float] = {}
    for _ in range(rounds):
        for way, wanted in WAYS.items():
            evm, run = ready[way]
            timed(evm, run, wanted, 1)  # builds the schedules of this way, and fills tables and caches
            for _ in range(3):
                best[way] = min(best.get(way, 1e9), timed(evm, run, wanted, times)[0])
    decoded = {
        way: decoding(timed(*ready[way], wanted, times)[1]) for way, wanted in WAYS.items() if wanted is not None
    }
    return {way: (best[way], decoded.get(way, 0.0)) for way in WAYS}


def keep_memory() -> None:
    """Freed memory is not returned to the system: else it is luck whether large results have to be paged in anew."""
    wanted = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
    if any(name not in os.environ for name in wanted):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tier", default="native")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    keep_memory()
    cases: dict[str, Callable[[str], Prepared]] = {
        "erc20-transfer": lambda tier: fixture("erc20-transfer", tier),
        "snailtracer": lambda tier: fixture("snailtracer", tier),
        "uniswap-swap": swap,
    }
    print(f"tier {options.tier}{'':9}{'time':>12}{'ratio':>8}{'decoding':>12}")
    for name, prepare in cases.items():
        print(name)
        found = measure(prepare, options.tier, options.rounds)
        untraced = found["untraced"][0]
        for way, (taken, decoding) in found.items():
            print(f"  {way:15}{taken * 1e3:10.4f} ms{taken / untraced:8.2f}{decoding * 1e3:10.2f} ms")


if __name__ == "__main__":
    main()
