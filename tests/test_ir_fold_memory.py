"""Memory through the engine: aliasing, forwarding, dead stores, hashes of known bytes, and the checks that remain."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.evm.keccak import keccak256
from fusevm.ir.fold.alias import MAY, MUST, NO, Alias, MemoryRange, covers, relation, same_slot, split
from fusevm.ir.fold.engine import Folder
from fusevm.ir.fold.stages import Mode
from fusevm.ir.values import Value
from fusevm.lab.ir.functions import functions_of
from irtools import fold_steps, folded, folded_functions

OPTIMISE = Mode.OPTIMISATION
X, Y = Value("UNSPILL", (), -1, 0), Value("UNSPILL", (), -2, 1)


# -- alias answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        (MemoryRange(None, 0, 32), MemoryRange(None, 0, 32), MUST),
        (MemoryRange(None, 0, 32), MemoryRange(None, 32, 32), NO),
        (MemoryRange(None, 0, 32), MemoryRange(None, 31, 32), MAY),
        (MemoryRange(None, 0, 32), MemoryRange(None, 31, 1), MAY),
        (MemoryRange(X, 0, 32), MemoryRange(X, 32, 32), NO),
        (MemoryRange(X, 0, 32), MemoryRange(X, (1 << 256) - 32, 32), NO),
        (MemoryRange(X, 0, 32), MemoryRange(X, (1 << 256) - 31, 32), MAY),
        (MemoryRange(X, 0, 32), MemoryRange(Y, 0, 32), MAY),
        (MemoryRange(X, 0, 32), MemoryRange(None, 0, 32), MAY),
        (MemoryRange(None, 64, 32), MemoryRange(None, 128, None), NO),
        (MemoryRange(None, 64, 32), MemoryRange(None, 0, None), MAY),
        (MemoryRange(None, 0, None), MemoryRange(None, 0, None), MAY),
        (MemoryRange(X, 5, 0), MemoryRange(Y, 0, None), NO),
    ],
)
def test_byte_ranges_alias(one: MemoryRange, other: MemoryRange, answer: Alias) -> None:
    assert relation(one, other) is answer
    assert relation(other, one) is answer


def test_a_range_covers_what_lies_inside_it() -> None:
    assert covers(MemoryRange(X, 0, 64), MemoryRange(X, 32, 32))
    assert not covers(MemoryRange(X, 0, 64), MemoryRange(X, 33, 32))
    assert not covers(MemoryRange(X, 0, 64), MemoryRange(Y, 0, 1))
    assert covers(MemoryRange(X, 0, 1), MemoryRange(Y, 7, 0))


def test_addresses_are_split_into_base_and_offset() -> None:
    made = Folder()
    made.enter(1)
    (x,) = made.block.params
    plus = made.raw("ADD", (x, made.const(64)))
    minus = made.raw("SUB", (plus, made.const(96)))
    assert split(minus) == (x, (1 << 256) - 32)
    assert split(made.const(7)) == (None, 7)


def test_storage_keys_of_one_base_and_other_offsets_are_never_the_same() -> None:
    made = Folder()
    made.enter(2)
    x, y = made.block.params
    above = made.raw("ADD", (x, made.const(1)))
    assert same_slot(x, above) is NO
    assert same_slot(x, x) is MUST
    assert same_slot(x, y) is MAY
    assert same_slot(made.const(1), made.const(2)) is NO


# -- forwarding -----------------------------------------------------------------------------------------------------


def test_a_load_gives_what_was_stored_there() -> None:
    assert fold_steps("CALLER PUSH 32 MSTORE PUSH 32 MLOAD", OPTIMISE) == ["Caller", "Spill $0 0", "MStore #32 $0"]


def test_a_load_is_forwarded_past_stores_that_do_not_alias() -> None:
    text = "CALLER PUSH 0 MSTORE CALLVALUE PUSH 32 MSTORE PUSH 1 PUSH 64 MSTORE8 PUSH 0 MLOAD"
    assert folded(text)[1].forwarded == 1


@pytest.mark.parametrize(
    "between",
    [
        "CALLVALUE PUSH 31 MSTORE",
        "CALLVALUE PUSH 31 MSTORE8",
        "CALLVALUE DUP2 MSTORE",
        "PUSH 4 PUSH 0 PUSH 16 CALLDATACOPY",
        "PUSH 4 PUSH 64 PUSH 16 MCOPY",
        "CALLDATASIZE PUSH 0 PUSH 0 CALLDATACOPY",
        "PUSH 32 PUSH 0 PUSH 0 PUSH 0 PUSH 9 GAS STATICCALL POP",
    ],
)
def test_a_load_is_not_forwarded_past_a_write_that_may_alias(between: str) -> None:
    assert folded(f"CALLER PUSH 0 MSTORE {between} PUSH 0 MLOAD")[1].forwarded == 0


@pytest.mark.parametrize(
    "between",
    [
        "PUSH 64 PUSH 0 PUSH 32 CALLDATACOPY",
        "CALLDATASIZE PUSH 0 PUSH 32 CALLDATACOPY",
        "PUSH 4 PUSH 0 PUSH 96 MCOPY",
        "PUSH 32 PUSH 0 LOG0",
        "PUSH 32 PUSH 96 PUSH 0 PUSH 0 PUSH 9 GAS STATICCALL POP",
        "CALLVALUE PUSH 5 SSTORE",
    ],
)
def test_a_load_is_forwarded_past_writes_elsewhere_calls_included(between: str) -> None:
    assert folded(f"CALLER PUSH 0 MSTORE {between} PUSH 0 MLOAD")[1].forwarded == 1


def test_a_second_load_of_the_same_word_is_the_first() -> None:
    assert folded("DUP1 MLOAD SWAP1 MLOAD")[1].forwarded == 1


def test_a_load_with_an_unknown_base_is_forwarded_from_the_same_base() -> None:
    assert folded("CALLER DUP2 PUSH 32 ADD MSTORE PUSH 7 DUP2 MSTORE DUP1 PUSH 32 ADD MLOAD")[1].forwarded == 1


def test_a_load_across_stores_of_constants_is_pieced_together() -> None:
    text = "PUSH 0x1111 PUSH 0 MSTORE PUSH 0x2222 PUSH 32 MSTORE PUSH 0xff PUSH 40 MSTORE8 PUSH 30 MLOAD"
    memory = bytearray((0x1111).to_bytes(32, "big") + (0x2222).to_bytes(32, "big"))
    memory[40] = 0xFF
    expected = int.from_bytes(memory[30:62], "big")
    assert f"Spill #{expected:#x} 0" in fold_steps(text)


def test_memory_never_written_is_zero_as_a_program_begins() -> None:
    made, stats = folded_functions("PUSH 5 MLOAD PUSH 0 SSTORE STOP")
    assert stats.forwarded == 1
    assert [value.op for value in made.functions[""].instructions()][-1:] == ["SSTORE"]


def test_memory_written_long_ago_is_not_taken_for_zero() -> None:
    stores = " ".join(f"CALLER PUSH {64 + 32 * n} MSTORE" for n in range(130))
    made, stats = folded_functions(f"CALLER PUSH 0 MSTORE {stores} PUSH 0 MLOAD PUSH 0 SSTORE STOP")
    assert stats.forwarded == 0
    assert [value.op for value in made.functions[""].instructions()][-2:] == ["MLOAD", "SSTORE"]


# -- hashes ---------------------------------------------------------------------------------------------------------


def test_a_hash_of_known_bytes_is_a_constant_and_its_price_joins_the_section() -> None:
    block, _ = folded("PUSH 1 PUSH 0 MSTORE PUSH 2 PUSH 32 MSTORE PUSH 64 PUSH 0 KECCAK256")
    expected = int.from_bytes(keccak256((1).to_bytes(32, "big") + (2).to_bytes(32, "big")), "big")
    assert block.end.words[-1].number == expected
    assert block.gas == 3 + 2 + 3 + 3 + 3 + 3 + 3 + 2 + 30 + 2 * 6


def test_a_hash_of_nothing_is_a_constant() -> None:
    block, _ = folded("PUSH 0 CALLER KECCAK256")
    assert block.end.words[-1].number == int.from_bytes(keccak256(b""), "big")


def test_the_same_bytes_are_hashed_once() -> None:
    text = "CALLER PUSH 0 MSTORE PUSH 32 PUSH 0 KECCAK256 CALLVALUE PUSH 64 MSTORE PUSH 32 PUSH 0 KECCAK256"
    assert folded(text)[1].forwarded == 1


def test_bytes_written_in_between_are_hashed_again() -> None:
    text = "CALLER PUSH 0 MSTORE PUSH 32 PUSH 0 KECCAK256 CALLVALUE PUSH 31 MSTORE8 PUSH 32 PUSH 0 KECCAK256"
    assert folded(text)[1].forwarded == 0


# -- stores ---------------------------------------------------------------------------------------------------------


def test_a_store_nobody_read_before_the_next_one_is_unmade() -> None:
    assert fold_steps("CALLER PUSH 0 MSTORE CALLVALUE PUSH 0 MSTORE", OPTIMISE) == ["CallValue", "MStore #0 $2"]


def test_a_byte_store_is_unmade_by_a_word_over_it() -> None:
    assert folded("CALLER PUSH 5 MSTORE8 CALLVALUE PUSH 0 MSTORE")[1].stores_dropped == 1


@pytest.mark.parametrize(
    "between",
    [
        "PUSH 16 MLOAD POP",
        "PUSH 32 PUSH 0 LOG0",
        "PUSH 32 PUSH 0 KECCAK256 POP",
        "PUSH 1 PUSH 8 PUSH 64 MCOPY",
        "DUP1 MLOAD POP",
        "PUSH 0 PUSH 0 PUSH 32 PUSH 0 PUSH 9 GAS STATICCALL POP",
    ],
)
def test_a_store_that_may_be_read_stays(between: str) -> None:
    assert folded(f"CALLER PUSH 0 MSTORE {between} CALLVALUE PUSH 0 MSTORE")[1].stores_dropped == 0


def test_a_store_overwritten_only_in_part_stays() -> None:
    assert folded("CALLER PUSH 0 MSTORE CALLVALUE PUSH 1 MSTORE")[1].stores_dropped == 0


def test_storing_what_is_there_already_is_not_done() -> None:
    assert folded("CALLER PUSH 0 MSTORE CALLER PUSH 0 MSTORE")[1].stores_dropped == 1
    assert folded("DUP1 MLOAD DUP2 MSTORE")[1].stores_dropped == 1


def test_at_the_end_of_a_frame_only_what_is_returned_was_worth_storing() -> None:
    text = "CALLER PUSH 0 MSTORE CALLVALUE PUSH 32 MSTORE PUSH 32 PUSH 0"
    assert folded(f"{text} RETURN")[1].stores_dropped == 1
    assert folded(f"{text} REVERT")[1].stores_dropped == 1
    assert folded(f"{text} STOP")[1].stores_dropped == 2


def test_a_store_before_a_jump_stays() -> None:
    assert folded("CALLER PUSH 0 MSTORE PUSH 5 JUMP")[1].stores_dropped == 0


# -- checks ---------------------------------------------------------------------------------------------------------


def test_one_check_covers_the_highest_constant_offset() -> None:
    assert fold_steps("CALLER PUSH 0 MSTORE CALLER PUSH 64 MSTORE CALLER PUSH 32 MSTORE") == [
        "Reach #0 #96",
        "Caller",
        "MStore! #0 $0",
        "MStore! #64 $0",
        "MStore! #32 $0",
    ]


def test_a_check_an_earlier_one_covers_is_dropped() -> None:
    _, stats = folded("PUSH 64 MLOAD POP CALLER PUSH 0 MSTORE")
    assert (stats.checks, stats.checks_dropped) == (2, 1)


def test_checks_of_one_base_are_merged_upwards() -> None:
    steps = fold_steps("CALLER DUP2 MSTORE CALLVALUE DUP2 PUSH 32 ADD MSTORE")
    assert [step for step in steps if step.startswith("Reach")] == ["Reach $0 #64"]


@pytest.mark.parametrize("observer", ["GAS POP", "MSIZE POP", "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9 GAS STATICCALL POP"])
def test_checks_are_not_merged_across_whoever_looks(observer: str) -> None:
    steps = fold_steps(f"CALLER PUSH 0 MSTORE {observer} CALLER PUSH 64 MSTORE")
    assert len([step for step in steps if step.startswith("Reach")]) == 2


def test_a_load_that_is_forwarded_still_pays_for_memory() -> None:
    steps = fold_steps("PUSH 0 MLOAD POP PUSH 0 PUSH 64 KECCAK256 POP PUSH 32 PUSH 64 KECCAK256 POP")
    assert steps == ["Reach #0 #96"]


def test_memory_no_gas_can_pay_for_ends_the_block() -> None:
    block, _ = folded(f"PUSH 1 PUSH {1 << 80:#x} MSTORE CALLER")
    assert block.end.op == "INVALID"


def test_where_gas_may_fall_running_out_of_it_is_not_kept() -> None:
    """Decided: a store to memory nobody reads goes, whatever its memory would have cost; see docs/ir.md."""
    text = "PUSH 1 PUSH32 0x" + "f0" * 32 + " MSTORE STOP"
    assert fold_steps(text, OPTIMISE) == []
    assert folded(text, OPTIMISE)[0].end.op == "STOP"
    assert folded(text)[0].end.op == "INVALID"


def test_where_gas_may_fall_no_checks_are_split_off() -> None:
    assert folded("CALLER PUSH 0 MSTORE", OPTIMISE)[1].checks == 0


def test_checks_are_known_along_dominators_and_across_joins() -> None:
    code = assemble(
        "CALLER PUSH 64 MSTORE CALLVALUE PUSH @a JUMPI CALLER PUSH 0 MSTORE "
        "a: JUMPDEST PUSH 32 MLOAD PUSH 0 SSTORE STOP"
    )
    guards = [value for value in functions_of(code, LATEST).unit.functions["f_0"].instructions() if value.op == "REACH"]
    assert len(guards) == 1
