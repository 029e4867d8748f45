"""Scheduling: reads late, writes early, no word lost, few words alive across calls to the runtime."""

from __future__ import annotations

from fusevm.ir.ordering import schedule
from irtools import lifted, steps


def test_words_are_read_as_late_as_possible() -> None:
    order = steps(lifted("PUSH 0 MSTORE PUSH 32 MSTORE"))
    assert order == ["Unspill -1", "MStore #0 $0", "Unspill -2", "MStore #32 $1"]


def test_a_literal_is_written_before_everything_if_its_slot_is_free() -> None:
    assert steps(lifted("PUSH 7 PUSH 0 PUSH 0 MSTORE")) == ["Spill #7 0", "MStore #0 #0"]


def test_a_word_is_written_as_soon_as_it_is_computed() -> None:
    assert steps(lifted("CALLER PUSH 0 SLOAD PUSH 0 PUSH 0 MSTORE")) == [
        "SLoad #0",
        "Spill $1 1",
        "MStore #0 #0",
        "Caller",
        "Spill $0 0",
    ]


def test_a_slot_is_read_before_it_is_overwritten() -> None:
    assert steps(lifted("PUSH 9 SWAP1 JUMP")) == ["Unspill -1", "Spill #9 -1"]


def test_a_rotation_keeps_one_word_waiting() -> None:
    assert steps(lifted("SWAP1 SWAP2")) == [
        "Unspill -1",
        "Unspill -3",
        "Spill $2 -1",
        "Unspill -2",
        "Spill $1 -3",
        "Spill $0 -2",
    ]


def test_a_chain_of_moves_needs_no_waiting_word() -> None:
    order = schedule(lifted("DUP1 SWAP2 POP"))
    assert len(order.steps) == 2


def test_a_word_computed_before_a_call_and_spilled_nowhere_is_kept_alive() -> None:
    order = schedule(lifted("ADD DUP1 PUSH 0 MSTORE PUSH 43 SWAP1 SUB"))
    assert order.live_across_calls == 1


def test_a_word_that_has_a_slot_is_not_kept_alive_across_a_call() -> None:
    order = schedule(lifted("DUP1 PUSH 34 ADD PUSH 0 MSTORE PUSH 12 ADD"))
    assert order.live_across_calls == 0


def test_deep_dependencies_need_no_recursion() -> None:
    block = lifted("CALLER " + "PUSH 1 ADD " * 20_000 + "PUSH 0 MSTORE")
    assert len(schedule(block).steps) == 20_002
