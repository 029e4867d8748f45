"""Transactions: what they cost before code runs, when they are rejected, and who pays and receives what in the end."""

from __future__ import annotations

from typing import Any

import pytest

from fusevm.chain.addresses import create_address
from fusevm.chain.environment import Block
from fusevm.chain.outcome import Status
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.result import Result
from fusevm.chain.state import Account, State
from fusevm.chain.transaction import (
    Authorization,
    Transaction,
    floor_gas,
    intrinsic_gas,
    intrinsic_gas_of,
)
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import fork_named, rules_of
from fusevm.evm.halts import HaltReason
from fusevm.reference.interpreter import execute
from programs import deployer
from test_signed import SHOWN_HERE

SENDER, TARGET, COINBASE = (bytes([n]) * 20 for n in (0x5E, 0x7A, 0xC0))
FUNDS = 10**24
BLOB = b"\x01" + bytes(31)
BLOB_GAS = 131_072


def world(program: str = "", fork: str = "osaka", storage: dict[int, int] | None = None) -> State:
    """A rich sender, and a program at the target."""
    state = State()
    state.accounts[SENDER] = Account(balance=FUNDS)
    if program:
        state.accounts[TARGET] = Account(nonce=1, code=assemble(program, fork_named(fork)), storage=storage)
    return state


def transaction(**fields: Any) -> Transaction:
    return Transaction(**{"sender": SENDER, "to": TARGET, "gas_limit": 100_000, "gas_price": 10, **fields})


def send(state: State, fork: str = "osaka", block: Block | None = None, **fields: Any) -> Result:
    block = block or Block(coinbase=COINBASE)
    return process(transaction(**fields), state, block, fork_named(fork), execute)


def balances(state: State) -> tuple[int, int, int]:
    """What the sender has spent, and what the target and the coinbase have."""
    return FUNDS - state.account(SENDER).balance, state.account(TARGET).balance, state.account(COINBASE).balance


# -- cost before code -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fork", "data", "creates", "gas"),
    [
        ("frontier", "", False, 21_000),
        ("frontier", "000001", False, 21_000 + 2 * 4 + 68),
        ("frontier", "01", True, 21_000 + 68),  # creating was free
        ("homestead", "01", True, 53_000 + 68),  # EIP-2
        ("petersburg", "01", False, 21_000 + 68),
        ("istanbul", "000001", False, 21_000 + 2 * 4 + 16),  # EIP-2028
        ("paris", "01" * 33, True, 53_000 + 33 * 16),
        ("shanghai", "01" * 32, True, 53_000 + 32 * 16 + 2),  # EIP-3860: 2 a word
        ("shanghai", "01" * 33, True, 53_000 + 33 * 16 + 4),
        ("shanghai", "01" * 33, False, 21_000 + 33 * 16),
    ],
)
def test_intrinsic_gas(fork: str, data: str, creates: bool, gas: int) -> None:
    assert intrinsic_gas(rules_of(fork_named(fork)), bytes.fromhex(data), creates) == gas


def test_an_access_list_costs_2400_an_address_and_1900_a_slot() -> None:
    listed = ((TARGET, (1, 2)), (SENDER, ()), (TARGET, (1,)))  # EIP-2930: repetitions count
    assert intrinsic_gas_of(transaction(access_list=listed), rules_of(fork_named("berlin"))) == 21_000 + 7_200 + 5_700


def test_an_authorization_costs_25000() -> None:
    listed = (Authorization(1, TARGET, 0, 0, 1, 1),) * 2
    assert intrinsic_gas_of(transaction(authorizations=listed), rules_of(fork_named("prague"))) == 71_000


@pytest.mark.parametrize(
    ("fork", "data", "gas"),
    [("cancun", "01" * 100, 0), ("prague", "", 21_000), ("prague", "01" * 100, 25_000), ("prague", "00" * 100, 22_000)],
)
def test_the_calldata_floor_is_10_a_zero_byte_and_40_another(fork: str, data: str, gas: int) -> None:
    assert floor_gas(rules_of(fork_named(fork)), bytes.fromhex(data)) == gas  # EIP-7623


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, 0),
        ({"access_list": ()}, 1),
        ({"max_fee": 1}, 2),
        ({"max_fee": 1, "blob_hashes": ()}, 3),
        ({"max_fee": 1, "authorizations": ()}, 4),
    ],
)
def test_the_type_follows_from_the_fields(fields: dict[str, Any], kind: int) -> None:
    assert transaction(**fields).type == kind


