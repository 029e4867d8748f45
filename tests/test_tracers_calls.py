"""`callTracer`, `4byteTracer` and `noopTracer`: the forms of their answers."""

from __future__ import annotations

import pytest

from fusevm import EVM
from fusevm.chain.addresses import create_address
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, push
from tracedprograms import ERROR, PANIC, create, hexed, returning, trace, world

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
