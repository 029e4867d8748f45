"""Checkpoints by id: nested, in any order, exact on every tier whatever native tables are kept; copies."""

from __future__ import annotations

import pickle
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from fusevm import EVM, Block, Hooks, WrongThread
from fusevm.chain.accounts import Accounts
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.machine.checkpoints import UnknownCheckpoint

A, B, C = b"\xa1" * 20, b"\xb0" * 20, b"\xc0" * 20
TIERS = ("reference", "native", "auto")
# storage[calldata[0:32]] += calldata[32:64]; the result is returned
ADDS = assemble(
    "PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD SLOAD ADD "
    "DUP1 PUSH0 CALLDATALOAD SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
)
PAYS = assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH1 1 PUSH20 0x{B.hex()} GAS CALL STOP")
P = b"\xdd" * 20


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def machine(tier: str = "auto") -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(C, ADDS)
    evm.set_code(P, PAYS)
    evm.set_balance(P, 10**18)
    evm.set_balance(A, 10**18)
    return evm


def seen(state: State) -> dict[bytes, tuple[Any, ...]]:
    return {
        address: (each.nonce, each.balance, each.code, dict(each.storage)) for address, each in state.copy().items()
    }


@pytest.mark.parametrize("tier", TIERS)
def test_reverting_restores_what_calls_changed(tier: str) -> None:
    evm = machine(tier)
    for _ in range(3):
        evm.call(C, words(1, 5))
    before = evm.checkpoint()
    for _ in range(3):
        assert evm.call(C, words(1, 5)).ok
    assert evm.get_storage(C, 1) == 30
    evm.revert(before)
    assert evm.get_storage(C, 1) == 15
    assert int.from_bytes(evm.call(C, words(1, 1)).output, "big") == 16


@pytest.mark.parametrize("tier", TIERS)
def test_committing_keeps_what_was_done_and_older_checkpoints(tier: str) -> None:
    evm = machine(tier)
    outer = evm.checkpoint()
    evm.call(C, words(1, 1))
    inner = evm.checkpoint()
    evm.call(C, words(1, 10))
    evm.commit(inner)
    assert evm.get_storage(C, 1) == 11
    evm.revert(outer)
    assert evm.get_storage(C, 1) == 0


def test_reverting_to_an_older_checkpoint_drops_the_younger() -> None:
    evm = machine()
    first = evm.checkpoint()
    second, third = evm.checkpoint(), evm.checkpoint()
    evm.revert(second)
    with pytest.raises(UnknownCheckpoint, match=f"checkpoint {third} is not open; open: {first}"):
        evm.revert(third)
    with pytest.raises(UnknownCheckpoint, match=f"checkpoint {second} is not open"):
        evm.commit(second)
    evm.revert(first)
    with pytest.raises(UnknownCheckpoint, match="none is"):
        evm.revert(first)


@pytest.mark.parametrize("wrong", ["1", None, True, 1.0, 99])
def test_what_is_not_an_id_is_refused(wrong: Any) -> None:
    evm = machine()
    evm.checkpoint()
    with pytest.raises(UnknownCheckpoint, match="checkpoint"):
        evm.revert(wrong)


def test_the_block_is_restored_too() -> None:
    evm = machine()
    evm.block = Block(number=7)
    before = evm.checkpoint()
    evm.block.timestamp = 99
    evm.block = Block(number=8)
    evm.revert(before)
    assert (evm.block.number, evm.block.timestamp) == (7, 1)


def test_a_state_put_in_its_place_is_taken_out_again() -> None:
    evm = machine()
    state, before = evm.state, evm.checkpoint()
    evm.state = State()
    inner = evm.checkpoint()
    evm.set_balance(B, 3)
    other = evm.state
    evm.revert(before)
    assert evm.state is state
    assert other.account(B).balance == 0
    assert (state.open_marks, other.open_marks) == (0, 0)
    with pytest.raises(UnknownCheckpoint):
        evm.revert(inner)


