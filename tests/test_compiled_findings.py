"""Programs that the back end once compiled wrongly, or not at all: found by `lab/yul/compiled.py` and shrunken."""

from __future__ import annotations

from fusevm.lab.yul.compiled import Tally, check
from fusevm.lab.yul.generate_contracts import Contract

SOME_CALLS = ((b"", 0), (bytes(3) + b"\1", 0), (bytes(3) + b"\2" + bytes(31) + b"\5" + bytes(32), 1), (bytes(100), 0))


def compiles_rightly(source: str, calls: tuple[tuple[bytes, int], ...] = SOME_CALLS, deploys: bool = False) -> None:
    assert check(Contract(source, calls, deploys), Tally()) is None


def test_a_hoisted_value_check_gets_a_block_of_its_own() -> None:
    """Its number was that of a block which the hoisting had just cut off."""
    compiles_rightly(
        """{
        switch shr(224, calldataload(0))
        case 1 { one() }
        case 2 { two() }
        revert(0, 0)
        function one() { if callvalue() { revert(0, 0) } let p1 := decode_1(4, 0) }
        function two() { if callvalue() { } }
        function decode_1(head, end) -> x { { refuse() } }
        function refuse() { revert(0, 0) }
    }"""
    )


def test_functions_inside_blocks_may_call_what_the_main_code_does_not() -> None:
    """Plain code that is too deep is tried without the functions that the main code never comes to."""
    wide = " ".join(f"let x{number} := calldataload({number})" for number in range(18))
    stores = " ".join(f"sstore({number}, x{number})" for number in range(18))
    compiles_rightly(f"{{ {{ function inner() {{ outer() }} }} {wide} {stores} function outer() {{ sstore(1, 2) }} }}")


def test_a_store_that_nobody_reads_stays_where_msize_sees_memory_grow() -> None:
    compiles_rightly("{ mstore(0x40, 0x80) let size := msize() sstore(0, size) }")
    compiles_rightly("{ mstore(0x40, 1) let size := msize() mstore(0x40, 2) sstore(0, size) }")
    compiles_rightly("{ mstore8(0x200, 1) mstore(0xe0, msize()) return(0xe0, 32) }")


def test_a_shift_is_looked_for_in_the_block_that_it_is_in() -> None:
    """Not in the one it was made in, which may have become part of another: `optimize` ended in KeyError."""
    compiles_rightly(
        """{
        let x0 := shr(128, calldataload(0))
        let x1 := calldataload(32)
        let x3 := xor(x1, iszero(x0))
        let x4 := sub(x1, x1)
        let x6 := and(shl(8, x0), 3)
        for { let i := 0 } and(lt(i, 4), iszero(iszero(iszero(x0)))) { i := add(i, 1) x6 := shr(1, x6) } {
            sstore(1, add(eq(sub(x1, x3), x3), shl(1, i)))
            if x4 { break }
        }
        sstore(3, div(x6, not(0)))
    }"""
    )
