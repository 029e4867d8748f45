"""Contracts of the corpus deployed and called on the reference tier: what they answer, and the gas of each call.

*Reducible* is the gas of everything but storage, logs, calls, accounts, KECCAK256 and EXP: what a compiler can change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusevm.api import EVM
from fusevm.chain.environment import Block
from fusevm.chain.state import Log
from fusevm.reference.hooks import Hooks, Step

FIXED = frozenset(
    {"SLOAD", "SSTORE", "TLOAD", "TSTORE", "LOG0", "LOG1", "LOG2", "LOG3", "LOG4", "KECCAK256", "EXP"}
    | {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2", "SELFDESTRUCT"}
    | {"BALANCE", "SELFBALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"}
)


@dataclass(frozen=True, slots=True)
class CallAnswer:
    ok: bool
    output: bytes
    logs: tuple[Log, ...]
    gas: int
    reducible: int


@dataclass(frozen=True, slots=True)
class Deployed:
    runtime: bytes
    deploy_gas: int
    answers: tuple[CallAnswer, ...]
    storage: Mapping[int, int]

    @property
    def gas(self) -> int:
        return sum(answer.gas for answer in self.answers)

    @property
    def reducible(self) -> int:
        return sum(answer.reducible for answer in self.answers)


def contracts(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names of a folder's contracts, and what is known of them."""
    for path in sorted(folder.glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def run_contract(creation: bytes, facts: Mapping[str, Any], tier: str = "reference") -> Deployed:
    """Deploys the code and makes every call of its description."""
    evm = EVM(
        fork=facts.get("fork", "cancun"),
        tier=tier,
        block=Block(number=facts.get("number", 0), timestamp=facts.get("timestamp", 0)),
    )
    for account in facts.get("fund", ()):
        evm.set_balance(account, 10**24)
    deployed = evm.deploy(creation, caller=facts["deployer"], value=facts.get("deploy_value", 0))
    if deployed.address is None:
        raise ValueError(f"{facts['name']}: the deployment failed: {deployed.failure or deployed.status}")
    reducible = 0

    def on_opcode(step: Step) -> None:
        nonlocal reducible
        if step.name not in FIXED:
            reducible += step.gas_cost

    if tier == "reference":
        evm.hooks = Hooks(on_opcode=on_opcode)
    answers = []
    for call in facts["calls"]:
        reducible = 0
        result = evm.call(deployed.address, call["data"], caller=call["caller"], value=call.get("value", 0))
        answers.append(CallAnswer(result.ok, result.output, tuple(result.logs), result.gas_used, reducible))
    account = evm.state.account(deployed.address)
    return Deployed(account.code, deployed.gas_used, tuple(answers), dict(account.storage))


def wrong_answers(found: Deployed, facts: Mapping[str, Any]) -> list[str]:
    """The calls whose success or output is not what the description expects."""
    return [
        call["sig"]
        for call, answer in zip(facts["calls"], found.answers, strict=True)
        if answer.ok != call["expect"]["success"]
        or (call["expect"]["output"] is not None and "0x" + answer.output.hex() != call["expect"]["output"])
    ]
