"""Programs: stack slots as block parameters, PHIs where ways disagree, the run-time stack where nobody knows."""

from __future__ import annotations

from fusevm.evm.assembly import assemble
from fusevm.evm.opcodes import ACCESS, MSIZE
from fusevm.ir.block import Mode
from fusevm.ir.parse import parse
from fusevm.ir.text import program_text
from fusevm.ir.values import PHI
from irtools import folded_program, program

COUNTDOWN = "PUSH 5 loop: JUMPDEST PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI STOP"


def test_a_loop_counter_is_a_phi_and_never_touches_the_run_time_stack() -> None:
    loop = program(COUNTDOWN).blocks[2]
    assert loop.params == (-1,)
    assert loop.entry[0].op == PHI
    assert loop.spills == []


def test_edges_hand_over_what_the_phis_become() -> None:
    made = program(COUNTDOWN)
    (entry,) = made.blocks[0].terminator.edges
    assert (entry.target, entry.args[-1].number) == (2, 5)
    back = next(edge for edge in made.blocks[2].terminator.edges if edge.target == 2)
    assert back.args[-1].op == "SUB"


def test_the_text_of_a_program() -> None:
    assert program_text(program(COUNTDOWN)) == (
        "dependency block 0:\n"
        "    Fall #2\n"
        "      -> 2 (-1 = #5)\n"
        "\n"
        "dependency block 2:\n"
        "    $0 = Phi -1\n"
        "    $1 = Sub $0 #1\n"
        "    JumpI #2 $1 else #11\n"
        "      -> 2 (-1 = $1)\n"
        "      -> 11 ()\n"
        "\n"
        "dependency block 11:\n"
        "    Stop\n"
    )


def test_the_text_of_a_program_is_read_back() -> None:
    blocks = parse(program_text(program(COUNTDOWN)))
    assert [block.start for block in blocks] == [0, 2, 11]
    assert blocks[1].params == (-1,)
    assert blocks[1].terminator.edges[0].args[-1] is blocks[1].instructions[0]


def test_a_word_all_ways_agree_on_is_no_phi() -> None:
    text = "CALLER CALLVALUE PUSH @b JUMPI PUSH 1 POP b: JUMPDEST PUSH 0 MSTORE STOP"
    made = program(text)
    last = made.blocks[max(made.blocks)]
    assert last.params == ()
    assert last.instructions[0].args[1] is made.blocks[0].instructions[0]


def test_a_word_a_loop_does_not_change_is_no_phi() -> None:
    made = program("CALLER PUSH 5 loop: JUMPDEST DUP2 PUSH 0 MSTORE PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI STOP")
    assert made.blocks[3].params == (-1,)


def test_a_slot_nobody_reads_again_is_neither_handed_over_nor_spilled() -> None:
    made = program("CALLER CALLER CALLVALUE PUSH @b JUMPI STOP b: JUMPDEST POP POP STOP")
    assert not any(edge.args for block in made.blocks.values() for edge in block.terminator.edges)
    assert not any(block.spills for block in made.blocks.values())


def test_words_are_spilled_before_an_unknown_jump_and_read_behind_it() -> None:
    made = program("CALLER PUSH 0 CALLDATALOAD JUMP b: JUMPDEST PUSH 0 MSTORE STOP")
    assert [spill.number for spill in made.blocks[0].spills] == [0]
    assert made.blocks[4].params == ()
    assert made.blocks[4].entry[0].op == "UNSPILL"


def test_words_deeper_than_an_instruction_reaches_stay_on_the_run_time_stack() -> None:
    pushes = " ".join(f"PUSH {n} CALLER ADD" for n in range(20))
    made = program(f"{pushes} CALLVALUE PUSH @b JUMPI STOP b: JUMPDEST {'POP ' * 19} PUSH 0 MSTORE STOP")
    assert [spill.number for spill in made.blocks[0].spills] == [3, 2, 1, 0]


