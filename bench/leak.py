"""A day's worth of calls: a small contract with storage, a log and a subcall, over and over; memory must stay flat.

python bench/leak.py [calls] [tier]
"""

from __future__ import annotations

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


def main(calls: int = 1_000_000, tier: str = "native") -> None:
    evm = EVM(tier=tier)
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


if __name__ == "__main__":
    main(*(int(each) if each.isdigit() else each for each in sys.argv[1:]))  # type: ignore[arg-type]
