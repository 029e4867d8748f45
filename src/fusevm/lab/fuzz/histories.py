"""Random histories of a machine: calls, transactions, several messages in one, checkpoints, copies, forked state.

python -m fusevm.lab.fuzz.histories [--seconds N] [--seed N] [--tier T]

The machine under test keeps native tables, lazy accounts and layers from one step to the next. Beside it a model does
the same on the reference tier and a plain state; where the machine goes back or is copied, the model is a whole copy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fusevm.api import EVM
from fusevm.chain.reasons import Rejected
from fusevm.chain.result import Result
from fusevm.chain.sources.source import Facts, Place
from fusevm.chain.state import Account, State
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.generator import CONTRACTS, NOBODY, PERSON, SENDER, program
from fusevm.lab.peers.ours import transact
from fusevm.lab.peers.work import PeerWork
from fusevm.values import BadValue

STEPS = 30
MAX_MACHINES = 5
TARGETS = (*CONTRACTS, PERSON, NOBODY)
GAS = (2_300, 30_000, 100_000, 1_000_000)


class Memory:
    """A source that has all accounts of a world."""

    name = "memory"

    def __init__(self, accounts: dict[bytes, Account]) -> None:
        self.held = accounts

    def accounts(self, addresses: Sequence[bytes]) -> list[Facts | None]:
        found = [self.held.get(address) for address in addresses]
        return [None if each is None else Facts(each.nonce, each.balance, each.code) for each in found]

    def slots(self, places: Sequence[Place]) -> list[int]:
        return [self.held[address].storage.get(key, 0) for address, key in places]

    def block_hash(self, number: int) -> bytes:
        return bytes(32)


@dataclass(slots=True)
class HistoryLine:
    """A machine, its model, and the checkpoints that are open: ids, and the model as it was."""

    machine: EVM
    model: EVM
    checkpoints: list[tuple[int, EVM]] = field(default_factory=list)


class HistoryDifference(AssertionError):
    """The machine and the model differ; the message has the seed and the step."""


def has_plain_world(work: PeerWork) -> bool:
    """Whether a source can tell all of it: a node knows no empty accounts, and no storage without code or nonce."""
    return all(not each.empty and (each.code or each.nonce or not each.storage) for each in work.accounts.values())


def run_history(seed: int, fork: Fork, tier: str, steps: int = STEPS) -> None:
    """Raises Difference."""
    rng = Random(f"{seed}/{fork.label}/{tier}")
    works = [program(f"{seed}-{number}", fork).work() for number in range(3)]
    work = works[0]
    lazy = rng.randrange(2) == 0 and has_plain_world(work)
    state = State(source=Memory(deepcopy(work.accounts))) if lazy else work.state()
    if not lazy:
        state.handed_out = False  # no reference to the accounts is held
    model = EVM(fork, "reference", block=work.block, state=work.state())
    lines = [HistoryLine(EVM(fork, tier, block=work.block, state=state), model)]
    for step in range(steps):
        line = rng.choice(lines)
        where = f"seed {seed}, {fork.label}, {tier}, step {step}{', lazy' if lazy else ''}"
        _step(rng, line, lines, works, where)
        if rng.randrange(3) == 0:
            _compare(line, where)
    for line in lines:
        _compare(line, f"seed {seed}, {fork.label}, {tier}, at the end")


def _step(rng: Random, line: HistoryLine, lines: list[HistoryLine], works: list[PeerWork], where: str) -> None:
    kind = rng.randrange(20)
    if kind == 0 and len(lines) < MAX_MACHINES:
        lines.append(HistoryLine(line.machine.copy(), deepcopy(line.model)))
    elif kind in (1, 2):
        line.checkpoints.append((line.machine.checkpoint(), deepcopy(line.model)))
    elif kind in (3, 4) and line.checkpoints:
        place = rng.randrange(len(line.checkpoints))
        if kind == 3:
            line.machine.revert(line.checkpoints[place][0])
            line.model = line.checkpoints[place][1]
        else:
            line.machine.commit(line.checkpoints[place][0])
        del line.checkpoints[place:]
    else:
        deed = _deed(rng, works)
        ours, theirs = (_outcome(deed, evm) for evm in (line.machine, line.model))
        if ours != theirs:
            raise HistoryDifference(f"{where}:\n  {line.machine.tier}: {ours}\n  reference: {theirs}")


def _outcome(deed: Callable[[EVM], Any], evm: EVM) -> Any:
    try:
        return _said(deed(evm))
    except (Rejected, BadValue) as error:
        return str(error)


def _said(found: Any) -> Any:
    """Without the words of a precompile's failure: native ones say less."""
    if isinstance(found, Result):
        failure = found.failure and (found.failure.reason, found.failure.pc)
        return found.status, found.output, found.gas_used, found.gas_refunded, list(found.logs), found.address, failure
    return [_said(each) for each in found] if isinstance(found, list | tuple) else found


