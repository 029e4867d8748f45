"""Functions recovered from bytecode: what is found, what is refused, and why."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.ir.recovery.unit import Recovered, recover
from fusevm.ir.recovery.words import RecoveryFailed
from fusevm.ir.text import unit_text


def recovered(text: str) -> Recovered:
    return recover(assemble(text))


def refusal(text: str) -> str:
    with pytest.raises(RecoveryFailed) as raised:
        recovered(text)
    return str(raised.value)


ADD_ONE = "f: JUMPDEST PUSH 1 ADD SWAP1 JUMP "
STORE = "PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN "


def test_a_jump_with_an_address_waiting_is_a_call() -> None:
    found = recovered(f"PUSH @back PUSH 5 PUSH @f JUMP back: JUMPDEST {STORE}" + ADD_ONE)
    assert unit_text(found.unit) == (
        "function main()\n"
        "  block 0():\n"
        "    Jump 1()\n"
        "  block 1():\n"
        "    $3 = call f_e #5\n"
        "    $5 = result 0 of $3\n"
        "    Jump 2()\n"
        "  block 2():\n"
        "    $6 = MStore #0 $5\n"
        "    Return #0 #32\n"
        "\n"
        "function f_e($0) -> 1\n"
        "  block 0($0):\n"
        "    Jump 1()\n"
        "  block 1():\n"
        "    $2 = Add #1 $0\n"
        "    Leave $2\n"
    )


def test_a_function_called_twice_is_one_function() -> None:
    found = recovered(
        f"PUSH @one PUSH 5 PUSH @f JUMP one: JUMPDEST PUSH @two SWAP1 PUSH @f JUMP two: JUMPDEST {STORE}" + ADD_ONE
    )
    assert len(found.unit.functions) == 2
    calls = [value for value in found.unit.functions[""].instructions() if value.op == "CALLFN"]
    assert len(calls) == 2


def test_a_call_in_place_of_a_return_is_a_call_and_a_return() -> None:
    found = recovered(
        "PUSH @one PUSH 4 PUSH @f JUMP one: JUMPDEST PUSH @two SWAP1 PUSH @g JUMP "
        f"two: JUMPDEST {STORE} g: JUMPDEST PUSH 2 MUL PUSH @f JUMP {ADD_ONE}"
    )
    texts = unit_text(found.unit)
    assert texts.count("call f_") == 3  # two of the main code, one of g
    assert texts.count("Leave") == 2


def test_a_word_that_differs_by_the_way_taken_becomes_a_parameter() -> None:
    found = recovered(f"PUSH 7 PUSH 0 CALLDATALOAD PUSH @join JUMPI POP PUSH 9 join: JUMPDEST {STORE}")
    blocks = found.unit.functions[""].blocks()
    assert [len(block.params) for block in blocks if block.params] == [1]


def test_a_word_that_is_tested_is_zero_where_the_test_fails() -> None:
    """Solidity leaves stacks of different heights where a flag says which: only one of the ways is possible."""
    found = recovered(
        "PUSH 0 CALLDATALOAD DUP1 ISZERO PUSH @merge JUMPI POP PUSH 3 PUSH 1 "
        "merge: JUMPDEST PUSH @good JUMPI STOP good: JUMPDEST " + STORE
    )
    assert found.highest >= 2


def test_a_parameter_is_not_the_number_of_its_place() -> None:
    """The second word from the top is 2 on one of the ways: it was taken for the same on both."""
    function = (
        "f: JUMPDEST PUSH 0 CALLDATALOAD PUSH @set JUMPI PUSH @on JUMP set: JUMPDEST SWAP1 POP PUSH 2 SWAP1 "
        "on: JUMPDEST ADD SWAP1 JUMP"
    )
    found = recovered(f"PUSH @back PUSH 7 PUSH 5 PUSH @f JUMP back: JUMPDEST {STORE} STOP {function}")
    blocks = [block for each in found.unit.functions.values() for block in each.blocks()]
    assert [len(block.params) for block in blocks if block.params and block.start] == [1]


def test_an_address_that_was_masked_or_shifted_to_and_fro_is_still_an_address() -> None:
    for change in ("PUSH4 0xffffffff AND", "PUSH1 32 SHL PUSH1 32 SHR"):
        assert recovered(f"PUSH @there {change} JUMP there: JUMPDEST STOP").unit.functions[""]


def test_a_jump_to_where_no_jumpdest_is_halts() -> None:
    assert "InvalidInstruction" in unit_text(recovered("PUSH 3 JUMP STOP").unit)


def test_taking_from_an_empty_stack_halts() -> None:
    assert "InvalidInstruction" in unit_text(recovered("PUSH 1 ADD STOP").unit)


def test_a_number_that_looks_like_an_address_is_a_number() -> None:
    """0x05 is a jump target here, and an ordinary operand of the ADD."""
    found = recovered("PUSH1 7 PUSH1 5 ADD JUMPDEST PUSH 0 MSTORE STOP")
    assert "MStore #0 #12" in unit_text(found.unit)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PUSH 0 CALLDATALOAD JUMP a: JUMPDEST STOP", "a jump to an address that is not known"),
        ("PUSH 0 MLOAD JUMP a: JUMPDEST STOP", "a jump to an address that is not known"),
        ("PUSH @a PUSH 0 MSTORE PUSH @a JUMP a: JUMPDEST STOP", ""),
        ("PUSH @a DUP1 PUSH 0 MSTORE JUMP a: JUMPDEST STOP", "a code address is used as a number"),
        ("PUSH @a DUP1 PUSH 0 SSTORE JUMP a: JUMPDEST STOP", "a code address is used as a number"),
        ("PC POP STOP", "PC reads the place of its own code"),
        ("PUSH 1 a: JUMPDEST PUSH 1 PUSH @a JUMP", "the stack grows with each turn"),
        (
            "PUSH @back PUSH @f JUMP back: JUMPDEST STOP f: JUMPDEST DUP1 PUSH 0 MSTORE JUMP",
            "a return address is used as a number",
        ),
    ],
)
def test_what_is_not_certain_is_refused_with_its_reason(text: str, reason: str) -> None:
    if not reason:  # the two pushes are different words: one is a number, the other an address
        recovered(text)
    else:
        assert refusal(text).startswith(reason)


def test_a_function_that_calls_itself_is_found_with_what_each_call_adds_to_the_stack() -> None:
    found = recovered(
        f"PUSH @back PUSH 0 CALLDATALOAD PUSH @f JUMP back: JUMPDEST {STORE}"
        "f: JUMPDEST DUP1 PUSH @more JUMPI POP PUSH 1 SWAP1 JUMP "
        "more: JUMPDEST PUSH @after PUSH 1 DUP3 SUB PUSH @f JUMP after: JUMPDEST MUL SWAP1 JUMP"
    )
    assert found.growth == (2, 2)  # a return address and an operand
    assert unit_text(found.unit).count("call f_") == 2


def test_functions_that_call_each_other_become_one_that_calls_itself() -> None:
    found = recovered(
        "PUSH @back PUSH 3 PUSH @f JUMP back: JUMPDEST STOP "
        "f: JUMPDEST DUP1 PUSH @more JUMPI POP JUMP "
        "more: JUMPDEST PUSH @after PUSH 1 DUP3 SUB PUSH @g JUMP after: JUMPDEST POP JUMP "
        "g: JUMPDEST DUP1 PUSH @less JUMPI POP JUMP "
        "less: JUMPDEST PUSH @then PUSH 1 DUP3 SUB PUSH @f JUMP then: JUMPDEST POP JUMP "
    )
    assert found.growth == (4, 4)


def test_a_place_is_named_in_the_reason() -> None:
    assert refusal("PUSH 0 CALLDATALOAD JUMP").endswith("(at 0x2)")


def test_recovery_of_code_that_doubles_its_ways_ends_within_its_budget() -> None:
    """Every block pushes one of two addresses: 2^n combinations."""
    rounds = "".join(
        f"PUSH @a{n} PUSH 0 CALLDATALOAD PUSH @j{n} JUMPI POP PUSH @b{n} j{n}: JUMPDEST " for n in range(18)
    )
    ends = "".join(f"a{n}: JUMPDEST POP b{n}: JUMPDEST " for n in range(18))
    jumps = "JUMP " + ends + "STOP"
    assert "too many combinations" in refusal(rounds + jumps)


def test_a_word_that_is_still_to_be_filled_in_decides_no_branch() -> None:
    found = recovered(f"PUSH32 0 PUSH @there JUMPI STOP there: JUMPDEST PUSH 1 {STORE}")
    assert "Branch" in unit_text(found.unit)


def test_a_copy_of_a_condition_is_as_certain_when_code_is_made_as_when_ways_were_looked_for() -> None:
    """It was not where the condition is an ISZERO: a way came up that had not been looked into."""
    jumpdest = b"\x5b"
    code = (
        bytes.fromhex("6080806040526004361015")
        + jumpdest * 9
        + bytes.fromhex("5f905f")
        + jumpdest * 97
        + bytes.fromhex("6100803661009056")
        + jumpdest * 116
        + bytes.fromhex("1692829033151580")
        + jumpdest * 9
        + bytes.fromhex("90915080610138575b1561011757")
        + jumpdest * 124
    )
    assert recover(code).unit.functions


@pytest.mark.parametrize("more", ["", "DUP1 "])
def test_a_function_that_returns_to_itself_ends_the_search(more: str) -> None:
    """It was followed for ever."""
    assert "too many combinations" in refusal(f"PUSH @f PUSH @f JUMP f: JUMPDEST DUP1 {more}JUMP")


def test_code_that_calls_its_own_beginning_is_refused() -> None:
    """There its first words are not missing."""
    assert "its own beginning" in refusal(
        "JUMPDEST PUSH 0 SLOAD DUP1 ISZERO PUSH @end JUMPI PUSH 1 SWAP1 SUB PUSH 0 SSTORE "
        "PUSH @ret CALLDATASIZE PUSH @out JUMPI PUSH @ret PUSH 0 JUMP "
        "end: JUMPDEST POP JUMP out: JUMPDEST JUMP ret: JUMPDEST PUSH 42 " + STORE
    )


def test_numbers_that_turn_out_not_to_be_addresses_one_after_another_are_refused() -> None:
    pushed = " ".join(f"PUSH2 @x{each}" for each in (6, 5, 4, 3, 2, 1))
    compared = " ".join(f"PUSH2 @x{each} EQ PUSH2 @live{each} JUMPI JUMP live{each}: JUMPDEST" for each in range(1, 6))
    ends = " ".join(f"x{each}: JUMPDEST PUSH1 {each} PUSH0 MSTORE8 STOP" for each in range(1, 7))
    assert "is not certain" in refusal(f"JUMPDEST {pushed} {compared} POP STOP {ends}")
