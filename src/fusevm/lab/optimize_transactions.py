"""Whole transactions of the general generator, with every contract of them optimised or not."""

from __future__ import annotations

import random
from dataclasses import replace

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.codegen.bytecode import optimize
from fusevm.evm.forks import Fork
from fusevm.evm.halts import HaltReason
from fusevm.lab.fuzz.generator import program
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerWork
from fusevm.reference.hooks import Hooks, Step

# What sees gas, or the code of others that is optimised too.
SEES = frozenset({"GAS", "EXTCODESIZE", "EXTCODEHASH", "EXTCODECOPY"})
GAS = 12_000_000
FORKS = tuple(fork for fork in Fork if fork >= Fork.BYZANTIUM)


class Watch:
    """Whether a run is one whose result may depend on gas or code."""

    def __init__(self) -> None:
        self.depends = False

    def hooks(self) -> Hooks:
        return Hooks(on_opcode=self.on_opcode, on_return=self.on_return)

    def on_opcode(self, step: Step) -> None:
        self.depends |= step.name in SEES

    def on_return(self, message: Message, outcome: Outcome) -> None:
        self.depends |= outcome.failure is not None and outcome.failure.reason is HaltReason.OUT_OF_GAS


def transaction_problem(seed: int, number: int) -> tuple[str | None, bool, int]:
    """What is different, whether anything was compared, and how many codes were optimised."""
    rng = random.Random(f"optimize-transactions/{seed}/{number}")
    fork = rng.choice(FORKS)
    name = f"optimize/{seed}/{number}"
    work = program(name, fork).work().with_gas(GAS)
    changed = dict(work.accounts)
    count = 0
    for address, account in work.accounts.items():
        made = optimize(account.code, fork, always=True) if account.code else None
        if made is not None and made.code != account.code:
            changed[address] = account.copy()
            changed[address].code = made.code
            count += 1
    watch = Watch()
    wanted = seen(work, watch)
    if not count or watch.depends or wanted is None:
        return None, False, count
    found = seen(replace(work, accounts=changed), Watch())
    if found == wanted:
        return None, True, count
    return f"transaction {name} at {fork.label}:\nexpected {wanted}\nfound    {found}"[:2_000], True, count


def seen(work: PeerWork, watch: Watch) -> tuple[object, ...] | None:
    """What may not change: status, output, logs, and accounts, except their code and what gas is paid from."""
    observed = OurTier("reference", watch.hooks()).run(work)
    if observed.status == "rejected" or observed.accounts is None:
        return None
    payers = {work.transaction.sender, work.block.coinbase}
    accounts = {
        address: (account.nonce, address in payers or account.balance, tuple(sorted(account.storage.items())))
        for address, account in observed.accounts.items()
    }
    return observed.status, observed.output, tuple(observed.logs), tuple(sorted(accounts.items()))
