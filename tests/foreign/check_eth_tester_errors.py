"""The same requests to py-evm's backend and fusevm's: the same answers, errors by type and text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from eth.vm.forks import ShanghaiVM
from eth_account import Account
from eth_tester import EthereumTester, PyEVMBackend
from eth_utils import ValidationError

from fusevm.adapters.eth_tester import FusevmBackend

BACKENDS = [PyEVMBackend, FusevmBackend]
GWEI = 10**9
FORKS = ("istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague")
REVERTS = "0x62123456600052600360" + "1dfd"  # mstore(0, 0x123456) revert(29, 3)
HALTS = "0xfe"
STORES = "0x5f35600055600160206000a1"  # sstore(0, calldata[0]); log1(0, 32, 1)
RETURNS_BLOCK = "0x435f5260205ff3"  # return number


def initcode(runtime: str) -> str:
    size = len(runtime[2:]) // 2
    return f"0x60{size:02x}600b5f3960{size:02x}5ff3{'00'}" + runtime[2:]


def both(ask: Callable[[Any], Any], **settings: Any) -> list[Any]:
    answers = []
    for backend in BACKENDS:
        try:
            answers.append(ask(EthereumTester(backend(**settings))))
        except Exception as error:
            answers.append((type(error), str(error)))
    return answers


def deploy(tester: Any, runtime: str) -> str:
    code = initcode(runtime)
    sent = tester.send_transaction({"from": tester.get_accounts()[0], "data": code, "gas": 1_000_000})
    address: str = tester.get_transaction_receipt(sent)["contract_address"]
    return address


def send(tester: Any, **fields: Any) -> Any:
    accounts = tester.get_accounts()
    return tester.send_transaction({"from": accounts[0], "to": accounts[1], "gas": 21_000, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"nonce": 7},
        {"value": 10**24},
        {"value": 10**25},
        {"gas": 30_000_000, "gas_price": 10**18},
    ],
    ids=["nonce", "value and gas", "value", "gas"],
)
def test_refusals_are_worded_as_py_evm_words_them(fields: dict[str, Any]) -> None:
    """At Shanghai: from Cancun on, py-evm says "insufficient funds for blob fee" whatever cannot be paid."""
    theirs, ours = both(lambda tester: send(tester, **fields), vm_configuration=((0, ShanghaiVM),))
    assert theirs == ours
    assert ours[0] is ValidationError


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"nonce": 7}, "Invalid transaction nonce"),
        ({"gas": 30_000_000, "gas_price": 10**18}, "cannot afford txn gas"),
    ],
)
def test_texts_that_ape_reads_are_there(fields: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ValidationError, match=pattern):
        send(EthereumTester(FusevmBackend()), **fields)


@pytest.mark.parametrize(
    "fields", [{"gas": 20_000}, {"gas": 31_000_000}, {"max_fee_per_gas": 1, "max_priority_fee_per_gas": 1}]
)
def test_what_py_evm_refuses_is_refused_with_the_same_exception(fields: dict[str, Any]) -> None:
    theirs, ours = both(lambda tester: send(tester, **fields))
    assert ours[0] is theirs[0]


@pytest.mark.parametrize("runtime", [REVERTS, HALTS])
@pytest.mark.parametrize("way", ["call", "estimate_gas"])
def test_failed_calls_raise_as_with_py_evm(runtime: str, way: str) -> None:
    def ask(tester: Any) -> Any:
        request = {"from": tester.get_accounts()[0], "to": deploy(tester, runtime)}
        return getattr(tester, way)(request)

    theirs, ours = both(ask)
    assert ours[0] is theirs[0]
    if runtime == REVERTS:
        assert ours == theirs


def test_a_transaction_that_fails_has_the_same_receipt() -> None:
    def ask(tester: Any) -> Any:
        to = deploy(tester, HALTS)
        sent = tester.send_transaction({"from": tester.get_accounts()[0], "to": to, "gas": 100_000})
        receipt = tester.get_transaction_receipt(sent)
        return {name: value for name, value in receipt.items() if "hash" not in name}

    theirs, ours = both(ask)
    assert theirs == ours
    assert ours["status"] == 0


def test_blocks_transactions_and_receipts_have_the_same_fields_and_values() -> None:
    def ask(tester: Any) -> Any:
        to = deploy(tester, STORES)
        word = "0x" + "11" * 32
        sent = tester.send_transaction({"from": tester.get_accounts()[1], "to": to, "gas": 100_000, "data": word})
        block = tester.get_block_by_number("latest", full_transactions=True)
        return block, tester.get_transaction_by_hash(sent), tester.get_transaction_receipt(sent)

    def comparable(value: Any) -> Any:
        """Without what depends on time, chance, or on the system contracts of the genesis state."""
        if isinstance(value, dict):
            skipped = ("hash", "root", "timestamp", "mix_hash", "size", "sha3")
            return {k: comparable(v) for k, v in value.items() if not any(part in k for part in skipped)}
        return tuple(map(comparable, value)) if isinstance(value, (list, tuple)) else value

    theirs, ours = both(ask)
    assert [set(part) for part in theirs] == [set(part) for part in ours]
    assert comparable(theirs) == comparable(ours)


@pytest.mark.parametrize("fork", FORKS)
def test_forks_by_name_or_vm_class_give_the_same_blocks(fork: str) -> None:
    import eth.vm.forks

    vm = getattr(eth.vm.forks, f"{fork.title()}VM")
    price = {"gas_price": 2 * GWEI}
    kept = ("difficulty", "gas_used", "base_fee_per_gas", "gas_limit", "number")
    seen = []
    for backend in (PyEVMBackend(vm_configuration=((0, vm),)), FusevmBackend(vm_configuration=((0, vm),))):
        tester = EthereumTester(backend)
        send(tester, **price)
        block = tester.get_block_by_number("latest")
        seen.append({name: block.get(name) for name in kept})
    tester = EthereumTester(FusevmBackend(vm_configuration=((0, fork),)))
    send(tester, **price)
    block = tester.get_block_by_number("latest")
    seen.append({name: block.get(name) for name in kept})
    assert seen[0] == seen[1] == seen[2]


def test_gas_estimates_are_enough_and_no_more_than_py_evms() -> None:
    def ask(tester: Any) -> Any:
        request = {"from": tester.get_accounts()[0], "to": deploy(tester, STORES), "data": "0x" + "11" * 32}
        estimate = tester.estimate_gas(request)
        sent = tester.send_transaction({**request, "gas": estimate})
        return estimate, tester.get_transaction_receipt(sent)["status"]

    theirs, ours = both(ask)
    assert ours[1] == theirs[1] == 1
    assert ours[0] <= theirs[0]


def test_a_call_sees_the_block_it_is_asked_for() -> None:
    def ask(tester: Any) -> Any:
        request = {"from": tester.get_accounts()[0], "to": deploy(tester, RETURNS_BLOCK)}
        tester.mine_blocks(3)
        return [tester.call(request, number) for number in (1, 2, "latest")]

    theirs, ours = both(ask)
    assert theirs == ours
    assert [int(each, 16) for each in ours] == [1, 2, 4]


def test_reset_to_genesis_keeps_the_accounts_it_was_made_with() -> None:
    state = FusevmBackend.generate_genesis_state({"balance": 5}, 2)
    tester = EthereumTester(FusevmBackend(genesis_state=state))
    tester.mine_blocks(2)
    tester.reset_to_genesis()
    assert tester.get_block_by_number("latest")["number"] == 0
    assert [tester.get_balance(each) for each in tester.get_accounts()] == [5, 5]


def test_the_backend_is_found_by_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHEREUM_TESTER_CHAIN_BACKEND", "fusevm.adapters.eth_tester.FusevmBackend")
    assert isinstance(EthereumTester().backend, FusevmBackend)


def test_log_indices_count_through_a_block() -> None:
    tester = EthereumTester(FusevmBackend(), auto_mine_transactions=True)
    to = deploy(tester, STORES)
    tester.disable_auto_mine_transactions()
    sent = [send(tester, to=to, gas=100_000, **{"from": each}) for each in tester.get_accounts()[:3]]
    tester.mine_block()
    receipts = [tester.get_transaction_receipt(each) for each in sent]
    assert [receipt["logs"][0]["log_index"] for receipt in receipts] == [0, 1, 2]
    assert len({receipt["block_number"] for receipt in receipts}) == 1
    assert re.fullmatch("0x[0-9a-f]{64}", sent[0])


@pytest.mark.parametrize(
    "kind",
    [
        {"gasPrice": 10 * GWEI},
        {"gasPrice": 10 * GWEI, "accessList": []},
        {"maxFeePerGas": 10 * GWEI, "maxPriorityFeePerGas": GWEI},
    ],
    ids=["legacy", "access list", "fees"],
)
def test_transactions_signed_for_another_chain_are_taken_as_by_py_evm(kind: dict[str, Any]) -> None:
    """Programs sign for 1337 or 1, whatever the number that the tester's chain has."""
    signer = Account.from_key(bytes(31) + b"\x01")

    def sent(tester: Any) -> Any:
        fields = {"to": "0x" + "11" * 20, "value": 5, "gas": 21_000, "nonce": 0, "chainId": 1337, **kind}
        number = tester.send_raw_transaction(signer.sign_transaction(fields).raw_transaction.to_0x_hex())
        return tester.get_transaction_by_hash(number).get("chain_id"), tester.get_balance("0x" + "11" * 20)

    theirs, ours = both(sent)
    assert ours == theirs
    assert ours[1] == 5
