"""Switches that skip checks: what could not be sent can be simulated, alike on every tier."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm import EVM, BadValue, Block, Checks, Rejected, RejectReason, Result
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble

A, B, C, D = b"\xa1" * 20, b"\xb0" * 20, b"\xc0" * 20, b"\xd0" * 20
TIERS = ("reference", "native", "native-unfused", "auto", "lockstep")
R = RejectReason
# what the init code in the call data creates, by CREATE: its address is returned
MAKES = assemble(
    "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 PUSH0 CREATE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
)


def creating(size: int) -> bytes:
    """Init code of a contract of so many zero bytes."""
    return assemble(f"PUSH4 {size:#010x} PUSH0 RETURN")


def machine(tier: str = "auto", block: Block | None = None, **off: Any) -> EVM:
    evm = EVM(tier=tier, block=block, checks=Checks(**off))
    evm.set_code(C, MAKES)
    return evm


def refused(evm: EVM, *arguments: Any, **fields: Any) -> RejectReason:
    with pytest.raises(Rejected) as raised:
        evm.transact(*arguments, **fields)
    return raised.value.reason  # type: ignore[return-value]


def test_without_a_balance_what_is_missing_is_given_first() -> None:
    assert refused(machine(), A, B, value=5) is R.INSUFFICIENT_ACCOUNT_FUNDS
    evm = machine(balance=False)
    assert evm.transact(A, B, value=5, gas=21_000, gas_price=3).ok
    assert (evm.get_balance(A), evm.get_balance(B)) == (0, 5)


def test_a_sender_that_can_pay_pays_as_usual() -> None:
    evm = machine(balance=False)
    evm.set_balance(A, 100_000)
    evm.transact(A, B, value=5, gas=30_000, gas_price=1)
    assert evm.get_balance(A) == 100_000 - 5 - 21_000


@pytest.mark.parametrize("tier", TIERS)
def test_a_call_with_value_needs_no_balance(tier: str) -> None:
    with pytest.raises(BadValue, match="value: caller"):
        machine(tier).call(B, value=7, caller=A)
    evm = machine(tier, balance=False)
    evm.set_balance(A, 3)
    assert evm.call(B, value=7, caller=A).ok
    assert (evm.get_balance(A), evm.get_balance(B)) == (0, 7)


@pytest.mark.parametrize("tier", TIERS)
def test_a_call_that_fails_gives_back_what_it_was_lent(tier: str) -> None:
    evm = machine(tier, balance=False)
    evm.set_code(B, assemble("PUSH0 PUSH0 REVERT"))
    evm.set_balance(A, 3)
    assert not evm.call(B, value=7, caller=A).ok
    assert (evm.get_balance(A), evm.get_balance(B)) == (3, 0)


def test_without_a_nonce_check_any_nonce_will_do_and_the_sender_s_is_counted() -> None:
    assert refused(machine(), A, B, nonce=7) is R.NONCE_MISMATCH_TOO_HIGH
    evm = machine(nonce=False)
    evm.set_nonce(A, 3)
    assert evm.transact(A, B, nonce=7).ok
    assert evm.get_nonce(A) == 4


def test_without_the_base_fee_a_cheap_transaction_pays_its_price_and_no_negative_tip() -> None:
    block = Block(base_fee=10, coinbase=B)
    evm = machine(block=block)
    evm.set_balance(A, 10**9)
    assert refused(evm, A, C, gas=30_000, gas_price=2) is R.INSUFFICIENT_MAX_FEE_PER_GAS
    evm.checks = Checks(base_fee=False)
    for fees in ({"gas_price": 2}, {"max_fee": 2, "max_priority_fee": 1}):
        before = evm.get_balance(A)
        used = evm.transact(A, b"\xdd" * 20, gas=30_000, **fields(fees)).gas_used
        assert before - evm.get_balance(A) == 2 * used
    assert evm.get_balance(B) == 0


def fields(given: dict[str, int]) -> Any:
    return given


def test_without_the_gas_cap_neither_the_fork_nor_the_block_limits_gas() -> None:
    assert refused(machine(), A, B, gas=20_000_000) is R.GAS_LIMIT_EXCEEDS_MAXIMUM
    evm = machine(block=Block(gas_limit=1_000_000), gas_cap=False)
    assert evm.transact(A, B, gas=1 << 40).ok


def test_without_the_eoa_check_a_contract_can_send() -> None:
    assert refused(machine(), C, B) is R.SENDER_NOT_EOA
    assert machine(eoa=False).transact(C, B).ok


def test_without_the_chain_id_check_transactions_for_other_chains_are_taken() -> None:
    key = bytes(31) + b"\x01"
    signed = sign(Transaction(b"", B, gas_limit=21_000, nonce=0, max_fee=10), key, chain_id=1337)
    evm = machine()
    evm.set_balance(signed.sender, 10**18)
    with pytest.raises(Rejected) as caught:
        evm.send_raw(signed)
    assert caught.value.reason is R.INVALID_CHAINID
    evm.checks = Checks(chain_id=False)
    assert evm.send_raw(signed).ok


@pytest.mark.parametrize("tier", TIERS)
def test_without_the_code_size_check_contracts_may_be_large(tier: str) -> None:
    def results(evm: EVM) -> list[Result]:
        large = creating(30_000)
        return [evm.deploy(large), evm.transact(A, None, large), evm.call(C, large), evm.transact(A, C, large)]

    limited = results(machine(tier))
    assert [each.ok for each in limited[:2]] == [False, False]
    assert [int.from_bytes(each.output, "big") for each in limited[2:]] == [0, 0]
    free = results(machine(tier, code_size=False))
    assert all(each.ok for each in free)
    assert all(int.from_bytes(each.output, "big") for each in free[2:])
    assert results(machine("reference", code_size=False)) == free


@pytest.mark.parametrize("tier", TIERS)
def test_the_code_size_limit_can_be_set(tier: str) -> None:
    evm = machine(tier, max_code_size=100)
    assert evm.deploy(creating(100)).ok
    assert not evm.deploy(creating(101)).ok
    assert int.from_bytes(evm.call(C, creating(100)).output, "big")
    assert not int.from_bytes(evm.call(C, creating(101)).output, "big")
    assert evm.call(C, creating(100).ljust(200, b"\0")).ok
    assert not evm.call(C, creating(100).ljust(201, b"\0")).ok
    assert refused(evm, A, None, bytes(201)) is R.INITCODE_SIZE_EXCEEDED
    evm.checks = Checks()
    assert evm.deploy(creating(101)).ok


@pytest.mark.parametrize("tier", TIERS)
def test_machines_with_and_without_limits_do_not_mix(tier: str) -> None:
    """Tables that native code keeps from call to call are another machine's."""
    strict, free = machine(tier), machine(tier, code_size=False)
    large = creating(30_000)
    for _ in range(4):
        assert not int.from_bytes(strict.call(C, large).output, "big")
        assert int.from_bytes(free.call(C, large).output, "big")


@pytest.mark.parametrize("wrong", [{"balance": 1}, {"eoa": None}, {"max_code_size": -1}, {"max_code_size": "many"}])
def test_what_is_not_a_switch_is_refused(wrong: Any) -> None:
    with pytest.raises(BadValue, match=next(iter(wrong))):
        Checks(**wrong)


def test_what_is_not_checks_is_refused() -> None:
    with pytest.raises(BadValue, match="checks: expected Checks, got dict"):
        EVM(checks={"balance": False})  # type: ignore[arg-type]


@pytest.mark.parametrize("tier", TIERS)
def test_a_message_of_an_open_transaction_needs_no_balance_either(tier: str) -> None:
    evm = machine(tier, balance=False)
    evm.set_code(D, assemble("PUSH0 PUSH0 REVERT"))
    with evm.transaction(A) as tx:
        assert tx.call(B, value=7).ok
        assert not tx.call(D, value=9).ok
    assert (evm.get_balance(A), evm.get_balance(B), evm.get_balance(D)) == (0, 7, 0)
    strict = machine(tier)
    with strict.transaction(A) as tx, pytest.raises(BadValue, match="has 0 wei, not 7"):
        tx.call(B, value=7)
