"""Edges of the library's front door: the last nonce, what a snapshot restores, and blob fees beyond a word."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusevm import EVM, Block, EngineLimit, HaltReason, Hooks, Rejected, RejectReason, Status
from fusevm.chain.environment import _fake_exponential
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork, rules_of
from programs import CALLER, HERE, OTHER, deployer

TIERS = ("reference", "native", "auto")
MAX_NONCE = (1 << 64) - 1
MAX_WORD = (1 << 256) - 1
each_tier = pytest.mark.parametrize("tier", TIERS)


def asking(opcode: str, tier: str, block: Block | None = None) -> EVM:
    evm = EVM("osaka", tier, block=block)
    evm.set_code(HERE, assemble(f"{opcode} PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"))
    return evm


def answer(evm: EVM) -> int:
    return int.from_bytes(evm.call(HERE).check().output, "big")


# -- the last nonce (EIP-2681) ----------------------------------------------------------------------------------------


@each_tier
@pytest.mark.parametrize("salt", [None, 7])
def test_a_caller_at_the_last_nonce_deploys_nothing_and_loses_nothing(tier: str, salt: int | None) -> None:
    evm = EVM(tier=tier)
    evm.set_nonce(CALLER, MAX_NONCE)
    evm.set_balance(CALLER, 10)
    root = evm.state_root
    result = evm.deploy(deployer(b"\0"), caller=CALLER, salt=salt, value=3)
    assert (result.status, result.address, result.gas_used) == (Status.HALT, None, 0)
    assert result.failure is not None
    assert result.failure.reason is HaltReason.NONCE_OVERFLOW
    assert result.error == f"halted: nonce overflow at pc 0 (0x{CALLER.hex()} is at 2^64 - 1)"
    assert evm.state_root == root
    assert evm.simulate(None, deployer(b"\0"), caller=CALLER) == evm.deploy(deployer(b"\0"), caller=CALLER)
    with pytest.raises(Rejected) as rejected:
        evm.transact(CALLER, HERE)
    assert rejected.value.reason is RejectReason.NONCE_IS_MAX


@each_tier
def test_the_last_but_one_nonce_can_still_be_used(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_nonce(CALLER, MAX_NONCE - 1)
    assert evm.deploy(deployer(b"\0"), caller=CALLER).ok
    assert evm.get_nonce(CALLER) == MAX_NONCE


# -- more ether than a word holds -------------------------------------------------------------------------------------


@each_tier
def test_a_balance_over_a_word_ends_the_call_and_nothing_has_happened(tier: str) -> None:
    evm = EVM(tier=tier, block=Block(coinbase=OTHER))
    evm.set_balance(CALLER, 10**20)
    evm.set_balance(OTHER, MAX_WORD)
    send = f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 1 PUSH20 0x{OTHER.hex()} GAS CALL"
    root = None
    for program in (send, f"PUSH20 0x{OTHER.hex()} SELFDESTRUCT"):
        evm.set_code(HERE, assemble(program))
        evm.set_balance(HERE, 5)
        root = evm.state_root
        with pytest.raises(EngineLimit, match="a balance of more than 256 bits"):
            evm.call(HERE)
        assert evm.state_root == root
    for to, value, price in ((CALLER, 0, 1), (OTHER, 1, 0)):
        with pytest.raises(EngineLimit, match="a balance of more than 256 bits"):
            evm.transact(CALLER, to, gas=100_000, value=value, gas_price=price)
        assert evm.state_root == root
    assert evm.call(CALLER).ok


# -- what a snapshot restores -----------------------------------------------------------------------------------------


@each_tier
def test_a_snapshot_restores_the_fields_of_the_block(tier: str) -> None:
    evm = asking("NUMBER", tier, Block(number=5, hashes={4: b"\4" * 32}))
    block = evm.block
    with evm.snapshot():
        block.number, block.coinbase = 6, OTHER
        block.hashes[5] = b"\5" * 32  # type: ignore[index]
        assert answer(evm) == 6
    assert evm.block is block
    assert block == Block(number=5, hashes={4: b"\4" * 32})
    assert answer(evm) == 5


@each_tier
def test_a_snapshot_restores_a_block_and_a_state_that_were_assigned(tier: str) -> None:
    evm = asking("NUMBER", tier, Block(number=5))
    block, state = evm.block, evm.state
    with evm.snapshot():
        evm.block = Block(number=6)
        block.number = 7
        assert answer(evm) == 6
        evm.state = type(state)()
    assert evm.block is block
    assert evm.state is state
    assert answer(evm) == 5


@each_tier
def test_snapshots_nest(tier: str) -> None:
    evm = asking("NUMBER", tier, Block(number=5))
    with evm.snapshot():
        evm.block.number = 6
        with pytest.raises(ZeroDivisionError), evm.snapshot():  # noqa: PT012
            evm.block.number = 7
            raise ZeroDivisionError
        assert answer(evm) == 6
    assert answer(evm) == 5


def test_a_block_that_was_not_touched_is_not_told_to_the_engine_again() -> None:
    evm = asking("NUMBER", "native")
    version = evm.block.version
    with evm.snapshot():
        answer(evm)
    assert evm.block.version == version


def test_a_snapshot_leaves_hooks_as_they_were_set() -> None:
    evm, hooks = EVM(tier="reference"), Hooks()
    with evm.snapshot():
        evm.hooks = hooks
    assert evm.hooks is hooks


# -- blob fees --------------------------------------------------------------------------------------------------------


def exact(factor: int, numerator: int, denominator: int) -> int:
    """EIP-4844's own formula, without a bound."""
    total, step, i = 0, factor * denominator, 1
    while step:
        total += step
        step = step * numerator // (denominator * i)
        i += 1
    return total // denominator


