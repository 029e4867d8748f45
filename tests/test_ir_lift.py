"""Lifting: gas and stack bounds of a block, what vanishes and what stays, and the order of what stays."""

from __future__ import annotations

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import ACCESS, MSIZE, NONE
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule, spills_of
from irtools import lifted, steps


def test_a_block_knows_its_lowest_and_highest_point_and_its_delta() -> None:
    block = lifted("POP PUSH 1 PUSH 2 PUSH 3 ADD DUP3")
    assert (len(block.params), block.high, block.delta) == (2, 2, 2)


def test_swap_needs_the_words_it_reaches() -> None:
    assert len(lifted("SWAP3").params) == 4


def test_static_gas_is_one_section_where_nobody_looks_at_the_counter() -> None:
    assert lifted("JUMPDEST PUSH 1 PUSH 2 ADD POP").sections == (1 + 3 + 3 + 3 + 2,)


def test_a_section_ends_with_whatever_looks_at_the_gas_counter() -> None:
    assert lifted("PUSH 1 GAS PUSH 1 PUSH 2 SSTORE CALLER").sections == (5, 6, 2)


def test_static_gas_is_the_forks() -> None:
    (source,) = basic_blocks(assemble("PUSH 1 SLOAD"))
    assert lift_block(source, Fork.ISTANBUL).gas == 803
    assert lift_block(source, Fork.BERLIN).gas == 103


def test_the_position_of_pc_is_a_literal() -> None:
    assert steps(lifted("CALLER PC")) == ["Spill #1 1", "Caller", "Spill $0 0"]


def test_an_unused_pure_instruction_goes_and_its_gas_stays() -> None:
    block = lifted("CALLER CALLVALUE ADD POP")
    assert steps(block) == []
    assert block.gas == 2 + 2 + 3 + 2


def test_an_unused_load_stays_for_its_price_and_what_it_warms() -> None:
    assert steps(lifted("PUSH 1 SLOAD POP PUSH 1 PUSH 0 EXP POP")) == ["SLoad #1", "Exp #0 #1"]


def test_where_gas_may_fall_an_unused_load_goes() -> None:
    block = lifted("PUSH 1 SLOAD POP PUSH 32 MLOAD POP GAS POP")
    assert schedule(block, MSIZE | ACCESS).steps == []


def test_an_unused_load_stays_where_somebody_sees_that_memory_grew_or_what_is_warm() -> None:
    block = lifted("PUSH 1 SLOAD POP PUSH 32 MLOAD POP PUSH 3 PUSH 2 EXP POP")
    assert steps(block, NONE) == ["SLoad #1", "MLoad #32"]
    assert steps(block, MSIZE) == ["SLoad #1"]
    assert steps(block, ACCESS) == ["MLoad #32"]


def test_effects_keep_their_order() -> None:
    block = lifted("PUSH 1 PUSH 2 SSTORE PUSH 3 PUSH 4 MSTORE PUSH 0 PUSH 0 LOG0")
    assert steps(block) == ["SStore #2 #1", "MStore #4 #3", "Log0 #0 #0"]


def test_a_read_moves_behind_writes_it_does_not_see() -> None:
    assert steps(lifted("RETURNDATASIZE PUSH 1 PUSH 2 MSTORE PUSH 0 MSTORE")) == [
        "MStore #2 #1",
        "ReturnDataSize",
        "MStore #0 $0",
    ]


def test_a_read_stays_before_a_write_it_would_see() -> None:
    assert steps(lifted("PUSH 5 TLOAD PUSH 1 PUSH 5 TSTORE PUSH 0 MSTORE")) == [
        "TLoad #5",
        "TStore #5 #1",
        "MStore #0 $0",
    ]


def test_an_unknown_opcode_ends_the_frame() -> None:
    (source,) = basic_blocks(bytes.fromhex("600c0c"))
    assert lift_block(source).end.op == "INVALID"
    assert spills_of(lift_block(source)) == []


def test_running_off_the_code_falls_to_behind_it() -> None:
    assert lifted("PUSH 1").end.cases == (2,)


def test_a_block_that_no_stack_has_room_for_halts() -> None:
    block = lifted("PUSH 1 " * 1_025 + "STOP")
    assert (block.end.op, block.high, block.gas) == ("INVALID", 1_025, 3 * 1_025)
