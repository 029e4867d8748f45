"""Programs that the back end once compiled wrongly, or not at all: found by `lab/yul/compiled.py` and shrunken."""

from __future__ import annotations

import pytest

from fusevm.chain.outcome import Status
from fusevm.codegen.bytecode import optimize
from fusevm.codegen.yul import compile_object
from fusevm.lab.yul.compiled import CompiledTally, check, run_code
from fusevm.lab.yul.generate_contracts import YulContract
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

SOME_CALLS = ((b"", 0), (bytes(3) + b"\1", 0), (bytes(3) + b"\2" + bytes(31) + b"\5" + bytes(32), 1), (bytes(100), 0))


def compiles_rightly(source: str, calls: tuple[tuple[bytes, int], ...] = SOME_CALLS, deploys: bool = False) -> None:
    found = check(YulContract(source, calls, deploys), CompiledTally())
    assert found is None or "gas was" in found


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


def test_a_function_that_returns_an_argument_or_the_number_of_its_place_returns_either() -> None:
    """`optimize` took the second argument and 2 for the same."""
    words = (0, 1, 2, 7)
    calls = tuple((one.to_bytes(32, "big") + two.to_bytes(32, "big"), 0) for one in words for two in words)
    compiles_rightly(
        """{
        sstore(0, f(and(calldataload(32), 3), calldataload(0)))
        function f(n, a) -> r { if n { a := f(sub(n, 1), 2) } sstore(3, a) r := a }
    }""",
        calls,
    )


def test_a_payment_is_refused_on_ways_that_do_not_lead_through_the_switch() -> None:
    """Cases that do nothing lead to code that other ways lead to as well: the check was lost for those."""
    words = [
        (one.to_bytes(32, "big") + two.to_bytes(32, "big"), value)
        for one in (0, 1)
        for two in (0, 1, 3)
        for value in (0, 1)
    ]
    check_ = "if callvalue() { revert(0, 0) } sstore(0, 1)"
    switch = "switch calldataload(32) case 1 { } case 2 { } default { revert(0, 0) }"
    compiles_rightly(f"{{ if calldataload(0) {{ {switch} }} {check_} }}", tuple(words))
    compiles_rightly(
        f"{{ switch calldataload(0) case 1 {{ }} case 2 {{ }} default {{ {switch} }} {check_} }}", tuple(words)
    )


@pytest.mark.long
def test_functions_that_call_each_other_for_ever_are_called() -> None:
    """They have no effects but never return; the call was dropped, and what came after it in the code was run."""
    calls = tuple((number.to_bytes(32, "big"), 0) for number in range(3))
    each_other = "function f() { g() } function g() { f() }"
    compiles_rightly(
        "{ switch calldataload(0) case 0 { f() } case 1 { sstore(1, 1) } default { sstore(2, 2) } " + each_other + "}",
        calls,
    )
    compiles_rightly(
        "{ f(calldataload(0)) sstore(0, 1) "
        "function f(x) { if x { g(x) } } function g(x) { h(x) } function h(x) { f(x) } }",
        calls,
    )


def test_immutables_are_written_to_memory() -> None:
    for before, after in (("mload(1)", "mload(1)"), ("keccak256(0, 64)", "keccak256(0, 64)"), ("1", "mload(0)")):
        compiles_rightly(
            f"""object "a" {{ code {{
                datacopy(0, dataoffset("r"), datasize("r")) mstore(0, 7) let a := {before}
                setimmutable(0, "x", 77) sstore(1, a) sstore(2, {after}) return(0, datasize("r"))
            }} object "r" {{ code {{ sstore(0, loadimmutable("x")) }} }} }}""",
            deploys=True,
        )


def test_memory_grows_where_verbatim_code_may_see_it() -> None:
    compiles_rightly('{ let x := mload(0x100) sstore(0, add(x, verbatim_0i_1o(hex"59"))) }')
    compiles_rightly('{ pop(keccak256(0x80, 32)) sstore(0, f()) function f() -> r { r := verbatim_0i_1o(hex"59") } }')


def test_what_lies_behind_the_smaller_of_two_guards_holds_no_spilled_words() -> None:
    names = range(20)
    given = " ".join(f"let x{each} := xor(sload({each}), calldataload({3 * each}))" for each in names)
    stored = " ".join(f"sstore({100 + each}, x{each})" for each in names)
    loop = "for { let i := 0 } lt(i, 20) { i := add(i, 1) } { mstore(add(g, mul(i, 32)), 0xdead) }"
    compiles_rightly(
        f"{{ let g := memoryguard(0x80) pop(memoryguard(0x100)) {given} {loop} {stored} }}", ((bytes(range(100)), 0),)
    )


def test_a_check_of_an_address_goes_only_where_the_access_stays() -> None:
    """The access told that the address is small, then it was dead and dropped: plain code runs out of gas there."""
    dialect, big = dialect_for(), (1 << 120).to_bytes(32, "big")
    for access in ("pop(mload(x))", "mstore(x, 1)", "pop(keccak256(x, 1))"):
        source = (
            f"{{ let x := calldataload(0) {access} if gt(x, 0xffffffffffffffffff) {{ revert(0, 0) }} sstore(0, x) }}"
        )
        code = compile_object(parse_object(source, dialect), dialect, runs=200).code
        for made in (code, optimize(code, dialect.fork, always=True).code):
            (run,) = run_code(made, YulContract(source, ((big, 0),)), dialect)
            assert run.effects.status is not Status.SUCCESS


def test_a_store_stays_if_a_function_may_end_the_frame_before_the_store_over_it() -> None:
    """In a static call the first store halts; without it the function reverted with data."""
    for store in ("sstore", "tstore"):
        compiles_rightly(
            f"""{{
            {store}(0, 3)
            check(calldataload(0))
            {store}(0, 4)
            function check(n) {{ if lt(n, 3) {{ if n {{ check(sub(n, 1)) }} }} if lt(n, 1) {{ revert(0, 64) }} }}
        }}"""
        )


def test_an_access_that_no_gas_pays_for_is_not_dropped_once_its_offset_is_a_literal() -> None:
    """The check of the offset was dropped because of the access, then, in the inlined copy, the access as dead."""
    for access in ("pop(mload(x))", "mstore(x, 1)", "pop(keccak256(x, 1))"):
        source = f"""{{
            f(0x10000000000000000)
            function f(x) {{ {access} if gt(x, 0xffffffffffffffff) {{ revert(0, 0) }} sstore(0, 1) }}
        }}"""
        dialect = dialect_for()
        contract = YulContract(source, ((b"", 0),))
        plain = compile_object(parse_object(source, dialect), dialect, runs=None).code
        codes = [compile_object(parse_object(source, dialect), dialect, runs=runs).code for runs in (0, 200, 10_000)]
        for code in (*codes, optimize(plain, always=True).code):
            assert run_code(code, contract, dialect)[0].effects.status is Status.HALT
