"""A machine is used by one thread at a time: all of its public members say so, and nothing that was written is lost."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from fusevm import EVM, Block, Checks, Fork, Hooks, State, TimeLimit, WrongThread
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.tracing.sources.contracts import Sources

HERE, ALICE = "0x" + "c0" * 20, "0x" + "a1" * 20
FOR_EVER = "5b5f56"  # JUMPDEST PUSH0 JUMP
TIERS = ("reference", "native", "auto")
ARTIFACT = {"abi": [], "bytecode": "0x60fe60005360016000f3"}
SIGNED = sign(Transaction(b"", bytes.fromhex("b0" * 20), gas_limit=21_000, nonce=0), bytes(31) + b"\1", chain_id=1)


def entered(manager: Any) -> None:
    with manager:
        pass


# What is tried while another thread's call runs, by the name of the member.
READS_OR_WRITES: dict[str, Callable[[EVM], Any]] = {
    "block": lambda evm: evm.block,
    "block=": lambda evm: setattr(evm, "block", Block()),
    "call": lambda evm: evm.call(HERE),
    "call_many": lambda evm: evm.call_many([b""], HERE),
    "checkpoint": lambda evm: evm.checkpoint(),
    "checks=": lambda evm: setattr(evm, "checks", Checks()),
    "commit": lambda evm: evm.commit(1),
    "console=": lambda evm: setattr(evm, "console", print),
    "copy": lambda evm: evm.copy(),
    "create_access_list": lambda evm: evm.create_access_list(HERE),
    "deploy": lambda evm: evm.deploy("00"),
    "deploy_contract": lambda evm: evm.deploy_contract(ARTIFACT),
    "dump_state": lambda evm: evm.dump_state(),
    "estimate_gas": lambda evm: evm.estimate_gas(HERE),
    "fork=": lambda evm: setattr(evm, "fork", "cancun"),
    "get_balance": lambda evm: evm.get_balance(HERE),
    "get_code": lambda evm: evm.get_code(HERE),
    "get_nonce": lambda evm: evm.get_nonce(HERE),
    "get_storage": lambda evm: evm.get_storage(HERE, 0),
    "hooks=": lambda evm: setattr(evm, "hooks", None),
    "load_state": lambda evm: evm.load_state({}),
    "memory_limit=": lambda evm: setattr(evm, "memory_limit", 1 << 20),
    "opcodes[]=": lambda evm: evm.opcodes.__setitem__(0x0C, lambda frame: None),
    "overridden": lambda evm: entered(evm.overridden({HERE: {"balance": 1}})),
    "precompiles[]=": lambda evm: evm.precompiles.__setitem__(0x1234, lambda data, gas: b""),
    "prefetch": lambda evm: evm.prefetch([(HERE, [0])]),
    "prefetch_call": lambda evm: evm.prefetch_call(HERE),
    "proof": lambda evm: evm.proof(HERE),
    "read_transaction": lambda evm: evm.read_transaction(ALICE),
    "record": lambda evm: entered(evm.record()),
    "revert": lambda evm: evm.revert(1),
    "send_raw": lambda evm: evm.send_raw(SIGNED),
    "session=": lambda evm: setattr(evm, "session", None),
    "set_balance": lambda evm: evm.set_balance(ALICE, 1),
    "set_code": lambda evm: evm.set_code(ALICE, "00"),
    "set_nonce": lambda evm: evm.set_nonce(ALICE, 1),
    "set_storage": lambda evm: evm.set_storage(ALICE, 1, 1),
    "simulate": lambda evm: evm.simulate(HERE),
    "simulate_many": lambda evm: evm.simulate_many([b""], HERE),
    "snapshot": lambda evm: entered(evm.snapshot()),
    "stack_trace": lambda evm: evm.stack_trace(HERE, sources=Sources()),
    "state": lambda evm: evm.state,
    "state=": lambda evm: setattr(evm, "state", State()),
    "state_root": lambda evm: evm.state_root,
    "tier=": lambda evm: setattr(evm, "tier", "reference"),
    "timeout=": lambda evm: setattr(evm, "timeout", 1.0),
    "trace_call": lambda evm: evm.trace_call(HERE),
    "trace_transaction": lambda evm: evm.trace_transaction(ALICE, HERE),
    "transact": lambda evm: evm.transact(ALICE, HERE),
    "transaction": lambda evm: entered(evm.transaction()),
    "pickle": pickle.dumps,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
}
# Settings are read, a machine is made, an address is given a name: the state has no part in it.
OTHERS = {
    *("checks", "console", "fork", "hooks", "memory_limit", "opcodes", "precompiles", "rules", "session", "tier"),
    *("timeout", "contract", "fork_from", "preset"),
}
NOT_MEMBERS = {"pickle", "copy.copy", "copy.deepcopy", "opcodes[]=", "precompiles[]="}


@contextmanager
def running(tier: str, **settings: Any) -> Iterator[EVM]:
    """A machine on which another thread's call runs until the end of the `with` block, or for a minute."""
    evm, stopped = EVM(tier=tier, timeout=60, **settings), threading.Event()
    evm.set_code(HERE, FOR_EVER)
    evm.precompiles[0x99] = lambda data, gas: bytes([stopped.wait(60)])
    thread = threading.Thread(target=lambda: evm.call(0x99), daemon=True)
    thread.start()
    while not evm._running:
        time.sleep(0.001)
    try:
        yield evm
    finally:
        stopped.set()
        thread.join()


