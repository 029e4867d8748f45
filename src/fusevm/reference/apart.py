"""Precompiled contracts that take long run in a process of their own: one that a time limit or Ctrl-C can end.

Their libraries cannot be interrupted, and with gas enough some would run for hours.
"""

from __future__ import annotations

import os
import sys
import time

from fusevm.chain.outcome import TimeLimit
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import TABLE, Precompile, PrecompileFailure

LONG = 10_000_000  # gas: modexp of 32 bytes at Berlin's price takes 0.6 s for it, all others less
_FAILED = 3


def run_precompile(contract: Precompile, data: bytes, fork: Fork, price: int, deadline: float | None) -> bytes:
    """The contract's output, its price being paid."""
    if price <= LONG or not sys.executable:
        return contract.run(data, fork)
    import subprocess  # loaded when used: starting up is most of a short run

    command = [sys.executable, "-P", "-m", __name__, contract.name, fork.name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    left = None if deadline is None else max(deadline - time.monotonic(), 0)
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(data, timeout=left)
        except subprocess.TimeoutExpired:
            raise TimeLimit(f"the time limit is reached, in {contract.name}") from None
        finally:
            process.kill()
    if process.returncode == _FAILED:
        raise PrecompileFailure(output.decode())
    if process.returncode != 0:
        return contract.run(data, fork)  # no process could be had for it
    return output


def main() -> int:
    contract = next(each for each in TABLE if each.name == sys.argv[1])
    data = sys.stdin.buffer.read()
    try:
        sys.stdout.buffer.write(contract.run(data, Fork[sys.argv[2]]))
    except PrecompileFailure as failure:
        sys.stdout.write(str(failure))
        return _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
