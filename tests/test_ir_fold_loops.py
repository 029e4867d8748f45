"""What leaves a loop, and what must not."""

from __future__ import annotations

from fusevm.ir.block import DependencyBlock, Program
from fusevm.ir.copies import COPY, name_of
from irtools import folded_program

END = "PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI STOP"


def block_with(program: Program, op: str) -> DependencyBlock:
    return next(block for block in program.blocks.values() if any(value.op == op for value in block.instructions))


def test_a_pure_value_that_does_not_change_leaves_the_loop() -> None:
    program, stats = folded_program(f"PUSH 9 loop: JUMPDEST PUSH 4 CALLDATALOAD CALLER MUL PUSH 0 MSTORE {END}")
    assert block_with(program, "MUL").start == 0
    assert stats.hoisted >= 3


def test_a_value_made_of_a_phi_stays() -> None:
    program, _ = folded_program(f"PUSH 9 loop: JUMPDEST DUP1 CALLER MUL PUSH 0 MSTORE {END}")
    assert block_with(program, "MUL").start == 2
    assert block_with(program, "CALLER").start == 0


def test_a_value_leaves_every_loop_it_does_not_change_in() -> None:
    program, _ = folded_program(
        "PUSH 9 outer: JUMPDEST PUSH 8 loop: JUMPDEST CALLER CALLVALUE MUL PUSH 0 MSTORE "
        "PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI POP PUSH 1 SWAP1 SUB DUP1 PUSH @outer JUMPI STOP"
    )
    assert block_with(program, "MUL").start == 0


def test_a_value_stops_at_the_loop_it_changes_in() -> None:
    program, _ = folded_program(
        "PUSH 9 outer: JUMPDEST PUSH 8 loop: JUMPDEST DUP2 CALLVALUE MUL PUSH 0 MSTORE "
        "PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI POP PUSH 1 SWAP1 SUB DUP1 PUSH @outer JUMPI STOP"
    )
    assert block_with(program, "MUL").start == 2


def test_a_value_on_one_arm_only_stays() -> None:
    program, _ = folded_program(
        "PUSH 9 loop: JUMPDEST DUP1 PUSH 1 AND PUSH @skip JUMPI CALLER CALLVALUE MUL PUSH 0 MSTORE "
        f"skip: JUMPDEST {END}"
    )
    assert block_with(program, "MUL").start not in (0, 2)


def test_a_check_the_header_makes_on_every_turn_leaves_the_loop() -> None:
    program, _ = folded_program(f"PUSH 4 CALLDATALOAD PUSH 9 loop: JUMPDEST DUP2 MLOAD PUSH 0 SSTORE {END}")
    assert block_with(program, "REACH").start == 0
    assert block_with(program, "MLOAD").start == 5


def test_a_check_behind_a_look_at_the_gas_counter_stays() -> None:
    program, _ = folded_program(f"PUSH 4 CALLDATALOAD PUSH 9 loop: JUMPDEST GAS POP DUP2 MLOAD PUSH 0 SSTORE {END}")
    assert block_with(program, "REACH").start == 5


def test_a_check_of_a_loop_that_may_run_no_turn_stays_inside() -> None:
    program, _ = folded_program(
        "PUSH 4 CALLDATALOAD PUSH 9 loop: JUMPDEST DUP1 PUSH @body JUMPI STOP "
        "body: JUMPDEST DUP2 MLOAD PUSH 0 SSTORE PUSH 1 SWAP1 SUB PUSH @loop JUMP"
    )
    assert block_with(program, "REACH").start not in (0, 5)


def test_loads_and_stores_do_not_leave_a_loop() -> None:
    program, _ = folded_program(f"PUSH 9 loop: JUMPDEST PUSH 5 SLOAD PUSH 0 MSTORE {END}")
    assert block_with(program, "SLOAD").start == 2


WHILE = (
    "PUSH 4 CALLDATALOAD PUSH 9 loop: JUMPDEST DUP1 PUSH @body JUMPI STOP "
    "body: JUMPDEST DUP2 MLOAD PUSH 0 SSTORE PUSH 1 SWAP1 SUB PUSH @loop JUMP"
)


def test_with_the_first_turn_peeled_off_a_check_is_made_only_there() -> None:
    program, _ = folded_program(WHILE, peel=True)
    guards = [name_of(block.start) for block in program.blocks.values() for v in block.instructions if v.op == "REACH"]
    assert guards == ["11.1"]


def test_a_peeled_turn_goes_on_to_the_loop_and_is_entered_in_its_place() -> None:
    program, _ = folded_program(WHILE, peel=True)
    ways = {
        name_of(block.start): [name_of(edge.target) for edge in block.terminator.edges]
        for block in program.blocks.values()
    }
    assert ways["0"] == ["5.1"]
    assert ways["11.1"] == ["5"]
    assert ways["11"] == ["5"]


def test_only_innermost_loops_are_peeled() -> None:
    program, _ = folded_program(
        "CALLDATASIZE outer: JUMPDEST CALLDATASIZE loop: JUMPDEST PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI POP "
        "PUSH 1 SWAP1 SUB DUP1 PUSH @outer JUMPI STOP",
        peel=True,
    )
    assert [name_of(start) for start in program.blocks if start >= COPY] == ["3.1"]


def test_a_loop_too_large_is_not_peeled() -> None:
    program, _ = folded_program(f"PUSH 9 loop: JUMPDEST {'CALLER PUSH 0 MSTORE ' * 200} {END}", peel=True)
    assert all(start < COPY for start in program.blocks)
