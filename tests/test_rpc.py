"""JSON-RPC of a development chain: the same requests to anvil and to us, and what anvil does not show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from anvil import ACCOUNT, KEY, Anvil, RpcError
from fusevm.chain.header import Header
from fusevm.chain.schedule import always
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.devchain import DevChain, dev_genesis
from fusevm.evm.assembly import assemble
from fusevm.rpc import errors
from fusevm.rpc.methods import METHODS, answer, result_of
from fusevm.rpc.session import Session

CHAIN_ID = 31337
OTHER = "0x" + "0b" * 20
ME = "0x" + ACCOUNT.hex()
# mstore(0, calldata[0]) log2(0, 32, 7, calldata[0]) sstore(0, calldata[0]) return(0, 32)
EMITS = assemble(
    "PUSH0 CALLDATALOAD PUSH0 MSTORE PUSH0 CALLDATALOAD PUSH1 7 PUSH1 32 PUSH0 LOG2 "
    "PUSH0 CALLDATALOAD PUSH0 SSTORE PUSH1 32 PUSH0 RETURN"
)
REASON = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (4).to_bytes(32, "big") + b"nope".ljust(32, b"\0")
REVERTS = assemble("PUSH2 100 PUSH1 13 PUSH0 CODECOPY PUSH2 100 PUSH0 REVERT STOP") + REASON


def initcode(runtime: bytes) -> bytes:
    return assemble(f"PUSH2 {len(runtime)} PUSH1 12 PUSH0 CODECOPY PUSH2 {len(runtime)} PUSH0 RETURN") + runtime


class Ours:
    """A session that is asked as anvil is."""

    def __init__(self, **settings: Any) -> None:
        header = Header(gas_limit=30_000_000, base_fee=0, timestamp=1_000)
        genesis = dev_genesis(always("osaka", CHAIN_ID), [ACCOUNT], header=header, balance=10_000 * 10**18)
        self.session = Session(DevChain(genesis, keys=[KEY]), **settings)

    def ask(self, method: str, *parameters: Any) -> Any:
        return result_of(self.session, method, list(parameters))


@pytest.fixture(scope="module")
def theirs(anvil_binary: Any) -> Iterator[Anvil]:
    with Anvil(anvil_binary) as node:
        yield node


def signed(nonce: int, to: str | None, data: bytes = b"", **fields: Any) -> str:
    given = {"gas_limit": 500_000, "max_fee": 10**10, "max_priority_fee": 10**9, **fields}
    tx = Transaction(ACCOUNT, None if to is None else bytes.fromhex(to[2:]), data, nonce=nonce, **given)
    return "0x" + sign(tx, KEY, CHAIN_ID).encoded.hex()


def asked(node: Any, method: str, *parameters: Any) -> Any:
    try:
        return node.ask(method, *parameters)
    except (RpcError, errors.RpcError) as error:
        return "error", error.data


def comparable(value: Any) -> Any:
    """Without what depends on time, chance, the genesis block, or a node's own additions."""
    if isinstance(value, dict):
        skipped = (
            "hash",
            "root",
            "timestamp",
            "size",
            "totaldifficulty",
            "bloom",
            "requests",
            "logsbloom",
            "miner",
            "blobgasprice",
        )
        kept = {
            key: comparable(each) for key, each in value.items() if not any(part in key.lower() for part in skipped)
        }
        return {key: each for key, each in kept.items() if key != "mixHash"}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def sent(node: Any, *arguments: Any, **fields: Any) -> Any:
    """The receipt of a transaction; anvil takes a moment to mine it."""
    made = node.ask("eth_sendRawTransaction", signed(*arguments, **fields))
    deadline = time.monotonic() + 60
    while (receipt := node.ask("eth_getTransactionReceipt", made)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return receipt


Steps = Iterator[tuple[str, Any]]
WORD = "0x" + "11" * 32


def transfers(node: Any) -> Steps:
    yield "chain", asked(node, "eth_chainId")
    yield "syncing", asked(node, "eth_syncing")
    yield "balance at first", asked(node, "eth_getBalance", ME, "latest")
    yield "no code", asked(node, "eth_getCode", OTHER, "latest")
    receipt = sent(node, 0, OTHER, value=5, gas_limit=21_000)
    yield "transfer", receipt
    yield "transferred", asked(node, "eth_getTransactionByHash", receipt["transactionHash"])
    yield "balance", asked(node, "eth_getBalance", OTHER, "latest")
    yield "balance before", asked(node, "eth_getBalance", OTHER, "0x0")
    yield "nonce", asked(node, "eth_getTransactionCount", ME, "latest")
    yield "nonce too low", asked(node, "eth_sendRawTransaction", signed(0, OTHER))
    yield "too poor", asked(node, "eth_sendRawTransaction", signed(1, OTHER, value=10**30))
    yield "too little gas", asked(node, "eth_sendRawTransaction", signed(1, OTHER, gas_limit=20_000))
    yield "not a transaction", asked(node, "eth_sendRawTransaction", "0x1234")
    yield "estimate", asked(node, "eth_estimateGas", {"from": ME, "to": OTHER, "value": "0x1"})
    yield "hash", asked(node, "web3_sha3", "0x1234")
    yield "version", asked(node, "net_version")
    yield "signature", asked(node, "eth_sign", ME, "0x1234")


def contracts(node: Any) -> Steps:
    receipt = sent(node, 1, None, initcode(EMITS))
    where = receipt["contractAddress"]
    yield "created", receipt
    yield "code", asked(node, "eth_getCode", where, "latest")
    yield "emitted", sent(node, 2, where, b"\x11" * 32)
    yield "logs", asked(node, "eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
    yield "logs by address", asked(node, "eth_getLogs", {"fromBlock": "0x0", "address": where})
    yield "logs by topic", asked(node, "eth_getLogs", {"fromBlock": "0x0", "topics": [None, WORD]})
    either = [["0x" + "00" * 32, "0x" + "00" * 31 + "07"]]
    yield "logs by either", asked(node, "eth_getLogs", {"fromBlock": "0x0", "topics": either})
    yield "logs of nobody", asked(node, "eth_getLogs", {"fromBlock": "0x0", "topics": [WORD]})
    yield "storage", asked(node, "eth_getStorageAt", where, "0x0", "latest")
    yield "storage before", asked(node, "eth_getStorageAt", where, "0x0", "0x2")
    yield "call", asked(node, "eth_call", {"to": where, "data": WORD}, "latest")
    yield "call estimate", asked(node, "eth_estimateGas", {"from": ME, "to": where, "data": "0x" + "22" * 32})
    broken = sent(node, 3, None, initcode(REVERTS))["contractAddress"]
    yield "revert", asked(node, "eth_call", {"to": broken}, "latest")
    yield "estimate of a revert", asked(node, "eth_estimateGas", {"to": broken})
    yield "reverted", sent(node, 4, broken)


def lookups(node: Any) -> Steps:
    yield "block", asked(node, "eth_getBlockByNumber", "0x3", True)
    yield "block of hashes", asked(node, "eth_getBlockByNumber", "0x1", False)
    yield "no block", asked(node, "eth_getBlockByNumber", "0x99", False)
    yield "no transaction", asked(node, "eth_getTransactionByHash", WORD)
    yield "no receipt", asked(node, "eth_getTransactionReceipt", WORD)
    yield "by index", asked(node, "eth_getTransactionByBlockNumberAndIndex", "0x1", "0x0")
    yield "count", asked(node, "eth_getBlockTransactionCountByNumber", "0x1")
    yield "receipts", asked(node, "eth_getBlockReceipts", "0x1")


def going_back(node: Any) -> Steps:
    kept = node.ask("evm_snapshot")
    sent(node, 5, OTHER, value=1)
    yield "after", asked(node, "eth_getBalance", OTHER, "latest")
    yield "back", asked(node, "evm_revert", kept)
    yield "before", asked(node, "eth_getBalance", OTHER, "latest")
    blocks, logs = node.ask("eth_newBlockFilter"), node.ask("eth_newFilter", {"topics": ["0x" + "00" * 31 + "07"]})
    node.ask("evm_mine")
    where = node.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})[0]["address"]
    sent(node, 5, where, b"\x22" * 32)
    yield "blocks told", len(node.ask("eth_getFilterChanges", blocks))
    yield "blocks told again", len(node.ask("eth_getFilterChanges", blocks))
    yield "logs told", node.ask("eth_getFilterChanges", logs)
    yield "uninstalled", asked(node, "eth_uninstallFilter", blocks)
    yield "uninstalled again", asked(node, "eth_uninstallFilter", blocks)


