"""Memory that native code points to: what leaves the cache is held until nothing leads to it, and found out if not.

In poison mode (FUSEVM_POISON=1) freed schedules are overwritten. That must not show, unless something is held wrongly:
this is what the planted errors show, in processes of their own, since they may crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.native.host.tiers import engine
from programs import HERE

POISONED = {"FUSEVM_POISON": "1", "PYTHONMALLOC": "debug"}
ROOT = Path(__file__).parent.parent

# The provider of block hashes has the schedule replaced that the caller is running on.
REPLACED_WHILE_RUNNING = """
import sys
from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.host.retired import Retired
from fusevm.native.host.tiers import engine

if sys.argv[1] == "planted":
    Retired.retire = lambda self, schedules: None
evm, codes, replaced = EVM(tier="native"), engine().codes, []
evm.set_code(0xC0, assemble("PUSH1 20 loop: JUMPDEST DUP1 BLOCKHASH POP PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI STOP"))

def replace(number):
    if (key := (evm.get_code(0xC0), LATEST)) in codes.schedules:
        codes._replace(key)
        replaced.append(number)
    return bytes(32)

evm.block.hashes = replace
evm.block.number = 100
assert {evm.call(0xC0).gas_used for _ in range(3)} == {1023}
assert len(replaced) == 3, replaced
"""


# A call in the middle of a batch fills the cache, so that schedules of calls that follow are freed.
FULL_IN_A_BATCH = """
from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.machine import batches
from fusevm.native.host import code_cache
from fusevm.native.host.tiers import engine

code_cache.KEPT, batches.FEW = 1 << 17, 0
evm, cache, freed = EVM(tier="native"), engine().codes, []
CALL_DOWN_FROM = (  # calls each account from the one in the data down to 0x1000
    "PUSH0 CALLDATALOAD loop: JUMPDEST PUSH0 PUSH0 PUSH0 PUSH0 DUP5 GAS STATICCALL POP PUSH1 1 SWAP1 SUB"
    " DUP1 PUSH2 0x1000 LT PUSH1 @loop JUMPI STOP"
)
evm.set_code(0xC0, assemble(CALL_DOWN_FROM))
evm.set_code(0xC1, assemble("PUSH1 7 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
for number in range(100):
    evm.set_code(0x1000 + number, assemble("PUSH1 1 POP " * 100 + f"PUSH2 {number} POP"))
forget_idle = cache._forget_idle
cache._forget_idle = lambda running: (freed.append(1), forget_idle(running))
few, all_of_them = (0x1002).to_bytes(32, "big"), (0x1063).to_bytes(32, "big")
calls = [(0xC1, b""), (0xC0, few), (0xC0, all_of_them), (0xC1, b""), (0xC1, b"")]
for _ in range(3):
    found = evm.simulate_many([{"to": to, "data": data} for to, data in calls], gas=10_000_000)
    assert [len(each.output) for each in found] == [32, 0, 0, 32, 32], list(found)
assert freed
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **POISONED, **environment}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=given, cwd=ROOT, check=False
    )


def test_nothing_native_points_to_schedules_that_are_freed() -> None:
    """A life in which code is learned, forgotten and replaced all the time."""
    soaked = run("-m", "fusevm.lab.soak", "--seconds", "8", "--seed", "3", "--sooner", "1000", "--works", "8")
    assert soaked.returncode == 0, soaked.stdout + soaked.stderr


def test_tests_of_invalidation_pass_in_poison_mode() -> None:
    """Forgetting between calls and in the middle of one."""
    which = (
        "tests/test_native_kept.py::test_the_code_of_accounts_in_the_tables_is_held_or_they_are_described_again",
        "tests/test_costs.py::test_schedules_are_dropped_in_the_middle_of_a_call",
        "tests/test_native_engine.py::test_schedules_of_code_seen_once_are_not_kept_for_ever",
    )
    ended = run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *which)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_schedule_that_is_replaced_is_held_while_frames_run_it() -> None:
    held = run("-c", REPLACED_WHILE_RUNNING, "held")
    assert held.returncode == 0, held.stderr


def test_poison_mode_finds_a_schedule_that_is_not_held() -> None:
    planted = run("-c", REPLACED_WHILE_RUNNING, "planted")
    assert planted.returncode != 0
    assert "UseAfterFree" in planted.stderr


def test_a_batch_does_not_enter_schedules_that_were_freed_to_make_room() -> None:
    ended = run("-c", FULL_IN_A_BATCH)
    assert ended.returncode == 0, ended.stderr


def test_what_is_retired_is_reclaimed_as_the_next_call_begins() -> None:
    evm, cache = EVM(tier="native"), engine().codes
    evm.set_code(HERE, assemble("PUSH1 1 POP STOP"))
    evm.call(HERE)
    generation = cache.generation
    cache.forget()
    assert cache.retired.schedules
    assert cache.retired.code
    assert cache.generation > generation
    evm.call(HERE)
    assert not cache.retired
