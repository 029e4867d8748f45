"""Small programs in which each part of the back end has something to get wrong, run beside plain code."""

from __future__ import annotations

import pytest

from fusevm import yul
from fusevm.chain.outcome import Status
from fusevm.codegen import writing
from fusevm.codegen.inlining import inline_what_pays, size_of
from fusevm.codegen.weights import all_weights
from fusevm.codegen.yul import StepOrder, compile_object
from fusevm.codegen.yul_functions import unit_of
from fusevm.ir import analyses
from fusevm.ir.fold.functions import FunctionFolder
from fusevm.ir.fold.summaries import summaries
from fusevm.lab.yul.compiled import CompiledTally, check, run_code
from fusevm.lab.yul.generate_contracts import YulContract
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

TOP = 2**256 - 1


def word(number: int) -> bytes:
    return (number & TOP).to_bytes(32, "big")


CALLS = tuple((word(one) + word(other), 0) for one in (0, 1, 2, 5) for other in (0, 1, 7))


def compiles_rightly(source: str, calls: tuple[tuple[bytes, int], ...] = CALLS) -> None:
    found = check(YulContract(source, calls), CompiledTally())
    assert found is None or "gas was" in found


def compiled(source: str) -> bytes:
    dialect = dialect_for()
    return compile_object(parse_object(source, dialect), dialect, runs=200).code


def test_a_comparison_with_a_sum_that_may_wrap_is_not_inverted() -> None:
    calls = tuple((word(one) + word(other), 0) for one in (0, TOP - 5, TOP - 4) for other in (0, 5, TOP))
    compiles_rightly(
        "{ if iszero(lt(add(calldataload(0), 5), calldataload(32))) { revert(0, 0) } sstore(1, 2) }", calls
    )


# -- calls that are not inlined ---------------------------------------------------------------------------------------

AGAIN = "if n { f(sub(n, 1)) }"  # makes a function recursive, so that its calls stay


@pytest.mark.parametrize(
    "source",
    [
        f"{{ mstore(0, 1) f(2) sstore(0, mload(0)) function f(n) {{ {AGAIN} mstore(0, add(n, 5)) }} }}",
        f"{{ sstore(1, 1) f(2) sstore(0, sload(1)) function f(n) {{ {AGAIN} sstore(1, add(n, 5)) }} }}",
        f"{{ tstore(1, 1) f(2) sstore(0, tload(1)) function f(n) {{ {AGAIN} tstore(1, add(n, 5)) }} }}",
        f"{{ mstore(0, 9) f(2) mstore(0, 1) return(0, 32) function f(n) {{ {AGAIN} sstore(3, mload(0)) }} }}",
        f"{{ sstore(1, 9) f(2) sstore(1, 1) function f(n) {{ {AGAIN} sstore(3, sload(1)) }} }}",
    ],
)
def test_a_call_may_write_and_read_what_the_caller_knows(source: str) -> None:
    compiles_rightly(source)


def test_as_many_calls_are_inlined_as_fit_into_the_size_that_may_be_reached() -> None:
    sizes = range(4, 20)
    functions = "".join(f"function f{n}(a) -> b {{ b := a {'b := mulmod(b, a, 7) ' * n}}}" for n in sizes)
    calls = "".join(f"sstore({n}, f{n}(f{n}(calldataload({n}))))" for n in sizes)
    unit = unit_of(parse_object(f"{{ {calls} {functions} }}", dialect_for()).code, dialect_for(), 0)
    largest = 1.2 * sum(size_of(function, unit) for function in unit.functions.values())
    inline_what_pays(unit, all_weights(unit), 2_000, largest)
    assert sum(len(list(analyses.calls(function))) for function in unit.functions.values()) <= len(sizes)


@pytest.mark.parametrize("end", ["return(0, 32)", "stop()", "revert(0, 32)", "invalid()", "selfdestruct(caller())"])
def test_a_call_that_ends_the_frame_keeps_the_stores_before_it(end: str) -> None:
    compiles_rightly(
        f"""{{
        sstore(0, 1) mstore(0, 7)
        f(calldataload(0))
        sstore(0, 2) mstore(0, 8)
        function f(n) {{ if eq(n, 1) {{ {end} }} if gt(n, 1) {{ f(sub(n, 1)) }} }}
    }}"""
    )


