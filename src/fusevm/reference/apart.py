"""Running precompiled contracts so that a time limit or Ctrl-C can end them, however much gas there is.

Most pause every few milliseconds. One that cannot runs in a process of its own where it would take long.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fusevm.chain.outcome import TimeLimit
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import TABLE, Precompile, PrecompileFailure
from fusevm.evm.precompiles.contract import Pause, no_pause

if TYPE_CHECKING:
    import subprocess

# Estimated seconds without a check of the clock: with a time limit, and where only Ctrl-C matters.
# Starting a process takes about 0.15.
LONG, LONG_WITHOUT_LIMIT = 0.05, 1.0
_FAILED = 3
_MOMENT = 0.02  # seconds until the clock is looked at; on Ctrl-C Python waits as long
Runner = Callable[[Precompile, bytes, Fork, int, float | None], bytes]


def run_precompile(contract: Precompile, data: bytes, fork: Fork, price: int, deadline: float | None) -> bytes:
    """The contract's output, its price being paid."""
    if not _takes_long(contract, fork, price, deadline) or not sys.executable:
        return contract.run(data, fork, pause_until(deadline))
    import subprocess  # loaded when used: starting up is most of a short run

    command = [sys.executable, "-P", "-m", __name__, contract.name, fork.name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output = _output(process, data, pause_until(deadline))
        finally:
            process.kill()
            process.wait()  # after Ctrl-C the end of `with` would not
    if process.returncode == _FAILED:
        raise PrecompileFailure(output.decode())
    if process.returncode != 0:
        return contract.run(data, fork)  # no process could be started for it
    return output


def _output(process: subprocess.Popen[bytes], data: bytes, pause: Pause) -> bytes:
    from subprocess import TimeoutExpired

    given: bytes | None = data
    while True:
        try:
            return process.communicate(given, timeout=_MOMENT)[0]
        except TimeoutExpired:
            given = None
            pause()


def _takes_long(contract: Precompile, fork: Fork, price: int, deadline: float | None) -> bool:
    if contract.seconds is None:
        return False
    return contract.seconds(price, fork) > (LONG_WITHOUT_LIMIT if deadline is None else LONG)


def pause_until(deadline: float | None) -> Pause:
    """What a contract calls every few milliseconds. Signals need no more than that it is Python."""
    if deadline is None:
        return no_pause

    def pause() -> None:
        if time.monotonic() > deadline:
            raise TimeLimit("the time limit is reached, in a precompile")

    return pause


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
