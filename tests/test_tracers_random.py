"""Tracers over random programs: what they say holds, whatever the program, the fork and the gas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from fusevm import EVM
from fusevm.chain.reasons import Rejected
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.generator import program
from fusevm.lab.peers.work import PeerWork
from fusevm.tracing.access_list import create_access_list
from fusevm.tracing.changes import changes_of
from fusevm.tracing.profile.stacks import sampled
from fusevm.tracing.sources.contracts import Sources
from fusevm.tracing.tracers import traced, tracer_named
from fusevm.values import to_access_list

PROGRAMS = int(os.environ.get("FUSEVM_TRACED_PROGRAMS", "45"))
FORKS = sorted(Fork)
Json = dict[str, Any]


def works() -> Iterator[PeerWork]:
    """Programs on all forks in turn; every other one is short of gas somewhere."""
    for index in range(PROGRAMS):
        made = program(f"tracers {index}", FORKS[index % len(FORKS)])
        work = made.work()
        try:
            result = machine(work).transact_(work.transaction)
        except Rejected:
            continue
        yield work if index % 2 else work.with_gas(Random(index).randint(21_000, max(result.gas_used, 21_001)))


class Machine(EVM):
    def transact_(self, tx: Transaction) -> Result:
        return self._process(tx)

    def trace_(self, tx: Transaction, tracer: str | None, **config: bool) -> Json:
        return traced(self, tx, tracer_named(tracer, config), self._process)


def machine(work: PeerWork, tier: str = "reference") -> Machine:
    return Machine(work.fork, tier, block=work.block, state=work.state())


def accounts_of(state: State) -> dict[str, Json]:
    """All accounts that are not empty, in the form of the tracer."""
    found: dict[str, Json] = {}
    for address, account in state.items():
        if account.empty and not account.storage:
            continue
        form: Json = {"balance": hex(account.balance)}
        form |= {"code": "0x" + account.code.hex()} if account.code else {}
        form |= {"nonce": account.nonce} if account.nonce else {}
        slots = {f"0x{key:064x}": f"0x{value:064x}" for key, value in account.storage.items()}
        found["0x" + address.hex()] = form | ({"storage": slots} if slots else {})
    return found


def changed(before: dict[str, Json], pre: Json, post: Json) -> dict[str, Json]:
    """What the accounts are after a difference."""
    after = {address: {**account, "storage": dict(account.get("storage", {}))} for address, account in before.items()}
    for address in pre.keys() - post.keys():
        after.pop(address, None)  # destroyed
    for address, changes in post.items():
        account = after.setdefault(address, {"balance": "0x0", "storage": {}})
        for key in pre.get(address, {}).get("storage", {}):
            account["storage"].pop(key, None)
        account["storage"] |= changes.get("storage", {})
        account |= {key: value for key, value in changes.items() if key not in ("storage", "codeHash")}
    return {
        address: {key: value for key, value in account.items() if value not in ({}, 0, "0x")}
        for address, account in after.items()
        if account.keys() - {"storage"} and account != {"balance": "0x0", "storage": {}}
    }


def test_the_state_after_is_the_state_before_with_the_difference() -> None:
    compared = 0
    for work in works():
        evm = machine(work)
        before = accounts_of(evm.state)
        try:
            diff = evm.trace_(work.transaction, "prestateTracer", diffMode=True)
        except Rejected:
            continue
        assert accounts_of(evm.state) == before
        evm.transact_(work.transaction)
        assert changed(before, diff["pre"], diff["post"]) == accounts_of(evm.state)
        compared += 1
    assert compared > PROGRAMS // 2


def test_a_state_of_what_the_prestate_lists_runs_the_transaction_alike() -> None:
    """What is not listed is not looked at, but by an instruction that halts for want of gas.

    Accounts that exist though they are empty matter before EIP-161.
    """
    compared = 0
    for work in works():
        if work.fork < Fork.SPURIOUS_DRAGON:
            continue
        evm = machine(work)
        try:
            pre = evm.trace_(work.transaction, "prestateTracer")
        except Rejected:
            continue
        alone = Machine(work.fork, "reference", block=work.block)
        for address, account in pre.items():
            alone.set_balance(address, int(account["balance"], 16))
            alone.set_nonce(address, account.get("nonce", 0))
            alone.set_code(address, account.get("code", "0x"))
            for key, value in account.get("storage", {}).items():
                alone.set_storage(address, int(key, 16), int(value, 16))
        ours, theirs = alone.transact_(work.transaction), evm.transact_(work.transaction)
        assert (ours.status, ours.gas_used, ours.output) == (theirs.status, theirs.gas_used, theirs.output)
        assert list(ours.logs) == list(theirs.logs)
        compared += 1
    assert compared > PROGRAMS // 3


@pytest.mark.parametrize("tier", ["native", "auto"])
def test_tracers_say_the_same_on_every_tier(tier: str) -> None:
    for work in works():
        for tracer, config in (("callTracer", {"withLog": True}), ("4byteTracer", {}), ("prestateTracer", {})):
            said = []
            for each in ("reference", tier):
                try:
                    said.append(machine(work, each).trace_(work.transaction, tracer, **config))
                except Rejected as error:
                    said.append({"rejected": str(error)})
            assert said[0] == said[1]


def test_calls_logs_and_steps_agree_with_the_result() -> None:
    for work in works():
        evm = machine(work)
        try:
            calls = evm.trace_(work.transaction, "callTracer", withLog=True)
            steps = evm.trace_(work.transaction, None)
            result = evm.transact_(work.transaction)
        except Rejected:
            continue
        assert int(calls["gasUsed"], 16) == steps["gas"] == result.gas_used
        assert ("error" not in calls) == (not steps["failed"]) == result.ok
        logs = sorted(logs_in(calls), key=lambda log: int(log["index"], 16))
        assert [(log["address"], log["data"]) for log in logs] == [
            ("0x" + log.address.hex(), "0x" + log.data.hex()) for log in result.logs
        ]
        assert [int(log["index"], 16) for log in logs] == list(range(len(logs)))
        depth = max((step["depth"] for step in steps["structLogs"]), default=1)
        assert depth <= depth_of(calls)


def logs_in(frame: Json) -> Iterator[Json]:
    yield from frame.get("logs", ())
    for inner in frame.get("calls", ()):
        yield from logs_in(inner)


def depth_of(frame: Json) -> int:
    return 1 + max((depth_of(inner) for inner in frame.get("calls", ())), default=0)


def test_the_gas_of_an_access_list_is_that_of_the_transaction_with_it() -> None:
    compared = 0
    for work in works():
        if work.fork < Fork.BERLIN:
            continue
        evm, tx = machine(work), work.transaction
        try:
            made = create_access_list(evm, tx, evm.transact_)
            result = evm.transact_(replace(tx, access_list=to_access_list(made["accessList"])))
        except Rejected:  # the list costs more than there is gas
            continue
        assert hex(result.gas_used) == made["gasUsed"]
        assert result.ok == ("error" not in made)
        compared += 1
    assert compared > PROGRAMS // 8


def test_slots_that_the_outermost_call_changed_are_those_of_the_difference() -> None:
    for work in works():
        evm, tx = machine(work, "auto"), work.transaction
        try:
            diff = evm.trace_(tx, "prestateTracer", diffMode=True)
            with evm.record(storage=True) as recording:
                evm.transact_(tx)
        except Rejected:
            continue
        gone = diff["pre"].keys() - diff["post"].keys()
        changes = changes_of(recording.frames[0]).storage if recording.frames else {}
        ours = {
            ("0x" + address.hex(), f"0x{key:064x}"): f"0x{after:064x}"
            for address, slots in changes.items()
            for key, (_, after) in slots.items()
            if "0x" + address.hex() not in gone and after and evm.state.exists(address)
        }
        theirs = {
            (address, key): value
            for address, account in diff["post"].items()
            for key, value in account.get("storage", {}).items()
        }
        assert ours == theirs


def test_gas_by_stack_is_all_the_gas_of_the_code() -> None:
    for work in works():
        evm, tx = machine(work), work.transaction
        if tx.to is None:
            continue
        with sampled(evm, Sources()) as samples:
            result = evm.simulate(tx.to, tx.data, caller=tx.sender, gas=tx.gas_limit)
        assert samples.total == result.gas_used