def test_a_call_whose_result_nobody_wants_may_still_fail() -> None:
    compiles_rightly("{ pop(f(calldataload(0))) sstore(0, 1) function f(a) -> b { if a { revert(0, 0) } b := 1 } }")
    compiles_rightly(
        "{ pop(f(calldataload(0))) sstore(0, 1) function f(a) -> b { for { } a { } { } b := 1 } }", ((word(0), 0),)
    )


def test_a_result_is_the_one_of_its_place() -> None:
    for body in ("x := a y := add(b, 1) z := sub(a, b)", "if a { x := b leave } z := a y := 3"):
        function = f"function f(a, b) -> x, y, z {{ {body} }}"
        once = "let x, y, z := f(calldataload(0), calldataload(32)) sstore(0, x) sstore(1, y) sstore(2, z)"
        compiles_rightly(f"{{ {once} {function} }}")
        compiles_rightly(
            f"{{ {once} {{ {once.replace('sstore(', 'sstore(1')} }} {function} }}".replace("{ let", "{ let", 1)
        )


def test_parameters_come_in_the_order_of_the_call() -> None:
    compiles_rightly(
        """{
        sstore(0, f(calldataload(0), calldataload(32), 3, 4))
        function f(n, a, b, c) -> r { r := sub(sub(mul(a, 7), b), c) if n { r := xor(f(sub(n, 1), b, c, a), r) } }
    }"""
    )


# -- comparisons ------------------------------------------------------------------------------------------------------

BOUNDS = (0, 1, 255, 256, 2**255 - 1, 2**255, TOP)


@pytest.mark.parametrize("op", ["lt", "gt", "slt", "sgt", "eq"])
@pytest.mark.parametrize(
    "form", ["{op}(x, {bound})", "{op}({bound}, x)", "iszero({op}(x, {bound}))", "{op}(add(x, 4), {bound})"]
)
def test_branches_on_comparisons_are_right_at_their_bounds(op: str, form: str) -> None:
    tests = " ".join(
        f"if {form.format(op=op, bound=bound)} {{ sstore({number}, add(sload({number}), 1)) }}"
        for number, bound in enumerate(BOUNDS)
    )
    calls = tuple((word(bound + near), 0) for bound in BOUNDS for near in (-5, -4, -1, 0, 1))
    compiles_rightly(f"{{ let x := calldataload(0) {tests} }}", calls)


@pytest.mark.parametrize("first", ["lt(a, b)", "gt(a, b)", "eq(a, b)", "slt(a, b)", "iszero(lt(a, b))", "sub(a, b)"])
def test_what_a_comparison_says_of_two_words_holds_for_the_others(first: str) -> None:
    asked = (
        "lt(a, b)",
        "gt(a, b)",
        "eq(a, b)",
        "lt(b, a)",
        "slt(a, b)",
        "sgt(b, a)",
        "gt(sub(a, b), a)",
        "gt(sub(b, a), b)",
    )
    stores = " ".join(f"sstore({number}, {each})" for number, each in enumerate(asked))
    others = stores.replace("sstore(", "sstore(1")
    words = (0, 1, 2, 2**255 - 1, 2**255, TOP)
    calls = tuple((word(a) + word(b), 0) for a in words for b in words)
    compiles_rightly(
        f"{{ let a := calldataload(0) let b := calldataload(32) if {first} {{ {stores} stop() }} {others} }}", calls
    )


