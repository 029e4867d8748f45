"""The same session on ape's own test chain and on fusevm, through ape's accounts, contracts and chain."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import ape
import pytest
from ape.contracts import ContractContainer
from ape.exceptions import ContractLogicError, VirtualMachineError
from ethpm_types import ContractType

ABI = json.loads("""[
 {"type":"function","name":"set","inputs":[{"name":"x","type":"uint256"}],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"function","name":"get","inputs":[],"outputs":[{"name":"","type":"uint256"}],"stateMutability":"view"},
 {"type":"function","name":"fail","inputs":[],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"event","name":"Changed","inputs":[{"name":"by","type":"address","indexed":true},
  {"name":"x","type":"uint256","indexed":false}],"anonymous":false}
]""")
CODE = os.environ["COUNTER_CODE"]


@pytest.fixture(params=["test", "fusevm"])
def provider(request: pytest.FixtureRequest) -> Iterator[Any]:
    with ape.networks.ethereum.local.use_provider(request.param) as found:
        snapshot = found.snapshot()
        yield found
        found.restore(snapshot)


@pytest.fixture
def counter(provider: Any) -> Any:
    made = ContractType.model_validate(
        {"contractName": "Counter", "abi": ABI, "deploymentBytecode": {"bytecode": CODE}}
    )  # fmt: skip
    return ape.accounts.test_accounts[0].deploy(ContractContainer(made))


def test_a_transfer_moves_ether(provider: Any) -> None:
    alice, bob = ape.accounts.test_accounts[:2]
    before = bob.balance
    receipt = alice.transfer(bob, 5)
    assert not receipt.failed
    assert receipt.gas_used == 21_000
    assert bob.balance == before + 5


def test_a_contract_is_called_and_its_events_are_read(counter: Any) -> None:
    alice = ape.accounts.test_accounts[0]
    receipt = counter.set(7, sender=alice)
    assert counter.get() == 7
    (event,) = receipt.events
    assert (event.event_name, event.by, event.x) == ("Changed", alice.address, 7)
    assert [log.x for log in counter.Changed] == [7]


def test_a_revert_has_its_reason(counter: Any) -> None:
    alice = ape.accounts.test_accounts[0]
    with ape.reverts("no more"):
        counter.fail(sender=alice)
    with pytest.raises(ContractLogicError, match="no more"):
        counter.fail.call(sender=alice)
    receipt = counter.fail(sender=alice, gas=100_000, raise_on_revert=False)
    assert receipt.failed


def test_snapshots_take_back_what_was_done(provider: Any, counter: Any) -> None:
    alice = ape.accounts.test_accounts[0]
    counter.set(1, sender=alice)
    snapshot = ape.chain.snapshot()
    counter.set(2, sender=alice)
    ape.chain.restore(snapshot)
    assert counter.get() == 1


def test_blocks_and_time_are_moved(provider: Any) -> None:
    height, time = ape.chain.blocks.height, ape.chain.pending_timestamp
    ape.chain.mine(3)
    assert ape.chain.blocks.height == height + 3
    ape.chain.pending_timestamp = time + 10_000
    ape.chain.mine()
    assert ape.chain.blocks.head.timestamp >= time + 10_000


def test_an_account_without_money_is_told_so(provider: Any) -> None:
    poor = ape.accounts.test_accounts.generate_test_account()
    with pytest.raises(Exception, match=r"(?i)funds|afford|balance") as error:
        poor.transfer(ape.accounts.test_accounts[0], 5)
    assert isinstance(error.value, ape.exceptions.ApeException)


# -- what ape's own chain does not do


@pytest.fixture
def fusevm() -> Iterator[Any]:
    with ape.networks.ethereum.local.use_provider("fusevm") as found:
        yield found


def test_accounts_are_impersonated_and_balances_set(fusevm: Any) -> None:
    whale = ape.accounts["0x00000000219ab540356cBB839Cbe05303d7705Fa"]
    fusevm.set_balance(whale.address, 10**20)
    alice = ape.accounts.test_accounts[0]
    before = alice.balance
    whale.transfer(alice, 7)
    assert alice.balance == before + 7


def test_transactions_wait_where_blocks_are_not_mined_at_once(fusevm: Any) -> None:
    alice, bob = ape.accounts.test_accounts[:2]
    before = bob.balance
    fusevm.auto_mine = False
    alice.transfer(bob, 5)
    assert bob.balance == before
    fusevm.mine()
    fusevm.auto_mine = True
    assert bob.balance == before + 5


def test_a_failing_transaction_is_an_error_of_ape(fusevm: Any) -> None:
    fusevm.set_code("0x" + "c0" * 20, "0xfe")
    with pytest.raises(VirtualMachineError):
        ape.accounts.test_accounts[0].transfer("0x" + "c0" * 20, 1, gas=100_000)
