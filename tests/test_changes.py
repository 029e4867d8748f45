"""What each call of a recording has changed, on every tier."""

from __future__ import annotations

import pytest

from fusevm import EVM
from fusevm.chain.addresses import create_address
from fusevm.tracing.changes import Changes, changes_of
from fusevm.tracing.recording import RecordedFrame
from programs import CALLER, HERE, NOBODY, OTHER, call, machine, push

REVERT = " PUSH1 0 PUSH1 0 REVERT"


@pytest.fixture(params=["reference", "native", "auto"])
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def recorded(tier: str, program: str, others: dict[bytes, str | bytes] | None = None, value: int = 0) -> RecordedFrame:
    evm: EVM = machine({HERE: program, **(others or {})})
    evm.tier = tier
    evm.set_storage(HERE, 1, 4)
    with evm.record(storage=True) as recording:
        evm.call(HERE, caller=CALLER, value=value, gas=1_000_000)
    (frame,) = recording.frames
    return frame


def store(key: int, value: int, kind: str = "SSTORE") -> str:
    return f" PUSH1 {value} PUSH1 {key} {kind}"


def test_slots_have_their_first_and_last_values(tier: str) -> None:
    frame = recorded(tier, store(1, 5) + store(1, 6) + store(2, 7))
    assert changes_of(frame) == Changes({HERE: {1: (4, 6), 2: (0, 7)}})


def test_what_is_changed_back_is_not_a_change(tier: str) -> None:
    assert changes_of(recorded(tier, store(1, 5) + store(1, 4) + store(3, 0))) == Changes()


def test_transient_storage_is_no_change(tier: str) -> None:
    assert changes_of(recorded(tier, store(1, 5, "TSTORE"))) == Changes()


def test_a_call_includes_its_inner_calls_and_an_inner_call_itself_alone(tier: str) -> None:
    frame = recorded(tier, store(1, 5) + call(OTHER) + store(1, 6), {OTHER: store(9, 9)})
    assert changes_of(frame).storage == {HERE: {1: (4, 6)}, OTHER: {9: (0, 9)}}
    assert changes_of(frame.calls[0]).storage == {OTHER: {9: (0, 9)}}


def test_a_call_that_failed_has_changed_nothing(tier: str) -> None:
    frame = recorded(tier, store(1, 5) + call(OTHER), {OTHER: store(9, 9) + REVERT})
    assert changes_of(frame).storage == {HERE: {1: (4, 5)}}
    assert changes_of(frame.calls[0]) == Changes()
    assert changes_of(recorded(tier, store(1, 5) + call(OTHER) + REVERT, {OTHER: store(9, 9)}).calls[0]) == Changes()


def test_ether_moves_with_calls_creations_and_selfdestructs(tier: str) -> None:
    program = call(OTHER, value=3) + f" PUSH1 0 PUSH1 0 PUSH1 2 CREATE {push(NOBODY)} SELFDESTRUCT"
    found = changes_of(recorded(tier, program, value=10))
    assert found.ether == {CALLER: -10, OTHER: 3, create_address(HERE, 0): 2, NOBODY: 5}
    assert found.created == [create_address(HERE, 0)]
