"""Children of `os.fork`: they use what they inherit, and wait for no thread that only the parent has."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fusevm import EVM
from fusevm.batch.shared import Windows
from fusevm.batch.threads import Threads
from fusevm.chain.sources.disk import Disk
from fusevm.chain.sources.json_rpc import JsonRpc
from fusevm.evm.assembly import assemble
from fusevm.native.emit.jit import llvm
from fusevm.node.scheduler import Scheduler

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SECONDS = 60  # that a child may take: far longer than any does that waits for nobody

# Forks while compilations are pending; each child calls, some compile, and all leave as every program does. What the
# parent prints is how many children ended well; and whether its own compiler still answers.
FORKING = """
import os, sys, time
from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.host import compiler as compiling
from fusevm.native.host.compiler import Asked, compiler

LOOP = assemble("PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH2 500 GT PUSH1 @loop JUMPI STOP")
COUNTS = {0: 1, 1: 500}
HERE = b"\\xc0" * 20
forks, seconds = int(sys.argv[1]), float(sys.argv[2])
answers, parent = [], os.getpid()


def ask(number):
    asked = Asked(LOOP + b"\\xfe" + number.to_bytes(4, "big"), LATEST)
    return compiler().ask(asked, COUNTS, 1.0, answers.append) is None


def wait_for_answer():
    ends = time.monotonic() + seconds
    while not answers and time.monotonic() < ends:
        time.sleep(0.01)
    if not answers or answers[-1] is None:
        sys.exit(4)


def in_child(number):
    if compiler().pid is not None:
        sys.exit(5)  # the parent's process
    for _ in range(3):
        if evm.call(HERE).gas_used != used:
            sys.exit(3)
    if number % 10 == 0:
        answers.clear()
        if not ask(1_000_000 + number):
            sys.exit(6)
    if number % 50 == 0:
        wait_for_answer()
    sys.exit(0)


evm = EVM(tier="auto")
evm.set_code(HERE, LOOP)
compiling._fingerprint()  # of the common cache, as the engine; regions are kept in one of their own
os.environ["FUSEVM_CACHE"] = sys.argv[3]
used = evm.call(HERE).gas_used
ended = []
for number in range(forks):
    ask(number)
    time.sleep(0.002 * (number % 7))
    child = os.fork()
    if not child:
        in_child(number)
    ends = time.monotonic() + seconds
    while not (found := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ends:
        time.sleep(0.001)
    if not found[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    ended.append(os.waitstatus_to_exitcode(found[1]) if found[0] else "hangs")
answers.clear()
while not ask(forks):
    time.sleep(0.01)
wait_for_answer()
print(len(ended), sorted(set(map(str, ended))))
"""


@pytest.mark.parametrize("forks", [50, pytest.param(1_000, marks=pytest.mark.long)])
def test_no_child_that_is_forked_while_regions_are_compiled_waits_for_anybody(forks: int, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", FORKING, str(forks), str(SECONDS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=3_000,
    )
    assert found.stdout == f"{forks} ['0']\n", found.stderr
    assert found.stderr == ""


def exit_code_of(in_child: Callable[[], object]) -> int:
    """Of a child that does only this; -9 where it does not end."""
    child = os.fork()
    if not child:
        code = 1
        try:
            in_child()
            code = 0
        finally:
            os._exit(code)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("thing", "lock"),
    [
        (Disk(Path("unused"), bytes(32)), "_lock"),
        (JsonRpc("http://127.0.0.1:1"), "_lock"),
        (Windows(), "_lock"),
        (Scheduler(None), "_chain"),  # type: ignore[arg-type]
    ],
    ids=["Disk", "JsonRpc", "Windows", "Scheduler"],
)
def test_a_lock_that_another_thread_held_is_free_in_the_child(thing: object, lock: str) -> None:
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with getattr(thing, lock):
            held.set()
            over.wait(SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SECONDS)
    try:
        assert exit_code_of(lambda: getattr(thing, lock).acquire()) == 0
    finally:
        over.set()
        holder.join()


def test_a_fork_waits_until_no_other_thread_is_in_llvm() -> None:
    lock, held = llvm.ffi.lib._lock, threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SECONDS)
    assert exit_code_of(llvm.get_process_triple) == 0
    holder.join()


def test_a_pool_of_threads_can_be_closed_in_a_child_and_not_used() -> None:
    from fusevm.batch.pool import CallPiece

    evm = EVM()
    evm.set_code(0xC0, assemble("loop: JUMPDEST PUSH1 @loop JUMP"))
    with Threads(evm, 2) as pool:

        def in_child() -> None:
            with pytest.raises(RuntimeError, match="made before os"):
                pool.submit(CallPiece(0, None))  # type: ignore[arg-type]
            pool.close()

        pool._under_way = 1
        assert exit_code_of(in_child) == 0
        pool._under_way = 0


def test_an_evm_that_another_thread_runs_stays_taken_in_the_child_and_says_so() -> None:
    from fusevm import Hooks, WrongThread

    inside, over = threading.Event(), threading.Event()

    def wait(message: object) -> None:
        inside.set()
        over.wait(SECONDS)

    evm = EVM(hooks=Hooks(on_call=wait))
    runner = threading.Thread(target=evm.call, args=(0xC0,))
    runner.start()
    assert inside.wait(SECONDS)

    def in_child() -> None:
        with pytest.raises(WrongThread):
            evm.call(0xC0)
        assert EVM().call(0xC0).ok

    try:
        assert exit_code_of(in_child) == 0
    finally:
        over.set()
        runner.join()
