"""Pieces of real code: short, and still doing what the contract does in the call that they were cut for."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fusevm.chain.environment import Message
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.lab.ir.campaign import CALLER, OWN, context, world
from fusevm.lab.optimize import GAS, _asked, _originals, _run_by, campaign, mutated_case
from fusevm.lab.optimize_pieces import piece, places_run
from fusevm.reference.interpreter import execute

# Either way stores its word; what comes after is never run.
BRANCH = assemble(
    "PUSH1 0 CALLDATALOAD PUSH2 @other JUMPI PUSH1 7 PUSH1 1 SSTORE STOP "
    "other: JUMPDEST PUSH1 8 PUSH1 2 SSTORE STOP " + "JUMPDEST PUSH1 1 PUSH1 1 ADD POP STOP " * 40
)


def stored(code: bytes, data: bytes) -> dict[int, int]:
    state = world()
    execute(Message(CALLER, OWN, code, data, gas=100_000, code_address=OWN), state, context(LATEST))
    return dict(state.accounts[OWN].storage)


def cut_for(data: bytes, more: int) -> bytes:
    message = Message(CALLER, OWN, BRANCH, data, gas=100_000, code_address=OWN)
    return piece(BRANCH, places_run(message, world(), context(LATEST)), Random(1), more)


@pytest.mark.parametrize("data", [bytes(32), b"\1" * 32])
def test_a_piece_does_what_the_code_does_in_the_call_it_was_cut_for(data: bytes) -> None:
    made = cut_for(data, more=0)
    assert len(made) < len(BRANCH) / 4
    assert stored(made, data) == stored(BRANCH, data) != stored(made, bytes(31) + b"\2" if not any(data) else bytes(32))


def test_a_piece_has_some_of_what_it_might_have_come_to() -> None:
    made = cut_for(bytes(32), more=1)
    assert stored(made, b"\1" * 32) == stored(BRANCH, b"\1" * 32)


def test_pieces_of_real_contracts_cost_and_answer_the_same(fixtures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEVM_FIXTURES", str(fixtures_dir))
    original = _originals()[12]
    for call, given in enumerate(original.inputs):
        made = piece(original.code, _run_by(12, call), Random(call))
        assert len(made) < len(original.code) * 0.8
        wanted, found = (
            execute(*_asked(code, given, original.storage, original.fork, GAS)) for code in (original.code, made)
        )
        assert (found.status, found.output, found.gas_left) == (wanted.status, wanted.output, wanted.gas_left)


@pytest.mark.long
def test_a_campaign_over_pieces_runs_what_it_optimises(fixtures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEVM_FIXTURES", str(fixtures_dir))
    tally = campaign(mutated_case(5, number) for number in range(20))
    assert (tally.failures, tally.dearer) == ([], [])
    assert tally.done["success"] > 10
    assert tally.done["folded by rules"] > 50
    assert tally.refused < 10
