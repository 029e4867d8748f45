"""Stores to storage that nobody reads are dropped across blocks; a static call halts where it did."""

from __future__ import annotations

from random import Random

import pytest

from fusevm.codegen.yul import compile_object
from fusevm.evm.bytecode import decode
from fusevm.lab.yul.compiled import CompiledTally, check
from fusevm.lab.yul.generate_contracts import YulContract
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

WORDS = (0, 1, 2, 1 << 255)
CALLS = tuple(((one.to_bytes(32) + other.to_bytes(32)), 0) for one in WORDS for other in WORDS[:2])
F = "function f(x) { if gt(x, 1) { revert(0, 32) } } function g(x) { if x { sstore(7, x) } }"
READ = "function r(n) -> x { if n { x := r(shr(255, n)) } x := add(x, sload(1)) }"
ENDS = "function e() { sstore(9, 9) stop() }"


def stores(source: str, op: str = "SSTORE") -> int:
    """How many are left. The code is run beside its plain translation, in static calls too."""
    contract = YulContract(source, CALLS)
    assert check(contract, CompiledTally(), runs=(200,)) is None, source
    dialect = dialect_for()
    code = compile_object(parse_object(source, dialect), dialect, runs=200).code
    return sum(each.op is not None and each.op.name == op for each in decode(code, dialect.fork))


@pytest.mark.parametrize(
    ("source", "left"),
    [
        # overwritten on every path
        ("{ sstore(1, 5) if calldataload(0) { sstore(2, 6) } sstore(1, calldataload(32)) }", 2),
        ("{ sstore(1, 5) switch calldataload(0) case 0 { sstore(1, 6) } default { sstore(1, 7) } }", 2),
        ("{ sstore(1, 5) for { let i := 0 } lt(i, 3) { i := add(i, 1) } { sstore(add(i, 9), i) } sstore(1, 6) }", 2),
        ("{ let k := calldataload(0) sstore(k, 5) if calldataload(32) { sstore(add(k, 1), 6) } sstore(k, 7) }", 2),
        (f"{{ sstore(1, 5) sstore(3, 1) g(calldataload(0)) sstore(1, 6) {F} }}", 3),
        # undone by a revert
        ("{ log0(0, 0) sstore(1, 5) if calldataload(0) { sstore(2, 6) } sstore(3, 7) revert(0, 32) }", 0),
        ("{ sstore(1, 5) if calldataload(0) { sstore(2, 6) revert(0, 0) } sstore(3, calldataload(32)) }", 2),
        ("{ sstore(1, calldataload(0)) invalid() }", 0),
    ],
)
def test_stores_that_nobody_reads_are_dropped(source: str, left: int) -> None:
    assert stores(source) == left


@pytest.mark.parametrize(
    ("source", "left"),
    [
        # read, on some path
        ("{ sstore(1, 5) if calldataload(0) { sstore(2, sload(calldataload(32))) } sstore(1, 6) }", 3),
        ("{ sstore(1, 5) if calldataload(0) { stop() } sstore(1, 6) }", 2),
        ("{ sstore(1, 5) if calldataload(0) { pop(call(gas(), 0x9999, 0, 0, 0, 0, 0)) } sstore(1, 6) }", 2),
        (
            f"{{ sstore(1, 5) if calldataload(0) {{ sstore(2, r(number())) sstore(3, r(0)) }} sstore(1, 6) {READ} }}",
            4,
        ),
        (f"{{ sstore(1, 5) if calldataload(0) {{ e() }} if calldataload(32) {{ e() }} sstore(1, 6) {ENDS} }}", 3),
        # another slot
        ("{ sstore(calldataload(0), 5) if calldataload(32) { sstore(2, 6) } sstore(1, 6) }", 3),
        ("{ sstore(1, 5) if calldataload(0) { sstore(2, 6) } tstore(1, 7) }", 2),
        # the slot of an iteration is not that of the next one
        ("{ for { let i := 0 } lt(i, 3) { i := add(i, 1) } { sstore(i, add(i, 1)) } }", 1),
        (
            "{ for { let i := 0 } lt(i, 3) {} { sstore(i, 1) i := add(i, 1) if callvalue() { break } sstore(i, 2) } }",
            2,
        ),
        # a static call would end in another way
        (f"{{ sstore(1, 5) f(calldataload(0)) f(calldataload(32)) sstore(1, 6) {F} }}", 2),
        ("{ sstore(1, 5) if calldataload(0) { revert(0, 0) } sstore(1, calldataload(32)) }", 2),
    ],
)
def test_stores_that_somebody_may_see_stay(source: str, left: int) -> None:
    assert stores(source) == left


