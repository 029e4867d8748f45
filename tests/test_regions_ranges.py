"""What is known of a word in a region: from branches and memory accesses that lie on every way to it, and no others."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.ir.ranges import Range
from fusevm.native.region.build import placed_schedule, regions_of
from fusevm.native.region.choice import every_block
from regionprograms import ANSWER, Program

NARROW = (1 << 64) - 1
GIVEN = "PUSH0 CALLDATALOAD"


def ranges_of(code: str, op: str) -> list[Range]:
    """Those of all results of an opcode, in all regions, in the order of the code."""
    region = regions_of(placed_schedule(assemble(code), LATEST), LATEST, every_block)
    unit, ranges = region.unit, region.ranges
    return [
        ranges[name][value.id]
        for name, each in unit.functions.items()
        for value in each.instructions()
        if value.op == op
    ]


def program(*parts: str) -> str:
    """In a region of its own, which is entered by a jump. It is left with everything on the stack."""
    return " ".join((GIVEN, "PUSH1 @go JUMP go: JUMPDEST", *parts, "PUSH1 @end JUMP end: JUMPDEST STOP"))


def test_an_offset_is_short_after_an_access_to_memory_there() -> None:
    before, after = ranges_of(program("DUP1 PUSH1 1 ADD DUP2 MLOAD DUP3 PUSH1 2 ADD"), "ADD")[:2]
    assert before.high > NARROW
    assert after == Range(2, 2**42 - 31)


@pytest.mark.parametrize("access", [True, False])
def test_an_offset_is_short_in_a_loop_after_an_access_before_it(access: bool) -> None:
    loop = "PUSH1 9 loop: JUMPDEST DUP2 PUSH1 3 ADD SLOAD POP PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    found = ranges_of(program("DUP1 MLOAD POP" if access else "", loop), "ADD")[0]
    assert (found.high <= NARROW) == access


def test_an_access_on_one_of_two_ways_says_nothing_after_they_meet() -> None:
    ways = "CALLVALUE PUSH1 @skip JUMPI DUP1 MLOAD POP skip: JUMPDEST"
    found = ranges_of(program(ways, "PUSH1 1 ADD"), "ADD")
    assert found
    assert all(each.high > NARROW for each in found)


def test_an_access_of_no_bytes_says_nothing() -> None:
    found = ranges_of(program("PUSH0 DUP2 KECCAK256 DUP2 PUSH1 1 ADD"), "ADD")
    assert found
    assert all(each.high > NARROW for each in found)


@pytest.mark.parametrize("turned", ["", "ISZERO"])
def test_a_condition_says_nothing_where_its_ways_meet(turned: str) -> None:
    ways = f"PUSH1 80 DUP2 LT {turned} PUSH1 @meet JUMPI NUMBER POP meet: JUMPDEST"
    found = ranges_of(program(ways, "PUSH1 1 ADD"), "ADD")
    assert found
    assert all(each.high > NARROW for each in found)


def test_a_condition_holds_after_ways_that_part_and_meet_below_it() -> None:
    """A loop's counter, stepped after a choice within the loop."""
    body = "CALLVALUE PUSH1 @one JUMPI NUMBER POP one: JUMPDEST PUSH1 1 ADD PUSH1 @loop JUMP"
    loop = f"PUSH0 loop: JUMPDEST PUSH1 80 DUP2 LT ISZERO PUSH1 @done JUMPI {body} done: JUMPDEST"
    assert Range(1, 80) in ranges_of(program(loop), "ADD")


@pytest.mark.parametrize("data", [0, 31, 2**20, 2**42 - 33, 2**42, 2**64, 2**64 + 32, 2**256 - 1])
def test_offsets_of_any_size_end_as_on_the_reference_tier(data: int) -> None:
    """What is computed of an offset before its access, after it, in a loop and beside it."""
    loop = (
        "PUSH1 3 loop: JUMPDEST DUP1 DUP3 ADD DUP1 MLOAD ADD PUSH1 32 MSTORE PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    )
    for body in (
        f"DUP1 PUSH1 7 ADD DUP2 MLOAD ADD PUSH0 MSTORE {loop} POP",
        f"CALLVALUE PUSH1 @skip JUMPI DUP1 MLOAD POP skip: JUMPDEST DUP1 PUSH1 1 ADD PUSH0 MSTORE {loop} POP",
        "CALLER PUSH1 @skip JUMPI DUP1 MLOAD POP skip: JUMPDEST PUSH1 1 ADD",
    ):
        Program(f"{GIVEN} PUSH1 @go JUMP go: JUMPDEST {body} {ANSWER}", data=data).agreed_at_every_gas()
