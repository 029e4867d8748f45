"""Coverage and gas by instruction, the same on every tier."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from programs import HERE, NOBODY, OTHER, call, deployer, machine, store_initcode
from recordedcalls import BRANCHING, IDENTITY, TIERS, only, recorded


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_coverage_has_how_often_instructions_ran_and_branches_went_each_way(tier: str) -> None:
    evm = machine({HERE: BRANCHING})
    evm.tier = tier
    with evm.record(coverage=True) as recording:
        for word in (0, 1, 5):
            evm.call(HERE, word.to_bytes(32, "big"))
    ((key, covered),) = recording.coverage.items()
    assert key == keccak256(evm.get_code(HERE))
    assert covered.hits == {0: 3, 1: 3, 2: 3, 4: 3, 5: 1, 7: 1, 8: 1, 9: 2, 10: 2, 12: 2, 13: 2}
    assert (covered.taken, covered.passed) == ({4: 2}, {4: 1})


def test_a_branch_to_the_next_instruction_is_told_apart_from_one_not_taken(tier: str) -> None:
    evm = machine({HERE: "PUSH0 CALLDATALOAD PUSH1 @next JUMPI next: JUMPDEST STOP"})
    evm.tier = tier
    with evm.record(coverage=True, calls=False) as recording:
        for word in (0, 1, 1):
            evm.call(HERE, word.to_bytes(32, "big"))
    (covered,) = recording.coverage.values()
    assert (covered.taken, covered.passed, covered.hits[5]) == ({4: 2}, {4: 1}, 3)


def test_instructions_after_a_halt_are_not_covered(tier: str) -> None:
    recording = recorded(tier, "PUSH1 1 PUSH1 2 SLOAD MLOAD POP ADD ADD ADD PUSH0 PUSH0", coverage=True)
    (covered,) = recording.coverage.values()
    assert covered.executed == {0, 2, 4, 5, 6, 7}


def test_gas_by_instruction_adds_up_to_the_gas_used(tier: str) -> None:
    init = deployer(b"\x00\x01")
    program = (
        "PUSH1 1 PUSH0 SSTORE PUSH1 200 MLOAD POP"
        + call(OTHER, gas="PUSH2 5000")
        + call(IDENTITY)
        + call(NOBODY, value=1)
        + store_initcode(init)
        + f" PUSH1 {len(init)} PUSH0 PUSH0 CREATE"
        + call(OTHER, gas="PUSH1 50")
    )
    recording = recorded(tier, program, {OTHER: "PUSH1 3 SLOAD PUSH0 MSTORE"}, gas=500_000, value=1, spent=True)
    assert sum(sum(each.values()) for each in recording.gas.values()) == only(recording).gas_used


def test_gas_of_an_instruction_is_its_own(tier: str) -> None:
    recording = recorded(tier, "PUSH1 1 PUSH0 SSTORE PUSH1 200 MLOAD", spent=True, gas=50_000)
    (spent,) = recording.gas.values()
    assert spent == {0: 3, 2: 2, 3: 22_100, 4: 3, 6: 3 + 24, 7: 0}


def test_a_call_is_charged_without_what_the_callee_used(tier: str) -> None:
    recording = recorded(tier, call(OTHER), {OTHER: "PUSH1 1 PUSH0 SSTORE"}, spent=True, gas=500_000)
    spent = recording.gas[keccak256(assemble(call(OTHER)))]
    assert spent[max(spent) - 1] == 2_600