@pytest.mark.parametrize(
    "source",
    [
        "{ sstore(1, 5) if calldataload(0) { sstore(2, 6) } sstore(3, 7) revert(0, 32) }",
        "{ sstore(1, 5) for {} 1 {} { sstore(2, 6) if calldataload(0) { revert(0, 0) } invalid() } }",
        "{ if calldataload(0) { sstore(1, 5) } revert(0, 32) }",
    ],
)
def test_of_stores_that_are_undone_one_stays_for_static_calls(source: str) -> None:
    """Where there is transient storage, a store of nothing to it."""
    assert (stores(source), stores(source, "TSTORE")) == (0, 1)
    older = dialect_for("shanghai")
    code = compile_object(parse_object(source, older), older, runs=200).code
    assert [each.op.name for each in decode(code, older.fork) if each.op and "STORE" in each.op.name] == ["SSTORE"]


def test_transient_storage_likewise() -> None:
    assert (
        stores("{ tstore(1, 5) if calldataload(0) { tstore(2, 6) } tstore(1, 7) sstore(1, tload(1)) }", "TSTORE") == 2
    )
    assert (
        stores("{ tstore(1, 5) if calldataload(0) { sstore(2, tload(calldataload(32))) } tstore(1, 7) }", "TSTORE") == 2
    )


@pytest.mark.parametrize(
    ("source", "op", "left"),
    [
        ("{ extcodecopy(calldataload(0), 0, 0, 1) sstore(1, 2) }", "EXTCODECOPY", 0),
        ("{ extcodecopy(calldataload(0), 0, 0, 1) sstore(1, call(gas(), 9, 0, 0, 0, 0, 0)) }", "EXTCODECOPY", 0),
        (
            "{ calldatacopy(0, 0, 32) if calldataload(0) { revert(32, 32) } mstore(0, 1) return(0, 32) }",
            "CALLDATACOPY",
            0,
        ),
        (
            "{ calldatacopy(0, 0, 33) if calldataload(0) { revert(32, 32) } mstore(0, 1) return(0, 32) }",
            "CALLDATACOPY",
            1,
        ),
        ("{ calldatacopy(0x9000, 0, 32) if calldataload(32) { return(0x8000, 0x2000) } }", "CALLDATACOPY", 1),
        ("{ returndatacopy(0, 0, 1) if calldataload(32) { sstore(1, 1) } }", "RETURNDATACOPY", 1),
        ("{ mstore(0x9000, 7) if calldataload(32) { return(0x8000, 0x2000) } }", "MSTORE", 1),
        ("{ mstore(0x9000, 7) if calldataload(32) { sstore(1, 1) } }", "MSTORE", 0),
    ],
)
def test_what_is_copied_into_memory_and_never_read_is_dropped(source: str, op: str, left: int) -> None:
    assert stores(source, op) == left


def program(random: Random, depth: int = 2) -> str:
    """Stores, loads, branches, loops, calls and ends around few slots."""
    key = random.choice(("0", "1", "2", "calldataload(0)", "calldataload(32)", "add(calldataload(0), 1)", "i"))
    kind = random.choice("ssst")
    match random.randrange(12 if depth else 7):
        case 0 | 1 | 2 | 3:
            return f"{kind}store({key}, {random.randrange(1, 4)})"
        case 4:
            return f"sstore(50, {kind}load({key}))"
        case 5:
            return random.choice(("a()", "b(i)", "log0(0, 0)", "pop(call(gas(), 0x1003, 0, 0, 32, 0, 32))"))
        case 6:
            return random.choice(
                ("if calldataload(32) { revert(0, 32) }", "if iszero(calldataload(0)) { stop() }", "b(9)")
            )
        case 7 | 8:
            return (
                f"if {random.choice(('calldataload(0)', 'lt(i, 2)', 'calldataload(32)'))} {{ {body(random, depth)} }}"
            )
        case 9:
            return f"switch calldataload(0) case 1 {{ {body(random, depth)} }} default {{ {body(random, depth)} }}"
        case _:
            return f"for {{ let n := 0 }} lt(n, 2) {{ n := add(n, 1) }} {{ i := add(i, 1) {body(random, depth)} }}"


def body(random: Random, depth: int) -> str:
    return " ".join(program(random, depth - 1) for _ in range(random.randrange(1, 4)))


@pytest.mark.parametrize("seed", range(60))
def test_random_stores(seed: int) -> None:
    random = Random(f"slots {seed}")
    for _ in range(4):
        text = " ".join(program(random) for _ in range(random.randrange(2, 7)))
        end = random.choice(("", "revert(0, 32)", "invalid()", "return(0, 32)", "selfdestruct(caller())"))
        functions = f"function a() {{ {random.choice(('sstore(2, 9)', 'sstore(51, sload(1))', 'tstore(1, 1)'))} }}"
        functions += " function b(i) { if gt(i, 3) { mstore(0, i) revert(0, 32) } sstore(60, i) }"
        source = f"{{ let i := and(calldataload(32), 3) {text} {end} {functions} }}"
        assert check(YulContract(source, CALLS), CompiledTally(), runs=(200,)) is None, source