def script(node: Any) -> Steps:
    """What a client does, step by step."""
    for part in (transfers, contracts, lookups, going_back):
        yield from part(node)


def test_a_session_with_anvil_and_with_us_goes_the_same_way(theirs: Anvil) -> None:
    expected, found = dict(script(theirs)), dict(script(Ours()))
    different = {
        name: (comparable(expected[name]), comparable(found[name]))
        for name in expected
        if comparable(expected[name]) != comparable(found[name])
    }
    assert not different


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_every_answer_is_json_rpc() -> None:
    ours = Ours()
    request = {"jsonrpc": "2.0", "id": 7, "method": "eth_blockNumber", "params": []}
    assert answer(ours.session, request) == {"jsonrpc": "2.0", "id": 7, "result": "0x0"}
    for wrong, code in (
        ({"id": 1, "method": "eth_nothing"}, errors.METHOD_NOT_FOUND),
        ({"id": 1, "method": "eth_getBalance", "params": []}, errors.INVALID_PARAMS),
        ({"id": 1, "method": "eth_getBalance", "params": ["0x12"]}, errors.INVALID_PARAMS),
        ({"id": 1, "method": "eth_getBalance", "params": {"a": 1}}, errors.INVALID_PARAMS),
        ({"id": 1, "method": "eth_call", "params": [{"colour": "0x1"}]}, errors.INVALID_PARAMS),
        ({"id": 1}, errors.INVALID_REQUEST),
        ("what", errors.INVALID_REQUEST),
    ):
        body = answer(ours.session, wrong)
        assert body["error"]["code"] == code


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_fails_on_odd_parameters_with_anything_but_an_answer(method: str) -> None:
    ours = Ours()
    odd: list[Any] = [
        [],
        [None],
        ["0x"],
        [{}],
        [[]],
        ["latest", 1, 2, 3, 4],
        [-1],
        [2**300],
        ["0xzz"],
        [{"to": 5}, "0x5"],
    ]
    for given in odd:
        if method in ("anvil_mine", "hardhat_mine") and given == [2**300]:
            continue
        body = answer(ours.session, {"id": 1, "method": method, "params": given})
        assert "result" in body or body["error"]["message"]


