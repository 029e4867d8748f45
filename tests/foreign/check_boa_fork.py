"""boa's forks of a node, on py-evm and on fusevm: the same answers. `FUSEVM_NODE` is the node's URL."""

from __future__ import annotations

import os
from typing import Any

import boa
import pytest
from boa.environment import Env

from fusevm.adapters.boa import FusevmEnv, enable, fork
from fusevm.adapters.boa.computation import NativeComputation

NODE = os.environ["FUSEVM_NODE"]
WHERE = "0x" + "f0" * 20  # has a counter: see the test that sets it up
SOURCE = """
interface Counter:
    def anything() -> uint256: nonpayable

last: public(uint256)
seen: public(HashMap[address, uint256])

@external
def ask(where: address) -> uint256:
    self.last = convert(raw_call(where, b"", max_outsize=32), uint256)
    self.seen[where] += 1
    return self.last

@external
@view
def surroundings() -> (uint256, uint256, uint256, bytes32):
    return block.number, block.timestamp, chain.id, blockhash(block.number - 1)
"""


def session() -> Any:
    boa.env.set_random_seed(3)
    boa.env.eoa = boa.env.generate_address()
    contract = boa.loads(SOURCE)
    seen = [contract.ask(WHERE), contract.ask(WHERE), contract.surroundings()]
    with boa.env.anchor():
        seen.append(contract.ask(WHERE))
    seen += [
        contract.ask(WHERE),
        boa.env.get_storage(WHERE, 0),
        boa.env.get_balance(WHERE),
        contract._storage.seen.get(),
    ]
    with pytest.raises(boa.BoaError):
        contract.ask(boa.env.generate_address(), gas=20_000)
    return [*seen, contract.last()]


@pytest.mark.parametrize("block", ["latest", 0])
def test_a_fork_answers_as_with_py_evm(block: Any) -> None:
    answers = []
    for environment in (Env, FusevmEnv):
        forked = environment()
        forked.fork(NODE, block_identifier=block, deprecated=False)
        with boa.set_env(forked):
            answers.append(session() if block else boa.env.get_code(WHERE))
    assert answers[0] == answers[1]


def test_calls_on_a_fork_run_natively_and_can_be_traced() -> None:
    before = boa.env
    with fork(NODE, block_identifier="latest"):
        assert isinstance(boa.env, FusevmEnv)
        assert boa.env.evm.is_forked
        contract = boa.loads(SOURCE)
        contract.ask(WHERE)
        assert isinstance(contract._computation, NativeComputation)
        assert contract._computation.traced.get_gas_used() == contract._computation.get_gas_used()
        assert "=> " in str(contract.call_trace())
    assert boa.env is before


def test_boas_own_fork_is_fusevms_once_it_is_enabled() -> None:
    with enable():
        boa.fork(NODE, block_identifier="latest")
        assert type(boa.env) is FusevmEnv
        assert boa.env.evm.is_forked
        assert boa.env.get_balance(WHERE) == 5
    assert type(boa.env) is Env


def test_a_network_stays_where_fusevm_is_enabled() -> None:
    """A test for a network must not pass because it ran in the same process."""
    with boa.set_network_env(NODE):
        network = boa.env
        with enable():
            assert boa.env is network
            with boa.set_env(Env()):
                assert type(boa.env) is FusevmEnv
            assert boa.env is network
        assert boa.env is network


def test_a_fork_of_a_node_that_does_not_answer_leaves_everything_as_it_was() -> None:
    before = boa.env
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        fork("http://127.0.0.1:1")
    assert boa.env is before
    assert type(Env()) is Env


@pytest.mark.parametrize("one", [boa.fork, fork])
def test_a_fork_that_leaves_something_behind_must_be_asked_for(one: Any) -> None:
    with boa.set_env(FusevmEnv()):
        with boa.env.anchor():
            boa.env.set_balance(WHERE, 7)
            with pytest.raises(Exception, match="Set allow_dirty=True"):
                one(NODE)
            with one(NODE, block_identifier="latest", allow_dirty=True):
                assert boa.env.get_balance(WHERE) == 5
        with one(NODE, block_identifier="latest"):  # all is undone
            assert boa.env.get_balance(WHERE) == 5
