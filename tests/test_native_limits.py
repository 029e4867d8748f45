"""What the native engine refuses: memory beyond its cap, time beyond what was given, and not to be interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fusevm import EVM
from fusevm.chain.outcome import EngineLimit, TimeLimit
from fusevm.evm.assembly import assemble
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tables import Caps
from nativeprograms import NATIVE
from programs import HERE, OTHER, call, push

ROOT = Path(__file__).resolve().parent.parent
PLENTY = 1 << 63
WORKS = "PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def machine(tier: str, program: str, **settings: object) -> EVM:
    evm = EVM(tier=tier, **settings)  # type: ignore[arg-type]
    evm.set_code(HERE, assemble(program))
    return evm


def still_works(evm: EVM) -> None:
    evm.set_code(HERE, assemble(WORKS))
    result = evm.call(HERE)
    assert (result.output[-1], result.gas_used) == (5, 3 + 2 + 6 + 3 + 2)


# -- memory -----------------------------------------------------------------------------------------------------------

LIMIT = 1 << 20
OVER = {
    "a load": "PUSH5 0x100000 MLOAD",
    "a store far off": "PUSH1 1 PUSH6 0x2000000000 MSTORE",
    "a byte": "PUSH1 1 PUSH5 0x100000 MSTORE8",
    "a hash": "PUSH5 0x100020 PUSH0 KECCAK256",
    "a copy": "PUSH5 0x100020 PUSH0 PUSH0 CALLDATACOPY",
    "a copy within memory": "PUSH1 1 PUSH0 PUSH5 0x100020 MCOPY",
    "a return": "PUSH5 0x100020 PUSH0 RETURN",
    "a log": "PUSH5 0x100020 PUSH0 LOG0",
    "a call's data": f"PUSH0 PUSH0 PUSH5 0x100020 PUSH0 PUSH0 {push(OTHER)} GAS CALL",
    "another's code": f"PUSH5 0x100020 PUSH0 PUSH0 {push(OTHER)} EXTCODECOPY",
    "another's code, far off": f"PUSH6 0x10000000000 PUSH0 PUSH0 {push(OTHER)} EXTCODECOPY",
}


@pytest.mark.parametrize("tier", [*NATIVE, "native-tiered", "auto", "reference"])
@pytest.mark.parametrize("what", OVER)
def test_memory_beyond_the_limit_is_the_engines_limit_and_not_out_of_gas(what: str, tier: str) -> None:
    evm = machine(tier, f"PUSH1 1 PUSH1 1 SSTORE {OVER[what]}", memory_limit=LIMIT)
    before = evm.state_root
    with pytest.raises(EngineLimit, match=r"memory: more than 1 MiB in one call; EVM\(memory_limit=") as raised:
        evm.call(HERE, gas=PLENTY)
    assert not isinstance(raised.value, TimeLimit)
    assert evm.state_root == before
    still_works(evm)


@pytest.mark.parametrize("tier", [*NATIVE, "native-tiered", "auto", "reference"])
def test_the_limit_counts_the_memory_of_all_frames_together(tier: str) -> None:
    program = f"PUSH1 1 PUSH3 0x01ffe0 MSTORE {call(HERE)} STOP"
    evm = machine(tier, program, memory_limit=LIMIT)
    with pytest.raises(EngineLimit, match="memory"):
        evm.call(HERE, gas=1 << 40)
    assert evm.call(HERE, gas=100_000).ok  # few frames
    still_works(evm)


@pytest.mark.parametrize("tier", ["native", "native-tiered", "auto", "reference"])
def test_memory_that_is_given_up_does_not_count(tier: str) -> None:
    """Frames one after another have the same memory."""
    evm = machine(
        tier, f"PUSH1 30 loop: JUMPDEST {call(OTHER)} POP PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI", memory_limit=LIMIT
    )
    evm.set_code(OTHER, assemble("PUSH1 1 PUSH3 0x01ffe0 MSTORE"))
    assert evm.call(HERE, gas=1 << 40).ok


DEEDS = {
    "slots": "DUP1 SLOAD POP",
    "changes of slots": "DUP1 DUP1 SSTORE",
    "changes of a slot": "DUP1 PUSH0 SSTORE",
    "transient slots": "DUP1 DUP1 TSTORE",
    "logs": "PUSH1 64 PUSH0 LOG0",
    "accounts": "DUP1 BALANCE POP",
    "new contracts": "PUSH0 PUSH0 PUSH0 CREATE POP",
    "memory": "DUP1 DUP1 PUSH1 7 SHL MSTORE",
}
COUNTED = (
    "PUSH0 loop: JUMPDEST {deed} PUSH1 1 ADD DUP1 PUSH2 300 GT PUSH1 @loop JUMPI PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
)


@pytest.mark.parametrize("what", DEEDS)
@pytest.mark.parametrize("reverts", [False, True])
def test_what_the_native_tables_cannot_hold_is_run_on_the_reference_tier(what: str, reverts: bool) -> None:
    caps = Caps(slots=64, journal=200, logs=4096, accounts=32, memory=1 << 14)
    engine = NativeEngine(caps=caps)
    program = COUNTED.format(deed=DEEDS[what])
    seen = []
    for native in (False, True):
        evm = machine("reference", program.replace("RETURN", "REVERT") if reverts else program)
        evm.set_balance(HERE, 10)
        if native:
            evm._direct = None
            evm._execute = lambda message, state, context, hooks: engine.execute(message, state, context)
        result = evm.call(HERE, value=3, caller=HERE)
        seen.append((result, list(result.logs), evm.state_root))
        still_works(evm)
    assert seen[0] == seen[1]
    assert seen[0][0].ok is not reverts


# -- time -------------------------------------------------------------------------------------------------------------

ENDLESS = {
    "a jump": "loop: JUMPDEST PUSH1 @loop JUMP",
    "a hop": "a: JUMPDEST PUSH1 @b JUMP b: JUMPDEST PUSH1 @a JUMP",
    "arithmetic": "PUSH1 3 loop: JUMPDEST DUP1 DUP1 DUP1 MULMOD POP PUSH1 @loop JUMP",
    "counting": "PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH32 0x" + "ff" * 32 + " GT PUSH1 @loop JUMPI",
    "counting far": "PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH7 0xffffffffffffff GT PUSH1 @loop JUMPI",
    "hashing": "loop: JUMPDEST PUSH3 0x080000 PUSH0 KECCAK256 POP PUSH1 @loop JUMP",
    "warm storage": "loop: JUMPDEST PUSH0 SLOAD POP PUSH1 @loop JUMP",
    "loops left early": "loop: JUMPDEST PUSH0 inner: JUMPDEST PUSH4 300000 DUP2 LT ISZERO PUSH1 @done JUMPI"
    " CALLDATASIZE ISZERO PUSH1 @done JUMPI PUSH1 1 ADD PUSH1 @inner JUMP done: JUMPDEST POP PUSH1 @loop JUMP",
    "another's code": f"loop: JUMPDEST PUSH0 PUSH0 PUSH0 {push(OTHER)} EXTCODECOPY PUSH1 @loop JUMP",
    "a precompile": "loop: JUMPDEST PUSH0 PUSH0 PUSH0 PUSH0 PUSH1 4 GAS STATICCALL POP PUSH1 @loop JUMP",
    "a long precompile": "PUSH4 0xffffffff PUSH1 224 SHL PUSH0 MSTORE loop: JUMPDEST"
    " PUSH0 PUSH0 PUSH1 213 PUSH0 PUSH1 9 GAS STATICCALL POP PUSH1 @loop JUMP",
    "hashing much": "loop: JUMPDEST PUSH4 0x0fffffe0 PUSH0 KECCAK256 POP PUSH1 @loop JUMP",
    "calls": f"loop: JUMPDEST {call(OTHER)} POP PUSH1 @loop JUMP",
    "calls of nobody": "loop: JUMPDEST PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH3 0xabcdef GAS CALL POP PUSH1 @loop JUMP",
    "calls with value": f"loop: JUMPDEST {call(OTHER, value=1)} POP PUSH1 @loop JUMP",
    "creations": "loop: JUMPDEST PUSH0 PUSH0 PUSH0 CREATE POP PUSH1 @loop JUMP",
}


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize(
    ("within", "tier"), [("", "native"), ("", "native-unfused"), ("CALL", "native"), ("DELEGATECALL", "native")]
)
def test_no_endless_loop_outlasts_the_time_given(what: str, within: str, tier: str) -> None:
    evm = machine(tier, ENDLESS[what], timeout=0.05)
    evm.set_code(OTHER, assemble("PUSH1 1 POP"))
    evm.set_balance(HERE, 1 << 100)
    if within:
        inner = bytes.fromhex("1223" * 10)
        evm.set_code(inner, evm.get_code(HERE))
        evm.set_balance(inner, 1 << 100)
        evm.set_code(HERE, assemble(f"PUSH1 1 PUSH0 SSTORE {call(inner, kind=within)} STOP"))
    before = evm.get_storage(HERE, 0)
    started = time.monotonic()
    with pytest.raises(TimeLimit):
        evm.call(HERE, gas=PLENTY)
    assert time.monotonic() - started < 5  # a second, on a machine that has nothing else to do
    assert evm.get_storage(HERE, 0) == before
    evm.timeout = None
    still_works(evm)


@pytest.mark.parametrize("tier", NATIVE)
def test_a_long_block_that_is_bound_to_fail_heeds_the_time_limit(tier: str) -> None:
    evm = EVM(tier=tier, timeout=0.02)
    evm.set_code(HERE, bytes.fromhex("5f50" * 24_000 + "50"))  # its last POP finds nothing
    with pytest.raises(TimeLimit):
        evm.call(HERE, gas=PLENTY)
    still_works(evm)


# -- interrupts -------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys, threading, time
from fusevm import EVM
signal.signal(signal.SIGINT, signal.default_int_handler)  # which Python leaves out where a shell ignores the signal
evm = EVM(tier=sys.argv[1])
here = "0x" + "c0" * 20
evm.set_code(here, "0x600560005260206000f3")
evm.call(here)
evm.set_code(here, sys.argv[2])
for key in range(int(sys.argv[3])):
    evm.set_storage(here, key, 1)
root = evm.state_root
sent = []
def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
for delay in (0.05, 0.11):
    threading.Timer(delay, interrupt).start()
    try:
        evm.call(here, gas=1 << 63)
        print("ended by itself")
    except KeyboardInterrupt:
        print("interrupted", "late" if time.monotonic() - sent[-1] > 3 else "in time", evm.state_root == root)
evm.set_code(here, "0x600560005260206000f3")
print(evm.call(here).output[-1])
"""
STORAGE_WALK = "PUSH0 loop: JUMPDEST DUP1 SLOAD POP PUSH1 1 ADD PUSH1 @loop JUMP"


@pytest.mark.parametrize(
    ("what", "slots"),
    [
        (ENDLESS["a jump"], 0),
        (ENDLESS["hashing"], 0),
        (STORAGE_WALK, 20),
        (ENDLESS["a precompile"], 0),
        (ENDLESS["a long precompile"], 0),
        (ENDLESS["calls"], 0),
    ],
)
def test_ctrl_c_ends_a_long_run_soon_and_the_machine_works_afterwards(what: str, slots: int) -> None:
    arguments = [sys.executable, "-c", INTERRUPTED, "native", "0x" + assemble(what).hex(), str(slots)]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, env=os.environ, timeout=60)
    assert done.stdout.splitlines() == ["interrupted in time True"] * 2 + ["5"], done.stderr
    assert done.stderr == ""