def test_a_function_hands_its_result_back_to_each_caller() -> None:
    made = program(
        "PUSH @r1 PUSH 3 PUSH @f JUMP r1: JUMPDEST PUSH @r2 SWAP1 PUSH @f JUMP r2: JUMPDEST PUSH 0 MSTORE STOP "
        "f: JUMPDEST PUSH 7 MUL SWAP1 JUMP"
    )
    function = next(block for block in made.blocks.values() if block.instructions and block.instructions[0].op == "MUL")
    assert len(function.terminator.edges) == 2
    assert not any(block.spills for block in made.blocks.values())


def test_blocks_that_only_follow_each_other_are_one() -> None:
    made = program("PUSH 1 PUSH @a JUMP STOP a: JUMPDEST PUSH 2 ADD b: JUMPDEST PUSH 0 MSTORE STOP")
    assert list(made.blocks) == [0]
    assert made.blocks[0].gas == 3 + 3 + 8 + 1 + 3 + 3 + 1 + 2 + 3


def test_a_jump_through_memory_is_known_once_the_load_is_forwarded() -> None:
    made, stats = folded_program("PUSH @a PUSH 0 MSTORE PUSH 0 MLOAD JUMP a: JUMPDEST STOP")
    assert made.blocks[0].terminator.args[0].is_const
    assert stats.forwarded == 1


def test_a_condition_that_is_known_leaves_one_way() -> None:
    made, stats = folded_program("PUSH 1 PUSH 2 LT PUSH @a JUMPI STOP a: JUMPDEST STOP")
    assert made.blocks[0].terminator.op == "FALL"
    assert stats.guards_decided == 1


def test_a_jump_that_must_fail_ends_the_frame() -> None:
    made, _ = folded_program("PUSH 1 JUMP")
    assert made.blocks[0].terminator.op == "INVALID"


def test_an_unknown_target_is_guarded() -> None:
    made, _ = folded_program("PUSH 0 CALLDATALOAD JUMP JUMPDEST")
    assert made.blocks[0].instructions[-1].op == "VALID"


def test_values_are_shared_along_dominators_and_not_across() -> None:
    made, _ = folded_program(
        "PUSH 4 CALLDATALOAD PUSH @a JUMPI CALLER PUSH 1 ADD PUSH 0 MSTORE PUSH @b JUMP "
        "a: JUMPDEST CALLER PUSH 1 ADD PUSH 32 MSTORE "
        "b: JUMPDEST PUSH 4 CALLDATALOAD PUSH 64 MSTORE PUSH 96 PUSH 0 RETURN"
    )
    ops = [value.op for block in made.blocks.values() for value in block.instructions]
    assert ops.count("CALLDATALOAD") == 1
    assert ops.count("ADD") == 2


def test_memory_is_forgotten_where_ways_join() -> None:
    made, stats = folded_program(
        "CALLER PUSH 0 MSTORE CALLVALUE PUSH @a JUMPI CALLVALUE PUSH 0 MSTORE "
        "a: JUMPDEST PUSH 0 MLOAD PUSH 0 SSTORE STOP"
    )
    assert stats.forwarded == 0
    assert "MLOAD" in [value.op for value in made.blocks[max(made.blocks)].instructions]


def test_memory_is_remembered_into_a_block_with_one_way_in() -> None:
    _, stats = folded_program(
        "CALLER PUSH 0 MSTORE CALLVALUE PUSH @a JUMPI PUSH 0 MLOAD PUSH 0 SSTORE STOP a: JUMPDEST STOP"
    )
    assert stats.forwarded == 1


def test_empty_code_is_an_empty_program() -> None:
    assert program("").blocks == {}
    assert folded_program("")[0].blocks == {}


def test_code_that_is_only_data_is_a_program() -> None:
    assert folded_program("DATA 0xfeef00")[0].blocks[0].terminator.op == "INVALID"
    assert assemble("DATA 0xfe") == b"\xfe"


def test_what_nobody_can_notice_may_go_where_gas_may_fall() -> None:
    load = "PUSH 1 SLOAD POP PUSH 32 MLOAD POP"
    call = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9 PUSH 0 CALL POP"
    unseen = [folded_program(f"{load} {more} STOP", Mode.OPTIMISATION)[0].unseen for more in ("", "MSIZE POP", call)]
    assert unseen == [MSIZE | ACCESS, ACCESS, MSIZE]
    assert folded_program(f"{load} STOP")[0].unseen is None