def test_a_snapshot_drops_checkpoints_made_inside_it() -> None:
    evm = machine()
    with evm.snapshot():
        inside = evm.checkpoint()
        evm.set_balance(B, 1)
    with pytest.raises(UnknownCheckpoint):
        evm.revert(inside)
    assert evm.state.open_marks == 0


def test_a_checkpoint_from_outside_cannot_be_closed_inside_a_snapshot() -> None:
    evm = machine()
    outside = evm.checkpoint()
    with evm.snapshot():
        inside = evm.checkpoint()
        for close in (evm.revert, evm.commit):
            with pytest.raises(UnknownCheckpoint, match="leave the with block first"):
                close(outside)
        evm.revert(inside)
    evm.revert(outside)


def test_a_running_call_cannot_move_checkpoints() -> None:
    evm = machine()
    before = evm.checkpoint()
    evm.hooks = Hooks(on_call=lambda message: evm.revert(before))
    with pytest.raises(WrongThread):
        evm.call(C, words(1, 1))
    evm.hooks = None
    evm.revert(before)


def test_without_open_checkpoints_the_journal_does_not_grow() -> None:
    evm = machine("native")
    for _ in range(20):
        kept = evm.checkpoint()
        evm.call(C, words(1, 1))
        evm.commit(kept)
    evm.call(C, words(1, 1))
    assert len(evm.state.journal) < 10


def test_copies_and_pickles_have_no_checkpoints() -> None:
    evm = machine()
    before = evm.checkpoint()
    for twin in (evm.copy(), pickle.loads(pickle.dumps(evm))):
        with pytest.raises(UnknownCheckpoint, match="none is"):
            twin.revert(before)
        assert twin.checkpoint() == 1


# -- against a model: every checkpoint is a whole copy


def act(rng: Random, evm: EVM) -> None:
    """Something that changes the state: the same for the same random numbers."""
    kind, key, amount = rng.randrange(10), rng.randrange(4), rng.randrange(3)
    if kind < 4:
        evm.call(C, words(key, amount), caller=A)
    elif kind == 4:
        evm.set_storage(C, key, amount)
    elif kind == 5:
        evm.set_balance((A, B)[key & 1], 10**18 + amount)
    elif kind == 6:
        evm.call(B, value=amount, caller=A)
    elif kind == 7:
        evm.transact(A, C, words(key, amount))
    elif kind == 8:
        evm.call(P)
    else:
        evm.deploy(assemble("PUSH1 1 PUSH1 31 SSTORE PUSH0 PUSH0 RETURN"), caller=A)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("seed", range(6))
def test_random_work_agrees_with_whole_copies(tier: str, seed: int) -> None:
    rng = Random(seed)
    evm, model = machine(tier), machine("reference")
    marks: list[tuple[int, dict[bytes, Any], EVM]] = []
    for _ in range(120):
        choice = rng.randrange(10)
        if choice == 0:
            marks.append((evm.checkpoint(), seen(model.state), model.copy()))
        elif choice == 1 and marks:
            place = rng.randrange(len(marks))
            evm.revert(marks[place][0])
            model = marks[place][2]
            assert seen(evm.state) == marks[place][1]
            del marks[place:]
        elif choice == 2 and marks:
            place = rng.randrange(len(marks))
            evm.commit(marks[place][0])
            del marks[place:]
        else:
            again = rng.getrandbits(64)
            act(Random(again), evm)
            act(Random(again), model)
        if rng.randrange(4) == 0:
            assert seen(evm.state) == seen(model.state)
    assert seen(evm.state) == seen(model.state)


# -- copies


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("seed", range(6))
def test_copies_of_copies_agree_with_whole_copies(tier: str, seed: int) -> None:
    rng = Random(seed)
    machines = [(machine(tier), machine("reference"))]
    for _ in range(150):
        evm, model = machines[rng.randrange(len(machines))]
        if rng.randrange(6) == 0 and len(machines) < 24:
            machines.append((evm.copy(), deepcopy(model)))
        elif rng.randrange(12) == 0:
            with evm.snapshot(), model.snapshot():
                act(Random(seed), evm)
                act(Random(seed), model)
        else:
            again = rng.getrandbits(64)
            act(Random(again), evm)
            act(Random(again), model)
        if rng.randrange(4) == 0:
            assert seen(evm.state) == seen(model.state)
    for evm, model in machines:
        assert seen(evm.state) == seen(model.state)
        assert evm.state_root == model.state_root