# -- switches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9, 16, 33])
def test_every_case_of_a_switch_is_reached_and_everything_else_goes_to_the_default(count: int) -> None:
    numbers = [number * number * 0x1234567 for number in range(count)]
    cases = " ".join(
        f"case {number} {{ sstore({place}, add(sload({place}), 1)) }}" for place, number in enumerate(numbers)
    )
    calls = tuple((word(number + near), 0) for number in numbers for near in (-1, 0, 1))
    compiles_rightly(f"{{ switch calldataload(0) {cases} default {{ sstore(99, add(sload(99), 1)) }} }}", calls)
    compiles_rightly(f"{{ switch calldataload(0) {cases} sstore(98, 1) }}", calls)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("switch calldataload(0) case 1 { } case 2 { } case 3 { } case 4 { } case 5 { }", "00"),
        ("switch calldataload(0) case 1 { revert(0, 0) } default { revert(0, 0) }", "5f5ffd"),
        ("if calldataload(0) { } sstore(1, 2)", "600260015500"),
        ("for { } calldataload(0) { } { break }", "00"),
    ],
)
def test_a_choice_between_equal_ways_is_none(source: str, code: str) -> None:
    assert compiled(f"{{ {source} }}").hex() == code


def test_cases_that_do_what_the_default_does_are_not_compared_with() -> None:
    cases = " ".join(f"case {number} {{ {'sstore(1, 2)' if number == 40 else ''} }}" for number in range(30, 60))
    source = f"{{ switch calldataload(0) {cases} }}"
    assert len(compiled(source)) < 16
    compiles_rightly(source, tuple((word(number), 0) for number in range(28, 62)))
    kept = "switch calldataload(0) case 3 { sstore(1, 1) } case 4 { revert(0, 1) } default { revert(0, 0) }"
    compiles_rightly(f"{{ {kept} }}", tuple((word(number), 0) for number in range(6)))
    looped = (
        "for { let i := 0 } lt(i, 3) { i := add(i, 1) } { switch calldataload(0) case 1 { } default { sstore(i, i) } }"
    )
    compiles_rightly(f"{{ {looped} }}")


def test_a_frame_that_ends_does_not_tidy_its_stack() -> None:
    """And a jump to code no longer than itself is that code."""
    source = "{ if calldataload(36) { sstore(0, calldataload(36)) } }"
    assert compiled(source).hex() == "6024358060085700" + "5b5f5500"
    compiles_rightly(source)


# -- stores that are never read -------------------------------------------------------------------------------------

FLAG = "calldataload(0)"


@pytest.mark.parametrize(
    ("dead", "without"),
    [
        (f"if {FLAG} {{ mstore(0, {FLAG}) sstore(0, 1) }}", f"if {FLAG} {{ sstore(0, 1) }}"),
        (f"mstore(0, 1) if {FLAG} {{ sstore(0, 1) }} mstore(0, 2) log0(0, 32)", None),
        (f"mstore8(31, 1) if {FLAG} {{ sstore(0, 1) }} calldatacopy(0, 0, 32) log0(0, 32)", None),
        (f"mstore(64, 128) switch {FLAG} case 1 {{ revert(0, 4) }} case 2 {{ return(0, 32) }}", None),
    ],
)
def test_a_store_that_no_way_reads_is_none(dead: str, without: str | None) -> None:
    without = dead[dead.index(")") + 2 :] if without is None else without
    assert compiled(f"{{ {dead} }}") == compiled(f"{{ {without} }}")
    compiles_rightly(f"{{ {dead} }}")