def test_every_public_member_is_known_to_this_test() -> None:
    members = dict(inspect.getmembers(EVM))
    names = {name for name in members if not name.startswith("_")}
    assigned = {f"{name}=" for name in names if isinstance(members[name], property) and members[name].fset is not None}
    assert names | assigned == (set(READS_OR_WRITES) - NOT_MEMBERS) | OTHERS


@pytest.mark.parametrize("tier", TIERS)
def test_whatever_reads_or_writes_is_refused_while_another_threads_call_runs(tier: str) -> None:
    with running(tier) as evm:
        for name, use in READS_OR_WRITES.items():
            try:
                use(evm)
            except WrongThread:
                continue
            except Exception as error:
                pytest.fail(f"{name}: {type(error).__name__}: {error}")
            pytest.fail(f"{name} was accepted")
        assert evm.fork is Fork.OSAKA
    assert evm.get_balance(ALICE) == evm.get_nonce(ALICE) == evm.get_storage(ALICE, 1) == 0
    assert (list(evm.opcodes), list(evm.precompiles)) == ([], [(0x99).to_bytes(20, "big")])
    for name, use in READS_OR_WRITES.items():  # and then nothing is in the way of it
        with suppress(Exception):
            use(evm)
        assert not evm._running, name


def test_a_transaction_that_is_open_is_its_threads_alone() -> None:
    evm, seen = EVM(), []

    def use(tx: Any) -> None:
        for run in (lambda: evm.set_balance(ALICE, 1), lambda: tx.call(HERE)):
            try:
                run()
            except WrongThread:
                seen.append("refused")

    with evm.transaction() as tx:
        evm.set_balance(ALICE, 7)
        other = threading.Thread(target=use, args=(tx,))
        other.start()
        other.join()
        assert tx.call(HERE).ok
    assert seen == ["refused", "refused"]
    assert evm.get_balance(ALICE) == 7


def test_a_hook_may_read_and_write_what_its_own_call_sees() -> None:
    evm, seen = EVM(), []
    evm.hooks = Hooks(on_call=lambda message: (evm.set_balance(ALICE, 3), seen.append(evm.get_balance(ALICE))))
    assert evm.call(HERE).ok
    assert seen == [3]
    assert evm.get_balance(ALICE) == 3


@pytest.mark.parametrize("tier", TIERS)
def test_what_a_setter_accepted_is_never_lost(tier: str) -> None:
    """Calls end in TimeLimit, which undoes all that was done since they began."""
    evm, written, refused, end = EVM(tier=tier, timeout=0.002), 0, 0, threading.Event()
    evm.set_code(HERE, FOR_EVER)

    def run() -> None:
        while not end.is_set():
            with suppress(TimeLimit, WrongThread):
                evm.call(HERE, gas=10**12)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            evm.set_storage(ALICE, written, 1)
            written += 1
        except WrongThread:
            refused += 1
            time.sleep(0)
    end.set()
    thread.join()
    evm.timeout = None
    assert refused
    assert [key for key in range(written) if evm.get_storage(ALICE, key) != 1] == []
