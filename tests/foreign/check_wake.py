"""wake on a node that it starts as `anvil`: accounts, transactions, reverts, traces, time and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from wake.development.transactions import TransactionStatusEnum
from wake.testing import Account, UnknownTransactionRevertedError, chain, must_revert

CODE = bytes.fromhex("6020355f3555" + "365f5f37" + "365fa0")  # storage[first word] = second, and logs both
FAILS = bytes.fromhex("365f5f37365ffd")  # reverts with what it is given


def initcode(code: bytes) -> bytes:
    return bytes.fromhex(f"60{len(code):02x}600a5f3960{len(code):02x}5ff3") + code


@pytest.fixture(autouse=True)
def connected() -> Iterator[None]:
    with chain.connect():
        yield


def deployed(code: bytes) -> Account:
    address: Any = chain.deploy(initcode(code), from_=chain.accounts[0], return_tx=True).return_value
    return Account(address.address)


def test_accounts_are_anvils() -> None:
    assert len(chain.accounts) == 10
    assert str(chain.accounts[0].address).lower() == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    assert chain.accounts[0].balance == 10_000 * 10**18
    assert (chain.chain_id, chain.blocks["latest"].number) == (31337, 0)


def test_a_contract_is_deployed_called_and_traced() -> None:
    contract = deployed(CODE)
    data = (1).to_bytes(32, "big") + (7).to_bytes(32, "big")
    tx = contract.transact(data, from_=chain.accounts[0])
    assert tx.status is TransactionStatusEnum.SUCCESS
    assert [bytes(each.data) for each in tx.raw_events] == [data]
    assert contract.code == CODE
    assert chain.chain_interface.get_storage_at(str(contract.address), 1)[-1] == 7
    assert tx.call_trace.status
    assert contract.estimate(data, from_=chain.accounts[0]) > 21_000


@pytest.mark.parametrize("ask", ["transact", "call", "estimate", "access_list"])
def test_a_revert_is_an_exception_with_its_data(ask: str) -> None:
    contract = deployed(FAILS)
    with pytest.raises(UnknownTransactionRevertedError) as caught:
        getattr(contract, ask)(b"\xde\xad\xbe\xef", from_=chain.accounts[0])
    assert bytes(caught.value.data) == b"\xde\xad\xbe\xef"
    with must_revert():
        getattr(contract, ask)(b"\xde\xad\xbe\xef", from_=chain.accounts[0])


def test_any_account_sends_without_a_signature() -> None:
    alice, stranger = chain.accounts[0], Account("0x" + "ab" * 20)
    stranger.balance = 10**18
    tx = alice.transact(value=5, from_=stranger)
    assert (tx.from_, tx.value, stranger.nonce) == (stranger, 5, 1)


def test_snapshots_mining_and_time() -> None:
    alice, bob = chain.accounts[:2]
    with chain.snapshot_and_revert():
        bob.transact(value=5, from_=alice)
        assert bob.balance == 10_000 * 10**18 + 5
    assert bob.balance == 10_000 * 10**18
    before = chain.blocks["latest"]
    chain.mine(lambda time: time + 1_000)
    assert chain.blocks["latest"].timestamp == before.timestamp + 1_000
    chain.mine_many(5)
    assert chain.blocks["latest"].number == before.number + 6
    with chain.change_automine(False):
        tx = bob.transact(value=5, from_=alice, confirmations=0)
        assert tx.status is TransactionStatusEnum.PENDING
        chain.mine()
        tx.wait()
    assert tx.status is TransactionStatusEnum.SUCCESS