@pytest.mark.parametrize(
    "source",
    [
        f"mstore(0, 7) if {FLAG} {{ mstore(0, 8) }} log0(0, 32)",  # one way leaves it
        f"mstore(0, 7) if {FLAG} {{ revert(0, 32) }} mstore(0, 8) log0(0, 32)",  # one way reads it
        f"mstore(0, 7) if {FLAG} {{ sstore(1, 1) }} mstore(1, 8) log0(0, 32)",  # a byte of it stays
        f"mstore(1, 7) if {FLAG} {{ sstore(1, 1) }} mstore(0, 8) log0(0, 33)",
        f"mstore(0, 7) if {FLAG} {{ sstore(1, 1) }} mcopy(0, 1, 32) log0(0, 32)",  # read by what overwrites it
        f"mstore(32, 7) if {FLAG} {{ sstore(1, 1) }} mcopy(0, 31, 32) log0(0, 32)",
        f"mstore(0, 7) if {FLAG} {{ sstore(1, 1) }} pop(call(gas(), 4, 0, 0, 0, 0, 32)) log0(0, 32)",  # writes nothing
        f"mstore(0, 7) if {FLAG} {{ sstore(1, 1) }} log0({FLAG}, 32)",
        f"mstore(64, 7) if {FLAG} {{ sstore(1, 1) }} log0(0, shl(5, calldataload(32)))",
        "mstore(0, 7) for { let i := 0 } lt(i, 3) { i := add(i, 1) } { sstore(i, mload(0)) mstore(0, i) }",
        f"mstore(0, 7) if {FLAG} {{ sstore(1, 1) }} sstore(2, msize())",
        f"mstore(0, 7) f({FLAG}) function f(n) {{ if n {{ f(sub(n, 1)) }} sstore(n, mload(0)) }}",
        f"f({FLAG}) log0(0, 64) function f(n) {{ mstore(0, n) if n {{ mstore(32, n) f(sub(n, 1)) }} }}",
        f"mstore(0, 7) f({FLAG}) mstore(0, 8) log0(0, 32) function f(n) {{ if n {{ f(sub(n, 1)) return(0, 32) }} }}",
    ],
)
def test_a_store_that_some_way_reads_stays(source: str) -> None:
    compiles_rightly(f"{{ {source} }}")


# -- what is known of words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        ("let a := and(calldataload(0), shl(255, 1)) let b := add(a, a)", "0"),
        ("let a := calldataload(0) let b := signextend(0, shl(8, a))", "0"),
        ("let a := shl(3, calldataload(0)) let b := and(sub(a, 8), 7)", "0"),
        ("let a := mul(calldataload(0), 48) let b := and(a, 15)", "0"),
        ("let a := and(calldataload(0), 0xf0) let b := eq(a, 0x101)", "0"),
        ("let a := calldataload(0) let b := eq(add(and(a, 0xf0), and(shr(8, a), 7)), 0xf8)", "0"),
    ],
)
def test_bits_that_are_never_set_decide(words: str, stored: str) -> None:
    assert compiled(f"{{ {words} sstore(1, b) }}") == compiled(f"{{ sstore(1, {stored}) }}")
    calls = tuple((word(number), 0) for number in (0, 1, 7, 0xF0, 0x1F7, 2**255, TOP))
    compiles_rightly(f"{{ {words} sstore(1, b) sstore(2, a) }}", calls)


def test_a_payment_is_refused_only_where_it_was() -> None:
    refusing = "if callvalue() { revert(0, 0) }"
    calls = tuple((word(case), value) for case in range(5) for value in (0, 1))
    for where in range(4):
        cases = " ".join(
            f"case {case} {{ {refusing if case != where else ''} sstore({case}, 1) }}" for case in range(3)
        )
        for default in ("revert(0, 0)", "", refusing, "mstore(0, 1) revert(0, 32)"):
            compiles_rightly(f"{{ switch calldataload(0) {cases} default {{ {default} }} sstore(9, 1) }}", calls)


# -- order, sinking and sharing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "{ let a := sload(0) sstore(0, add(calldataload(0), 5)) sstore(1, a) }",
        "{ let a := sload(0) if calldataload(0) { sstore(0, 5) sstore(1, a) } }",
        "{ let a := mload(0) mstore(0, calldataload(0)) if calldataload(32) { sstore(1, a) } sstore(2, mload(0)) }",
        "{ let a := keccak256(0, 32) mstore(0, calldataload(0)) if calldataload(32) { sstore(1, a) } }",
        "{ let a := returndatasize() pop(staticcall(gas(), 4, 0, 8, 0, 0)) sstore(0, a) sstore(1, returndatasize()) }",
        "{ let a := selfbalance() pop(call(gas(), 0x9999, 5, 0, 0, 0, 0)) sstore(0, sub(a, selfbalance())) }",
        "{ let a := tload(0) tstore(0, calldataload(0)) sstore(1, a) sstore(2, tload(0)) }",
        "{ mstore(0, calldataload(0)) let a := mload(0) mstore8(31, 7) sstore(0, a) sstore(1, mload(0)) }",
        "{ let a := tload(0) tstore(0, 5) if calldataload(0) { sstore(1, a) } sstore(2, tload(0)) }",
        "{ let a := msize() mstore(640, 5) if calldataload(0) { sstore(1, a) } sstore(2, mload(640)) }",
        "{ let a := returndatasize() pop(call(gas(), 4, 0, 0, 32, 0, 0)) if calldataload(0) { sstore(1, a) } }",
        "{ let a := call(gas(), 4, 0, 0, 32, 0, 32) sstore(7, returndatasize()) if calldataload(0) { sstore(1, a) } }",
    ],
)
def test_a_read_sees_what_was_there_when_it_was_written(source: str) -> None:
    compiles_rightly(source)