def _deed(rng: Random, works: list[PeerWork]) -> Callable[[EVM], Any]:
    """What is done to both: the same, since everything random is chosen here."""
    kind, target = rng.randrange(10), rng.choice(TARGETS)
    message = _message(rng)
    if kind < 3:
        return lambda evm: evm.call(target, **message)
    if kind == 3:
        return lambda evm: evm.simulate(target, **message)
    if kind < 6:
        tx = rng.choice(works).transaction
        tx.nonce = None
        return lambda evm: transact(evm, tx)
    if kind < 8:
        messages = [(rng.choice(TARGETS), _message(rng)) for _ in range(rng.randrange(1, 5))]
        return lambda evm: _several(evm, messages)
    if kind == 8:
        code, salt = rng.choice(works).accounts[CONTRACTS[0]].code, rng.choice((None, 1))
        return lambda evm: evm.deploy(code, caller=SENDER, salt=salt, gas=message["gas"])
    key, value = rng.randrange(4), rng.choice((0, 1, 1 << 200))
    return lambda evm: evm.set_storage(target, key, value)


def _message(rng: Random) -> dict[str, Any]:
    data = bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 4, 36))))
    value = rng.choice((0, 0, 0, 1))
    caller = SENDER if value else rng.choice((SENDER, PERSON))
    return {"data": data, "value": value, "caller": caller, "gas": rng.choice(GAS)}


def _several(evm: EVM, messages: list[tuple[bytes, dict[str, Any]]]) -> Any:
    with evm.transaction(SENDER) as tx:
        results = [tx.call(target, **message) for target, message in messages]
    return results, tx.gas_used, tx.gas_refunded, tx.logs


def _compare(line: HistoryLine, where: str) -> None:
    ours, theirs = line.machine.state, line.model.state
    listed = dict(theirs.items())
    for address, account in listed.items():
        found = ours.account(address)
        _equal(where, f"account 0x{address.hex()}", _facts(found), _facts(account))
        for key in {*account.storage, *range(4)}:
            wanted = account.storage.get(key, 0)
            _equal(where, f"slot {key:#x} of 0x{address.hex()}", ours.storage(address, key), wanted)
    for address, found in list(ours.items()):
        if address not in listed and not (found.empty and not dict(found.storage)):
            raise HistoryDifference(f"{where}: account 0x{address.hex()} is there, and should not be")
        for key, value in dict(found.storage).items():
            _equal(where, f"slot {key:#x} of 0x{address.hex()}", value, theirs.storage(address, key))


def _facts(account: Account) -> tuple[int, int, bytes]:
    return account.nonce, account.balance, account.code


def _equal(where: str, what: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise HistoryDifference(f"{where}: {what}: {ours!r}, not {theirs!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tier", action="append", help="native, auto and native-tiered unless given; may be repeated")
    options = parser.parse_args()
    began, seed, count = time.monotonic(), options.seed, 0
    tiers, forks = options.tier or ("native", "auto", "native-tiered"), list(Fork)
    while time.monotonic() - began < options.seconds:
        run_history(seed, forks[-1 - seed % 8], tiers[seed % len(tiers)])
        seed += 1
        count += STEPS
    print(f"{seed - options.seed} histories, {count} steps: no difference")


if __name__ == "__main__":
    main()
