"""`DevChain`: transactions that wait, the block they would be in, calls and estimates at any block, snapshots."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from fusevm import Chain
from fusevm.chain.outcome import Status
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.state import Account, State
from fusevm.chain.system import CONSOLIDATION_REQUESTS, HISTORY, WITHDRAWAL_REQUESTS
from fusevm.chain.transaction import Transaction
from fusevm.devchain import PENDING, DevChain, dev_genesis, dev_keys
from fusevm.evm.assembly import assemble
from fusevm.machine.estimate import EstimateFailed
from fusevm.values import BadValue

COUNTER, ANYONE = b"\xc0" * 20, b"\xaa" * 20
COUNT = assemble("PUSH1 1 PUSH1 0 SLOAD ADD PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1 NUMBER PUSH1 0 MSTORE "
                 "PUSH1 32 PUSH1 0 RETURN")  # fmt: skip
CLEAR = assemble("PUSH1 0 PUSH1 0 SSTORE")  # gives gas back, so that it needs more than it uses
PASS_ON = assemble("PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH20 0x" + "c0" * 20 + " GAS CALL "
                   "ISZERO PUSH1 45 JUMPI STOP JUMPDEST PUSH1 0 PUSH1 0 REVERT")  # fmt: skip
PRICE = 2 * 10**9


def dev_with(fork: str = "osaka", **code: bytes) -> DevChain:
    dev = DevChain()
    state = State()
    for place, runtime in enumerate(code.values() or [COUNT]):
        state.accounts[bytes([0xC0 + place]) * 20] = Account(nonce=1, code=runtime, storage={0: 5})
    return DevChain(dev_genesis(fork, dev.accounts, state=state))


def count(dev: DevChain, sender: int = 0, **fields: object) -> Transaction:
    return Transaction(
        dev.accounts[sender],
        COUNTER,
        **{"gas_limit": 100_000, "gas_price": PRICE, **fields},  # type: ignore[arg-type]
    )


def counted(dev: DevChain, which: int | str) -> int:
    with dev.at(which) as (state, _, _):
        return state.storage(COUNTER, 0)


@pytest.mark.parametrize("fork", ["london", "shanghai", "cancun", "prague", "osaka"])
def test_blocks_it_mines_are_valid_for_a_chain_that_checks_them(fork: str) -> None:
    dev = dev_with(fork)
    twin = Chain(dev.chain.genesis)
    for _ in range(3):
        dev.send(dev.sign(count(dev)))
        dev.send(dev.sign(count(dev, 1)))
        twin.import_block(dev.mine().encoded)
    assert twin.head.hash == dev.head.hash
    assert twin.state.storage(COUNTER, 0) == 11


def test_what_is_sent_is_pending_until_a_block_is_mined() -> None:
    dev = dev_with()
    sent = [dev.send(dev.sign(count(dev))) for _ in range(2)]
    assert (counted(dev, 0), counted(dev, PENDING)) == (5, 7)
    found = dev.find(sent[1])
    assert found is not None
    assert (found.pending, found.index, found.first_log, found.block.number) == (True, 1, 1, 1)
    block = dev.mine()
    found = dev.find(sent[1])
    assert found is not None
    assert (found.pending, found.block.hash, counted(dev, 1)) == (False, block.hash, 7)
    assert dev.find(bytes(32)) is None


def test_nonces_count_what_is_pending() -> None:
    dev = dev_with()
    dev.send(dev.sign(count(dev)))
    assert dev.next_nonce(dev.accounts[0]) == 1
    with pytest.raises(Rejected) as refused:
        dev.send(dev.sign(count(dev, nonce=0)))
    assert refused.value.reason is RejectReason.NONCE_MISMATCH_TOO_LOW
    with pytest.raises(Rejected) as refused:
        dev.send(dev.sign(count(dev, nonce=2)))
    assert refused.value.reason is RejectReason.NONCE_MISMATCH_TOO_HIGH


def test_a_snapshot_brings_back_the_head_and_what_was_pending() -> None:
    dev = dev_with()
    first = dev.send(dev.sign(count(dev)))
    kept = dev.snapshot()
    dev.mine()
    dev.send(dev.sign(count(dev)))
    dev.mine()
    dev.revert(kept)
    assert (dev.head.number, counted(dev, 0)) == (0, 5)
    found = dev.find(first)
    assert found is not None
    assert found.pending
    block = dev.mine()
    assert [tx.hash for tx in block.transactions] == [first]


def test_a_snapshot_brings_back_the_head_as_it_was_edited_and_what_was_set_of_the_next_block() -> None:
    dev = dev_with()
    with dev.chain.edited() as state:
        state.set_balance(ANYONE, 5)
    dev.next_timestamp = dev.head.header.timestamp + 100
    kept, wanted = dev.snapshot(), dev.pending_timestamp
    with dev.chain.edited() as state:
        state.set_balance(ANYONE, 6)
    dev.mine()
    dev.revert(kept)
    assert (dev.chain.state.account(ANYONE).balance, dev.pending_timestamp) == (5, wanted)
    assert dev.mine().header.timestamp == wanted


def test_a_call_sees_its_block_and_leaves_nothing() -> None:
    dev = dev_with()
    for _ in range(2):
        dev.send(dev.sign(count(dev)))
        dev.mine()
    free = count(dev, gas_price=0)
    for which, number in ((0, 0), (1, 1), (2, 2), (PENDING, 3)):
        assert int.from_bytes(dev.call(free, which).output, "big") == number
    assert [counted(dev, number) for number in (0, 1, 2)] == [5, 6, 7]


def test_a_call_may_be_from_anyone_but_must_be_paid_for() -> None:
    dev = dev_with()
    assert dev.call(Transaction(ANYONE, COUNTER, gas_price=0), 0).status is Status.SUCCESS
    assert dev.call(Transaction(COUNTER, COUNTER, gas_price=0), 0).status is Status.SUCCESS
    for fields in ({"value": 1, "gas_price": 0}, {"gas_price": PRICE}):
        with pytest.raises(Rejected) as refused:
            dev.call(Transaction(ANYONE, COUNTER, **fields), 0)  # type: ignore[arg-type]
        assert refused.value.reason is RejectReason.INSUFFICIENT_ACCOUNT_FUNDS


def succeeds(dev: DevChain, tx: Transaction) -> bool:
    try:
        return dev.call(tx, 0).status is Status.SUCCESS
    except Rejected:
        return False


@pytest.mark.parametrize("code", [COUNT, CLEAR, PASS_ON], ids=["counts", "clears", "passes all gas on"])
@pytest.mark.parametrize("data", [b"", b"\x01" * 2_000], ids=["short", "long data"])
def test_an_estimate_is_the_least_gas_that_will_do(code: bytes, data: bytes) -> None:
    dev = dev_with(first=COUNT, second=code)
    tx = Transaction(dev.accounts[0], b"\xc1" * 20, data, gas_price=0)
    limit = dev.estimate_gas(tx, 0)
    assert succeeds(dev, replace(tx, gas_limit=limit))
    assert not succeeds(dev, replace(tx, gas_limit=limit - 1))
    dev.send(dev.sign(replace(tx, gas_limit=limit, gas_price=PRICE)))
    dev.mine()
    assert dev.chain.receipts(1)[0].succeeded


def test_an_estimate_of_what_cannot_succeed_tells_why() -> None:
    dev = dev_with(first=assemble("PUSH1 0 PUSH1 0 REVERT"))
    with pytest.raises(EstimateFailed) as failed:
        dev.estimate_gas(count(dev, gas_price=0), 0)
    assert failed.value.result.status is Status.REVERT


def test_only_keys_it_has_can_sign() -> None:
    dev = dev_with()
    with pytest.raises(BadValue, match="no key for 0xaaaa"):
        dev.sign(Transaction(ANYONE))
    key = dev_keys(11)[-1]
    assert dev.add_key(key) in dev.accounts


def test_the_time_of_the_next_block_can_be_set_once() -> None:
    dev = dev_with()
    dev.next_timestamp = 1_000
    assert [dev.mine().header.timestamp for _ in range(2)] == [1_000, 1_001]


def test_system_contracts_that_are_known_do_the_same_as_their_code() -> None:
    """Roots and blocks are equal with and without running them, also with queues that are not empty."""
    quick, plain = (DevChain(clock=lambda last: last + 7) for _ in range(2))
    plain.chain.known_contracts = None
    sender, asks = quick.accounts[0], (WITHDRAWAL_REQUESTS, CONSOLIDATION_REQUESTS)
    for number in range(40):
        for dev in (quick, plain):
            dev.next_randao = bytes(32)
            if number in (5, 6, 20):
                target = asks[number % 2]
                size = 56 if target == WITHDRAWAL_REQUESTS else 96
                tx = Transaction(sender, target, bytes([number]) * size, 10**9, 1_000_000, gas_price=10**10)
                dev.send(dev.sign(tx))
            dev.mine()
        assert quick.head.hash == plain.head.hash
        assert quick.chain.requests(quick.head.hash) == plain.chain.requests(plain.head.hash)
    assert any(quick.chain.requests(number) for number in range(41))


def test_a_system_contract_of_other_code_runs() -> None:
    dev = DevChain()
    with dev.chain.edited() as state:
        state.set_code(HISTORY, bytes.fromhex("600160025500"))  # storage[2] = 1
    dev.mine()
    assert dict(dev.chain.state.account(HISTORY).storage) == {2: 1}


@pytest.mark.parametrize("seed", range(10))
def test_the_next_nonce_is_the_same_as_counted_anew(seed: int) -> None:
    """However what is pending changes: at its end, as a whole, one for another, with nonces that come and go."""
    rng, dev = random.Random(seed), DevChain()
    sender = dev.accounts[0]
    for _ in range(60):
        kind, pending = rng.randrange(7), dev.chain.pending
        if kind < 3:
            nonce = dev.next_nonce(sender) + rng.choice((0, 0, 1, 2))
            dev.chain.submit(dev.sign(Transaction(sender, ANYONE, nonce=nonce, gas_limit=21_000, gas_price=PRICE)))
        elif kind == 3:
            dev.chain.pending = [each for each in pending if rng.random() < 0.7]
        elif kind == 4:
            with dev.chain.edited() as state:
                state.set_nonce(sender, rng.randrange(6))
        elif kind == 5:
            del pending[rng.randrange(len(pending) + 1) :]
        elif pending:
            dev.mine()
        nonce, waiting = dev.chain.state.account(sender).nonce, {each.nonce for each in dev.chain.pending}
        while nonce in waiting:
            nonce += 1
        assert dev.next_nonce(sender) == nonce


def test_calls_on_the_head_see_it_as_it_is_whatever_calls_before_have_done_to_it() -> None:
    dev = dev_with()
    free, paid = (Transaction(dev.accounts[0], COUNTER, gas_limit=100_000, gas_price=price) for price in (0, PRICE))
    with dev.chain.edited() as state:
        state.set_code(COUNTER, assemble("BASEFEE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
    fee = dev.head.header.base_fee
    found = [int.from_bytes(dev.call(tx, dev.head.number).output, "big") for tx in (paid, free, paid, free)]
    assert found == [fee, 0, fee, 0]
    with dev.at(dev.head.number) as (_, block, _):
        block.number = 77
        with dev.at(dev.head.number) as (_, inner, _):
            assert inner.number == dev.head.number
    with dev.at(dev.head.number) as (_, block, _):
        assert block.number == dev.head.number


@pytest.mark.parametrize("seed", range(3))
def test_blocks_that_were_planned_ahead_are_those_another_chain_accepts(seed: int) -> None:
    """Whatever happens between plan and block: edits, other times, blocks gone back over."""
    rng = random.Random(seed)
    dev = DevChain()
    other = Chain(dev.chain.genesis)
    for _ in range(40):
        dev.plan_ahead()
        kind = rng.randrange(6)
        if kind == 0:
            dev.next_timestamp = dev.head.header.timestamp + rng.randrange(1, 10_000)
        elif kind == 1:
            with dev.at(rng.randrange(dev.head.number + 1)) as (state, _, _):
                state.set_storage(HISTORY, rng.randrange(50), 5)
                assert state.root()
        elif kind == 2 and dev.head.number > 3:
            dev.chain.set_head(dev.head.number - rng.randrange(1, 3))
        elif kind == 3:
            with dev.pending_block() as (block, _):
                assert block.number == dev.head.number + 1
        elif kind == 4:
            dev.coinbase, dev.gas_limit = rng.randbytes(20), 30_000_000 - rng.randrange(3)
        if rng.random() < 0.5:
            dev.plan_ahead()
        tx = Transaction(dev.accounts[0], rng.randbytes(20), value=1, gas_limit=21_000, gas_price=10**10)
        dev.send(dev.sign(tx))
        wanted = dev.head.hash, dev.pending_timestamp, dev.coinbase, dev.next_randao
        block = dev.mine()
        header = block.header
        assert (header.parent_hash, header.timestamp, header.coinbase, header.prev_randao) == wanted
        assert dev.gas_limit in (None, header.gas_limit)
        assert len(block.transactions) == 1
        assert other.import_block(block.encoded).hash == block.hash


def test_a_plan_does_not_outlive_the_chain_s_number() -> None:
    dev = DevChain()
    dev.plan_ahead()
    dev.chain.schedule = replace(dev.chain.schedule, chain_id=4321)
    dev.send(dev.sign(Transaction(dev.accounts[0], b"\x02" * 20, gas_limit=21_000, gas_price=10**10)))
    assert len(dev.mine().transactions) == 1


def test_a_plan_does_not_outlive_the_head() -> None:
    dev = DevChain()
    dev.mine()
    dev.next_timestamp = dev.head.header.timestamp + 100
    dev.plan_ahead()
    dev.chain.set_head(0)
    assert dev.mine().header.parent_hash == dev.chain.genesis.block.hash
