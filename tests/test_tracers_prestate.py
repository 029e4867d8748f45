"""`prestateTracer` and access lists: what a call uses, and what it changes."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm import EVM
from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.authorization import DELEGATION_PREFIX
from fusevm.evm.keccak import keccak256
from fusevm.reference.hooks import Hooks
from fusevm.tracing.requests import hooked, undone
from fusevm.tracing.touched import TouchWatcher
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, push
from tracedprograms import COINBASE, ONE, ZERO, Json, create, hexed, trace, world

# -- prestateTracer ---------------------------------------------------------------------------------------------------


def prestate(
    program: str, others: dict[bytes, str | bytes] | None = None, config: Json | None = None, **given: Any
) -> Json:
    return trace("prestateTracer", program, others, config, **given)


def test_accounts_and_slots_are_told_as_they_were_before() -> None:
    evm = world(f"PUSH1 9 PUSH1 0 SSTORE PUSH1 1 SLOAD {push(OTHER)} BALANCE" + call(NOBODY, value=2))
    evm.set_storage(HERE, 0, 4)
    evm.set_balance(OTHER, 7)
    evm.set_balance(COINBASE, 1)
    evm.set_nonce(CALLER, 3)
    code = evm.get_code(HERE)
    balance = evm.get_balance(CALLER)
    assert evm.trace_transaction(CALLER, HERE, value=5, gas_price=1, gas=1_000_000, tracer="prestateTracer") == {
        hexed(CALLER): {"balance": hex(balance), "nonce": 3},
        hexed(HERE): {
            "balance": hex(evm.get_balance(HERE)),
            "code": hexed(code),
            "codeHash": hexed(keccak256(code)),
            "storage": {ZERO: f"0x{4:064x}", ONE: ZERO},
        },
        hexed(OTHER): {"balance": "0x7"},
        hexed(COINBASE): {"balance": "0x1"},
    }


def test_empty_accounts_are_told_where_asked_for() -> None:
    program = f"{push(NOBODY)} EXTCODESIZE"
    assert hexed(NOBODY) not in prestate(program)
    assert prestate(program, config={"includeEmpty": True})[hexed(NOBODY)] == {"balance": "0x0"}


def test_what_a_failed_call_used_is_told_too() -> None:
    found = prestate(call(OTHER), {OTHER: "PUSH1 1 PUSH1 0 SSTORE PUSH1 0 PUSH1 0 REVERT"})
    assert found[hexed(OTHER)]["storage"] == {ZERO: ZERO}


def test_an_instruction_that_halts_has_used_nothing() -> None:
    evm = world(f"{push(OTHER)} EXTCODEHASH")
    evm.set_balance(OTHER, 1)
    assert hexed(OTHER) not in evm.trace_call(HERE, gas=21_100, tracer="prestateTracer")


def test_code_and_storage_can_be_left_out() -> None:
    found = prestate("PUSH1 0 SLOAD", config={"disableCode": True, "disableStorage": True})
    assert found[hexed(HERE)].keys() == {"balance", "codeHash"}


def test_the_difference_has_both_sides_of_what_changed() -> None:
    evm = world("PUSH1 9 PUSH1 0 SSTORE PUSH1 0 PUSH1 1 SSTORE PUSH1 2 PUSH1 2 SSTORE PUSH1 3 SLOAD")
    for key in range(4):
        evm.set_storage(HERE, key, 2)
    before = evm.get_balance(CALLER)
    found = evm.trace_transaction(CALLER, HERE, tracer="prestateTracer", config={"diffMode": True})
    assert found["pre"][hexed(HERE)]["storage"] == {ZERO: f"0x{2:064x}", ONE: f"0x{2:064x}"}
    assert found["post"] == {hexed(HERE): {"storage": {ZERO: f"0x{9:064x}"}}, hexed(CALLER): {"nonce": 1}}
    assert found["pre"][hexed(CALLER)] == {"balance": hex(before)}


def test_what_is_created_is_in_post_alone() -> None:
    found = prestate(create(deployer(b"\x5b")), config={"diffMode": True})
    made = hexed(create_address(HERE, 0))
    assert made not in found["pre"]
    assert found["post"][made] == {"code": "0x5b", "codeHash": hexed(keccak256(b"\x5b")), "nonce": 1}


def test_what_is_destroyed_is_in_pre_alone() -> None:
    evm = world(f"{push(OTHER)} SELFDESTRUCT", fork="shanghai")
    found = evm.trace_call(HERE, tracer="prestateTracer", config={"diffMode": True})
    assert hexed(HERE) in found["pre"]
    assert hexed(HERE) not in found["post"]


def test_a_selfdestruct_that_only_sends_the_balance_is_a_change_like_others() -> None:
    evm = world(f"{push(OTHER)} SELFDESTRUCT")
    evm.set_balance(HERE, 6)
    found = evm.trace_call(HERE, caller=CALLER, value=4, tracer="prestateTracer", config={"diffMode": True})
    assert found["post"][hexed(OTHER)] == {"balance": "0xa"}
    assert found["post"][hexed(HERE)] == {"balance": "0x0"}


def test_a_delegation_names_the_account_whose_code_runs() -> None:
    evm = world(call(OTHER), {OTHER: DELEGATION_PREFIX + NOBODY, NOBODY: "STOP"})
    assert "code" in evm.trace_call(HERE, tracer="prestateTracer")[hexed(NOBODY)]
    assert "code" in evm.trace_call(OTHER, tracer="prestateTracer")[hexed(NOBODY)]


def test_a_contract_in_the_way_of_a_creation_is_told() -> None:
    init = deployer(b"\x5b")
    evm = world(f"PUSH1 7 {create(init)}2")
    taken = create2_address(HERE, 7, init)
    evm.set_code(taken, b"\x01")
    assert evm.trace_call(HERE, tracer="prestateTracer")[hexed(taken)]["code"] == "0x01"


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
@pytest.mark.parametrize(
    "program",
    [
        "PUSH1 9 PUSH1 0 SSTORE",
        "PUSH1 9 PUSH1 0 SSTORE PUSH1 0 PUSH1 0 REVERT",
        call(OTHER) + call(NOBODY, kind="DELEGATECALL") + "PUSH1 5 SLOAD",
        call(OTHER) + f"{push(NOBODY)} EXTCODEHASH",
        create(deployer(b"\x5b")) + " POP" + call(create_address(HERE, 0)),
        "PUSH1 0 PUSH1 0 PUSH1 200 CREATE",
        f"{push(OTHER)} SELFDESTRUCT",
    ],
)
def test_prestates_are_the_same_on_every_tier(tier: str, program: str) -> None:
    others: dict[bytes, str | bytes] = {OTHER: f"PUSH1 3 SLOAD {push(CALLER)} BALANCE", NOBODY: "PUSH1 4 SLOAD"}
    evm = world(program, others)
    evm.tier = tier
    found = evm.trace_call(HERE, caller=CALLER, gas=1_000_000, tracer="prestateTracer", config={"includeEmpty": True})
    watcher = TouchWatcher()
    with undone(evm.state), hooked(evm, Hooks(watcher=watcher)):
        evm.call(HERE, caller=CALLER, gas=1_000_000 - 21_000)
    listed = {*watcher.found.accounts, *watcher.found.created, CALLER, HERE, COINBASE}
    assert found.keys() == {hexed(address) for address in listed}
    slots = {(hexed(address), f"0x{key:064x}") for address, key in watcher.found.slots}
    assert {(address, key) for address, account in found.items() for key in account.get("storage", ())} == slots


def test_code_that_reads_no_accounts_is_not_watched_on_the_reference_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusevm.tracing.touched.TouchWatcher", None)
    evm = world("PUSH1 0 SLOAD" + call(OTHER), {OTHER: "PUSH1 4 SLOAD"})
    assert hexed(OTHER) in evm.trace_call(HERE, tracer="prestateTracer")
    assert len(evm.create_access_list(HERE)["accessList"]) == 2


@pytest.mark.parametrize("tracer", [None, "callTracer", "prestateTracer", "4byteTracer", "noopTracer"])
def test_hooks_are_not_told_of_what_is_traced(tracer: str | None) -> None:
    told: list[object] = []
    evm = world("PUSH1 0 SLOAD")
    evm.hooks = hooks = Hooks(on_call=told.append)
    evm.trace_call(HERE, tracer=tracer)
    assert (told, evm.hooks) == ([], hooks)


# -- access lists -----------------------------------------------------------------------------------------------------


def listed(evm: EVM, **given: Any) -> dict[str, list[str]]:
    made = evm.create_access_list(HERE, caller=CALLER, **given)
    return {entry["address"]: entry["storageKeys"] for entry in made["accessList"]}


def test_an_access_list_has_what_is_used_but_not_what_is_warm_anyway() -> None:
    evm = world(
        f"PUSH1 1 SLOAD {push(NOBODY)} BALANCE {push(CALLER)} BALANCE {push(HERE)} EXTCODESIZE"
        + call((4).to_bytes(20, "big"))
        + call(OTHER),
        {OTHER: "PUSH1 0 SLOAD"},
    )
    assert listed(evm) == {hexed(HERE): [ONE], hexed(OTHER): [ZERO], hexed(NOBODY): []}


def test_the_gas_of_an_access_list_is_that_of_a_transaction_with_it() -> None:
    evm = world("PUSH1 1 SLOAD" + call(OTHER), {OTHER: "PUSH1 0 SLOAD"})
    made = evm.create_access_list(HERE, caller=CALLER, gas=100_000)
    sent = evm.transact(CALLER, HERE, gas=100_000, access_list=made["accessList"])
    assert int(made["gasUsed"], 16) == sent.gas_used


def test_a_list_is_made_again_until_a_run_with_it_uses_nothing_else() -> None:
    """Slot 5 is loaded, and another one only if that was cheap, so that the list shows in the gas."""
    evm = world(
        "GAS PUSH1 5 SLOAD POP GAS SWAP1 SUB PUSH2 1000 GT PUSH2 @cheap JUMPI STOP cheap: JUMPDEST PUSH1 9 SLOAD"
    )
    assert len(listed(evm)[hexed(HERE)]) == 2


def test_a_given_list_is_kept_and_failures_are_told() -> None:
    evm = world("PUSH1 1 SLOAD PUSH1 0 PUSH1 0 REVERT")
    made = evm.create_access_list(HERE, access_list=[(OTHER, [3])])
    assert made["error"] == "execution reverted"
    assert [entry["address"] for entry in made["accessList"]] == [hexed(OTHER), hexed(HERE)]


def test_a_created_contract_is_not_listed() -> None:
    evm = world(create(deployer(b"\x5b")))
    assert listed(evm) == {}
