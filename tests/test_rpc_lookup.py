"""JSON-RPC methods that look things up: what is not there, estimates, blocks by hash (EIP-1898), logs and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anvil import ACCOUNT, Anvil
from fusevm.rpc import Config, RpcError, Session

NOW = 1_800_000_000
ALICE = "0x" + ACCOUNT.hex()
NO_HASH, FUTURE = "0x" + "de" * 32, "0xfffffff"
INVALID, NOT_FOUND, SERVER = -32602, -32001, -32000
# Logs a word of zeroes with the topics 0xee and 0xff.
LOUD, LOGS = "0x" + "11" * 20, "0x60ff60ee60205fa200"
EE, FF = "0x" + "00" * 31 + "ee", "0x" + "00" * 31 + "ff"
# Both geth and anvil answer null.
MISSING: tuple[tuple[Any, ...], ...] = (
    ("eth_getBlockByNumber", FUTURE, False),
    ("eth_getBlockByHash", NO_HASH, False),
    ("eth_getBlockTransactionCountByHash", NO_HASH),
    ("eth_getBlockReceipts", FUTURE),
    ("eth_getBlockReceipts", NO_HASH),
    ("eth_getTransactionByHash", NO_HASH),
    ("eth_getTransactionReceipt", NO_HASH),
    ("eth_getTransactionByBlockNumberAndIndex", FUTURE, "0x0"),
    ("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x5"),
    ("eth_getTransactionByBlockHashAndIndex", NO_HASH, "0x0"),
    ("eth_getRawTransactionByBlockNumberAndIndex", FUTURE, "0x0"),
    ("eth_getRawTransactionByBlockHashAndIndex", NO_HASH, "0x0"),
    ("eth_getRawTransactionByHash", NO_HASH),
    ("eth_getTransactionBySenderAndNonce", LOUD, "0x0"),
)
# geth answers null; anvil has errors of several kinds.
MISSING_IN_GETH: tuple[tuple[Any, ...], ...] = (
    ("eth_getBlockTransactionCountByNumber", FUTURE),
    ("eth_getUncleCountByBlockNumber", FUTURE),
    ("eth_getUncleCountByBlockHash", NO_HASH),
    ("eth_getUncleByBlockNumberAndIndex", FUTURE, "0x0"),
    ("eth_getUncleByBlockHashAndIndex", NO_HASH, "0x0"),
)


@pytest.fixture
def session() -> Session:
    """Of a chain whose block 1 has a log, and whose block 2 is empty."""
    made = Session(Config(timestamp=NOW), now=lambda: NOW)
    made.request("anvil_setCode", [LOUD, LOGS])
    shout(made)
    made.request("evm_mine")
    return made


def shout(session: Session) -> str:
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "to": LOUD}])
    return str(session.request("eth_getTransactionReceipt", [sent])["blockHash"])


def refused(session: Session, method: str, *params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        session.request(method, params)
    return caught.value


def blocks_of(logs: list[Any]) -> list[int]:
    return [int(each["blockNumber"], 16) for each in logs]


# -- what is not there


@pytest.mark.parametrize("asked", MISSING + MISSING_IN_GETH, ids=lambda asked: f"{asked[0]} {asked[1][:6]}")
def test_what_is_not_there_is_null(session: Session, asked: tuple[Any, ...]) -> None:
    method, *params = asked
    assert session.request(method, params) is None


@pytest.mark.long
def test_what_is_not_there_is_null_in_anvil_too(anvil_binary: Path) -> None:
    with Anvil(anvil_binary) as node:
        node.ask("evm_mine")
        assert [node.ask(*asked) for asked in MISSING] == [None] * len(MISSING)


# -- estimates


@pytest.mark.parametrize(
    ("balance", "fields"),
    [
        (0, {"data": "0x12345678", "gasPrice": "0x77359400"}),
        (20_000 * 2 * 10**9, {"data": "0x12345678", "gasPrice": "0x77359400"}),
        (10**18, {"to": None, "data": "0x5b5f56", "gas": "0xf000"}),  # a loop without end
    ],
    ids=["nothing to pay with", "too little to pay with", "out of gas"],
)
def test_an_estimate_with_too_little_gas_says_so_as_geth_and_anvil_do(
    session: Session, balance: int, fields: Any
) -> None:
    poor = "0x" + "77" * 20
    session.request("anvil_setBalance", [poor, hex(balance)])
    error = refused(session, "eth_estimateGas", {"from": poor, "to": "0x" + "22" * 20, **fields})
    assert error.code == -32003
    assert "gas required exceeds allowance" in error.message


@pytest.mark.parametrize("price", [{}, {"gasPrice": "0x77359400"}], ids=["free", "with a price"])
def test_an_estimate_of_more_than_there_is_says_that_funds_are_short(session: Session, price: Any) -> None:
    error = refused(session, "eth_estimateGas", {"from": ALICE, "to": LOUD, "value": hex(10**30), **price})
    assert error.message.startswith("Insufficient funds for gas * price + value")


def test_a_creation_that_reverted_has_no_result_in_flat_traces(session: Session) -> None:
    """A result without an address is one that clients cannot read."""
    sent = session.request("eth_sendTransaction", [{"from": ALICE, "data": "0x60016002fd", "gas": "0x20000"}])
    (found,) = session.request("trace_transaction", [sent])
    assert (found["type"], found["error"], found["result"]) == ("create", "Reverted", None)


# -- blocks by hash


@pytest.mark.parametrize("form", [lambda found: found, lambda found: {"blockHash": found}], ids=["text", "object"])
def test_state_is_read_at_a_block_that_its_hash_names(session: Session, form: Any) -> None:
    first = form(session.request("eth_getBlockByNumber", ["0x1"])["hash"])
    session.request("anvil_setCode", [LOUD, "0x"])
    session.request("evm_mine")
    assert session.request("eth_getCode", [LOUD, first]) == LOGS
    assert session.request("eth_getTransactionCount", [ALICE, first]) == "0x1"
    assert session.request("eth_call", [{"to": LOUD}, first]) == "0x"


def test_a_hash_of_no_block_is_not_found(session: Session) -> None:
    for which in (NO_HASH, {"blockHash": NO_HASH}, {"blockHash": NO_HASH, "requireCanonical": True}):
        assert refused(session, "eth_getBalance", ALICE, which).code == NOT_FOUND
        assert refused(session, "eth_call", {"to": LOUD}, which).code == NOT_FOUND


def test_a_block_of_a_dropped_branch_is_there_unless_it_must_be_canonical(session: Session) -> None:
    dropped = shout(session)
    session.request("anvil_reorg", [1, []])
    assert session.request("eth_getTransactionCount", [ALICE, {"blockHash": dropped}]) == "0x2"
    wanted = {"blockHash": dropped, "requireCanonical": True}
    assert refused(session, "eth_getTransactionCount", ALICE, wanted).code == SERVER


@pytest.mark.parametrize("which", [{}, {"requireCanonical": True}, {"blockHash": NO_HASH, "blockNumber": "0x1"}])
def test_an_object_names_a_block_in_one_way(session: Session, which: Any) -> None:
    assert refused(session, "eth_call", {"to": LOUD}, which).code == INVALID


# -- logs


def test_a_range_that_ends_before_it_begins_is_refused_as_in_geth(session: Session) -> None:
    backwards = {"fromBlock": "0x2", "toBlock": "0x1"}
    for method in ("eth_getLogs", "eth_newFilter"):
        error = refused(session, method, backwards)
        assert (error.code, error.message) == (INVALID, "invalid block range params: 2 to 1")


def test_logs_of_blocks_to_come_are_none_yet(session: Session) -> None:
    assert session.request("eth_getLogs", [{"fromBlock": FUTURE}]) == []
    assert session.request("eth_getLogs", [{"fromBlock": "0x3", "toBlock": FUTURE}]) == []
    assert blocks_of(session.request("eth_getLogs", [{"fromBlock": "0x0", "toBlock": FUTURE}])) == [1]


@pytest.mark.parametrize(
    ("topics", "found"),
    [
        ([], 1),
        ([None, FF], 1),
        ([[FF, EE]], 1),
        ([[FF, EE], [EE]], 0),
        ([[], [FF]], 1),
        ([EE, None], 1),
        ([FF], 0),
        ([None, None, None], 0),  # a log with as many topics is asked for
    ],
)
def test_topics_have_alternatives_and_gaps_in_logs_and_in_filters(session: Session, topics: Any, found: int) -> None:
    wanted = {"fromBlock": "0x0", "topics": topics}
    assert len(session.request("eth_getLogs", [wanted])) == found
    installed = session.request("eth_newFilter", [wanted])
    assert len(session.request("eth_getFilterLogs", [installed])) == found
    shout(session)
    assert len(session.request("eth_getFilterChanges", [installed])) == found


# -- filters


def test_a_filter_without_a_range_has_the_logs_of_the_latest_block(session: Session) -> None:
    installed = session.request("eth_newFilter", [{}])
    assert session.request("eth_getFilterLogs", [installed]) == []
    shout(session)
    assert blocks_of(session.request("eth_getFilterLogs", [installed])) == [3]


def test_a_filter_of_one_block_has_its_logs(session: Session) -> None:
    first = session.request("eth_getBlockByNumber", ["0x1"])["hash"]
    installed = session.request("eth_newFilter", [{"blockHash": first}])
    assert blocks_of(session.request("eth_getFilterLogs", [installed])) == [1]
    assert refused(session, "eth_newFilter", {"blockHash": first, "fromBlock": "0x0"}).code == INVALID


def test_a_filter_tells_of_the_blocks_in_its_range_alone(session: Session) -> None:
    wanted = ({"fromBlock": "0x4"}, {"toBlock": "0x4"}, {"fromBlock": "0x4", "toBlock": "0x4"}, {"toBlock": "latest"})
    installed = [session.request("eth_newFilter", [each]) for each in wanted]
    for _ in range(3):
        shout(session)
    told = [blocks_of(session.request("eth_getFilterChanges", [each])) for each in installed]
    assert told == [[4, 5], [3, 4], [4], [3, 4, 5]]
