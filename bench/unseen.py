"""What a call to unseen code costs per unit of gas: one call that calls many large contracts, no two alike.

Each contract jumps over its filling to its last instruction. In the last rows every byte before that may be a PUSH or
inside another's data, so that all of them must be looked at; in the others the last few tell.

python bench/unseen.py [--contracts 200] [--fork osaka]
"""

from __future__ import annotations

import argparse
import os
import time

from fusevm import EVM
from fusevm.evm.assembly import assemble

HERE = bytes.fromhex("c0" * 20)
FIRST = bytes.fromhex("cc" * 16) + bytes(4)
LAST = 24_000  # where the last instructions of a contract stand
FILLINGS = {
    "JUMPDEST": b"\x5b",
    "STOP": b"\x00",
    "PUSH1": b"\x60\x01",
    "PUSH32": b"\x7f" + bytes(32),
    "ADD": b"\x01",
    "GAS": b"\x5a",
    "JUMPI": b"\x57",
    "CALL": b"\xf1",
}
TANGLED = {"PUSH1 0x60": bytes.fromhex("6060"), "PUSH1 to 3": bytes.fromhex("6061 616062 62606160")}
CALLER = (
    "PUSH1 0 loop: JUMPDEST PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 DUP6 PUSH20 0x{first} ADD PUSH3 60000 CALL POP"
    " PUSH1 1 ADD DUP1 PUSH2 {count} GT PUSH1 @loop JUMPI"
)


def contract(filling: bytes, *, tangled: bool = False) -> bytes:
    start = assemble(f"PUSH2 {LAST} JUMP") + os.urandom(8) + bytes(33)
    if tangled:
        filling *= (LAST - len(start)) // len(filling)
        return start + filling.rjust(LAST - len(start), b"\0") + assemble("JUMPDEST STOP")
    return (start + filling * LAST)[: LAST - 33] + bytes(33) + assemble("JUMPDEST STOP")


def cost(tier: str, fork: str, filling: bytes, count: int, *, tangled: bool = False) -> tuple[float, float]:
    """Microseconds per contract, nanoseconds per gas: of processor time, for a run is short."""
    evm = EVM(fork, tier)
    evm.set_code(HERE, assemble(CALLER.format(first=FIRST.hex(), count=count)))
    for number in range(count):
        evm.set_code(int.from_bytes(FIRST, "big") + number, contract(filling, tangled=tangled))
    started = time.process_time()
    used = evm.call(HERE, gas=10**9).check().gas_used
    taken = time.process_time() - started
    return taken / count * 1e6, taken / used * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contracts", type=int, default=200)
    parser.add_argument("--fork", default="osaka")
    options = parser.parse_args()
    print(f"{'filling':10} {'auto':>24} {'reference':>24}")
    for name, filling in (FILLINGS | TANGLED).items():
        cells = []
        for tier, times in (("auto", 9), ("reference", 3)):  # the shorter a run is, the more a disturbance counts
            arguments, tangled = (tier, options.fork, filling, options.contracts), name in TANGLED
            each, per_gas = min(cost(*arguments, tangled=tangled) for _ in range(times))
            cells.append(f"{each:8.0f} µs {per_gas:6.1f} ns/gas")
        print(f"{name:10} {cells[0]:>24} {cells[1]:>24}")


if __name__ == "__main__":
    main()
