"""Storage and transient storage through the engine, in both modes."""

from __future__ import annotations

import pytest

from fusevm.ir.fold.stages import Mode
from irtools import fold_steps, folded

CALL = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9 PUSH 0 CALL POP"
STATICCALL = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9 PUSH 0 STATICCALL POP"


@pytest.mark.parametrize("kind", ["S", "T"])
def test_a_load_gives_what_was_stored(kind: str) -> None:
    assert folded(f"CALLER PUSH 1 {kind}STORE PUSH 1 {kind}LOAD")[1].forwarded == 1


@pytest.mark.parametrize("kind", ["S", "T"])
def test_a_second_load_is_the_first(kind: str) -> None:
    assert folded(f"DUP1 {kind}LOAD SWAP1 {kind}LOAD")[1].forwarded == 1


@pytest.mark.parametrize("kind", ["S", "T"])
def test_a_store_to_another_key_is_passed_by(kind: str) -> None:
    assert folded(f"CALLER PUSH 1 {kind}STORE CALLER PUSH 2 {kind}STORE PUSH 1 {kind}LOAD")[1].forwarded == 1


@pytest.mark.parametrize("kind", ["S", "T"])
def test_a_store_to_a_key_that_may_be_the_same_is_not(kind: str) -> None:
    assert folded(f"CALLER PUSH 1 {kind}STORE CALLER DUP2 {kind}STORE PUSH 1 {kind}LOAD")[1].forwarded == 0


@pytest.mark.parametrize("kind", ["S", "T"])
def test_a_call_may_change_storage_and_a_static_call_may_not(kind: str) -> None:
    assert folded(f"CALLER PUSH 1 {kind}STORE {CALL} PUSH 1 {kind}LOAD")[1].forwarded == 0
    assert folded(f"CALLER PUSH 1 {kind}STORE {STATICCALL} PUSH 1 {kind}LOAD")[1].forwarded == 1


def test_storage_and_transient_storage_are_apart() -> None:
    assert folded("CALLER PUSH 1 SSTORE CALLVALUE PUSH 1 TSTORE PUSH 1 SLOAD")[1].forwarded == 1


def test_memory_does_not_touch_storage() -> None:
    assert folded("CALLER PUSH 1 SSTORE CALLVALUE DUP2 MSTORE PUSH 1 SLOAD")[1].forwarded == 1


def test_an_sstore_is_never_dropped_where_gas_is_exact() -> None:
    assert fold_steps("CALLER PUSH 1 SSTORE CALLER PUSH 1 SSTORE").count("SStore #1 $0") == 2
    assert folded("CALLER PUSH 1 SSTORE CALLVALUE PUSH 1 SSTORE")[1].stores_dropped == 0


def test_an_sstore_that_is_overwritten_is_unmade_where_gas_may_fall() -> None:
    assert folded("CALLER PUSH 1 SSTORE CALLVALUE PUSH 1 SSTORE", Mode.OPTIMISATION)[1].stores_dropped == 1


@pytest.mark.parametrize("between", ["PUSH 1 SLOAD POP", "DUP1 SLOAD POP", CALL, STATICCALL])
def test_an_sstore_somebody_may_see_stays(between: str) -> None:
    text = f"CALLER PUSH 1 SSTORE {between} CALLVALUE PUSH 1 SSTORE"
    block, _ = folded(text, Mode.OPTIMISATION)
    assert [value.op for value in block.instructions].count("SSTORE") == 2 - ("PUSH 1 SLOAD" in between)


def test_an_sstore_of_what_was_stored_is_dropped_where_gas_may_fall() -> None:
    assert folded("CALLER PUSH 1 SSTORE CALLER PUSH 1 SSTORE", Mode.OPTIMISATION)[1].stores_dropped == 1


def test_an_sstore_of_what_was_loaded_stays_because_it_halts_in_a_static_call() -> None:
    assert folded("PUSH 1 SLOAD PUSH 1 SSTORE", Mode.OPTIMISATION)[1].stores_dropped == 0


def test_a_tstore_that_is_overwritten_is_unmade_in_either_mode() -> None:
    assert folded("CALLER PUSH 1 TSTORE CALLVALUE PUSH 1 TSTORE")[1].stores_dropped == 1


def test_a_tstore_a_call_may_see_stays() -> None:
    assert folded(f"CALLER PUSH 1 TSTORE {CALL} CALLVALUE PUSH 1 TSTORE")[1].stores_dropped == 0