def test_a_copy_looks_at_what_it_uses_and_no_more() -> None:
    evm = EVM(tier="reference")
    for number in range(300):
        evm.set_balance(number + 1, 1)
    evm.set_code(C, ADDS)
    for key in range(300):
        evm.set_storage(C, key, 7)
    twin = evm.copy()
    assert twin.call(C, words(5, 1)).ok
    loaded: Any = twin.state._accounts
    assert dict.__len__(loaded) < 5
    assert dict.__len__(dict.get(loaded, C).storage) == 1
    assert (evm.get_storage(C, 5), twin.get_storage(C, 5), twin.get_storage(C, 6)) == (7, 8, 7)


@pytest.mark.parametrize("tier", TIERS)
def test_copies_of_copies_do_not_fill_up_the_storage_between_them(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_code(C, ADDS)
    for key in range(300):
        evm.set_storage(C, key, 7)
    family = [evm]
    for number in range(4):
        twin = family[-1].copy()
        assert twin.call(C, words(number, 1)).ok
        family.append(twin)
    for each in family[1:-1]:
        shared: Any = each.state._shared
        assert dict.__len__(dict.get(shared[0], C).storage) < 10
    assert [family[-1].get_storage(C, key) for key in range(5)] == [8, 8, 8, 8, 7]


def test_storage_that_a_copy_cleared_is_empty() -> None:
    evm = machine()
    evm.set_storage(C, 1, 5)
    twin = evm.copy()
    twin.set_storage(C, 1, 0)
    third = twin.copy()
    assert not third.state.account(C).storage
    assert third.state.account(C).storage == {}
    third.set_storage(C, 2, 1)
    assert third.state.account(C).storage
    assert evm.state.account(C).storage


def test_what_a_copy_deletes_stays_deleted() -> None:
    evm = machine()
    evm.set_storage(C, 1, 5)
    twin = evm.copy()
    twin.set_storage(C, 1, 0)
    twin.state.delete(A)
    assert (twin.get_storage(C, 1), twin.get_balance(A)) == (0, 0)
    assert not twin.state.exists(A)
    assert A not in dict(twin.state.items())
    assert (evm.get_storage(C, 1), evm.get_balance(A)) == (5, 10**18)


@pytest.mark.parametrize("tier", TIERS)
def test_a_copy_sees_what_a_contract_paid_since_the_last_copy(tier: str) -> None:
    evm = machine(tier)
    evm.copy()
    evm.call(P).check()
    assert evm.copy().get_balance(B) == 1


def test_a_chain_of_copies_does_not_get_slower_for_ever() -> None:
    evm = machine()
    for number in range(100):
        evm = evm.copy()
        evm.set_storage(C, number, 1)
    accounts: Any = evm.state._accounts
    assert getattr(accounts, "depth", 0) <= 17
    assert sum(evm.get_storage(C, number) for number in range(100)) == 100


def test_copying_makes_marks_of_before_invalid_and_says_so() -> None:
    state = machine().state
    mark = state.mark()
    state.set_balance(A, 1)
    state.branch()
    with pytest.raises(ValueError, match="or the state was copied"):
        state.revert(mark)


def test_a_copy_under_an_open_checkpoint_is_whole_and_the_checkpoint_stays() -> None:
    evm = machine()
    before = evm.checkpoint()
    evm.set_balance(B, 5)
    twin = evm.copy()
    evm.revert(before)
    assert (evm.get_balance(B), twin.get_balance(B)) == (0, 5)


def test_copies_of_a_copy_can_be_pickled() -> None:
    evm = machine()
    evm.set_storage(C, 1, 5)
    twin = evm.copy()
    twin.set_storage(C, 2, 6)
    again = pickle.loads(pickle.dumps(twin))
    assert seen(again.state) == seen(twin.state)
    assert type(again.state._accounts) is Accounts
