"""Tests of a moccasin project, whose conftest.py enables fusevm."""

from __future__ import annotations

from typing import Any

import boa
import pytest
from moccasin.config import get_active_network
from src import Counter


@pytest.fixture
def counter() -> Any:
    return Counter.deploy()


def engine() -> str:
    """What tests run on."""
    return type(boa.env).__name__


def test_a_contract_counts_on_fusevm(counter: Any) -> None:
    counter.increment()
    assert counter.number() == 1
    assert engine() == "FusevmEnv"


def test_an_overflow_reverts(counter: Any) -> None:
    counter.set_number(2**256 - 1)
    with boa.reverts():
        counter.increment()
    assert counter.number() == 2**256 - 1


def test_anchors_pranks_and_eval(counter: Any) -> None:
    with boa.env.anchor(), boa.env.prank(boa.env.generate_address()):
        counter.increment()
    assert counter.number() == counter.eval("self.number") == counter._storage.number.get() == 0


@pytest.mark.local
@pytest.mark.staging
def test_a_network_is_a_network(counter: Any) -> None:
    counter.set_number(5)
    with boa.reverts():
        counter.set_number(2**256 - 1)
        counter.increment()
    assert engine() == ("FusevmEnv" if get_active_network().name == "pyevm" else "NetworkEnv")
