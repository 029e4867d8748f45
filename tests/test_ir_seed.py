"""The design notes' examples of dependency blocks, as corrected, to the letter."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import BasicBlock, basic_blocks
from fusevm.ir.builder import Builder
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule, spills_of
from fusevm.ir.parse import parse
from fusevm.ir.text import block_text, listing, step_text


def source(text: str) -> BasicBlock:
    (block,) = basic_blocks(assemble(text))
    return block


def steps(text: str, inline: bool = False) -> list[str]:
    return [step_text(step) for step in schedule(lift_block(source(text)), inline=inline).steps]


def test_the_first_example_as_corrected() -> None:
    """Two words are consumed, so the new one lands at -2."""
    block = lift_block(BasicBlock(1, source("PUSH 1 ADD SSTORE PUSH 42 PUSH 12 JUMP").instructions))
    assert block_text(block) == (
        "dependency block 1:\n"
        "    $0 = Unspill -1\n"
        "    $2 = Add #1 $0\n"
        "    $1 = Unspill -2\n"
        "    $3 = SStore $2 $1\n"
        "    $4 = Spill #42 -2\n"
        "    Jump #12\n"
    )


def test_the_virtual_stack_begins_with_the_words_the_block_will_need() -> None:
    builder = Builder()
    builder.enter(2)
    builder.block.end.words = tuple(reversed(builder.block.params))
    assert listing(builder.block) == "instrs:\n  0: Unspill -1\n  1: Unspill -2\n\nvstack: [$1, $0]\n"


@pytest.mark.parametrize(
    ("opcode", "instruction", "vstack"),
    [("ADD", "  2: Add $0 $1", "[$2]"), ("SSTORE", "  2: SStore $0 $1", "[]")],
)
def test_an_opcode_updates_instructions_and_virtual_stack(opcode: str, instruction: str, vstack: str) -> None:
    block = lift_block(source(opcode))
    assert listing(block) == f"instrs:\n  0: Unspill -1\n  1: Unspill -2\n{instruction}\n\nvstack: {vstack}\n"


@pytest.mark.parametrize(
    ("before", "opcodes", "vstack"),
    [
        ("", "PUSH 7", "[#7]"),
        ("PUSH 1", "POP", "[]"),
        ("PUSH 1 PUSH 2", "SWAP1", "[#2, #1]"),
        ("PUSH 1", "DUP1", "[#1, #1]"),
    ],
)
def test_opcodes_that_only_arrange_the_stack_leave_no_instruction(before: str, opcodes: str, vstack: str) -> None:
    block = lift_block(source(f"{before} {opcodes}"))
    assert block.instructions == []
    assert f"vstack: {vstack}\n" in listing(block)


@pytest.mark.parametrize(
    ("opcode", "terminator"),
    [
        ("RETURN", "Return $0 $1"),
        ("REVERT", "Revert $0 $1"),
        ("SELFDESTRUCT", "SelfDestruct $0"),
        ("INVALID", "InvalidInstruction"),
        ("STOP", "Stop"),
    ],
)
def test_terminators_that_end_the_frame_spill_nothing(opcode: str, terminator: str) -> None:
    block = lift_block(source(f"PUSH 9 POP {opcode}"))
    assert block_text(block).splitlines()[-1].strip() == terminator
    assert spills_of(block) == []


def test_a_jump_leaves_what_already_lies_in_its_slot() -> None:
    """The notes spill $1 to -2, its own slot: never emitted."""
    block = lift_block(source("JUMP"))
    assert block_text(block) == "dependency block 0:\n    $0 = Unspill -1\n    Jump $0\n"


def test_swap1_reads_both_words_before_it_writes_either() -> None:
    assert steps("SWAP1") == ["$0 = Unspill -1", "$1 = Unspill -2", "$2 = Spill $1 -1", "$3 = Spill $0 -2"]


def test_dup1_does_not_spill_a_slot_to_itself() -> None:
    assert steps("DUP1") == ["$0 = Unspill -1", "$1 = Spill $0 0"]


def test_a_word_is_unspilled_again_behind_a_run_time_call() -> None:
    assert steps("DUP1 PUSH1 34 ADD PUSH0 MSTORE PUSH1 12 ADD") == [
        "$0 = Unspill -1",
        "$1 = Add #34 $0",
        "$2 = MStore #0 $1",
        "$0 = Unspill -1",
        "$3 = Add #12 $0",
        "$4 = Spill $3 -1",
    ]


def test_unspills_are_operands_where_nobody_else_needs_the_word() -> None:
    assert steps("DUP1 ADD PUSH0 MSTORE", inline=True) == [
        "$1 = Add (Unspill -1) (Unspill -1)",
        "$2 = MStore #0 $1",
    ]


def test_a_spilled_word_is_reloaded_from_its_slot_behind_a_run_time_call() -> None:
    """The notes' last example: spill $1, MSTORE, load $1 from where it was spilled, SUB."""
    assert steps("ADD DUP1 PUSH0 MSTORE DUP1 PUSH1 43 SWAP1 SUB") == [
        "$0 = Unspill -1",
        "$1 = Unspill -2",
        "$2 = Add $0 $1",
        "$6 = Spill $2 -2",
        "$3 = MStore #0 $2",
        "$2 = Unspill -2",
        "$4 = Sub $2 #43",
        "$5 = Spill $4 -1",
    ]


def test_the_text_is_read_back() -> None:
    text = block_text(lift_block(source("PUSH 1 ADD SSTORE GAS SWAP2 PUSH 0 MLOAD PUSH 12 JUMPI")), facts=True)
    (block,) = parse(text)
    assert block_text(block, facts=True) == text


def test_case_comments_and_unspill_operands_are_read() -> None:
    (block,) = parse(
        """
        dependency block 7: // from the notes
            $2 = ADD (unspill -1) (Unspill -1)   // two operands, one slot
            $3 = mstore #0 $2
            $4 = Spill $2 -1
            Jump #12
        """
    )
    assert block_text(block, schedule(block, inline=True)) == (
        "dependency block 7:\n"
        "    $2 = Add (Unspill -1) (Unspill -1)\n"
        "    $4 = Spill $2 -1\n"
        "    $3 = MStore #0 $2\n"
        "    Jump #12\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$1 = Add #1 #2", "line 1: '$1 = Add #1 #2' stands before the first 'dependency block N:'"),
        ("dependency block 0:\n$1 = Frob #1", "line 2: 'Frob' is not an instruction"),
        ("dependency block 0:\n$1 = Add #1", "line 2: 'Add' takes 2 operands, not 1"),
        ("dependency block 0:\n$1 = Add #1 $7", "line 2: '$7' is never computed"),
        ("dependency block 0:\n$1 = Add #1 x", "line 2: 'x' is not a value: a literal #n, a $n, or (Unspill n)"),
        ("dependency block 0:\nAdd #1 #2", "line 2: 'Add' computes a value, and needs '$n =' before it"),
        ("dependency block 0:\n$1 = Unspill x", "line 2: 'x' is not a slot of the run-time stack"),
    ],
)
def test_bad_text_names_the_line_and_the_word(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="ir: ") as caught:
        parse(text)
    assert str(caught.value) == f"ir: {message}"
