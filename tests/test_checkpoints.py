"""Checkpoints by id: nested, in any order, exact on every tier whatever native tables are kept; copies."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pytest

from fusevm import EVM, Block, Hooks, WrongThread
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


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def machine(tier: str = "auto") -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(C, ADDS)
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
    kind, key, amount = rng.randrange(9), rng.randrange(4), rng.randrange(3)
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
