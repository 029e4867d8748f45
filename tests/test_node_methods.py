"""The table of methods in docs/node.md is true: of this node, and of a real anvil. Answers and errors are anvil's."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from anvil import ACCOUNT, Anvil, RpcError
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
