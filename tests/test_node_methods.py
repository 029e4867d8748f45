"""The table of methods in docs/node.md is true: of this node, and of a real anvil. Answers and errors are anvil's."""

from __future__ import annotations

import json
import re
import urllib.request
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from anvil import ACCOUNT, KEY, Anvil, RpcError
from fusevm.chain.rlp import decode, encode
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.rpc import Config, Session
from fusevm.rpc import RpcError as OurError
from fusevm.rpc.methods import METHODS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "node.md"
ROWS = re.findall(r"^\| `(\w+)` \| (yes|–) \| (yes|–) \|", PAGE.read_text("utf-8"), re.MULTILINE)
NO_METHOD = -32601
ALICE, BOB = "0x" + ACCOUNT.hex(), "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
STRANGER, NOWHERE = "0x" + "99" * 20, "0x" + "00" * 32
VARIES = ("totalDifficulty", "blockTimestamp")  # the latter is a number in some of anvil's answers


def test_every_method_is_in_the_table() -> None:
    assert {name for name, _, ours in ROWS if ours == "yes"} == set(METHODS)


@pytest.mark.long
def test_the_table_says_what_anvil_has(anvil_binary: Path) -> None:
    with Anvil(anvil_binary) as node:
        batch = [{"jsonrpc": "2.0", "id": name, "method": name, "params": ["?"] * 5} for name, _, _ in ROWS]
        asked = urllib.request.Request(node.url, json.dumps(batch).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as response:
            answers = {each["id"]: each for each in json.load(response)}
    missing = {name for name, each in answers.items() if each.get("error", {}).get("code") == NO_METHOD}
    assert missing == {name for name, theirs, _ in ROWS if theirs == "–"}


def shape(value: Any) -> Any:
    """Which fields there are, whatever they hold."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in sorted(value.items()) if name not in VARIES}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


class Both:
    """The same requests to a session of ours and to anvil."""

    def __init__(self, anvil: Anvil) -> None:
        self.session, self.anvil = Session(Config(base_fee=0)), anvil

    def ask(self, method: str, *params: Any) -> tuple[Any, Any]:
        try:
            ours = self.session.request(method, params)
        except OurError as error:
            ours = ("error", error.code, error.data)
        try:
            theirs = self.anvil.ask(method, *params)
        except RpcError as error:
            theirs = ("error", error.code, error.data)
        return ours, theirs


@pytest.fixture
def both(anvil_binary: Path) -> Any:
    with Anvil(anvil_binary) as node:
        yield Both(node)


KEEPER = "36600c575f545f5260205ff35b5f355f555f355f52600760205fa160205ff3"
REVERTS = "6308c379a060e01b5f526020600452600260245261686960f01b60445260645ffd"
SAME: tuple[tuple[Any, ...], ...] = (
    ("eth_chainId",),
    ("net_version",),
    ("eth_accounts",),
    ("anvil_setCode", BOB, "0x" + KEEPER),
    ("anvil_setCode", STRANGER, "0x" + REVERTS),
    ("eth_getCode", BOB, "latest"),
    ("eth_call", {"to": BOB, "data": f"0x{5:064x}"}, "latest"),
    ("eth_call", {"to": STRANGER}, "latest"),
    ("eth_estimateGas", {"to": STRANGER}, "latest"),
    ("eth_estimateGas", {"from": ALICE, "to": BOB, "data": f"0x{5:064x}"}, "latest"),
    ("eth_getTransactionByHash", NOWHERE),
    ("eth_getTransactionReceipt", NOWHERE),
    ("eth_getBlockByNumber", "0x100", False),
    ("eth_getBlockByHash", NOWHERE, False),
    ("eth_getBalance", "0x12", "latest"),
    ("eth_sendRawTransaction", "0x00"),
    ("web3_sha3", "0x1234"),
    ("eth_getUncleCountByBlockNumber", "latest"),
    ("anvil_setBalance", STRANGER, "0x7"),
    ("eth_getBalance", STRANGER, "latest"),
    ("anvil_setNonce", STRANGER, "0x7"),
    ("eth_getTransactionCount", STRANGER, "latest"),
    ("anvil_getAutomine",),
    ("eth_getStorageAt", BOB, "0x0", "latest"),
    ("txpool_status",),
)
ALIKE: tuple[tuple[Any, ...], ...] = (
    ("eth_getBlockByNumber", "latest", True),
    ("eth_getBlockByNumber", "0x0", False),
    ("eth_feeHistory", "0x1", "latest", [50]),
    ("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}),
    ("eth_getBlockReceipts", "latest"),
    ("eth_getProof", BOB, [NOWHERE], "latest"),
    ("eth_createAccessList", {"from": ALICE, "to": BOB, "data": f"0x{5:064x}"}, "latest"),
    ("trace_block", "latest"),
    ("debug_traceBlockByNumber", "latest", {"tracer": "callTracer"}),
    ("anvil_nodeInfo",),
)


@pytest.mark.long
def test_answers_and_errors_are_those_of_anvil(both: Both) -> None:
    differing = []
    for request in SAME:
        ours, theirs = both.ask(*request)
        if ours != theirs:
            differing.append((request, ours, theirs))
    assert not differing, differing


@pytest.mark.long
def test_answers_have_the_fields_that_anvils_have(both: Both) -> None:
    both.ask("anvil_setCode", BOB, "0x" + KEEPER)
    request = {"from": ALICE, "to": BOB, "data": f"0x{5:064x}", "gas": "0x186a0"}
    both.anvil.receipt(both.ask("eth_sendTransaction", request)[1])
    differing = []
    for request in ALIKE:
        ours, theirs = both.ask(*request)
        if shape(ours) != shape(theirs):
            differing.append((request[0], shape(ours), shape(theirs)))
    assert not differing, differing


# -- explorers, replays, blobs: the same transactions on both

CALLED, REVERTING, CALLING = "0x" + "97" * 20, "0x" + "98" * 20, "0x" + "96" * 20
# Gives BOB a wei, creates an empty contract, calls CALLED with data and statically.
BUSY = (
    f"5f5f5f5f600173{BOB[2:]}5af1505f5f5f5ff05060055f525f5f60205f5f73{CALLED[2:]}5af1505f5f5f5f73{CALLED[2:]}5afa5000"
)
NO_COMMITMENT = b"\xc0" + bytes(47)  # that of a blob of zeros: the point at infinity
BLOB_HASH = b"\x01" + sha256(NO_COMMITMENT).digest()[1:]


def sent(both: Both, nonce: int, to: str | None, payload: bytes = b"", value: int = 0, **more: Any) -> str:
    given = {"gas_limit": 500_000, "max_fee": 10**9, "max_priority_fee": 1, **more}
    target = None if to is None else bytes.fromhex(to[2:])
    raw = "0x" + sign(Transaction(b"", target, payload, value, nonce=nonce, **given), KEY, 31337).encoded.hex()
    ours, theirs = both.ask("eth_sendRawTransaction", raw)
    assert ours == theirs
    both.anvil.receipt(theirs)
    return str(ours)


@pytest.fixture
def busy(both: Both) -> tuple[Both, list[str], str]:
    """Both after some transactions; their hashes, and a contract that one of them created."""
    for where, code in ((CALLED, KEEPER), (REVERTING, REVERTS), (CALLING, BUSY)):
        both.ask("anvil_setCode", where, "0x" + code)
    both.ask("anvil_setCoinbase", "0x" + BOB[2:])  # one that exists: anvil counts a new one as old
    hashes = [
        sent(both, 0, CALLING, value=5),
        sent(both, 1, REVERTING),
        sent(both, 2, None, bytes.fromhex("602a5f5260205ff3")),
        sent(both, 3, BOB, value=7),
    ]
    return both, hashes, both.anvil.ask("eth_getTransactionReceipt", hashes[2])["contractAddress"]


@pytest.mark.long
def test_an_explorer_is_answered_as_by_anvil(busy: tuple[Both, list[str], str]) -> None:
    both, hashes, created = busy
    same: list[tuple[Any, ...]] = [
        ("ots_getApiLevel",),
        ("ots_hasCode", CALLED, "latest"),
        ("ots_hasCode", BOB, "latest"),
    ]
    same += [("ots_getInternalOperations", each) for each in hashes]
    same += [("ots_getTransactionError", each) for each in hashes]
    same += [("ots_getContractCreator", each) for each in (created, BOB, CALLED)]
    same += [("ots_getTransactionBySenderAndNonce", ALICE, each) for each in (0, 3, 9)]
    alike: list[tuple[Any, ...]] = [("ots_getBlockDetails", 1), ("ots_getBlockTransactions", 1, 0, 5)]
    differing = [(each, found) for each in same if len({*map(repr, found := both.ask(*each))}) > 1]
    differing += [(each, found) for each in alike if (found := [*map(shape, both.ask(*each))])[0] != found[1]]
    assert not differing, differing


@pytest.mark.long
@pytest.mark.parametrize("page", [1, 2, 3, 10])
def test_an_explorer_finds_where_an_address_occurs_as_with_anvil(busy: tuple[Both, list[str], str], page: int) -> None:
    both, _, created = busy
    for where in (ALICE, BOB, CALLED, created, "0x" + "55" * 20):
        for method, first in (("ots_searchTransactionsBefore", 0), ("ots_searchTransactionsBefore", 3),
                              ("ots_searchTransactionsAfter", 0), ("ots_searchTransactionsAfter", 2)):  # fmt: skip
            ours, theirs = both.ask(method, where, first, page)
            found = [[each["hash"] for each in one["txs"]] for one in (ours, theirs)]
            assert found[0] == found[1], (method, where, first, page)
            assert shape(ours["receipts"]) == shape(theirs["receipts"])


@pytest.mark.long
def test_calls_are_listed_in_order_with_their_depths(busy: tuple[Both, list[str], str]) -> None:
    both, hashes, _ = busy
    ours, theirs = both.ask("ots_traceTransaction", hashes[0])
    assert [each for each in ours if each["type"] != "CREATE"] == theirs
    assert [(each["type"], each["depth"]) for each in ours] == [
        ("CALL", 0), ("CALL", 1), ("CREATE", 1), ("CALL", 1), ("STATICCALL", 1),
    ]  # fmt: skip


@pytest.mark.long
def test_blocks_are_replayed_as_by_anvil(busy: tuple[Both, list[str], str]) -> None:
    both, _, _ = busy
    for number in range(1, 5):
        for kinds in (["trace"], ["stateDiff"], ["trace", "stateDiff"]):
            ours, theirs = both.ask("trace_replayBlockTransactions", hex(number), kinds)
            assert ours == theirs, (number, kinds)


@pytest.mark.long
def test_configuration_and_many_slots_are_as_with_anvil(busy: tuple[Both, list[str], str]) -> None:
    both, _, _ = busy
    slots = {CALLED: [f"0x{0:064x}", f"0x{1:064x}"], BOB: [f"0x{0:064x}"]}
    for request in (("eth_config",), ("eth_getStorageValues", slots, "latest")):
        ours, theirs = both.ask(*request)
        assert ours == theirs


def blob_transaction(proofs: list[bytes], *more: Any) -> tuple[str, bytes]:
    """In the network form, with a blob of zeros."""
    tx = Transaction(b"", bytes.fromhex(BOB[2:]), gas_limit=21_000, nonce=0, max_fee=10**9, max_priority_fee=1,
                     blob_hashes=(BLOB_HASH,), max_blob_fee=10**9)  # fmt: skip
    signed = sign(tx, KEY, 31337)
    body = decode(signed.encoded[1:])
    assert not isinstance(body, bytes)
    wrapped = encode([body, *more, [bytes(131_072)], [NO_COMMITMENT], proofs])
    return "0x03" + wrapped.hex(), signed.hash


@pytest.mark.parametrize("form", ["EIP-4844", "EIP-7594"])
def test_a_blob_transaction_is_taken_with_its_blobs(form: str) -> None:
    raw, expected = (
        blob_transaction([NO_COMMITMENT]) if form == "EIP-4844" else blob_transaction([NO_COMMITMENT] * 128, b"\x01")
    )
    session = Session()
    assert session.request("eth_sendRawTransaction", [raw]) == "0x" + expected.hex()
    blob = "0x" + bytes(131_072).hex()
    assert session.request("anvil_getBlobByHash", ["0x" + BLOB_HASH.hex()]) == blob
    assert session.request("anvil_getBlobsByTransactionHash", ["0x" + expected.hex()]) == [blob]


@pytest.mark.long
def test_a_blob_transaction_is_taken_by_both(both: Both) -> None:
    raw, expected = blob_transaction([NO_COMMITMENT] * 128, b"\x01")
    ours, theirs = both.ask("eth_sendRawTransaction", raw)
    assert ours == theirs == "0x" + expected.hex()
    both.anvil.receipt(theirs)
    for request in (("anvil_getBlobByHash", "0x" + BLOB_HASH.hex()), ("anvil_getBlobsByTransactionHash", ours)):
        one, other = both.ask(*request)
        assert one == other


def test_blobs_that_are_not_those_of_the_transaction_are_refused() -> None:
    raw, _ = blob_transaction([NO_COMMITMENT])
    other = raw.replace(NO_COMMITMENT.hex(), (b"\xc1" + bytes(47)).hex())
    with pytest.raises(OurError, match="commitments are not those"):
        Session().request("eth_sendRawTransaction", [other])