@pytest.mark.parametrize(
    ("fields", "price"),
    [
        ({"gas_price": 12}, 12),
        ({"max_fee": 20, "max_priority_fee": 3}, 10),  # base fee 7 and the tip
        ({"max_fee": 8, "max_priority_fee": 3}, 8),  # no more than the cap
        ({"max_fee": 20}, 7),
    ],
)
def test_the_price_of_gas_at_a_base_fee_of_7(fields: dict[str, Any], price: int) -> None:
    assert transaction(**fields).effective_gas_price(7) == price


@pytest.mark.parametrize(("excess", "fee"), [(0, 1), (2_314_057, 1), (2_314_058, 2), (10 * 2**20, 23)])
def test_the_blob_base_fee_grows_exponentially(excess: int, fee: int) -> None:
    assert Block(excess_blob_gas=excess).blob_base_fee(rules_of(fork_named("cancun"))) == fee


# -- rejection --------------------------------------------------------------------------------------------------------

R = RejectReason
FEES = {"gas_price": None, "max_fee": 10, "max_priority_fee": 0}
BLOBS = {**FEES, "blob_hashes": (BLOB,), "max_blob_fee": 1}
AUTHORIZED = {**FEES, "authorizations": (Authorization(1, TARGET, 0, 0, 1, 1),), "gas_limit": 100_000}

