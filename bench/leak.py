"""Memory in use over a long time, which must stay flat: one contract called over and over, or contracts all distinct.

python bench/leak.py [--calls 1000000] [--tier native]     a small contract with storage, a log and a subcall
python bench/leak.py --contracts 100000 [--tier auto]      each of 5 KB, called three times, then never again
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from fusevm import EVM
from fusevm.evm.assembly import assemble

HERE, OTHER, CALLER = b"\xc0" * 20, b"\x0b" * 20, b"\xca" * 20
PROGRAM = f"""
    PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE             ; counts its calls
    DUP1 PUSH1 0xff AND DUP1 PUSH2 0x100 ADD SSTORE           ; and walks over 256 more slots
    PUSH0 MSTORE PUSH1 7 PUSH1 32 PUSH0 LOG1
    PUSH1 32 PUSH0 PUSH1 32 PUSH0 PUSH0 PUSH20 0x{OTHER.hex()} GAS CALL
    PUSH1 64 PUSH0 RETURN
"""
CALLEE = "PUSH0 CALLDATALOAD PUSH1 3 MUL DUP1 PUSH0 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def resident() -> float:
    """MiB of memory in use now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))


def same_contract(evm: EVM, calls: int) -> None:
    evm.set_code(HERE, assemble(PROGRAM))
    evm.set_code(OTHER, assemble(CALLEE))
    started = time.perf_counter()
    for done in range(calls + 1):
        if done % 100_000 == 0:
            print(f"{done:>9,} calls  {resident():7.1f} MiB  {time.perf_counter() - started:6.1f} s", flush=True)
        result = evm.call(HERE, caller=CALLER)
        if done % 10 == 0 and (not result.ok or len(result.logs) != 1):
            raise SystemExit(f"call {done}: {result.error}")
        if done % 7 == 0:
            evm.simulate(HERE, caller=CALLER)
        if done % 100 == 0:  # another code, and a call that fails
            evm.set_code(CALLER, assemble(f"PUSH3 {done % 50_000} POP INVALID"))
            evm.call(CALLER)


def distinct_contracts(evm: EVM, contracts: int) -> None:
    """One after the other at the same address, so that the state itself does not grow."""
    rest = assemble(PROGRAM)
    filling = assemble("JUMPDEST DUP1 PUSH2 0x1234 ADD POP") * 600
    evm.set_code(OTHER, assemble(CALLEE))
    started = time.perf_counter()
    for done in range(contracts + 1):
        if done % 10_000 == 0:
            print(f"{done:>9,} contracts  {resident():7.1f} MiB  {time.perf_counter() - started:6.1f} s", flush=True)
        evm.set_code(HERE, assemble(f"PUSH4 {done} POP") + rest + filling)
        for _ in range(3):
            if not evm.call(HERE, caller=CALLER).ok:
                raise SystemExit(f"contract {done}: failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--contracts", type=int, help="so many distinct ones instead")
    parser.add_argument("--tier", default="native")
    options = parser.parse_args()
    evm = EVM(tier=options.tier)
    if options.contracts is None:
        same_contract(evm, options.calls)
    else:
        distinct_contracts(evm, options.contracts)


if __name__ == "__main__":
    main()
