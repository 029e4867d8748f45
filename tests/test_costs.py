"""What a call costs is bounded by its gas: work nobody paid for is not done, and what is kept is counted in bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.code_cache import CodeMemo
from fusevm.native.host import code_cache, plain, schedule_maker
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.settings import Setting
from fusevm.native.host.tables import LIGHT, Caps
from fusevm.native.host.tiers import engine
from fusevm.reference.frame import CACHED, jump_map
from fusevm.reference.interpreter import execute as execute_reference
from nativeprograms import Case, agreed
from programs import HERE, NOBODY, OTHER, call, push


@pytest.fixture(autouse=True)
def not_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ran before on this thread's engine may have been hot: while that is counted, all code is."""
    monkeypatch.setattr(engine(tiered=True).codes.hot_code, "policy", None)


ROOT = Path(__file__).resolve().parent.parent
LARGE = 24_000
LAST = bytes.fromhex("1a57" * 10)


def address(number: int) -> bytes:
    return bytes.fromhex("cc" * 16) + number.to_bytes(4, "big")


def large(number: int) -> bytes:
    """Code that returns its number, and is long."""
    return assemble(f"PUSH4 {number} PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + b"\x5b" * LARGE + RUN


RUN = os.urandom(8)  # code of this run alone: no schedule of it is on disk


# -- preparing code ---------------------------------------------------------------------------------------------------

CALL_ALL = (  # sums up what the contracts from the first address on return
    "PUSH0 PUSH0 loop: JUMPDEST PUSH1 32 PUSH0 PUSH0 PUSH0 DUP6 {first} ADD PUSH2 {gas} STATICCALL POP"
    " PUSH0 MLOAD ADD SWAP1 PUSH1 1 ADD SWAP1 DUP2 PUSH2 {count} GT PUSH1 @loop JUMPI"
    " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
)


def crowd(tier: str, count: int, gas: int) -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(HERE, assemble(CALL_ALL.format(first=push(address(0)), count=count, gas=gas)))
    for number in range(count):
        evm.set_code(address(number), large(number))
    return evm


@pytest.mark.parametrize("tier", ["native", "native-tiered"])
def test_code_whose_call_is_not_paid_for_is_not_prepared(tier: str) -> None:
    """A frame calls a contract with too little gas for the first look at it."""
    caller = f"PUSH0 PUSH0 PUSH0 PUSH0 {push(OTHER)} PUSH1 105 STATICCALL POP"
    known = engine(tiered=tier == "native-tiered").codes
    evm = EVM(tier=tier)
    evm.set_code(HERE, assemble(caller))
    evm.set_code(OTHER, assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 {push(LAST)} GAS STATICCALL"))
    evm.set_code(LAST, large(1) + tier.encode())
    assert evm.call(HERE).ok
    assert all(code != evm.get_code(LAST) for code, _ in known.schedules)


@pytest.mark.parametrize("tier", ["native", "native-tiered"])
def test_schedules_are_dropped_in_the_middle_of_a_call(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "KEPT", 4 << 20)
    known = engine(tiered=tier == "native-tiered").codes
    known.forget()
    seen: list[int] = []
    built = code_cache.CodeCache.schedule

    def watched(self: code_cache.CodeCache, code: bytes, **named: Any) -> Any:
        schedule = built(self, code, **named)
        seen.append(self.size)
        return schedule

    monkeypatch.setattr(code_cache.CodeCache, "schedule", watched)
    evm = crowd(tier, 60, gas=50_000)
    result = evm.call(HERE)
    assert int.from_bytes(result.output, "big") == sum(range(60))
    assert max(seen) < 6 << 20
    assert sum(each.size for each in known.schedules.values()) < 6 << 20
    monkeypatch.undo()
    assert evm.call(HERE) == result == crowd("reference", 60, gas=50_000).call(HERE)


def test_one_call_fuses_no_more_than_its_budget() -> None:
    known = engine().codes
    known.forget()

    def fused() -> int:
        return sum(len(each.code) for each in known.schedules.values() if not each.plain and len(each.code) > LARGE)

    evm = crowd("native", 12, gas=50_001)
    first = evm.call(HERE)
    once = fused()
    assert 0 < once <= code_cache.FUSED_IN_CALL
    assert evm.call(HERE) == first
    assert fused() > once  # the rest, later


@pytest.mark.parametrize("tier", ["native", "native-tiered"])
def test_of_init_code_only_what_runs_is_prepared(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before EIP-3860 it may be longer than a MiB."""
    monkeypatch.setattr(schedule_maker, "build_schedule", lambda *_, **__: pytest.fail("fused"))
    known = engine(tiered=tier == "native-tiered").codes
    known.forget()
    init = assemble("PUSH3 0x110000 JUMP").ljust(0x110000, b"\x5b") + assemble("JUMPDEST PUSH1 7 PUSH1 0 SSTORE")
    schedule = known.init_code.schedule(init, lambda: ())
    assert schedule.plain
    assert known._tables.shared.plain_count < 100


def test_of_new_code_only_what_runs_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    known = engine(tiered=True).codes
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, assemble("PUSH2 0x5000 JUMP").ljust(0x5000, b"\x5b") + assemble("JUMPDEST PUSH0 PUSH0 RETURN"))
    evm.call(HERE)
    known.forget()
    assert evm.call(HERE).ok
    assert 2 < known._tables.shared.plain_count < 100


def test_a_block_is_written_once_however_jumps_land(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last to the first, each falling into the next."""
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    block, size = bytes.fromhex("5b80600457"), 20_000  # JUMPDEST DUP1 PUSH1 4 JUMPI
    head = assemble(f"PUSH3 {size} loop: JUMPDEST PUSH1 5 SWAP1 SUB DUP1 JUMP")
    head = assemble(f"PUSH3 {len(head) + size} loop: JUMPDEST PUSH1 5 SWAP1 SUB DUP1 JUMP")
    known = engine(tiered=True).codes
    known.forget()
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, head + block * (size // 5))
    evm.call(HERE)
    assert known._tables.shared.plain_count < 4 * size


def test_an_arena_full_of_plain_schedules_is_emptied_before_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    small = NativeEngine(Setting(tiered=True), caps=Caps(plain=1 << 13))
    evm, fallen = EVM(tier="reference"), []

    def reference(*given: Any) -> Any:
        fallen.append(given)
        return execute_reference(*given)

    monkeypatch.setattr("fusevm.native.host.engine.execute_reference", reference)
    evm._direct = None
    evm._execute = lambda message, state, context, hooks: small.execute(message, state, context)
    for number in range(60):
        evm.set_code(HERE, assemble("PUSH1 1 POP " * 150 + "STOP") + bytes([number]))
        assert evm.call(HERE).gas_used == 750
    assert len(fallen) < 5


# -- halts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["INVALID", "POP", "PUSH2 9 JUMP", "PUSH3 0xffffff MLOAD"])
def test_a_first_halt_in_new_code_looks_at_one_section_of_it(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[Any] = []
    section = plain.plain_section

    def counted(*arguments: Any, **named: Any) -> Any:
        walked.append(arguments)
        return section(*arguments, **named)

    monkeypatch.setattr(plain, "plain_section", counted)
    monkeypatch.setattr(schedule_maker, "build_schedule", lambda *_, **__: pytest.fail("fused"))
    code = assemble("PUSH2 0x5000 JUMP") + b"\x5b\x50\x5a" * 6823 + bytes(100)
    code = code[:0x5000] + assemble(f"JUMPDEST {ending}") + os.urandom(30)
    evm = EVM(tier="native-tiered")
    evm.set_code(HERE, code)
    found = evm.call(HERE, gas=100_000)
    judge = EVM(tier="reference")
    judge.set_code(HERE, code)
    assert found == judge.call(HERE, gas=100_000)
    assert len(walked) == 1


def test_a_halt_is_explained_from_storage_as_native_code_has_it() -> None:
    store = "".join(f"PUSH1 {n} PUSH1 {n} SSTORE PUSH1 {n} PUSH1 {n + 1} TSTORE " for n in range(1, 20))
    agreed(Case(f"{store} PUSH1 3 SLOAD PUSH1 3 TLOAD ADD PUSH1 4 SLOAD SUB JUMP"), 10_000_000)
    agreed(Case(f"{store} PUSH1 3 SLOAD PUSH1 100 SSTORE GAS PUSH1 3 SSTORE"), 600_000)


WATCHED = bytes.fromhex("b0" * 20)
REPLAYED = {  # a block that is bound to fail is replayed from its start: what the replay itself did must not show twice
    "a slot written twice": ("PUSH1 1 PUSH1 0 SSTORE PUSH1 3 PUSH1 0 SSTORE PUSH1 1 PUSH1 2 SSTORE POP", 30_000),
    "a slot written and one read": (
        "PUSH1 1 PUSH1 0 SSTORE PUSH1 3 PUSH1 0 SSTORE PUSH1 1 PUSH1 2 SLOAD POP POP",
        24_400,
    ),
    "an address warmed in vain": (f"{call(OTHER)} POP {push(WATCHED)} BALANCE PUSH1 2 SSTORE POP", 20_000),
}


@pytest.mark.parametrize("what", REPLAYED)
def test_a_replay_sees_what_the_frame_saw(what: str) -> None:
    program, gas = REPLAYED[what]
    others = {OTHER: f"{push(WATCHED)} BALANCE PUSH0 PUSH0 REVERT"}
    agreed(
        Case(program, others, prepare=lambda evm: evm.set_balance(WATCHED, 3)), gas, tiers=("native", "native-tiered")
    )


# -- what native code does itself -------------------------------------------------------------------------------------

DELEGATION = b"\xef\x01\x00" + OTHER
NATIVE_DEEDS = {
    "a delegation": ("osaka", f"{call(LAST)} {call(LAST, kind='DELEGATECALL')} {call(LAST, kind='STATICCALL')}"),
    "a payment that creates an account": ("osaka", f"{call(NOBODY, value=1)} {call(NOBODY, value=1)}"),
    "SELFDESTRUCT": ("osaka", f"{push(OTHER)} SELFDESTRUCT"),
    "SELFDESTRUCT to nobody": ("shanghai", f"{push(NOBODY)} SELFDESTRUCT"),
    "SELFDESTRUCT in a static call": ("osaka", call(bytes.fromhex("dd" * 20), kind="STATICCALL")),
    "a call before EIP-150": ("homestead", call(OTHER).replace("PUSH0", "PUSH1 0").replace("GAS", "PUSH2 9999")),
    "a precompile before EIP-161": (
        "frontier",
        call((4).to_bytes(20, "big"), kind="CALLCODE").replace("PUSH0", "PUSH1 0").replace("GAS", "PUSH2 9999"),
    ),
    "a call too deep": ("osaka", call(HERE)),
    "a frame without gas": ("osaka", f"PUSH0 PUSH0 PUSH0 PUSH0 {push(OTHER)} PUSH0 STATICCALL"),
}


@pytest.mark.parametrize("what", NATIVE_DEEDS)
def test_python_is_not_asked_for(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, program = NATIVE_DEEDS[what]
    seen = []
    for tier in ("reference", "native", "native-tiered"):
        if tier == "native":
            monkeypatch.setattr(NativeEngine, "_sync", lambda *_: pytest.fail("Python was asked"))
        evm = EVM(fork, tier)
        evm.set_code(HERE, assemble(program))
        evm.set_code(OTHER, assemble("PUSH1 1 PUSH1 1 SSTORE"))
        evm.set_code(LAST, DELEGATION)
        evm.set_code(bytes.fromhex("dd" * 20), assemble("CALLER SELFDESTRUCT"))
        evm.set_balance(HERE, 10)
        evm.set_balance((4).to_bytes(20, "big"), 1)
        result = evm.call(HERE, gas=60_000_000)
        seen.append((result, evm.state_root))
    assert seen[0] == seen[1] == seen[2]


# -- memory -----------------------------------------------------------------------------------------------------------


def test_what_is_kept_of_code_is_bounded_by_bytes() -> None:
    kept: CodeMemo[bytes] = CodeMemo(lambda code: code * 2, len, 100_000)
    for number in range(1_000):
        assert kept(bytes([number % 256]) * (number % 300)) == bytes([number % 256]) * (number % 300) * 2
        assert kept.size <= 100_000


def test_jump_targets_of_much_code_take_no_more_than_a_cap() -> None:
    for number in range(40):
        assert jump_map(b"\x5b" * (1 << 20) + bytes([number]))[:2] == b"\x5b\x5b"
        assert jump_map.size <= CACHED


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads resident memory from /proc")
@pytest.mark.parametrize("tier", ["native", "native-tiered"])
def test_a_call_that_took_much_memory_gives_it_back(tier: str) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    evm = EVM(tier=tier)
    evm.set_code(HERE, assemble("CALLDATASIZE PUSH4 0x3ffffff PUSH0 PUSH0 CALLDATACOPY"))  # 64 MiB
    stores = "PUSH3 400000 loop: JUMPDEST DUP1 DUP1 TSTORE PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    evm.set_code(OTHER, assemble(stores))
    evm.call(HERE, gas=100_000)
    before = resident()
    assert evm.call(HERE, gas=10_000_000_000).ok
    assert resident() - before < LIGHT + (8 << 20)
    assert evm.call(OTHER, gas=60_000_000).ok  # 70 MiB of slots and journal
    evm.state.settle()
    assert resident() - before < LIGHT + (12 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space as Linux has them")
@pytest.mark.parametrize("megabytes", [8_000, 2_500, 1_000, 400])
def test_the_default_tier_works_where_address_space_is_short(megabytes: int) -> None:
    program = f"""
import resource
from fusevm import EVM
import fusevm.native.host.tiers
evm = EVM()
evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")
resource.setrlimit(resource.RLIMIT_AS, ({megabytes} << 20, {megabytes} << 20))
print([evm.call("0x" + "c0" * 20).gas_used for _ in range(3)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout.strip() == "[24, 24, 24]", done.stderr
    assert done.stderr.count("UserWarning") <= 1


def test_a_frame_looks_at_its_code_only_for_a_jump_to_a_jumpdest() -> None:
    evm = EVM(tier="reference")
    evm.set_code(HERE, assemble("PUSH1 0 JUMP") + b"\x60" * 1000)
    kept = jump_map.size
    assert "invalid jump" in str(evm.call(HERE).error)
    assert jump_map.size == kept