REJECTIONS: list[tuple[RejectReason, str, dict[str, Any], dict[str, Any], str]] = [
    # reason, fork, the transaction's fields, the block's fields, the message
    (R.TYPE_1_TX_PRE_FORK, "istanbul", {"access_list": ()}, {}, "access lists come with Berlin (at istanbul)"),
    (R.TYPE_2_TX_PRE_FORK, "berlin", FEES, {}, "fee-market transactions come with London (at berlin)"),
    (R.TYPE_3_TX_PRE_FORK, "shanghai", BLOBS, {}, "blob transactions come with Cancun (at shanghai)"),
    (R.TYPE_4_TX_PRE_FORK, "cancun", AUTHORIZED, {}, "set-code transactions come with Prague (at cancun)"),
    (R.NONCE_MISMATCH_TOO_LOW, "osaka", {"nonce": 4}, {}, "nonce too low (4, the account's is 5)"),
    (R.NONCE_MISMATCH_TOO_HIGH, "osaka", {"nonce": 6}, {}, "nonce too high (6, the account's is 5)"),
    (R.NONCE_IS_MAX, "osaka", {"sender": b"\x99" * 20}, {}, "nonce at its maximum"),
    (R.SENDER_NOT_EOA, "osaka", {"sender": b"\x88" * 20}, {}, f"the sender has code (0x{'88' * 20})"),
    (R.INSUFFICIENT_ACCOUNT_FUNDS, "osaka", {"value": FUNDS - 999_999}, {},
     f"the sender cannot pay ({FUNDS} of {FUNDS + 1} wei)"),
    (R.INSUFFICIENT_ACCOUNT_FUNDS, "cancun", {**BLOBS, "max_blob_fee": FUNDS}, {},
     f"the sender cannot pay ({FUNDS} of {10 * 100_000 + BLOB_GAS * FUNDS} wei)"),
    (R.INTRINSIC_GAS_TOO_LOW, "osaka", {"gas_limit": 20_999}, {},
     "gas limit below the intrinsic cost (20999 of 21000)"),
    (R.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST, "prague", {"gas_limit": 24_999, "data": b"\1" * 100}, {},
     "gas limit below the calldata floor (24999 of 25000)"),
    (R.GAS_ALLOWANCE_EXCEEDED, "osaka", {}, {"gas_limit": 99_999},
     "gas limit over what the block has left (100000 of 99999)"),
    (R.GAS_LIMIT_EXCEEDS_MAXIMUM, "osaka", {"gas_limit": 2**24 + 1}, {},
     "gas limit over the cap of a transaction (16777217 of 16777216)"),
    (R.GASLIMIT_PRICE_PRODUCT_OVERFLOW, "osaka", {"gas_price": 2**256 // 100_000 + 1}, {},
     "gas limit times price overflows"),
    (R.INITCODE_SIZE_EXCEEDED, "shanghai", {"to": None, "data": bytes(49_153), "gas_limit": 1_000_000}, {},
     "init code too large (49153 of 49152 bytes)"),
    (R.INSUFFICIENT_MAX_FEE_PER_GAS, "london", {"gas_price": 6}, {"base_fee": 7},
     "fee below the base fee (6 is under 7)"),
    (R.INSUFFICIENT_MAX_FEE_PER_GAS, "london", {**FEES, "max_fee": 6}, {"base_fee": 7},
     "fee below the base fee (6 is under 7)"),
    (R.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS, "london", {**FEES, "max_priority_fee": 11}, {},
     "priority fee over the maximum fee"),
    (R.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS, "cancun", BLOBS, {"excess_blob_gas": 2_314_058},
     "blob fee below the blob base fee (1 is under 2)"),
    (R.TYPE_3_TX_ZERO_BLOBS, "cancun", {**BLOBS, "blob_hashes": ()}, {}, "a blob transaction without blobs"),
    (R.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED, "cancun", {**BLOBS, "blob_hashes": (BLOB,) * 7}, {},
     "more blobs than the block has room for (7 of 6)"),
    (R.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED, "prague", {**BLOBS, "blob_hashes": (BLOB,) * 8}, {"blob_max": 7},
     "more blobs than the block has room for (8 of 7)"),
    (R.TYPE_3_TX_BLOB_COUNT_EXCEEDED, "osaka", {**BLOBS, "blob_hashes": (BLOB,) * 7}, {},
     "too many blobs (7 of at most 6)"),
    (R.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH, "cancun", {**BLOBS, "blob_hashes": (BLOB, bytes(32))}, {},
     "a blob hash of unknown version"),
    (R.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH, "cancun", {**BLOBS, "blob_hashes": (b"\x01",)}, {},
     "a blob hash of unknown version"),
    (R.TYPE_3_TX_CONTRACT_CREATION, "cancun", {**BLOBS, "to": None}, {}, "a blob transaction cannot create"),
    (R.TYPE_4_EMPTY_AUTHORIZATION_LIST, "prague", {**AUTHORIZED, "authorizations": ()}, {}, "no authorizations"),
    (R.TYPE_4_TX_CONTRACT_CREATION, "prague", {**AUTHORIZED, "to": None}, {}, "a set-code transaction cannot create"),
]  # fmt: skip


def test_every_reason_for_rejection_is_shown_here_or_with_the_encodings() -> None:
    assert {row[0] for row in REJECTIONS} | SHOWN_HERE == set(RejectReason)


@pytest.mark.parametrize(("reason", "fork", "fields", "block", "message"), REJECTIONS, ids=lambda each: str(each)[:40])
def test_a_rejected_transaction_says_why_and_changes_nothing(
    reason: RejectReason, fork: str, fields: dict[str, Any], block: dict[str, Any], message: str
) -> None:
    state = world("PUSH1 1 PUSH1 1 SSTORE")
    state.accounts[SENDER].nonce = 5
    state.accounts[b"\x99" * 20] = Account(nonce=2**64 - 1, balance=FUNDS)
    state.accounts[b"\x88" * 20] = Account(balance=FUNDS, code=b"\0")
    root = state.root()
    with pytest.raises(Rejected) as caught:
        send(state, fork, Block(coinbase=COINBASE, **block), **fields)
    assert caught.value.reason is reason
    assert str(caught.value) == f"transaction rejected: {message}"
    assert state.root() == root


@pytest.mark.parametrize(
    ("fork", "fields", "block"),
    [
        ("osaka", {"gas_limit": 21_000}, {}),
        ("osaka", {"gas_limit": 2**24}, {}),
        ("prague", {"gas_limit": 2**24 + 1}, {}),
        ("prague", {"gas_limit": 25_000, "data": b"\1" * 100}, {}),
        ("osaka", {}, {"gas_limit": 100_000}),
        ("shanghai", {"to": None, "data": bytes(49_152), "gas_limit": 1_000_000}, {}),
        ("paris", {"to": None, "data": bytes(49_153), "gas_limit": 1_000_000}, {}),
        ("london", {"gas_price": 7}, {"base_fee": 7}),
        ("berlin", {"gas_price": 0}, {"base_fee": 7}),  # nobody asked for a base fee yet
        ("london", {**FEES, "max_priority_fee": 10}, {}),
        ("osaka", {"value": FUNDS - 1_000_000}, {}),
        ("osaka", {"nonce": 0}, {}),
        ("osaka", {**BLOBS, "blob_hashes": (BLOB,) * 6}, {}),
        ("prague", {**BLOBS, "blob_hashes": (BLOB,) * 9}, {}),
    ],
    ids=lambda each: str(each)[:40],
)
def test_at_the_limit_it_is_accepted(fork: str, fields: dict[str, Any], block: dict[str, Any]) -> None:
    assert send(world(), fork, Block(coinbase=COINBASE, **block), **fields).status is Status.SUCCESS


# -- fees and refunds -------------------------------------------------------------------------------------------------


def test_a_plain_transfer() -> None:
    state = world()
    receipt = send(state, value=5)
    assert receipt.gas_used == 21_000
    assert balances(state) == (210_005, 5, 210_000)
    assert state.account(SENDER).nonce == 1


def test_the_base_fee_is_burned_and_the_tip_is_the_coinbases() -> None:
    state = world()
    send(state, block=Block(coinbase=COINBASE, base_fee=7), gas_price=None, max_fee=20, max_priority_fee=3)
    assert balances(state) == (21_000 * 10, 0, 21_000 * 3)


def test_before_london_the_whole_price_is_the_coinbases() -> None:
    state = world()
    send(state, "berlin", Block(coinbase=COINBASE, base_fee=7))
    assert balances(state) == (210_000, 0, 210_000)


# PUSH1 0 PUSH1 0 SSTORE clears a slot: 21,000 + 6 + 5,000 is used; what comes back is capped at a half, later a fifth.
@pytest.mark.parametrize(
    ("fork", "refunded"),
    [("frontier", 13_003), ("istanbul", 13_003), ("berlin", 13_003), ("london", 4_800), ("osaka", 4_800)],
)
def test_clearing_a_slot_refunds(fork: str, refunded: int) -> None:
    state = world("PUSH1 0 PUSH1 0 SSTORE", fork, {0: 1})
    receipt = send(state, fork)
    assert (receipt.gas_used, receipt.gas_refunded) == (26_006 - refunded, refunded)
    assert balances(state)[0] == 10 * (26_006 - refunded)


def test_two_clearings_meet_the_cap_of_a_fifth() -> None:
    receipt = send(world("PUSH1 0 PUSH1 0 SSTORE PUSH1 0 PUSH1 1 SSTORE", storage={0: 1, 1: 1}))
    assert receipt.gas_refunded == (21_000 + 2 * 5_006) // 5  # and not 9,600


@pytest.mark.parametrize(("fork", "gas"), [("cancun", 22_600), ("prague", 25_000)])
def test_much_data_pays_the_floor(fork: str, gas: int) -> None:
    assert send(world(), fork, data=b"\1" * 100).gas_used == gas


def test_execution_over_the_floor_pays_for_execution_alone() -> None:
    receipt = send(world("PUSH1 1 PUSH1 0 SSTORE"), data=b"\1" * 100)
    assert receipt.gas_used == 22_600 + 6 + 22_100


def test_a_refund_does_not_reach_below_the_floor() -> None:
    receipt = send(world("PUSH1 0 PUSH1 0 SSTORE", storage={0: 1}), data=b"\1" * 100)
    assert receipt.gas_used == 25_000  # 22,600 + 5,006 - 4,800 would be less


# -- how it ends ------------------------------------------------------------------------------------------------------


def test_a_revert_costs_what_it_used_and_the_value_goes_back() -> None:
    state = world("PUSH1 1 PUSH1 0 SSTORE PUSH1 0 PUSH1 0 REVERT")
    receipt = send(state, value=5)
    assert receipt.status is Status.REVERT
    assert receipt.gas_used == 21_000 + 6 + 22_100 + 6
    assert balances(state) == (10 * receipt.gas_used, 0, 10 * receipt.gas_used)
    assert state.storage(TARGET, 0) == 0
    assert state.account(SENDER).nonce == 1


def test_an_exceptional_halt_costs_everything_and_logs_nothing() -> None:
    state = world("PUSH1 0 PUSH1 0 LOG0 INVALID")
    receipt = send(state, value=5)
    assert receipt.status is Status.HALT
    assert (receipt.gas_used, receipt.gas_refunded, list(receipt.logs)) == (100_000, 0, [])
    assert balances(state) == (1_000_000, 0, 1_000_000)


def test_a_halt_refunds_nothing_though_a_slot_was_cleared() -> None:
    receipt = send(world("PUSH1 0 PUSH1 0 SSTORE INVALID", storage={0: 1}))
    assert receipt.gas_refunded == 0


def test_a_creation_leaves_code_at_the_address_of_sender_and_nonce() -> None:
    state, runtime = world(), assemble("PUSH1 1 STOP")
    receipt = send(state, to=None, data=deployer(runtime), value=3)
    created = create_address(SENDER, 0)
    assert receipt.address == created
    account = state.account(created)
    assert (account.nonce, account.balance, account.code) == (1, 3, runtime)


@pytest.mark.parametrize(("fork", "nonce"), [("tangerine-whistle", 0), ("spurious-dragon", 1)])
def test_since_eip_161_contracts_begin_at_nonce_one(fork: str, nonce: int) -> None:
    state = world()
    receipt = send(state, fork, to=None, data=deployer(b"\0"))
    assert state.account(receipt.address or b"").nonce == nonce


@pytest.mark.parametrize("there", [Account(nonce=1), Account(code=b"\0"), Account(storage={1: 1})])
def test_a_creation_on_a_taken_address_burns_all_gas_and_keeps_the_value(there: Account) -> None:
    state = world()
    state.accounts[create_address(SENDER, 0)] = there
    receipt = send(state, to=None, data=deployer(b"\0"), value=3)
    failure = receipt.failure
    assert failure is not None
    assert failure.reason is HaltReason.ADDRESS_COLLISION
    assert receipt.gas_used == 100_000
    assert balances(state)[0] == 1_000_000
    assert state.account(SENDER).nonce == 1


@pytest.mark.parametrize(("fork", "there"), [("tangerine-whistle", True), ("spurious-dragon", False)])
def test_since_eip_161_touched_empty_accounts_are_cleared(fork: str, there: bool) -> None:
    state = world()
    send(state, fork, gas_price=0)
    assert state.exists(TARGET) is there
    assert state.exists(COINBASE) is there


def test_the_coinbase_may_be_the_sender() -> None:
    state = world()
    send(state, block=Block(coinbase=SENDER, base_fee=4))
    assert balances(state)[0] == 21_000 * 4  # only what was burned


# -- access lists and warmth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "gas"),
    [
        (None, 21_000 + 3 + 2_100),
        (((TARGET, (7,)),), 21_000 + 2_400 + 1_900 + 3 + 100),
        (((TARGET, (8,)),), 21_000 + 2_400 + 1_900 + 3 + 2_100),
        (((SENDER, (7,)),), 21_000 + 2_400 + 1_900 + 3 + 2_100),
    ],
    ids=["none", "this slot", "another slot", "another account's slot"],
)
def test_a_listed_slot_is_warm(listed: Any, gas: int) -> None:
    assert send(world("PUSH1 7 SLOAD"), access_list=listed).gas_used == gas


