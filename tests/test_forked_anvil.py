"""A state forked from a real node: realistic calls on real contracts, compared with the node's own answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from anvil import ACCOUNT, KEY, Anvil, RpcError
from fusevm import EVM, Block, EstimateFailed, Result
from fusevm.chain.signed import sign
from fusevm.chain.sources.json_rpc import JsonRpc
from fusevm.chain.transaction import Transaction
from fusevm.evm.keccak import keccak256
from realcontracts import Compiled, encoded, tail

pytestmark = pytest.mark.long  # real tools, installed for it

ALICE, BOB = ACCOUNT, bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")  # anvil's first two
CAROL = b"\xca" * 20
TIERS = ("reference", "native", "auto")


class Deployed(NamedTuple):
    node: Anvil
    compiled: dict[str, Compiled]
    addresses: dict[str, str]


class Sent(NamedTuple):
    contract: str
    signature: str
    data: bytes
    sender: bytes = ALICE
    value: int = 0
    gas: int = 3_000_000


@pytest.fixture(scope="module")
def deployed(anvil_binary: Path, contracts: dict[str, Compiled]) -> Iterator[Deployed]:
    with Anvil(anvil_binary) as node:
        coin = node.deploy(contracts["Coin"].creation)
        addresses = {"Coin": coin, "Safe": node.deploy(contracts["Safe"].creation + encoded(int(coin, 16)))}
        for name in ("Badge", "Tools"):
            addresses[name] = node.deploy(contracts[name].creation)
        yield Deployed(node, contracts, addresses)


def number(address: bytes | str) -> int:
    return int.from_bytes(address, "big") if isinstance(address, bytes) else int(address, 16)


def traffic(there: Deployed) -> list[Sent]:
    """Some fifty transactions: tokens, a vault, collectibles, libraries; some revert, one runs out of gas."""
    alice, bob, carol = number(ALICE), number(BOB), number(CAROL)
    coin, vault = number(there.addresses["Coin"]), number(there.addresses["Safe"])
    found: list[Sent] = []

    def send(contract: str, signature: str, *words: int | bytes, **fields: Any) -> None:
        found.append(Sent(contract, signature, there.compiled[contract].data(signature, *words), **fields))

    for to, amount in ((bob, 10**18), (carol, 5), (bob, 0), (alice, 7)):
        send("Coin", "transfer(address,uint256)", to, amount)
    send("Coin", "transfer(address,uint256)", bob, 1 << 200)
    send("Coin", "transfer(address,uint256)", 0, 1)
    send("Coin", "approve(address,uint256)", bob, 10**17)
    for _ in range(2):
        send("Coin", "transferFrom(address,address,uint256)", alice, carol, 9 * 10**16, sender=BOB)
    send("Coin", "mint(address,uint256)", bob, 10**20)
    send("Coin", "mint(address,uint256)", bob, 10**20, sender=BOB)
    send("Coin", "burn(uint256)", 10**17)
    send("Coin", "name()")
    send("Coin", "balanceOf(address)", carol)
    send("Coin", "DOMAIN_SEPARATOR()")
    send("Coin", "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", alice, bob, 1, 1 << 60, 27, 1, 2)
    send("Coin", "approve(address,uint256)", vault, (1 << 256) - 1)
    send("Safe", "deposit(uint256,address)", 10**18, alice)
    send("Safe", "mint(uint256,address)", 10**17, bob)
    send("Safe", "convertToAssets(uint256)", 12345)
    send("Safe", "withdraw(uint256,address,address)", 10**17, carol, alice)
    send("Safe", "redeem(uint256,address,address)", 1 << 100, alice, alice)
    send("Safe", "redeem(uint256,address,address)", 10**17, bob, bob, sender=BOB)
    send("Safe", "totalAssets()")
    send("Badge", "mint(address,uint256)", bob, 3)
    send("Badge", "mint(address,uint256)", alice, 2)
    send("Badge", "transferFrom(address,address,uint256)", bob, carol, 2, sender=BOB)
    send("Badge", "transferFrom(address,address,uint256)", bob, carol, 2)
    send("Badge", "safeTransferFrom(address,address,uint256)", alice, vault, 4)
    send("Badge", "tokenURI(uint256)", 2)
    send("Badge", "tokenOfOwnerByIndex(address,uint256)", carol, 0)
    send("Badge", "mint(address,uint256)", carol, 30, gas=300_000)
    send("Tools", "root(uint256)", 1 << 255)
    send("Tools", "power(int256)", 3 * 10**18)
    send("Tools", "power(int256)", 200 * 10**18)
    send("Tools", "sorted(uint256,uint256)", 7, 60)
    send("Tools", "text(uint256)", (1 << 256) - 1)
    send("Tools", "load()")
    send("Tools", "store(bytes)", 32, tail(bytes(range(256)) * 4))
    send("Tools", "load()")
    send("Tools", "proven(bytes32[],bytes32,bytes32)", 96, 5, 6, 2, 7, 8)
    send("Tools", "signer(bytes32,bytes)", 5, 64, tail(encoded(9, 8) + b"\x1b"))
    for value in (5, 6, 7, 5):
        send("Tools", "add(uint256)", value)
    send("Tools", "remove(uint256)", 5)
    send("Tools", "values()")
    send("Tools", "guarded(bytes)", 32, tail(b"a note of some length, longer than a word"))
    send("Tools", "reenter()")
    send("Tools", "refuse(uint256)", 77)
    for salt in (1, 2, 1):
        send("Tools", "clone(bytes32)", salt)
    send("Tools", "pay(address)", carol, value=12345)
    send("Tools", "pay(address)", coin, value=1)
    send("Tools", "around()")
    calls = [there.compiled["Tools"].data("add(uint256)", 90 + i) for i in range(3)]
    places = [96 + i * (32 + len(tail(calls[0]))) for i in range(3)]
    many = encoded(32, 3, *places) + b"".join(encoded(len(each)) + each + bytes(-len(each) % 32) for each in calls)
    send("Tools", "multicall(bytes[])", many)
    return found


def block_of(node: Anvil, which: str, like: Block) -> Block:
    header = node.ask("eth_getBlockByNumber", which, False)
    return Block(
        number=header["number"],
        timestamp=header["timestamp"],
        coinbase=header["miner"],
        gas_limit=header["gasLimit"],
        base_fee=header["baseFeePerGas"],
        prev_randao=bytes.fromhex(header["mixHash"][2:]),
        chain_id=like.chain_id,
        excess_blob_gas=header["excessBlobGas"],
        hashes=lambda number: bytes.fromhex(node.ask("eth_getBlockByNumber", hex(number), False)["hash"][2:]),
    )


def logs_of(receipt: Any) -> list[tuple[str, list[str], str]]:
    return [(each["address"], each["topics"], each["data"]) for each in receipt["logs"]]


def our_logs(result: Result) -> list[tuple[str, list[str], str]]:
    return [
        ("0x" + each.address.hex(), [f"0x{topic:064x}" for topic in each.topics], "0x" + each.data.hex())
        for each in result.logs
    ]


def test_fifty_transactions_on_forked_state_as_the_node_runs_them(deployed: Deployed) -> None:
    """Status, gas and logs as the receipts have them, on every tier; outputs as eth_call gives them before."""
    node = deployed.node
    machines = [EVM.fork_from(node.url, tier=tier) for tier in TIERS]
    sent = traffic(deployed)
    assert len(sent) >= 50
    for each in sent:
        to, sender = deployed.addresses[each.contract], "0x" + each.sender.hex()
        fields = {"from": sender, "value": hex(each.value), "gas": hex(each.gas)}
        try:
            output = node.call(to, each.data, **fields)
        except RpcError as error:
            output = bytes.fromhex((error.data or "0x")[2:])
        receipt = node.send(to, each.data, each.value, each.gas, from_=sender)
        block = block_of(node, receipt["blockNumber"], machines[0].block)
        for evm in machines:
            before = evm.block
            # eth_call ran in the block before
            asked = evm.simulate(to, each.data, value=each.value, caller=each.sender, gas=each.gas - 21_000)
            if each.signature != "around()":
                assert asked.output == output, (each, evm)
            evm.block = block
            price = receipt["effectiveGasPrice"]
            result = evm.transact(each.sender, to, each.data, value=each.value, gas=each.gas, gas_price=price)
            assert result.ok is (receipt["status"] == "0x1"), (each, evm, result.error)
            assert result.gas_used == int(receipt["gasUsed"], 16), (each, evm)
            assert our_logs(result) == logs_of(receipt), (each, evm)
            assert before is not evm.block
    for evm in machines:
        for address in (ALICE, BOB, CAROL):
            assert evm.get_balance(address) == int(node.ask("eth_getBalance", "0x" + address.hex(), "latest"), 16)
        at = number(deployed.addresses["Tools"])
        for key in range(4):
            place = f"0x{key:x}"
            assert evm.get_storage(at, key) == int(node.ask("eth_getStorageAt", hex(at), place, "latest"), 16)


def test_deployments_on_forked_state_cost_what_the_node_charges(deployed: Deployed) -> None:
    node, evm = deployed.node, EVM.fork_from(deployed.node.url)
    for name, arguments in (("Coin", b""), ("Badge", b""), ("Safe", encoded(number(deployed.addresses["Coin"])))):
        receipt = node.send(None, deployed.compiled[name].creation + arguments)
        evm.block = block_of(node, receipt["blockNumber"], evm.block)
        result = evm.transact(ALICE, None, deployed.compiled[name].creation + arguments, gas=15_000_000).check()
        assert result.gas_used == int(receipt["gasUsed"], 16)
        assert result.address == bytes.fromhex(receipt["contractAddress"][2:])
        code = node.ask("eth_getCode", receipt["contractAddress"], "latest")
        assert evm.get_code(receipt["contractAddress"]).hex() == code[2:]


def test_an_older_block_has_its_own_state(deployed: Deployed) -> None:
    node, coin = deployed.node, deployed.addresses["Coin"]
    balance_of = deployed.compiled["Coin"].data("balanceOf(address)", 0x1234)
    number_before = int(node.ask("eth_blockNumber"), 16)
    node.send(coin, deployed.compiled["Coin"].data("transfer(address,uint256)", 0x1234, 55))
    old, new = EVM.fork_from(node.url, number_before), EVM.fork_from(node.url)
    assert int.from_bytes(old.call(coin, balance_of).output, "big") == 0
    assert int.from_bytes(new.call(coin, balance_of).output, "big") == 55


def test_a_node_that_is_stopped_leaves_what_was_loaded(anvil_binary: Path, contracts: dict[str, Compiled]) -> None:
    with Anvil(anvil_binary) as node:
        coin = node.deploy(contracts["Coin"].creation)
        evm = EVM.fork_from(node.url, retries=0)
        asked = contracts["Coin"].data("balanceOf(address)", number(ALICE))
        before = evm.call(coin, asked)
    assert evm.call(coin, asked).output == before.output
    with pytest.raises(RuntimeError, match="check that the node runs"):
        evm.call(coin, contracts["Coin"].data("balanceOf(address)", 77))
    assert evm.call(coin, asked).output == before.output


@pytest.mark.parametrize("tier", TIERS)
def test_estimates_are_the_node_s_own(deployed: Deployed, tier: str) -> None:
    node, evm = deployed.node, EVM.fork_from(deployed.node.url, tier=tier)
    for each in traffic(deployed):
        to, sender = deployed.addresses[each.contract], "0x" + each.sender.hex()
        asked = {"from": sender, "to": to, "data": "0x" + each.data.hex(), "value": hex(each.value)}
        try:
            wanted: int | bytes = int(node.ask("eth_estimateGas", asked), 16)
        except RpcError as error:
            wanted = bytes.fromhex((error.data or "0x")[2:])
        try:
            found: int | bytes = evm.estimate_gas(to, each.data, value=each.value, caller=each.sender)
        except EstimateFailed as failed:
            found = failed.result.output
        assert found == wanted, each


def test_overrides_mean_what_they_mean_to_the_node(deployed: Deployed) -> None:
    node, evm = deployed.node, EVM.fork_from(deployed.node.url)
    coin, tools = deployed.addresses["Coin"], deployed.addresses["Tools"]
    balance_of = deployed.compiled["Coin"].data("balanceOf(address)", 0x77)
    slot = keccak256(encoded(0x77, 0)).hex()
    around = deployed.compiled["Tools"].data("values()")
    cases: list[tuple[str, bytes, dict[str, Any]]] = [
        (coin, balance_of, {coin: {"stateDiff": {"0x" + slot: f"0x{5:064x}"}}}),
        (coin, balance_of, {coin: {"state": {"0x" + slot: f"0x{6:064x}"}}}),
        (coin, deployed.compiled["Coin"].data("totalSupply()"), {coin: {"state": {}}}),
        (coin, around, {coin: {"code": node.ask("eth_getCode", tools, "latest")}}),
        (tools, around, {tools: {"code": "0x60025f5260205ff3", "balance": "0x5", "nonce": "0x9"}}),
    ]
    for to, data, overrides in cases:
        asked = {"to": to, "data": "0x" + data.hex()}
        wanted = node.ask("eth_call", asked, "latest", overrides)
        assert evm.simulate(to, data, overrides=overrides).check().output.hex() == wanted[2:], overrides


def test_a_raw_transaction_costs_what_the_node_charges(deployed: Deployed) -> None:
    node, evm = deployed.node, EVM.fork_from(deployed.node.url)
    coin, nonce = deployed.addresses["Coin"], evm.get_nonce(ALICE)
    data = deployed.compiled["Coin"].data("transfer(address,uint256)", 0x99, 3)
    to = bytes.fromhex(coin[2:])
    tx = Transaction(ALICE, to, data, 0, 90_000, nonce, max_fee=2 * 10**9, max_priority_fee=10**9, access_list=())
    raw = sign(tx, KEY, evm.block.chain_id).encoded
    receipt = node.receipt(node.ask("eth_sendRawTransaction", "0x" + raw.hex()))
    evm.block = block_of(node, receipt["blockNumber"], evm.block)
    result = evm.send_raw(raw)
    assert (result.gas_used, our_logs(result)) == (int(receipt["gasUsed"], 16), logs_of(receipt))


def test_what_a_call_touches_is_loaded_in_two_requests(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node foretells it; without that, every slot is a request."""
    there = deployed.compiled["Safe"]
    to, data = deployed.addresses["Safe"], there.data("deposit(uint256,address)", 1000, number(ALICE))
    approve = deployed.compiled["Coin"].data("approve(address,uint256)", number(bytes.fromhex(to[2:])), 1 << 128)
    assert deployed.node.send(deployed.addresses["Coin"], approve)["status"] == "0x1"
    asked: list[str] = []
    post = JsonRpc._posted
    monkeypatch.setattr(JsonRpc, "_posted", lambda rpc, body: asked.append(body) or post(rpc, body))

    def requests(prefetched: bool) -> int:
        evm = EVM.fork_from(deployed.node.url)
        if prefetched:
            evm.prefetch_call(to, data, caller=ALICE)
        assert evm.simulate(to, data, caller=ALICE).gas_used > 30_000
        return len(asked)

    alone = requests(False)
    asked.clear()
    assert requests(True) <= 6 < alone
