"""Several messages in one transaction: warm slots, transient storage and the refund counter go on, on every tier."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from conftest import WHOLE
from fusevm import EVM, Hooks, Result, State, WrongThread
from fusevm.evm.assembly import assemble
from fusevm.machine.scope import OpenTransaction

A, B, C, D, N = b"\xa1" * 20, b"\xb0" * 20, b"\xc0" * 20, b"\xd0" * 20, b"\xee" * 20
TIERS = ("reference", "native", "native-unfused", "native-tiered", "auto", "lockstep", "regions")
COUNTS = assemble("PUSH0 TLOAD DUP1 PUSH1 1 ADD PUSH0 TSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
LOADS = assemble("PUSH1 1 SLOAD POP STOP")
LOOKS = assemble(f"PUSH20 0x{N.hex()} BALANCE POP STOP")


def machine(tier: str, **codes: bytes) -> EVM:
    evm = EVM(tier=tier)
    for name, code in codes.items():
        evm.set_code({"b": B, "c": C, "d": D}[name], code)
    evm.set_balance(A, 10**18)
    return evm


def number(result: Result) -> int:
    return int.from_bytes(result.output, "big")


@pytest.mark.parametrize("tier", TIERS)
def test_transient_storage_is_kept_and_cleared_at_the_end(tier: str) -> None:
    evm = machine(tier, c=COUNTS)
    for _ in range(2):
        with evm.transaction(A) as tx:
            assert [number(tx.call(C)) for _ in range(4)] == [0, 1, 2, 3]
    assert [number(evm.call(C)) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("tier", TIERS)
def test_slots_and_accounts_stay_warm(tier: str) -> None:
    evm = machine(tier, c=LOADS, d=LOOKS)
    with evm.transaction(A) as tx:
        assert [tx.call(C).gas_used for _ in range(3)] == [2105, 105, 105]
        assert [tx.call(D).gas_used for _ in range(3)] == [2605, 105, 105]
    assert [evm.call(C).gas_used for _ in range(2)] == [2105, 2105]


@pytest.mark.parametrize("tier", TIERS)
def test_what_a_reverted_message_warmed_is_cold_again(tier: str) -> None:
    fails = assemble("PUSH1 1 SLOAD PUSH0 TLOAD PUSH1 7 PUSH0 TSTORE PUSH0 PUSH0 REVERT")
    evm = machine(tier, c=fails)
    with evm.transaction(A) as tx:
        first = tx.call(C).gas_used
        assert tx.call(C).gas_used == first


@pytest.mark.parametrize("tier", TIERS)
def test_the_original_value_is_that_of_the_transaction_s_begin(tier: str) -> None:
    """EIP-2200: restoring a slot pays back what changing it cost, in a later message too."""
    evm = machine(tier, c=assemble("PUSH0 CALLDATALOAD PUSH0 SSTORE STOP"))
    evm.set_storage(C, 0, 5)
    with evm.transaction(A) as tx:
        results = [tx.call(C, value.to_bytes(32, "big")) for value in (0, 7, 5)]
    assert [each.gas_used for each in results] == [5007, 107, 107]
    assert [each.gas_refunded for each in results] == [4800, -4800, 2800]
    assert (tx.refund, tx.gas_used, tx.gas_refunded) == (2800, 5221, 1044)


@pytest.mark.parametrize("tier", TIERS)
def test_a_contract_created_in_the_transaction_can_be_destroyed_in_it(tier: str) -> None:
    """EIP-6780: and it is gone at the end, not before."""
    evm = machine(tier)
    dies = assemble(f"PUSH20 0x{B.hex()} SELFDESTRUCT")
    init = assemble(f"PUSH{len(dies)} 0x{dies.hex()} PUSH0 MSTORE PUSH1 {len(dies)} PUSH1 {32 - len(dies)} RETURN")
    with evm.transaction(A) as tx:
        made = tx.deploy(init, value=3).address
        assert made is not None
        assert tx.call(made).ok
        assert evm.get_code(made) == dies
    assert evm.get_code(made) == b""
    assert (evm.get_balance(B), evm.get_balance(made)) == (3, 0)


@pytest.mark.parametrize("tier", TIERS)
def test_an_error_inside_undoes_all_of_it(tier: str) -> None:
    evm = machine(tier, c=assemble("PUSH1 1 PUSH0 SSTORE STOP"))

    def fail() -> None:
        with evm.transaction(A) as tx:
            tx.call(C).check()
            tx.call(B, value=5).check()
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert (evm.get_storage(C, 0), evm.get_balance(B)) == (0, 0)
    assert evm.state.open_marks == 0
    assert evm.call(C).ok


@pytest.mark.parametrize("tier", TIERS)
def test_logs_of_each_message_and_of_all(tier: str) -> None:
    evm = machine(tier, c=assemble("CALLDATASIZE PUSH0 LOG0 STOP"))
    with evm.transaction(A) as tx:
        sizes = [[len(log.data) for log in tx.call(C, bytes(size)).logs] for size in (1, 2, 3)]
    assert sizes == [[1], [2], [3]]
    assert [len(log.data) for log in tx.logs] == [1, 2, 3]


def test_the_sender_is_the_origin_and_the_caller_unless_another_is_given() -> None:
    evm = machine("auto", c=assemble("ORIGIN PUSH0 MSTORE CALLER PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN"))
    with evm.transaction(A, gas_price=3) as tx:
        assert tx.call(C).output == bytes(12) + A + bytes(12) + A
        assert tx.call(C, caller=B).output == bytes(12) + A + bytes(12) + B


def test_an_access_list_is_warm_from_the_start() -> None:
    evm = machine("auto", c=LOADS)
    with evm.transaction(A, access_list=[(C, [1])]) as tx:
        assert tx.call(C).gas_used == 105


def test_nothing_else_runs_while_a_transaction_is_open() -> None:
    evm = machine("auto", c=COUNTS)
    with evm.transaction(A) as tx:
        for forbidden in (lambda: evm.call(C), lambda: evm.transact(A, C), lambda: evm.checkpoint()):
            with pytest.raises(WrongThread, match="by its own call"):
                forbidden()
        with pytest.raises(WrongThread), evm.transaction(A):
            pass
        assert number(tx.call(C)) == 0
        assert number(tx.call(C)) == 1
    with pytest.raises(RuntimeError, match="this transaction has ended"):
        tx.call(C)
    assert evm.call(C).ok


def test_a_hook_s_error_undoes_its_message_and_leaves_those_before() -> None:
    evm = machine("auto", c=assemble("PUSH0 SLOAD PUSH1 1 ADD PUSH0 SSTORE STOP"))

    def fail(message: Any) -> None:
        raise LookupError

    with evm.transaction(A) as tx:
        tx.call(C).check()
        evm.hooks = Hooks(on_call=fail)
        with pytest.raises(LookupError):
            tx.call(C)
        evm.hooks = None
        tx.call(C).check()
    assert evm.get_storage(C, 0) == 2


# -- random messages, against the reference tier, and against a contract that makes the same calls


def program(rng: Random) -> bytes:
    lines = []
    for _ in range(rng.randrange(3, 16)):
        kind, key, value = rng.randrange(9), rng.randrange(4), rng.randrange(3)
        other = rng.choice((B, C, D, N)).hex()
        lines.append(
            (
                f"PUSH1 {key} SLOAD POP",
                f"PUSH1 {value} PUSH1 {key} SSTORE",
                f"PUSH1 {value} PUSH1 {key} SSTORE",
                f"PUSH1 {key} TLOAD PUSH1 {key} SSTORE",
                f"PUSH1 {key} TLOAD PUSH1 1 ADD PUSH1 {value} TSTORE",
                f"PUSH20 0x{other} EXTCODESIZE POP",
                f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH1 {value} PUSH20 0x{other} PUSH2 0xffff CALL POP",
                f"PUSH1 {key} TLOAD PUSH0 MSTORE PUSH1 32 PUSH0 LOG0",
                "PUSH0 PUSH0 PUSH0 CREATE POP" if rng.randrange(2) else f"PUSH20 0x{other} BALANCE POP",
            )[kind]
        )
    return assemble(" ".join(lines)) + bytes.fromhex("5f5f" + rng.choice(("f3", "f3", "f3", "fd", "fe")))


def message(rng: Random, tx: OpenTransaction) -> Result:
    return tx.call(rng.choice((B, C, D)), value=rng.randrange(2), gas=rng.choice((9_000, 300_000)))


@pytest.mark.parametrize("tier", TIERS[1:])
def test_random_messages_agree_with_the_reference_tier(tier: str) -> None:
    for seed in range((50 if tier != "regions" else 10) // (1 if WHOLE else 3)):
        rng = Random(seed)
        codes = {name: program(rng) for name in "bcd"}
        evms = [machine(each, **codes) for each in (tier, "reference")]
        for evm in evms:
            for address in (B, C, D):
                evm.set_balance(address, 5)
        for _ in range(2):
            again = rng.getrandbits(64)
            results = []
            for evm in evms:
                chosen = Random(again)
                with evm.transaction(A) as tx:
                    results.append([message(chosen, tx) for _ in range(6)])
            assert results[0] == results[1], seed
        assert dict(seen(evms[0])) == dict(seen(evms[1])), seed


def seen(evm: EVM) -> Any:
    for address, account in evm.state.copy().items():
        yield address, (account.nonce, account.balance, account.code, dict(account.storage))


def test_the_state_cannot_be_replaced_while_a_transaction_is_open() -> None:
    evm = machine("auto", c=COUNTS)
    before = evm.state
    with evm.transaction(A) as tx:
        evm.state = State()
        with pytest.raises(RuntimeError, match="the state was replaced"):
            tx.call(C)
        evm.state = before
        assert number(tx.call(C)) == 0