@pytest.mark.parametrize(
    ("fork", "who", "price"),
    [
        ("berlin", "ORIGIN", 100),
        ("berlin", "ADDRESS", 100),
        ("berlin", "PUSH1 9", 100),  # a precompile
        ("berlin", "PUSH1 10", 2_600),  # not one yet
        ("cancun", "PUSH1 10", 100),
        ("paris", "COINBASE", 2_600),
        ("shanghai", "COINBASE", 100),  # EIP-3651
        ("osaka", "PUSH2 0x100", 100),
    ],
)
def test_what_is_warm_from_the_start(fork: str, who: str, price: int) -> None:
    push = 3 if "PUSH" in who else 2
    assert send(world(f"{who} BALANCE", fork), fork).gas_used == 21_000 + push + price


# -- blobs ------------------------------------------------------------------------------------------------------------


def test_blob_gas_is_burned_at_the_blob_base_fee_not_at_the_most_offered() -> None:
    state = world()
    block = Block(coinbase=COINBASE, excess_blob_gas=2_314_058)
    send(state, "cancun", block, **{**BLOBS, "blob_hashes": (BLOB, BLOB), "max_blob_fee": 50})
    assert balances(state)[0] == 2 * BLOB_GAS * 2  # the base fee is zero, and no tip was offered


def test_code_sees_blob_hashes_and_the_blob_base_fee() -> None:
    program = "PUSH1 0 BLOBHASH PUSH1 0 SSTORE PUSH1 1 BLOBHASH PUSH1 1 SSTORE BLOBBASEFEE PUSH1 2 SSTORE"
    state = world(program)
    send(state, "cancun", Block(coinbase=COINBASE, excess_blob_gas=10 * 2**20), **{**BLOBS, "max_blob_fee": 23})
    assert state.account(TARGET).storage == {0: int.from_bytes(BLOB, "big"), 2: 23}


def test_a_blob_schedule_of_the_block_wins_over_the_forks() -> None:
    block = Block(coinbase=COINBASE, blob_max=1)
    with pytest.raises(Rejected, match=r"2 of 1\)"):
        send(world(), "osaka", block, **{**BLOBS, "blob_hashes": (BLOB, BLOB)})