def test_a_long_constant_is_there_on_every_way_that_uses_it() -> None:
    long = hex(0xDDF252AD1BE2C89B69C2B068FC378DAA952BA7F163C4A11628F55A4DF523B3EF)
    compiles_rightly(
        f"""{{
        if calldataload(0) {{ sstore(0, {long}) if calldataload(32) {{ sstore(1, {long}) }} }}
        sstore(calldataload(0), {long})
        sstore(2, xor({long}, calldataload(32)))
        for {{ let i := 0 }} lt(i, 3) {{ i := add(i, 1) }} {{ sstore(add(i, {long}), {long}) }}
    }}"""
    )


def test_what_a_loop_does_not_change_is_not_computed_in_it() -> None:
    turn = "for { let i := 0 } lt(i, 50) { i := add(i, 1) } { if calldataload(i) { sstore(i, x) } }"
    costly = "calldataload(0)"
    for number in range(40):
        costly = f"mulmod({costly}, calldataload({number}), not({number}))"
    calls = ((bytes(31) + b"\3" + b"\1" * 100, 0),)
    dialect = dialect_for()

    def gas(value: str) -> int:
        code = compile_object(parse_object(f"{{ let x := {value} {turn} }}", dialect), dialect, runs=200).code
        (run,) = run_code(code, YulContract("", calls), dialect)
        assert run.effects.status is Status.SUCCESS
        return run.gas

    assert gas(costly) < gas("calldataload(0)") + 40 * 30


def test_a_flag_that_is_used_again_is_not_lost_where_its_branch_is_threaded() -> None:
    for use in (
        "sstore(9, ok)",
        "if ok { sstore(9, 1) }",
        "ok := add(ok, 1) sstore(9, ok)",
        "if iszero(ok) { sstore(9, 2) }",
    ):
        compiles_rightly(
            f"""{{
            let ok := 0
            switch calldataload(0) case 0 {{ ok := 1 }} case 1 {{ ok := calldataload(32) }} case 2 {{ sstore(1, 1) }}
            if ok {{ sstore(2, 2) }}
            {use}
        }}"""
        )


# -- too many values --------------------------------------------------------------------------------------------------


def crowded(count: int, guard: bool, again: str = "") -> str:
    """A function whose values are all read before any is stored, each used twice, in another order; others per call."""
    loads = " ".join(f"let x{at} := add(sload(add(n, {at})), mul(n, {at + 3}))" for at in range(count))
    order = [number * 7 % count for number in range(count)]
    stores = " ".join(f"sstore(add(mul(n, 100), {number}), add(x{number}, {number}))" for number in order)
    back = " ".join(f"r := xor(mul(r, 3), x{number})" for number in range(count))
    head = "mstore(0x40, memoryguard(0x80))" if guard else ""
    memory = "log0(mload(0x40), 64)" if guard else ""
    function = f"function f(n, m) -> r {{ {loads} {again} {stores} {back} }}"
    return f"{{ {head} sstore(5, f(calldataload(0), 6)) {memory} {function} }}"


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("count", [10, 17, 20])
def test_many_values_at_once_are_kept_apart(count: int, guard: bool) -> None:
    compiles_rightly(crowded(count, guard), ((word(1), 0), (word(2), 0)))


