"""eth-tester with fusevm alone: py-evm is not installed."""

from __future__ import annotations

import importlib.util

import pytest
from eth_tester import EthereumTester
from eth_utils import ValidationError

from fusevm.adapters.eth_tester import FusevmBackend


def test_py_evm_is_not_there() -> None:
    assert importlib.util.find_spec("eth") is None


def test_a_transfer_arrives() -> None:
    tester = EthereumTester(FusevmBackend())
    sender, to = tester.get_accounts()[:2]
    before = tester.get_balance(to)
    tester.send_transaction({"from": sender, "to": to, "value": 5, "gas": 21_000})
    assert tester.get_balance(to) == before + 5


def test_an_unknown_type_of_transaction_is_a_validation_error() -> None:
    with pytest.raises(ValidationError):
        EthereumTester(FusevmBackend()).send_raw_transaction("0x1234")


def test_accounts_come_from_a_mnemonic() -> None:
    words = "test test test test test test test test test test test junk"
    tester = EthereumTester(FusevmBackend.from_mnemonic(words, num_accounts=3))
    assert tester.get_accounts()[0] == "0x1e59ce931B4CFea3fe4B875411e280e173cB7A9C"
