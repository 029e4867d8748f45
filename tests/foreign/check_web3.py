"""web3.py's programs on `EthereumTesterProvider` and on `FusevmProvider`: the same answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account
from eth_tester import EthereumTester
from eth_tester.utils.emitter_contract import EMITTER_ABI, EMITTER_BYTECODE, EMITTER_ENUM
from eth_tester.utils.math_contract import MATH_ABI, MATH_BYTECODE
from eth_tester.utils.throws_contract import THROWS_ABI, THROWS_BYTECODE
from web3 import AsyncWeb3, EthereumTesterProvider, Web3
from web3.exceptions import BlockNotFound, ContractLogicError, TransactionNotFound, Web3RPCError

from fusevm.adapters.eth_tester import FusevmBackend
from fusevm.adapters.web3 import AsyncFusevmProvider, FusevmProvider
from fusevm.rpc.session import Session

PROVIDERS: dict[str, Callable[[], Any]] = {
    "eth-tester with py-evm": EthereumTesterProvider,
    "eth-tester with fusevm": lambda: EthereumTesterProvider(EthereumTester(FusevmBackend())),
    "fusevm": FusevmProvider,
}


@pytest.fixture(params=PROVIDERS)
def w3(request: pytest.FixtureRequest) -> Web3:
    found = Web3(PROVIDERS[request.param]())
    found.eth.default_account = found.eth.accounts[0]
    return found


def deployed(w3: Web3, abi: Any, bytecode: Any) -> Any:
    abi = list(abi.values())
    sent = w3.eth.contract(abi=abi, bytecode=bytecode).constructor().transact({"gas": 3_000_000})
    return w3.eth.contract(address=w3.eth.wait_for_transaction_receipt(sent)["contractAddress"], abi=abi)


def test_it_is_connected(w3: Web3) -> None:
    assert w3.is_connected()
    assert w3.eth.block_number == 0
    assert len(w3.eth.accounts) == 10


def test_a_transfer_moves_ether_and_counts_the_nonce(w3: Web3) -> None:
    sender, to = w3.eth.accounts[:2]
    before = w3.eth.get_balance(to)
    sent = w3.eth.send_transaction({"to": to, "value": 5, "gas": 21_000})
    receipt = w3.eth.wait_for_transaction_receipt(sent)
    assert (receipt["status"], receipt["gasUsed"], receipt["blockNumber"]) == (1, 21_000, 1)
    assert w3.eth.get_balance(to) == before + 5
    assert w3.eth.get_transaction_count(sender) == 1
    assert w3.eth.get_transaction(sent)["value"] == 5
    assert w3.eth.get_block("latest")["transactions"] == [sent]
    assert w3.eth.get_block(1, full_transactions=True)["transactions"][0]["hash"] == sent


def test_a_transaction_without_gas_is_estimated(w3: Web3) -> None:
    sent = w3.eth.send_transaction({"to": w3.eth.accounts[1], "value": 1})
    assert w3.eth.get_transaction_receipt(sent)["status"] == 1


def test_contracts_are_deployed_called_and_changed(w3: Web3) -> None:
    math = deployed(w3, MATH_ABI, MATH_BYTECODE)
    assert math.functions.add(7, 13).call() == 20
    assert math.functions.counter().call() == 0
    before = w3.eth.block_number
    math.functions.increment().transact()
    assert math.functions.counter().call() == 1
    assert math.functions.counter().call(block_identifier=before) == 0
    assert w3.eth.get_code(math.address) != b""
    assert int.from_bytes(w3.eth.get_storage_at(math.address, 0), "big") == 1
    used = w3.eth.wait_for_transaction_receipt(math.functions.increment().transact())["gasUsed"]
    assert used <= math.functions.increment().estimate_gas() + 21_000


def test_reverts_carry_their_reason(w3: Web3) -> None:
    contract = deployed(w3, THROWS_ABI["revert_contract"], THROWS_BYTECODE["revert_contract"])
    assert contract.functions.do_revert(False).call() == "No ribbert"
    with pytest.raises((ContractLogicError, Exception), match="ribbert, ribbert"):
        contract.functions.do_revert(True).call()


def test_events_are_read_from_receipts_logs_and_filters(w3: Web3) -> None:
    emitter = deployed(w3, EMITTER_ABI, EMITTER_BYTECODE)
    event = emitter.events.LogSingleWithIndex
    watched = event.create_filter(from_block="latest")
    blocks = w3.eth.filter("latest")
    sent = emitter.functions.logSingle(EMITTER_ENUM["LogSingleWithIndex"], 12_345).transact({"gas": 200_000})
    receipt = w3.eth.wait_for_transaction_receipt(sent)
    (log,) = event().process_receipt(receipt)
    assert log["args"]["arg0"] == 12_345
    assert [each["args"]["arg0"] for each in watched.get_new_entries()] == [12_345]
    assert watched.get_new_entries() == []
    assert blocks.get_new_entries() == [receipt["blockHash"]]
    found = event.get_logs(from_block=0)
    assert [each["transactionHash"] for each in found] == [sent]
    assert len(w3.eth.get_logs({"fromBlock": 0, "toBlock": "latest", "address": emitter.address})) == 1
    other = "0x" + "11" * 32
    assert w3.eth.get_logs({"fromBlock": 0, "toBlock": "latest", "topics": [other]}) == []


def test_signed_transactions_are_taken(w3: Web3) -> None:
    account = Account.create()
    w3.eth.send_transaction({"to": account.address, "value": 10**18, "gas": 21_000})
    fields = {
        "to": w3.eth.accounts[1],
        "value": 7,
        "gas": 21_000,
        "nonce": 0,
        "chainId": w3.eth.chain_id,
        "maxFeePerGas": 3 * 10**9,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = account.sign_transaction(fields)
    sent = w3.eth.send_raw_transaction(signed.raw_transaction)
    assert sent == signed.hash
    receipt = w3.eth.get_transaction_receipt(sent)
    assert (receipt["status"], receipt["from"]) == (1, account.address)


def test_what_is_not_there_is_told(w3: Web3) -> None:
    with pytest.raises(BlockNotFound):
        w3.eth.get_block(99)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction("0x" + "11" * 32)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_receipt("0x" + "11" * 32)


def test_blocks_have_fees_and_the_fee_history_tells_them(w3: Web3) -> None:
    w3.eth.send_transaction({"to": w3.eth.accounts[1], "value": 1, "gas": 21_000})
    block = w3.eth.get_block("latest")
    assert 0 < block["baseFeePerGas"] <= w3.eth.get_block(0)["baseFeePerGas"]
    assert w3.eth.gas_price > 0
    assert w3.eth.max_priority_fee == 10**9
    assert w3.eth.fee_history(1, "latest", [])["gasUsedRatio"]


def test_requests_can_be_batched() -> None:
    w3 = Web3(FusevmProvider())
    account = w3.eth.accounts[0]
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block("latest"))
        batch.add(w3.eth.get_balance(account))
        block, balance = batch.execute()
    assert (block["number"], balance) == (0, 10**22)


def test_refusals_are_errors_with_anvils_words() -> None:
    w3 = Web3(FusevmProvider())
    sender, to = w3.eth.accounts[:2]
    request = {"from": sender, "to": to, "gas": 21_000, "value": 1}
    for fields, words in (
        ({"value": 10**30}, "insufficient funds"),
        ({"gas": 20_000}, "intrinsic gas too low"),
        ({"from": "0x" + "11" * 20}, "no signer available"),
    ):
        with pytest.raises(Web3RPCError, match=f"(?i){words}"):
            w3.eth.send_transaction({**request, **fields})


def test_custom_errors_and_panics_are_decoded() -> None:
    w3 = Web3(FusevmProvider())
    w3.eth.default_account = w3.eth.accounts[0]
    panics = "0x634e487b7160e01b5f52601160045260245ffd"
    sent = w3.eth.send_transaction({"data": "0x6013600c60003960136000f3" + panics[2:], "gas": 200_000})
    where = w3.eth.get_transaction_receipt(sent)["contractAddress"]
    with pytest.raises(ContractLogicError) as raised:
        w3.eth.call({"to": where})
    assert "overflow" in str(raised.value).lower()


def test_transactions_wait_where_blocks_are_not_mined_at_once() -> None:
    session = Session()
    session.automine = False
    w3 = Web3(FusevmProvider(session))
    pending = w3.eth.filter("pending")
    sent = w3.eth.send_transaction({"from": w3.eth.accounts[0], "to": w3.eth.accounts[1], "value": 1, "gas": 21_000})
    assert pending.get_new_entries() == [sent]
    assert w3.eth.get_transaction(sent)["blockNumber"] is None
    assert w3.eth.get_block("pending")["transactions"] == [sent]
    assert w3.eth.get_transaction_count(w3.eth.accounts[0], "pending") == 1
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_receipt(sent)
    w3.provider.make_request("evm_mine", [])
    assert w3.eth.get_transaction_receipt(sent)["blockNumber"] == 1


def test_snapshots_and_time() -> None:
    w3 = Web3(FusevmProvider())
    ask = w3.provider.make_request
    kept = ask("evm_snapshot", [])["result"]
    before = w3.eth.get_block("latest")["timestamp"]
    ask("evm_increaseTime", [1000])
    ask("evm_mine", [])
    assert w3.eth.get_block("latest")["timestamp"] >= before + 1000
    assert ask("evm_revert", [kept])["result"] is True
    assert w3.eth.block_number == 0
    assert ask("evm_revert", [kept])["result"] is False


def test_the_async_provider_gives_the_same() -> None:
    async def session() -> None:
        w3 = AsyncWeb3(AsyncFusevmProvider())
        sender, to = (await w3.eth.accounts)[:2]
        assert await w3.is_connected()
        sent = await w3.eth.send_transaction({"from": sender, "to": to, "value": 5})
        receipt = await w3.eth.wait_for_transaction_receipt(sent)
        assert receipt["status"] == 1
        sender_math = w3.eth.contract(abi=list(MATH_ABI.values()), bytecode=MATH_BYTECODE)
        made = await w3.eth.wait_for_transaction_receipt(
            await sender_math.constructor().transact({"from": sender, "gas": 3_000_000})
        )
        math = w3.eth.contract(address=made["contractAddress"], abi=list(MATH_ABI.values()))
        assert await math.functions.add(2, 3).call() == 5

    asyncio.run(session())