@given(st.integers(0, 200_000), st.integers(1, 1_000))
def test_a_blob_fee_is_the_exact_one_or_the_largest_word(numerator: int, denominator: int) -> None:
    numerator = min(numerator, 400 * denominator)  # the exact sum takes as many terms
    assert _fake_exponential(1, numerator, denominator) == min(exact(1, numerator, denominator), MAX_WORD)


@given(st.integers(0, MAX_WORD), st.integers(1, MAX_WORD))
def test_a_blob_fee_takes_few_terms_whatever_the_block(excess: int, fraction: int) -> None:
    terms = 0

    class Counted(int):
        def __mul__(self, other: int) -> int:
            nonlocal terms
            terms += 1
            return int(self) * other

        __rmul__ = __mul__

    assert 0 < _fake_exponential(1, Counted(excess), fraction) <= MAX_WORD
    assert terms < 1_200


@each_tier
@pytest.mark.parametrize("excess", [(1 << 64) - 1, MAX_WORD, 10**9])
def test_a_call_in_a_block_of_any_excess_runs_at_once(tier: str, excess: int) -> None:
    evm = asking("BLOBBASEFEE", tier, Block(excess_blob_gas=excess))
    evm.set_code(OTHER, b"\0")
    started = time.monotonic()
    assert evm.call(OTHER).ok
    assert answer(evm) == MAX_WORD
    assert time.monotonic() - started < 20  # it took for ever


@each_tier
def test_just_below_the_bound_the_fee_is_exact(tier: str) -> None:
    fraction = rules_of(Fork.OSAKA).blob_base_fee_fraction
    excess = fraction * 177
    assert exact(1, excess, fraction) < MAX_WORD
    assert answer(asking("BLOBBASEFEE", tier, Block(excess_blob_gas=excess))) == exact(1, excess, fraction)


@each_tier
@pytest.mark.parametrize(
    ("fee", "reason"),
    [
        (MAX_WORD, RejectReason.INSUFFICIENT_ACCOUNT_FUNDS),
        (MAX_WORD - 1, RejectReason.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS),
    ],
)
def test_nobody_can_pay_a_fee_beyond_a_word(tier: str, fee: int, reason: Any) -> None:
    evm = EVM(tier=tier, block=Block(excess_blob_gas=(1 << 64) - 1))
    evm.set_balance(CALLER, MAX_WORD)
    with pytest.raises(Rejected) as rejected:
        evm.transact(CALLER, HERE, blob_hashes=[b"\1" + bytes(31)], max_blob_fee=fee)
    assert rejected.value.reason is reason
