"""The state and its journal: whatever is done after a mark, reverting to the mark gives back exactly what was there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm.chain.state import DELEGATION_PREFIX, RIPEMD160, Account, Log, State

A, B, C = (bytes([n]) * 20 for n in (0xA1, 0xB2, 0xC3))

# -- reading ----------------------------------------------------------------------------------------------------------


def test_an_account_that_is_not_there_reads_as_blank_and_stays_absent() -> None:
    state = State()
    account = state.account(A)
    assert (account.nonce, account.balance, account.code, account.storage) == (0, 0, b"", {})
    assert state.storage(A, 7) == 0
    assert not state.exists(A)
    assert state.is_dead(A)


@pytest.mark.parametrize(
    ("account", "empty"),
    [(Account(), True), (Account(nonce=1), False), (Account(balance=1), False), (Account(code=b"\0"), False),
     (Account(storage={1: 1}), True)],
    ids=["blank", "nonce", "balance", "code", "storage alone"],
)  # fmt: skip
def test_an_account_is_empty_without_nonce_balance_and_code(account: Account, empty: bool) -> None:
    assert account.empty is empty  # EIP-161: storage does not count


@pytest.mark.parametrize(
    ("account", "collides"),
    [
        (Account(balance=5), False),
        (Account(nonce=1), True),
        (Account(code=b"\0"), True),
        (Account(storage={1: 1}), True),
    ],
    ids=["balance", "nonce", "code", "storage"],
)
def test_a_creation_collides_with_nonce_code_or_storage_but_not_with_a_balance(
    account: Account, collides: bool
) -> None:
    state = State()
    state.accounts[A] = account
    assert state.has_code_or_nonce_or_storage(A) is collides


def test_writing_zero_leaves_no_slot_behind() -> None:
    state = State()
    state.set_storage(A, 1, 5)
    state.set_storage(A, 1, 0)
    state.set_transient(A, 1, 5)
    state.set_transient(A, 1, 0)
    assert state.account(A).storage == {}
    assert state.transient == {}


def test_a_transfer_moves_and_a_transfer_to_oneself_changes_nothing() -> None:
    state = State()
    state.set_balance(A, 10)
    state.transfer(A, B, 4)
    state.transfer(A, A, 6)
    assert (state.account(A).balance, state.account(B).balance) == (6, 4)


@pytest.mark.parametrize(
    ("code", "delegate"),
    [
        (DELEGATION_PREFIX + B, B),
        (DELEGATION_PREFIX + B + b"\0", None),
        (DELEGATION_PREFIX + B[1:], None),
        (b"\xef\x01\x01" + B, None),
        (b"", None),
    ],
    ids=["whole", "too long", "too short", "another prefix", "no code"],
)
def test_a_delegation_is_exactly_the_prefix_and_an_address(code: bytes, delegate: bytes | None) -> None:
    state = State()
    state.set_code(A, code)
    assert state.delegate_of(A) == delegate


# -- what a transaction keeps -----------------------------------------------------------------------------------------


def test_the_original_value_is_that_of_the_transactions_beginning() -> None:
    state = State()
    state.set_storage(A, 1, 5)
    state.begin_transaction()
    assert state.original_storage(A, 1) == 5
    state.set_storage(A, 1, 6)
    mark = state.mark()
    state.set_storage(A, 1, 7)
    assert state.original_storage(A, 1) == 5
    state.revert(mark)
    assert (state.storage(A, 1), state.original_storage(A, 1)) == (6, 5)
    state.begin_transaction()
    assert state.original_storage(A, 1) == 6


def test_a_new_transaction_forgets_everything_but_the_accounts() -> None:
    state = State()
    state.set_balance(A, 1)
    for do in (
        lambda: state.add_log(Log(A, (), b"")),
        lambda: state.add_refund(7),
        lambda: state.warm_address(A),
        lambda: state.warm_slot(A, 1),
        lambda: state.set_transient(A, 1, 1),
        lambda: state.mark_created(A),
        lambda: state.mark_destroyed(A),
        lambda: state.touch(A),
    ):
        do()
    state.begin_transaction()
    blank = State()
    blank.accounts = state.accounts
    assert fingerprint(state) == fingerprint(blank)


def test_what_was_warmed_is_warm() -> None:
    state = State()
    assert not state.is_warm(A)
    assert not state.is_warm_slot(A, 1)
    state.warm_address(A)
    state.warm_slot(A, 1)
    assert [state.is_warm(A), state.is_warm(B)] == [True, False]
    assert [state.is_warm_slot(A, 1), state.is_warm_slot(A, 2)] == [True, False]


def test_a_mark_from_before_a_transaction_is_refused_rather_than_ignored() -> None:
    state = State()
    mark = state.mark()
    state.set_balance(A, 1)
    state.begin_transaction()
    with pytest.raises(ValueError, match="this mark is gone"):
        state.revert(mark)


def test_an_open_mark_outlives_transactions() -> None:
    state = State()
    mark = state.mark()
    state.open_mark(mark)
    state.set_balance(A, 1)
    state.begin_transaction()
    state.set_balance(A, 2)
    state.close_mark(mark, keep=0)
    assert not state.exists(A)
    state.set_balance(A, 3)
    state.close_mark(state.mark(), keep=0)
    assert (state.account(A).balance, state.open_marks) == (3, 0)


def test_a_reverted_warming_is_cold_again_and_an_earlier_one_stays() -> None:
    state = State()
    state.warm_address(A)
    mark = state.mark()
    state.warm_address(A)
    state.warm_address(B)
    state.revert(mark)
    assert [state.is_warm(A), state.is_warm(B)] == [True, False]


def test_the_touch_of_ripemd_outlives_a_revert() -> None:
    state = State()
    mark = state.mark()
    state.touch(A)
    state.touch(RIPEMD160)
    state.revert(mark)
    assert state.touched == {RIPEMD160}


def test_a_deleted_account_comes_back_as_it_was() -> None:
    state = State()
    state.set_balance(A, 5)
    state.set_storage(A, 1, 2)
    before = state.mark()
    state.set_storage(A, 1, 3)
    state.delete(A)
    state.set_balance(A, 9)
    state.revert(before)
    assert (state.account(A).balance, state.account(A).storage) == (5, {1: 2})


def test_a_copy_is_independent() -> None:
    state = State()
    state.set_storage(A, 1, 2)
    twin = state.copy()
    twin.set_storage(A, 1, 3)
    twin.set_balance(B, 1)
    assert state.storage(A, 1) == 2
    assert not state.exists(B)


# -- the journal's law ------------------------------------------------------------------------------------------------


def fingerprint(state: State) -> Any:
    """Everything a frame could see, in a form that later changes cannot reach."""
    accounts = {
        address: (account.nonce, account.balance, account.code, dict(account.storage))
        for address, account in state.items()
    }
    sets = (state.warm_addresses, state.warm_slots, state.created, state.destroyed, state.touched)
    return accounts, list(state.logs), state.refund, dict(state.transient), *(frozenset(each) for each in sets)


ADDRESSES = st.sampled_from((A, B, C))
SLOTS = st.integers(0, 2)
VALUES = st.sampled_from((0, 1, 2, 2**256 - 1))

CHANGES = st.one_of(
    st.tuples(st.just("set_balance"), ADDRESSES, VALUES),
    st.tuples(st.just("add_balance"), ADDRESSES, VALUES),
    st.tuples(st.just("transfer"), ADDRESSES, ADDRESSES, st.integers(0, 3)),
    st.tuples(st.just("set_nonce"), ADDRESSES, st.integers(0, 3)),
    st.tuples(st.just("set_code"), ADDRESSES, st.sampled_from((b"", b"\0", DELEGATION_PREFIX + B))),
    st.tuples(st.just("set_storage"), ADDRESSES, SLOTS, VALUES),
    st.tuples(st.just("set_transient"), ADDRESSES, SLOTS, VALUES),
    st.tuples(st.just("ensure"), ADDRESSES),
    st.tuples(st.just("touch"), ADDRESSES),
    st.tuples(st.just("delete"), ADDRESSES),
    st.tuples(st.just("add_refund"), st.sampled_from((-5, 0, 4_800))),
    st.tuples(st.just("add_log"), st.builds(Log, ADDRESSES, st.just((1,)), st.binary(max_size=2))),
    st.tuples(st.just("warm_address"), ADDRESSES),
    st.tuples(st.just("warm_slot"), ADDRESSES, SLOTS),
    st.tuples(st.just("mark_created"), ADDRESSES),
    st.tuples(st.just("mark_destroyed"), ADDRESSES),
)
MARK, REVERT, KEEP = ("mark",), ("revert",), ("keep",)
SCRIPTS = st.lists(st.one_of(CHANGES, CHANGES, CHANGES, st.sampled_from((MARK, REVERT, KEEP))), max_size=60)


def play(state: State, script: list[tuple[Any, ...]]) -> None:
    """Runs a script; nested marks are reverted or kept as the frames of calls are, and each revert is checked."""
    marks: list[tuple[int, Any]] = []
    for name, *arguments in script:
        if name == "mark":
            marks.append((state.mark(), fingerprint(state)))
        elif name == "revert" and marks:
            mark, was = marks.pop()
            state.revert(mark)
            assert fingerprint(state) == was
        elif name == "keep" and marks:
            marks.pop()
        elif name not in ("revert", "keep"):
            getattr(state, name)(*arguments)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(SCRIPTS, SCRIPTS)
def test_a_revert_gives_back_exactly_what_was_there_at_its_mark(before: list[Any], after: list[Any]) -> None:
    state = State()
    play(state, before)
    mark, was = state.mark(), fingerprint(state)
    play(state, after)
    state.revert(mark)
    assert fingerprint(state) == was


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SCRIPTS, SCRIPTS, SCRIPTS)
def test_with_a_snapshot_open_a_revert_reaches_across_transactions(
    before: list[Any], first: list[Any], second: list[Any]
) -> None:
    state = State()
    play(state, before)
    state.begin_transaction()
    mark, was = state.mark(), fingerprint(state)[0]
    state.open_mark(mark)
    for script in (first, second):
        state.begin_transaction()
        play(state, script)
    state.close_mark(mark, keep=0)
    assert fingerprint(state)[0] == was


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SCRIPTS)
def test_the_original_of_a_slot_never_moves_within_a_transaction(script: list[Any]) -> None:
    state = State()
    state.accounts[A] = Account(nonce=1, storage={0: 1, 1: 2**256 - 1})
    play(state, [step for step in script if step[0] != "delete"])  # accounts are deleted as a transaction ends
    assert [state.original_storage(A, key) for key in range(3)] == [1, 2**256 - 1, 0]