AGAIN = "if lt(n, 4) { m := xor(f(add(n, 1), m), m) }"


@pytest.mark.parametrize("count", [8, 12, 14, 17, 20, 30])
def test_a_recursive_function_keeps_its_values_apart_from_those_of_inner_calls(count: int) -> None:
    """What is in memory is on the stack while the function may be called again."""
    compiles_rightly(crowded(count, True, AGAIN), ((word(1), 0), (word(2), 0)))


def test_functions_that_call_each_other_keep_their_values_apart() -> None:
    around = "if lt(n, 4) { m := xor(g(add(n, 1), m), m) }"
    other = "function g(n, m) -> r { let s := sload(n) r := xor(f(n, s), s) sstore(77, xor(f(add(n, 1), r), s)) } }"
    compiles_rightly(crowded(20, True, around)[:-1] + other, ((word(1), 0), (word(2), 0)))


def test_a_recursive_function_without_memory_of_its_own_is_refused_as_by_solc() -> None:
    with pytest.raises(StackTooDeep, match="in function 'f'"):
        yul.compile(crowded(20, False, AGAIN))


def test_parameters_that_do_not_fit_are_kept_in_memory_before_they_are_used() -> None:
    names = [f"p{number}" for number in range(14)]
    uses = " ".join(f"sstore({number}, {name})" for number, name in enumerate(names))
    uses += " ".join(f" sstore({number + 50}, add({name}, a{number % 6}))" for number, name in enumerate(names))
    locals_ = " ".join(f"let a{number} := sload({number})" for number in range(6))
    arguments = ", ".join(f"calldataload({number})" for number in range(14))
    function = f"function f({', '.join(names)}) {{ {locals_} {uses} }}"
    loop = f"for {{ let i := 0 }} lt(i, 2) {{ i := add(i, 1) }} {{ f({arguments}) f({arguments.replace('(', '(1')}) }}"
    compiles_rightly(f"{{ mstore(0x40, memoryguard(0x80)) {loop} {function} }}")


def test_what_hardly_fits_when_inlined_is_compiled_by_all_passes() -> None:
    """Not by the plain generator, which costs far more than a few calls."""
    names = range(10)
    inner = " ".join(f"let y{n} := sload(add(a, {n}))" for n in names) + " ".join(f" sstore({n}, y{n})" for n in names)
    outer = " ".join(f"let x{n} := sload(calldataload({n}))" for n in names)
    after = " ".join(f"sstore(add({n}, 50), x{n})" for n in names)
    function = f"function f(a) -> r {{ {inner} {' '.join(f'r := xor(mul(r, 3), y{n})' for n in names)} }}"
    source = f"{{ {outer} sstore(90, f(x1)) sstore(91, f(x2)) {after} {function} }}"
    compiles_rightly(source)
    obj, dialect = parse_object(source, dialect_for()), dialect_for()
    often, plain = (compile_object(obj, dialect, runs=runs) for runs in (10_000, None))
    assert not any("as it stands" in note for note in often.notes)
    assert len(often.code) < len(plain.code)


def test_blocks_after_an_access_that_no_gas_pays_for_may_be_folded_all_the_same() -> None:
    """In code that jumps everywhere all blocks are folded, whether or not anything leads to them."""
    source = "{ mstore(0x10000000000000000, 1) let x := sload(0) if calldataload(0) { sstore(1, x) } }"
    unit = unit_of(parse_object(source).code, dialect_for())
    blocks = frozenset(block.start for block in unit.functions[""].blocks())
    folded = FunctionFolder(unit, unit.functions[""], summaries(unit), keeps_growth=False, reached=blocks).run()
    assert [block.end.op for block in folded.blocks()] == ["INVALID"]


def test_what_spilling_does_not_help_is_given_up_or_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that stays on the stack although it is spilled was spilled without end."""
    monkeypatch.setattr(writing, "keep_in_memory", lambda *_: None)
    assert not compile_object(parse_object(crowded(20, True)), order=StepOrder.AS_WRITTEN).notes
