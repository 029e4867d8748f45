"""What tools that start anvil rely on, without anvil: `test_node_replay.py` compares the two."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm.rpc import Config, RpcError, Session

NOW = 1_800_000_000
ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
DEPLOYER = "0x4e59b44847b379578588920ca78fbf26c0b4956c"
THERE = "0x" + "c0" * 20
REVERTING, RETURNING = "0x365f5f37365ffd", "0x365f5f37365ff3"  # with what they are given
NO_TRANSACTION = "0x" + "01" * 32


@pytest.fixture
def session() -> Session:
    return Session(Config(timestamp=NOW), now=lambda: NOW)


def refused(session: Session, method: str, *params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        session.request(method, params)
    return caught.value


def with_code(session: Session, code: str) -> str:
    session.request("anvil_setCode", [THERE, code])
    return THERE


def test_the_create2_deployer_deploys(session: Session) -> None:
    initcode = "6001600a5f3960015ff300"  # a contract of one byte, STOP
    data = "0x" + "00" * 31 + "07" + initcode
    where = session.request("eth_call", [{"to": DEPLOYER, "data": data}])
    session.request("eth_sendTransaction", [{"from": ALICE, "to": DEPLOYER, "data": data}])
    assert session.request("eth_getCode", [where]) == "0x00"


def test_without_the_create2_deployer_nothing_is_there() -> None:
    session = Session(Config(timestamp=NOW, create2_deployer=False))
    assert session.request("eth_getCode", [DEPLOYER]) == "0x"


def test_the_first_block_has_the_base_fee_that_was_asked_for_and_the_next_follows(session: Session) -> None:
    session.request("anvil_mine", [2])
    fees = [session.request("eth_getBlockByNumber", [hex(at)])["baseFeePerGas"] for at in range(3)]
    assert [int(fee, 16) for fee in fees] == [10**9, 10**9, 875_000_000]


def test_before_london_there_is_no_base_fee() -> None:
    session = Session(Config(timestamp=NOW, hardfork="berlin"))
    session.request("anvil_mine", [1])
    assert "baseFeePerGas" not in session.request("eth_getBlockByNumber", ["latest"])


def test_safe_and_finalized_are_one_and_two_epochs_behind(session: Session) -> None:
    numbers = []
    for more in (0, 40, 40):
        session.request("anvil_mine", [more])
        numbers.append(
            [int(session.request("eth_getBlockByNumber", [tag])["number"], 16) for tag in ("safe", "finalized")]
        )
    assert numbers == [[0, 0], [8, 0], [48, 16]]


@pytest.mark.parametrize("code", [REVERTING, "0xfe", "0x5b5f56"], ids=["reverts", "halts", "never ends"])
def test_a_transaction_without_gas_that_fails_is_mined_as_failed(session: Session, code: str) -> None:
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "to": with_code(session, code)}])
    assert session.request("eth_getTransactionReceipt", [sent])["status"] == "0x0"


def test_what_is_only_filled_in_is_refused_where_it_would_fail(session: Session) -> None:
    assert refused(session, "eth_fillTransaction", {"from": ALICE, "to": with_code(session, REVERTING)}).code == 3


def test_a_transaction_without_a_sender_is_the_first_accounts(session: Session) -> None:
    sent = session.request("eth_sendTransaction", [{"to": BOB}])
    assert session.request("eth_getTransactionByHash", [sent])["from"] == ALICE


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"data": "0x", "input": "0x1234"}, "0x1234"),
        ({"data": "0x1234", "input": "0x"}, "0x"),
        ({"data": "0x1234", "input": "0x5678"}, "0x5678"),
        ({"data": "0x1234"}, "0x1234"),
        ({"data": "0x1234", "input": None}, "0x1234"),
    ],
)
def test_input_counts_where_data_is_beside_it(session: Session, given: dict[str, Any], seen: str) -> None:
    assert session.request("eth_call", [{"to": with_code(session, RETURNING), **given}]) == seen


@pytest.mark.parametrize("topic", ["0x07", "7", 7, "0xzz", ["0x07"], {"any": 1}, "0x" + "00" * 33])
def test_a_topic_that_no_log_can_have_is_refused(session: Session, topic: Any) -> None:
    for method in ("eth_getLogs", "eth_newFilter"):
        error = refused(session, method, {"topics": [topic]})
        assert (error.code, "filter topic" in error.message) == (-32602, True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0x", "execution reverted"),
        ("0x118cdaa7", "execution reverted: custom error 0x118cdaa7"),
        ("0x118cdaa7" + "00" * 31 + "07", "execution reverted: custom error 0x118cdaa7: " + "00" * 31 + "07"),
        ("0x6869", "execution reverted: hi"),
        ("0x0102", "execution reverted: 0x0102"),
        ("0x4e487b71" + "00" * 31 + "11", "execution reverted: panic: arithmetic underflow or overflow (0x11)"),
        ("0x4e487b71" + "00" * 31 + "ff", "execution reverted: panic: unknown code (0xff)"),
    ],
)
def test_a_revert_is_told_as_foundrys_tools_tell_it(session: Session, data: str, message: str) -> None:
    error = refused(session, "eth_call", {"to": with_code(session, REVERTING), "data": data})
    assert (error.code, error.message, error.data) == (3, message, data)


@pytest.mark.parametrize(
    ("code", "name"),
    [("0xfe", "InvalidFEOpcode"), ("0x0c", "OpcodeNotFound"), ("0x600456", "InvalidJump"), ("0x50", "StackUnderflow")],
)
def test_a_halt_has_revms_name(session: Session, code: str, name: str) -> None:
    error = refused(session, "eth_call", {"to": with_code(session, code)})
    assert (error.code, error.message) == (-32603, f"EVM error {name}")


def test_the_trace_of_a_transaction_that_is_not_there_is_empty(session: Session) -> None:
    empty = {"failed": False, "gas": 0, "returnValue": "0x", "structLogs": []}
    assert session.request("debug_traceTransaction", [NO_TRANSACTION]) == empty
    assert session.request("debug_traceTransaction", [NO_TRANSACTION, {"tracer": "callTracer"}]) == empty
    assert session.request("trace_transaction", [NO_TRANSACTION]) == []
    assert session.request("ots_traceTransaction", [NO_TRANSACTION]) == []


def test_flat_calls_name_their_block_and_transaction(session: Session) -> None:
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "to": BOB, "value": "0x5"}])
    options = {"tracer": "muxTracer", "tracerConfig": {"flatCallTracer": {}, "4byteTracer": None}}
    (flat,) = session.request("debug_traceTransaction", [sent, {"tracer": "flatCallTracer"}])
    assert (flat["transactionHash"], flat["transactionPosition"], flat["blockNumber"]) == (sent, 0, 1)
    assert session.request("debug_traceTransaction", [sent, options]) == {"flatCallTracer": [flat], "4byteTracer": {}}
    (traced,) = session.request("debug_traceBlockByNumber", ["0x1", {"tracer": "flatCallTracer"}])
    assert traced["result"] == [flat]


def test_tracers_in_javascript_are_refused_in_one_sentence(session: Session) -> None:
    error = refused(session, "debug_traceCall", {"to": BOB}, "latest", {"tracer": "{step: function() {}}"})
    assert error.code == -32602
    assert error.message.startswith("tracer: JavaScript is not run here; name one of the tracers that are built in")


def test_the_first_snapshot_is_number_zero(session: Session) -> None:
    assert session.request("evm_snapshot") == "0x0"
    session.request("anvil_mine", [1])
    assert session.request("evm_revert", ["0x0"]) is True
    assert session.request("eth_blockNumber") == "0x0"
