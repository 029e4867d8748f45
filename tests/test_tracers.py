"""Tracers by geth's names: the forms of their answers, and that tracing changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm import EVM, BadValue, Block, Checks, Rejected
from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.authorization import DELEGATION_PREFIX
from fusevm.evm.keccak import keccak256
from fusevm.reference.hooks import Hooks
from fusevm.tracing.requests import hooked, undone
from fusevm.tracing.touched import TouchWatcher
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, machine, push, store_initcode

Json = dict[str, Any]
COINBASE = b"\xbb" * 20
ERROR = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (4).to_bytes(32, "big") + b"what".ljust(32, b"\0")
PANIC = bytes.fromhex("4e487b71") + (0x11).to_bytes(32, "big")
ZERO, ONE = f"0x{0:064x}", f"0x{1:064x}"


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def world(program: str, others: dict[bytes, str | bytes] | None = None, fork: str = "osaka") -> EVM:
    evm = machine({HERE: program, **(others or {})}, fork)
    evm.block = Block(coinbase=COINBASE)
    return evm


def trace(
    tracer: str | None,
    program: str,
    others: dict[bytes, str | bytes] | None = None,
    config: Json | None = None,
    **given: Any,
) -> Json:
    asked: Json = {"gas": 1_000_000, "caller": CALLER, **given}
    return world(program, others).trace_call(HERE, asked.pop("data", b""), tracer=tracer, config=config, **asked)


def create(init: bytes) -> str:
    return f"{store_initcode(init)} {push(len(init))} PUSH1 0 PUSH1 0 CREATE"


def returning(data: bytes, ending: str = "REVERT") -> str:
    stores = "".join(
        f" PUSH32 0x{data[at : at + 32].ljust(32, bytes(1)).hex()} {push(at)} MSTORE" for at in range(0, len(data), 32)
    )
    return f"{stores} {push(len(data))} PUSH1 0 {ending}"


# -- callTracer -------------------------------------------------------------------------------------------------------


def test_the_outermost_call_has_the_gas_of_the_transaction_with_its_intrinsic_gas() -> None:
    form = trace("callTracer", returning(b"\7" * 32, "RETURN"), value=5)
    assert form == {
        "from": hexed(CALLER),
        "gas": hex(1_000_000),
        "gasUsed": hex(21_000 + 18),
        "to": hexed(HERE),
        "input": "0x",
        "output": hexed(b"\7" * 32),
        "value": "0x5",
        "type": "CALL",
    }
    assert list(form) == ["from", "gas", "gasUsed", "to", "input", "output", "value", "type"]  # geth's order


def test_gas_used_is_after_the_refund() -> None:
    evm = world("PUSH1 0 PUSH1 0 SSTORE")
    evm.set_storage(HERE, 0, 1)
    used = int(evm.trace_call(HERE, caller=CALLER, gas=100_000, tracer="callTracer")["gasUsed"], 16)
    assert used == evm.transact(CALLER, HERE, gas=100_000).gas_used == 26_006 - 4_800


@pytest.mark.parametrize(
    ("kind", "source", "value"),
    [("CALL", HERE, "0x0"), ("CALLCODE", HERE, "0x0"), ("DELEGATECALL", HERE, "0x3"), ("STATICCALL", HERE, None)],
)
def test_kinds_of_calls_are_named_from_the_running_contract_to_the_named_one(
    kind: str, source: bytes, value: str | None
) -> None:
    form = trace("callTracer", call(OTHER, kind=kind), {OTHER: "STOP"}, value=3)
    (inner,) = form["calls"]
    assert (inner["type"], inner["from"], inner["to"]) == (kind, hexed(source), hexed(OTHER))
    assert inner.get("value") == value


def test_a_call_without_the_balance_is_a_frame_with_an_error_that_used_nothing() -> None:
    (inner,) = trace("callTracer", call(OTHER, value=200))["calls"]
    assert inner["error"] == "insufficient balance for transfer"
    assert inner["gasUsed"] == "0x0"


def test_a_revert_shows_its_output_and_its_reason() -> None:
    form = trace("callTracer", returning(ERROR))
    assert (form["error"], form["output"], form["revertReason"]) == ("execution reverted", hexed(ERROR), "what")
    assert trace("callTracer", returning(PANIC))["revertReason"] == "arithmetic underflow or overflow"
    assert "revertReason" not in trace("callTracer", returning(b"\1\2\3\4\5"))
    assert "output" not in trace("callTracer", "PUSH1 0 PUSH1 0 REVERT")


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("ADD", "stack underflow (0 <=> 2)"),
        ("PUSH1 1 JUMP", "invalid jump destination"),
        ("INVALID", "invalid opcode: INVALID"),
        ("JUMPDEST PUSH0 PUSH0 JUMP", "stack limit reached 1024 (1023)"),
        ("PUSH1 1 PUSH1 0 PUSH1 0 RETURNDATACOPY", "return data out of bounds"),
        ("PUSH4 0xffffffff MLOAD", "out of gas"),
    ],
)
def test_a_halt_is_told_in_geths_words(program: str, error: str) -> None:
    form = trace("callTracer", program)
    assert form["error"] == error
    assert "output" not in form


def test_an_undefined_opcode_is_told_by_its_number() -> None:
    evm = world("STOP")
    evm.set_code(HERE, b"\x0c")
    assert evm.trace_call(HERE, tracer="callTracer")["error"] == "invalid opcode: opcode 0xc not defined"


def test_a_write_in_a_static_call_is_told_in_geths_words() -> None:
    (inner,) = trace("callTracer", call(OTHER, kind="STATICCALL"), {OTHER: "PUSH1 1 PUSH1 1 SSTORE"})["calls"]
    assert inner["error"] == "write protection"


def test_a_creation_shows_the_code_and_where_it_is() -> None:
    form = trace("callTracer", create(deployer(b"\x5b")))
    (inner,) = form["calls"]
    assert (inner["type"], inner["output"], inner["to"]) == ("CREATE", "0x5b", hexed(create_address(HERE, 0)))


def test_a_creation_that_failed_is_nowhere() -> None:
    (inner,) = trace("callTracer", create(b"\xfe"))["calls"]
    assert inner["error"] == "invalid opcode: INVALID"
    assert "to" not in inner


def test_a_creation_without_the_gas_for_its_code_says_so() -> None:
    form = EVM().trace_call(None, deployer(bytes(1_000)), gas=100_000, tracer="callTracer")
    assert form["error"] == "contract creation code storage out of gas"
    assert "to" not in form


def test_a_creation_at_an_address_that_is_taken_is_an_error_without_a_frame() -> None:
    evm = EVM()
    evm.set_code(create_address(CALLER, 0), b"\x01")
    form = evm.trace_call(None, b"\x00", caller=CALLER, gas=100_000, tracer="callTracer")
    assert (form["type"], form["error"], form["gasUsed"]) == ("CREATE", "contract address collision", hex(100_000))
    assert "to" not in form


def test_a_selfdestruct_is_a_frame_that_sends_the_balance() -> None:
    form = trace("callTracer", f"{push(OTHER)} SELFDESTRUCT", value=9)
    assert form["calls"] == [
        {
            "from": hexed(HERE),
            "gas": "0x0",
            "gasUsed": "0x0",
            "to": hexed(OTHER),
            "input": "0x",
            "value": "0x9",
            "type": "SELFDESTRUCT",
        }
    ]


def test_logs_say_which_of_the_kept_logs_they_are_and_how_many_calls_came_before() -> None:
    log = "PUSH1 5 PUSH1 0 PUSH1 0 LOG1 "
    form = trace(
        "callTracer",
        log + call(OTHER) + call(NOBODY) + log,
        {OTHER: log + "PUSH1 0 PUSH1 0 REVERT", NOBODY: log},
        {"withLog": True},
    )
    reverted, kept = form["calls"]
    assert "logs" not in reverted
    assert [(each["index"], each["position"]) for each in form["logs"]] == [("0x0", "0x0"), ("0x2", "0x2")]
    assert kept["logs"] == [
        {"address": hexed(NOBODY), "topics": [f"0x{5:064x}"], "data": "0x", "index": "0x1", "position": "0x0"}
    ]


def test_logs_are_left_out_unless_asked_for() -> None:
    assert "logs" not in trace("callTracer", "PUSH1 0 PUSH1 0 LOG0")


def test_only_the_top_call_can_be_asked_for() -> None:
    log = "PUSH1 0 PUSH1 0 LOG0 "
    form = trace("callTracer", log + call(OTHER), {OTHER: log}, {"onlyTopCall": True, "withLog": True})
    assert "calls" not in form
    assert len(form["logs"]) == 1


def test_calls_of_precompiles_are_frames() -> None:
    (inner,) = trace("callTracer", call((4).to_bytes(20, "big")))["calls"]
    assert (inner["to"], inner["gasUsed"]) == (hexed((4).to_bytes(20, "big")), hex(15))


def test_a_thousand_nested_calls_are_no_trouble() -> None:
    form = trace("callTracer", call(HERE), gas=1 << 40)
    depth = 0
    while "calls" in form:
        (form,) = form["calls"]
        depth += 1
    assert depth == 1_025
    assert form["error"] == "max call depth exceeded"


@pytest.mark.parametrize("tier", ["native", "auto"])
def test_the_call_tracer_says_the_same_on_every_tier(tier: str) -> None:
    log = "PUSH1 5 PUSH1 0 PUSH1 0 LOG1 "
    evm = world(log + call(OTHER) + call(NOBODY, value=200), {OTHER: log + returning(ERROR)})
    forms = []
    for evm.tier in ("reference", tier):
        forms.append(evm.trace_call(HERE, caller=CALLER, tracer="callTracer", config={"withLog": True}))
    assert forms[0] == forms[1]


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
@pytest.mark.parametrize(("fork", "given"), [("homestead", 640), ("osaka", 630)])
def test_a_creation_without_the_balance_has_the_gas_that_it_would_have_had(tier: str, fork: str, given: int) -> None:
    evm = world("PUSH1 0 PUSH1 0 PUSH1 200 CREATE", fork=fork)
    evm.tier = tier
    form = evm.trace_call(HERE, caller=CALLER, gas=21_000 + 9 + 32_000 + 640, tracer="callTracer")
    (inner,) = form["calls"]
    assert (inner["error"], inner["gas"], inner["gasUsed"]) == ("insufficient balance for transfer", hex(given), "0x0")


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


# -- 4byteTracer and noopTracer ---------------------------------------------------------------------------------------


def test_selectors_are_counted_with_the_size_of_the_arguments() -> None:
    def with_data(to: bytes, size: int) -> str:
        return f" PUSH1 0 PUSH1 0 {push(size)} PUSH1 0 PUSH1 0 {push(to)} GAS CALL"

    identity = (4).to_bytes(20, "big")
    calls = with_data(OTHER, 36) * 2 + with_data(OTHER, 3) + with_data(identity, 36)
    evm = world("PUSH4 0x01020304 PUSH1 224 SHL PUSH1 0 MSTORE" + calls, {OTHER: "STOP"})
    found = evm.trace_call(HERE, b"\xaa\xbb\xcc\xdd", tracer="4byteTracer")
    assert found == {"0x01020304-32": 2, "0xaabbccdd-0": 1}


def test_creations_have_no_selector() -> None:
    assert EVM().trace_call(None, bytes(8), tracer="4byteTracer") == {}


def test_the_noop_tracer_says_nothing() -> None:
    assert trace("noopTracer", "PUSH1 1") == {}


# -- struct logs ------------------------------------------------------------------------------------------------------


def test_a_struct_log_has_geths_fields() -> None:
    form = trace(None, "PUSH1 7 PUSH1 1 SSTORE PUSH1 1 SLOAD STOP", gas=100_000)
    first, _, store, _, load, stop = form.pop("structLogs")
    assert form == {"gas": 21_000 + 3 * 3 + 22_100 + 100, "failed": False, "returnValue": "0x"}
    assert first == {"pc": 0, "op": "PUSH1", "gas": 79_000, "gasCost": 3, "depth": 1, "stack": []}
    assert store == {
        "pc": 4,
        "op": "SSTORE",
        "gas": 78_994,
        "gasCost": 22_100,
        "depth": 1,
        "stack": ["0x7", "0x1"],
        "storage": {ONE: f"0x{7:064x}"},
    }
    assert load["storage"] == {ONE: f"0x{7:064x}"}
    assert stop["stack"] == ["0x7"]


def test_storage_adds_up_over_the_calls_of_a_contract() -> None:
    form = trace(None, call(OTHER) * 2, {OTHER: "PUSH1 1 PUSH1 0 SLOAD SLOAD PUSH1 1 SLOAD"})
    loads = [step["storage"] for step in form["structLogs"] if step["op"] == "SLOAD"]
    assert loads[0] == {ZERO: ZERO}
    assert loads[-1] == {ZERO: ZERO, ONE: ZERO}


def test_memory_and_return_data_come_where_asked_for() -> None:
    program = "PUSH1 7 PUSH1 0 MSTORE" + call(OTHER)
    plain = trace(None, program, {OTHER: returning(b"\1\2", "RETURN")})["structLogs"][-1]
    assert plain.keys() == {"pc", "op", "gas", "gasCost", "depth", "stack"}
    options = {"enableMemory": True, "enableReturnData": True}
    full = trace(None, program, {OTHER: returning(b"\1\2", "RETURN")}, options)["structLogs"][-1]
    assert full["memory"] == [f"0x{7:064x}"]
    assert full["returnData"] == "0x0102"


def test_stack_and_storage_can_be_left_out() -> None:
    form = trace(None, "PUSH1 0 SLOAD", config={"disableStack": True, "disableStorage": True})
    assert all("stack" not in step and "storage" not in step for step in form["structLogs"])


def test_the_refund_counter_is_told_where_there_is_one() -> None:
    evm = world("PUSH1 0 PUSH1 0 SSTORE STOP")
    evm.set_storage(HERE, 0, 1)
    *_, before, after = evm.trace_call(HERE)["structLogs"]
    assert "refund" in before
    assert after["refund"] == 4_800


def test_errors_are_told_that_geth_finds_before_the_instruction_runs() -> None:
    assert trace(None, "ADD")["structLogs"][-1]["error"] == "stack underflow (0 <=> 2)"
    assert trace(None, "PUSH4 0xffffffff MLOAD")["structLogs"][-1]["error"] == "out of gas"
    assert "error" not in trace(None, "PUSH1 1 JUMP")["structLogs"][-1]
    assert "error" not in trace(None, "INVALID")["structLogs"][-1]


def test_a_failure_returns_the_data_of_a_revert_alone() -> None:
    assert trace(None, returning(b"\1\2"))["returnValue"] == "0x0102"
    assert trace(None, "INVALID")["returnValue"] == "0x"
    assert trace(None, "INVALID")["failed"] is True


def test_lines_stop_when_their_json_is_longer_than_the_limit() -> None:
    whole = trace(None, "PUSH0 POP " * 50)["structLogs"]
    cut = trace(None, "PUSH0 POP " * 50, config={"limit": 200})["structLogs"]
    assert cut == whole[: len(cut)]
    assert 200 < sum(len(str(line).replace(" ", "")) for line in cut) < 350


# -- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tracer", [None, "structLogs", "callTracer", "prestateTracer", "4byteTracer", "noopTracer"])
def test_tracing_keeps_nothing(tracer: str | None) -> None:
    evm = world("PUSH1 1 PUSH1 0 SSTORE " + create(deployer(b"\x5b")))
    root = evm.state_root
    evm.trace_call(HERE, value=5, caller=CALLER, tracer=tracer)
    evm.trace_transaction(CALLER, HERE, value=5, tracer=tracer)
    assert evm.state_root == root
    assert evm.hooks is None


def test_a_transaction_that_may_not_run_is_rejected() -> None:
    evm = world("STOP")
    with pytest.raises(Rejected, match="nonce"):
        evm.trace_transaction(CALLER, HERE, nonce=7)
    assert evm.hooks is None


def test_a_call_needs_no_base_fee_and_then_sees_none() -> None:
    evm = world("BASEFEE PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN")
    evm.block.base_fee = 10**9
    assert evm.trace_call(HERE)["returnValue"] == ZERO
    paid = evm.trace_call(HERE, caller=CALLER, gas=30_000, gas_price=10**9)
    assert int(paid["returnValue"], 16) == 10**9


def test_a_call_can_be_traced_on_another_state_in_another_block() -> None:
    evm = world("STOP")
    other = {"code": "0x435f5260205ff3"}  # returns the block's number
    form = evm.trace_call(
        HERE, overrides={HERE: other}, block_overrides={"number": 77}, tracer="callTracer"
    )  # fmt: skip
    assert int(form["output"], 16) == 77
    assert (evm.get_code(HERE), evm.block.number) == (b"\0", 1)


def test_a_caller_need_not_have_what_it_sends_where_balances_are_not_checked() -> None:
    evm = world("STOP")
    evm.checks = Checks(balance=False)
    form = evm.trace_call(HERE, caller=NOBODY, value=7, tracer="callTracer")
    assert (form["value"], "error" in form) == ("0x7", False)


def test_a_call_may_come_from_a_contract() -> None:
    evm = world("STOP", {OTHER: "STOP"})
    assert evm.trace_call(HERE, caller=OTHER, tracer="callTracer")["from"] == hexed(OTHER)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tracer": "jsTracer"}, "tracer: 'jsTracer' is not known; known: structLogs, callTracer"),
        (
            {"tracer": "callTracer", "config": {"withLogs": True}},
            "callTracer has no option 'withLogs'; its options are",
        ),
        ({"tracer": "4byteTracer", "config": {"x": 1}}, "4byteTracer has no option 'x'; it has no options"),
        ({"tracer": "callTracer", "config": {"withLog": 1}}, "withLog: expected true or false, got int"),
        ({"config": {"limit": -1}}, "limit"),
        ({"config": [1]}, "config: expected a mapping of options, got list"),
        ({"gas": 20_000}, "gas: 20000 is under the intrinsic gas, 21000"),
        ({"value": 10**40}, "value: caller 0x"),
    ],
)
def test_what_cannot_be_traced_is_told_in_one_line(given: Json, message: str) -> None:
    with pytest.raises(BadValue, match=message) as error:
        world("STOP").trace_call(HERE, **given)
    assert "\n" not in str(error.value)


def test_tracing_inside_a_recording_is_refused() -> None:
    evm = world("STOP")
    with evm.record(), pytest.raises(BadValue, match="recorded"):
        evm.trace_call(HERE)


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