def test_a_revert_has_code_three_its_reason_and_its_data() -> None:
    ours = Ours()
    made = ours.ask("eth_sendRawTransaction", signed(0, None, initcode(REVERTS)))
    where = ours.ask("eth_getTransactionReceipt", made)["contractAddress"]
    body = answer(ours.session, {"id": 1, "method": "eth_call", "params": [{"to": where}]})
    assert body["error"] == {"code": 3, "message": "execution reverted: nope", "data": "0x" + REASON.hex()}


def test_blocks_can_wait_for_evm_mine() -> None:
    ours = Ours(automine=False)
    for nonce in range(3):
        ours.ask("eth_sendRawTransaction", signed(nonce, OTHER, value=1))
    assert ours.ask("eth_blockNumber") == "0x0"
    assert ours.ask("eth_getTransactionCount", ME, "pending") == "0x3"
    assert ours.ask("eth_getBalance", OTHER, "pending") == "0x3"
    assert ours.ask("eth_getBalance", OTHER, "latest") == "0x0"
    ours.ask("evm_mine")
    assert len(ours.ask("eth_getBlockByNumber", "0x1", False)["transactions"]) == 3


def test_what_a_session_mines_is_told_to_whoever_listens() -> None:
    ours, seen = Ours(), []
    ours.session.on_block.append(lambda block: seen.append(block.number))
    ours.ask("anvil_mine", "0x3", "0xa")
    assert seen == [1, 2, 3]
    times = [int(ours.ask("eth_getBlockByNumber", hex(number), False)["timestamp"], 16) for number in (1, 2, 3)]
    assert times[2] - times[1] == times[1] - times[0] == 10


def test_blooms_never_hide_a_log() -> None:
    ours = Ours()
    made = ours.ask("eth_sendRawTransaction", signed(0, None, initcode(EMITS)))
    where = ours.ask("eth_getTransactionReceipt", made)["contractAddress"]
    for nonce in range(1, 40):
        ours.ask("eth_sendRawTransaction", signed(nonce, where, nonce.to_bytes(32, "big")))
    for nonce in range(1, 40):
        (log,) = ours.ask("eth_getLogs", {"fromBlock": "0x0", "topics": [None, f"0x{nonce:064x}"]})
        assert int(log["data"], 16) == nonce
    assert len(ours.ask("eth_getLogs", {"fromBlock": "0x0", "address": where})) == 39


def test_the_sender_of_an_unsigned_transaction_must_be_known() -> None:
    ours = Ours()
    with pytest.raises(errors.RpcError, match="unknown account"):
        ours.ask("eth_sendTransaction", {"from": OTHER, "to": ME, "value": "0x1"})
    sent = ours.ask("eth_sendTransaction", {"from": ME, "to": OTHER, "value": "0x1"})
    assert ours.ask("eth_getTransactionReceipt", sent)["status"] == "0x1"
    both = ours.ask("eth_signTransaction", {"from": ME, "to": OTHER, "value": "0x1"})
    assert ours.ask("eth_sendRawTransaction", both["raw"]) == both["tx"]["hash"]
