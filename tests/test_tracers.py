"""Tracers by geth's names: struct logs, and what holds for all of them."""

from __future__ import annotations

import pytest

from fusevm import BadValue, Checks, Rejected
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer
from tracedprograms import ONE, ZERO, Json, create, hexed, returning, trace, world

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


def test_opcodes_have_geths_names() -> None:
    assert trace(None, "PREVRANDAO")["structLogs"][0]["op"] == "DIFFICULTY"
    evm = world("STOP")
    evm.set_code(HERE, b"\x0c")
    assert evm.trace_call(HERE)["structLogs"][0]["op"] == "opcode 0xc not defined"


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
        ({"value": 10**40, "caller": "0x" + "b0" * 20}, "value: caller 0x"),
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
