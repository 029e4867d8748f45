"""Contracts for titanoboa, and the same session on py-evm and on fusevm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import boa
import pytest
from boa.environment import Env

from fusevm.adapters.boa import FusevmEnv, enable

TOKEN = """
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
totalSupply: public(uint256)
notes: public(DynArray[String[32], 8])

@deploy
def __init__(supply: uint256):
    assert supply < 2**200, "too much"
    self.balanceOf[msg.sender] = supply
    self.totalSupply = supply

@external
def transfer(to: address, amount: uint256) -> bool:
    assert amount > 0, "nothing to send"
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=msg.sender, receiver=to, amount=amount)
    return True

@external
def approve(spender: address, amount: uint256):
    self.allowance[msg.sender][spender] = amount

@external
def note(text: String[32]):
    self.notes.append(text)

@external
@payable
def pay() -> uint256:
    return msg.value

@external
def spin(n: uint256) -> uint256:
    x: uint256 = 7
    for i: uint256 in range(n, bound=1000000):
        x = unsafe_add(unsafe_mul(x, 31), i)
    return x

@internal
def _double(x: uint256) -> uint256:
    return x * 2
"""

CALLER = """
interface Token:
    def transfer(to: address, amount: uint256) -> bool: nonpayable
    def balanceOf(a: address) -> uint256: view

event Called:
    n: uint256

token: Token
calls: public(uint256)

@deploy
def __init__(token: address):
    self.token = Token(token)

@external
def send(to: address, amount: uint256) -> uint256:
    self.calls += 1
    log Called(n=self.calls)
    extcall self.token.transfer(to, amount)
    return staticcall self.token.balanceOf(to)

@external
def proxied(target: address) -> address:
    return create_minimal_proxy_to(target)

@external
def from_blueprint(blueprint: address, supply: uint256) -> address:
    return create_from_blueprint(blueprint, supply)

@external
@view
def surroundings() -> (uint256, uint256, address, uint256):
    return block.number, block.timestamp, block.coinbase, chain.id
"""


def plain(value: Any) -> str:
    """Text without gas, which is of one long transaction with py-evm, and of a transaction per call with fusevm."""
    return re.sub(r"\[\d+\]", "[gas]", str(value))


def both(session: Callable[[], Any]) -> tuple[Any, Any]:
    answers = []
    for environment in (Env, FusevmEnv):
        with boa.set_env(environment()):
            boa.env.set_random_seed(7)
            boa.env.eoa = boa.env.generate_address()
            answers.append(session())
    return answers[0], answers[1]


def same(session: Callable[[], Any]) -> Any:
    theirs, ours = both(session)
    assert ours == theirs
    return ours


def failure(run: Callable[[], Any]) -> str:
    with pytest.raises(boa.BoaError) as raised:
        run()
    return plain(raised.value)


def measure_coverage(patch: pytest.MonkeyPatch, lines: list[int]) -> None:
    """As boa's plugin of coverage.py switches it on, before and after boa 0.2.8; the lines that ran are added."""

    def on_computation(computation: Any, contract: Any) -> None:
        nodes = map(contract.source_map["pc_raw_ast_map"].get, computation.code._trace)
        lines.extend(node.lineno for node in nodes if node is not None)

    if hasattr(Env, "_coverage"):
        tracer = SimpleNamespace(on_computation=on_computation)
        patch.setattr(Env, "_coverage", SimpleNamespace(tracer=tracer, branch_enabled=False))
    else:
        patch.setattr(Env, "_coverage_enabled", True)
        patch.setattr(Env, "_trace_cov", lambda self, name, node: lines.append(node.lineno))


@pytest.fixture(autouse=True)
def fusevm() -> Iterator[None]:
    with enable():
        yield
