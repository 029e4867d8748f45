"""What the back end makes of small programs, one optimisation per test: a text of functions, or opcodes counted."""

from __future__ import annotations

from collections import Counter
from textwrap import dedent

import pytest

from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.backend import LEFT_OUT
from fusevm.codegen.pipeline import LOWER, OPTIMISE, PIPELINE, Work, run_passes
from fusevm.codegen.weights import LOOP_ITERATIONS, all_weights, damped, together, undamped
from fusevm.codegen.yul import compile_object
from fusevm.codegen.yul_functions import unit_of
from fusevm.evm.assembler import assemble
from fusevm.evm.bytecode import decode
from fusevm.ir import analyses
from fusevm.ir.recovery.unit import recover
from fusevm.ir.sink_values import sink_values
from fusevm.ir.text import unit_text
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

DIALECT = dialect_for()


def folded(source: str) -> str:
    """The functions of a program, optimised."""
    unit = unit_of(disambiguated(DIALECT, parse_object(source, DIALECT).code), DIALECT)
    run_passes(Work(unit, without=LEFT_OUT), OPTIMISE)
    return unit_text(unit)


def opcodes(source: str, runs: int | None = 200) -> Counter[str]:
    code = compile_object(parse_object(source, DIALECT), DIALECT, runs=runs).code
    return Counter(each.name for each in decode(code))


def lines(text: str) -> str:
    return dedent(text).lstrip("\n")


# -- what is known of words -------------------------------------------------------------------------------------------


def test_an_overflow_check_of_words_too_small_to_overflow_is_dropped() -> None:
    source = """{
        let a := and(calldataload(0), 0xffff)
        let b := and(calldataload(32), 0xffff)
        let sum := add(a, b)
        if gt(a, sum) { revert(0, 0) }
        sstore(0, sum)
    }"""
    assert "Revert" not in folded(source)
    assert "Revert" in folded(source.replace("0xffff", "not(0)"))


def test_an_underflow_check_after_a_comparison_is_dropped() -> None:
    assert folded("""{
        let a := calldataload(0)
        let b := calldataload(32)
        if gt(a, b) { revert(0, 0) }
        let difference := sub(b, a)
        if gt(difference, b) { revert(0, 0) }
        sstore(0, difference)
    }""") == lines("""
        function main()
          block 0():
            $0 = CallDataLoad #0
            $1 = CallDataLoad #32
            $2 = Lt $1 $0
            Branch $2 1(), 2()
          block 2():
            $3 = Sub $1 $0
            $4 = SStore #0 $3
            Stop
          block 1():
            Revert #0 #0
        """)


def test_a_mask_of_bits_that_are_zero_already_is_dropped() -> None:
    mask = hex(2**160 - 1)
    assert folded(f"{{ sstore(0, and(shr(96, calldataload(0)), {mask})) }}") == lines("""
        function main()
          block 0():
            $0 = CallDataLoad #0
            $1 = Shr #96 $0
            $2 = SStore #0 $1
            Stop
        """)


def test_a_calldata_check_that_the_dispatch_has_made_is_dropped() -> None:
    """slt(calldatasize() - 4, 0) cannot hold where calldatasize() is at least 4."""
    assert folded("""{
        if iszero(lt(calldatasize(), 4)) {
            if slt(sub(calldatasize(), 4), 0) { revert(0, 0) }
            sstore(0, 1)
        }
    }""") == lines("""
        function main()
          block 0():
            $0 = CallDataSize
            $1 = Lt #3 $0
            Branch $1 5(), 2()
          block 5():
            $2 = SStore #0 #1
            Jump 2()
          block 2():
            Stop
        """)


def test_a_word_that_is_used_again_is_not_computed_twice_to_suit_a_rule() -> None:
    """or(x, c) moves out of a shift where the shift is all that wants it."""
    assert folded("{ let x := or(calldataload(0), 0xff) sstore(0, shr(1, x)) sstore(1, x) }") == lines("""
        function main()
          block 0():
            $0 = CallDataLoad #0
            $1 = Or $0 #255
            $2 = Shr #1 $1
            $3 = SStore #0 $2
            $4 = SStore #1 $1
            Stop
        """)
    assert "= Or $1 #127" in folded("{ sstore(0, shr(1, or(calldataload(0), 0xff))) }")


def test_a_signed_check_of_a_length_becomes_a_plain_one_without_the_offset() -> None:
    text = folded("""{
        if lt(calldatasize(), 4) { revert(0, 0) }
        if slt(sub(calldatasize(), 4), 32) { revert(0, 0) }
        sstore(0, calldataload(4))
    }""")
    assert "SLt" not in text
    assert "Sub" not in text
    assert "Lt $0 #36" in text


def test_the_counter_of_a_loop_is_known_to_be_below_its_bound_inside() -> None:
    text = folded("""{
        let n := calldataload(0)
        let sum
        for { let i := 0 } lt(i, n) { i := add(i, 1) } { if iszero(lt(i, n)) { revert(0, 0) } sum := add(sum, i) }
        sstore(0, sum)
    }""")
    assert "Revert" not in text
    assert text.count("Lt") == 1


# -- memory, storage and branches -------------------------------------------------------------------------------------


def test_a_load_is_made_once_though_an_if_lies_between() -> None:
    text = folded("{ let a := sload(1) if calldataload(0) { mstore(0, a) } sstore(2, xor(add(a, 7), sload(1))) }")
    assert text.count("SLoad") == 1


def test_a_load_is_made_again_where_a_way_between_stores() -> None:
    text = folded("{ let a := sload(1) if calldataload(0) { sstore(calldataload(4), 9) } sstore(2, sub(a, sload(1))) }")
    assert text.count("SLoad") == 2


def test_a_store_that_is_overwritten_unread_is_dropped() -> None:
    assert folded("{ mstore(0, 1) mstore(0, 2) return(0, 32) }").count("MStore") == 1
    assert folded("{ mstore(0, caller()) sstore(0, keccak256(0, 32)) mstore(0, 2) return(0, 32) }").count("MStore") == 2
    assert folded("{ sstore(0, 1) sstore(0, calldataload(0)) }").count("SStore") == 1


def test_a_word_that_is_stored_back_where_it_was_loaded_from_is_not_stored() -> None:
    assert folded("{ sstore(1, sload(1)) sstore(2, 2) }").count("SStore") == 1
    assert folded("{ let a := sload(1) sstore(calldataload(0), 7) sstore(1, a) sstore(2, 2) }").count("SStore") == 3
    assert folded("{ sstore(1, sload(1)) }").count("SStore") == 1  # in a static call it halts
    called = "{ let a := sload(1) pop(call(gas(), caller(), 0, 0, 0, 0, 0)) sstore(1, a) sstore(2, 2) }"
    assert folded(called).count("SStore") == 2


def test_of_stores_that_a_revert_undoes_only_the_cheapest_stays_for_static_calls() -> None:
    """A store of nothing to transient storage halts them too."""
    text = folded("{ if calldataload(0) { sstore(1, caller()) sstore(2, 3) revert(0, 32) } }")
    assert "SStore" not in text
    assert text.count("TStore #0 #0") == 1
    text = folded("{ if calldataload(0) { sstore(1, 2) tstore(3, 4) revert(0, 32) } }")
    assert "SStore" not in text
    assert text.count("TStore") == 1
    read = "{ if calldataload(0) { sstore(1, 2) mstore(0, tload(0)) revert(0, 32) } }"
    assert folded(read).count("SStore") == 1


def test_an_unused_load_is_dropped_although_others_are_called_then() -> None:
    call = "sstore(0, call(gas(), calldataload(0), 0, 0, 0, 0, 0))"
    assert "SLoad" not in folded(f"{{ pop(sload(1)) pop(balance(calldataload(32))) {call} }}")


def test_a_branch_that_the_way_to_it_decides_is_not_taken_again() -> None:
    assert folded("{ let ok := 0 if calldataload(0) { ok := 1 sstore(1, 1) } if ok { sstore(2, 2) } }") == lines("""
        function main()
          block 0():
            $0 = CallDataLoad #0
            Branch $0 1(), 5()
          block 1():
            $1 = SStore #1 #1
            $2 = SStore #2 #2
            Jump 5()
          block 5():
            Stop
        """)


def test_a_function_called_once_is_inlined_and_a_long_one_called_often_is_not() -> None:
    once = "{ f(1) function f(a) { sstore(a, calldataload(a)) } }"
    assert "call" not in folded(once)
    body = " ".join(f"sstore(add(a, {number}), calldataload({number}))" for number in range(30))
    often = f"{{ f(calldataload(1)) f(calldataload(2)) f(calldataload(3)) function f(a) {{ {body} }} }}"
    assert folded(often).count("call f") == 3


# -- code -------------------------------------------------------------------------------------------------------------

CASES = "\n".join(f"case {number * 0x01234567:#x} {{ sstore(0, {number}) }}" for number in range(1, 17))
DISPATCH = f"{{ switch shr(224, calldataload(0)) {CASES} default {{ revert(0, 0) }} }}"


def test_many_cases_are_searched_by_halves() -> None:
    found = opcodes(DISPATCH)
    assert found["GT"] + found["LT"] == 3  # sixteen cases, four in a row
    assert found["EQ"] + found["SUB"] == 16


def test_a_check_of_payments_in_every_case_is_made_once_before_them() -> None:
    checked = DISPATCH.replace("{ sstore", "{ if callvalue() { revert(0, 0) } sstore")
    assert opcodes(checked)["CALLVALUE"] == 1
    some = checked.replace("{ if callvalue() { revert(0, 0) } sstore(0, 3)", "{ sstore(0, 3)")
    assert opcodes(some)["CALLVALUE"] == 15


def test_a_long_constant_is_pushed_once_and_kept() -> None:
    word = hex(0xDDF252AD1BE2C89B69C2B068FC378DAA952BA7F163C4A11628F55A4DF523B3EF)
    found = opcodes(f"{{ sstore(calldataload(0), {word}) sstore(calldataload(1), {word}) log1(0, 0, {word}) }}")
    assert found["PUSH32"] == 1


def test_a_loop_turns_without_an_unconditional_jump() -> None:
    source = "{ let s for { let i := 0 } lt(i, calldataload(0)) { i := add(i, 1) } { s := xor(s, i) } sstore(0, s) }"
    assert opcodes(source, 10_000)["JUMP"] <= 1
    assert opcodes(source, None)["JUMP"] >= 1


COPY = """{
    let end := add(128, and(calldataload(0), 0xffff))
    let at := 128
    let key := keccak256(0, 32)
    for { } 1 { } {
        mstore(at, sload(key))
        key := add(key, 1)
        at := add(at, 32)
        if iszero(gt(end, at)) { break }
    }
    return(128, sub(at, 128))
}"""


def test_a_sum_that_the_next_iteration_takes_is_not_made_again_to_turn_the_comparison() -> None:
    assert opcodes(COPY)["ADD"] == 3


def test_what_the_next_iteration_takes_is_not_computed_in_a_block_of_its_own() -> None:
    unit = unit_of(disambiguated(DIALECT, parse_object(COPY, DIALECT).code), DIALECT)
    work = Work(unit, without=LEFT_OUT)
    run_passes(work, OPTIMISE)
    run_passes(work, LOWER)
    main = unit.functions[""]
    before = {block.start for block in main.blocks() if not block.instructions}
    sink_values(main)
    tree = analyses.dominators(main)
    latches = [block for block in main.blocks() for goal in block.targets if tree.dominates(goal.start, block.start)]
    assert len(latches) == 1
    assert latches[0].start in before
    assert not latches[0].instructions


def test_a_branch_needs_no_iszero() -> None:
    source = "{ if iszero(eq(calldataload(0), 5)) { sstore(0, 1) } if iszero(calldataload(1)) { sstore(1, 1) } }"
    assert opcodes(source)["ISZERO"] == 0
    assert opcodes(source, None)["ISZERO"] > 1


def test_equal_ends_of_failing_branches_are_written_once() -> None:
    fails = "mstore(0, shl(224, 0x4e487b71)) mstore(4, 0x11) revert(0, 0x24)"
    source = "{ " + " ".join(f"if lt(calldataload({n}), {n}) {{ {fails} }} sstore({n}, 1)" for n in range(1, 6)) + " }"
    assert opcodes(source)["REVERT"] == 1
    assert opcodes(source, None)["REVERT"] == 5


# -- what does not fit on the stack -----------------------------------------------------------------------------------

LOADS = " ".join(f"let x{number} := sload(calldataload({number}))" for number in range(20))
SUMS = " ".join(f"sstore({number}, x{number})" for number in range(20))
SUMS += SUMS.replace("sstore(", " sstore(2")


def test_values_beyond_reach_are_kept_in_memory_after_the_guard() -> None:
    found = opcodes(f"{{ mstore(0x40, memoryguard(0x80)) {LOADS} {SUMS} log0(mload(0x40), 32) }}")
    assert found["MLOAD"] > 1  # one is the program's own
    assert 1 < found["MSTORE"] < 10  # and not all twenty


def test_values_that_cost_little_are_computed_again_rather_than_kept() -> None:
    loads = " ".join(f"let x{number} := calldataload({number})" for number in range(20))
    found = opcodes(f"{{ {loads} {SUMS} }}")
    assert found["MLOAD"] == found["MSTORE"] == 0
    assert found["CALLDATALOAD"] > 20


def test_a_value_that_costs_less_than_a_copy_is_never_kept() -> None:
    found = opcodes("{ let a := caller() sstore(0, a) sstore(1, a) sstore(2, a) }")
    assert found["CALLER"] == 3
    assert not any(name.startswith(("DUP", "SWAP")) for name in found)


# -- facts of branches ------------------------------------------------------------------------------------------------


def test_what_an_and_of_conditions_says_holds_inside_it_alone() -> None:
    text = folded("""{
        let a := calldataload(0)
        let b := calldataload(32)
        if and(iszero(a), lt(b, 5)) { sstore(0, a) sstore(1, lt(b, 6)) sstore(2, lt(b, 4)) stop() }
        sstore(3, a) sstore(4, lt(b, 6)) sstore(5, iszero(a)) sstore(6, lt(b, 3))
    }""")
    assert "SStore #0 #0\n" in text
    assert "SStore #1 #1\n" in text
    assert "SStore #2 $" in text
    assert "SStore #3 $" in text
    assert "SStore #4 $" in text
    assert "SStore #5 $" in text
    assert "SStore #6 $" in text


def test_where_an_or_of_conditions_fails_each_of_them_does() -> None:
    text = folded("""{
        let a := calldataload(0)
        let b := calldataload(32)
        if or(a, gt(b, 5)) { sstore(0, a) sstore(1, lt(b, 6)) sstore(4, iszero(a)) sstore(5, gt(b, 4)) stop() }
        sstore(2, a) sstore(3, lt(b, 6))
    }""")
    assert "SStore #0 $" in text
    assert "SStore #1 $" in text
    assert "SStore #2 #0\n" in text
    assert "SStore #3 #1\n" in text
    assert "SStore #4 $" in text
    assert "SStore #5 $" in text


def test_the_value_of_a_switch_is_known_in_a_case_and_not_in_the_default() -> None:
    text = folded("""{
        let a := calldataload(0)
        switch a case 7 { sstore(0, a) } case 9 { sstore(1, add(a, 1)) } default { sstore(2, a) }
    }""")
    assert "SStore #0 #7\n" in text
    assert "SStore #1 #10\n" in text
    assert "SStore #2 $" in text


def test_not_less_is_not_the_same_as_greater() -> None:
    text = folded("""{
        let a := calldataload(0)
        let b := calldataload(32)
        if lt(a, b) { stop() }
        sstore(0, lt(a, b)) sstore(1, gt(b, a)) sstore(2, eq(a, b)) sstore(3, gt(a, b))
    }""")
    assert "SStore #0 #0\n" in text
    assert "SStore #1 #0\n" in text
    assert "SStore #2 $" in text
    assert "SStore #3 $" in text


def test_a_sum_equals_its_part_where_the_other_may_be_zero() -> None:
    text = folded("""{
        let a := and(calldataload(0), 0xff)
        let b := and(calldataload(32), 0xff)
        let sum := add(a, b)
        sstore(0, eq(sum, a)) sstore(1, lt(a, sum)) sstore(2, lt(sum, a)) sstore(3, gt(add(b, 1), b))
    }""")
    assert "SStore #0 $" in text
    assert "SStore #1 $" in text
    assert "SStore #2 #0\n" in text
    assert "SStore #3 #1\n" in text


def test_the_label_of_a_call_is_pushed_before_operands_that_are_computed() -> None:
    """Below them, where the function finds it: pushed after them it would have to be swapped with each."""
    again = "if a { f(sub(a, 1), b, c) }"
    source = f"""{{
        f(calldataload(0), calldataload(32), calldataload(64))
        sstore(7, 7)
        function f(a, b, c) {{ {again} sstore(a, mul(b, c)) }}
    }}"""
    code = compile_object(parse_object(source, dialect_for()), dialect_for(), runs=200).code
    names = [each.name for each in decode(code)]
    main = names[: names.index("JUMPDEST")]
    assert [name for name in main if name.startswith("SWAP")] == []
    assert main.count("CALLDATALOAD") == 3


CALLS_ITSELF = """{
    f(calldataload(0), calldataload(1), calldataload(2), calldataload(3), calldataload(4))
    sstore(7, 7)
    function f(a, b, c, d, n) {
        if n {
            let x := sload(a)
            let y := sload(b)
            sstore(x, y)
            sstore(y, d)
            f(x, 2, 3, 4, sub(n, 1))
        }
        sstore(9, d)
    }
}"""


def growth(low: bool) -> int:
    """By how many words a call of itself raises the stack."""
    dialect = dialect_for()
    unit = unit_of(parse_object(CALLS_ITSELF, dialect).code, dialect)
    work = Work(unit, without=LEFT_OUT, low=low)
    run_passes(work, PIPELINE)
    assembly = assembly_of(work.program, unit, 200)
    found = recover(assemble(assembly.items, assembly.fork).code).growth
    assert found is not None
    return found[1]


def test_nothing_dead_lies_below_a_call_of_a_function_that_calls_itself() -> None:
    assert growth(low=True) == 2  # the return address, and `d`, which is needed afterwards
    assert growth(low=False) > 2


# -- what estimates are worth -----------------------------------------------------------------------------------------


def test_functions_that_call_each_other_run_eight_times_per_call_from_outside() -> None:
    source = """{
        sstore(0, expression(calldataload(0)))
        function expression(x) -> y { for { } lt(y, x) { } { y := add(y, factor(sub(x, 1))) } }
        function factor(x) -> y { for { } lt(y, x) { } { y := add(y, expression(div(x, 2))) } }
    }"""
    unit = unit_of(disambiguated(DIALECT, parse_object(source, DIALECT).code), DIALECT)
    weights = all_weights(unit)
    entries = {name: weights[name][function.entry] for name, function in unit.functions.items()}
    assert entries == {"": 1, "expression": LOOP_ITERATIONS, "factor": LOOP_ITERATIONS}


def test_all_exits_of_a_loop_together_are_taken_once() -> None:
    loop = "for { let i := 0 } lt(i, calldataload(0)) { i := add(i, 1) } { if sload(i) { break } sstore(i, 1) }"
    unit = unit_of(
        disambiguated(DIALECT, parse_object(f"{{ {loop} {loop} {loop} sstore(0, 1) }}", DIALECT).code), DIALECT
    )
    (weight,) = [weight for block, weight in all_weights(unit)[""].items() if block.end.op == "STOP"]
    assert 0.8 < weight < 1.2


def test_blocks_that_become_one_are_as_frequent_as_all_of_them() -> None:
    assert undamped(together(damped(0.1), damped(0.2))) == pytest.approx(0.3)


def test_a_function_with_a_hash_is_not_copied_where_calls_are_rare() -> None:
    hashed = "0x290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e563"
    rare = "".join(f"case {n} {{ sstore({n}, item(calldataload({n}))) }} " for n in range(1, 9))
    source = f"""{{
        switch calldataload(0) {rare}
        function item(at) -> value {{ value := sload(add(at, {hashed})) }}
    }}"""
    assert opcodes(source)["PUSH32"] == 1
    assert opcodes(source, 10_000)["PUSH32"] == 8


def test_nested_loops_do_not_let_code_grow_without_limit() -> None:
    step = """function step(a, b, c) -> r {
        if gt(a, b) { mstore(0, a) revert(0, 32) }
        r := addmod(mulmod(a, b, c), xor(mulmod(b, c, a), not(c)), sub(b, a))
        if slt(r, c) { mstore(0, r) revert(0, 32) }
        r := add(r, mulmod(r, r, b))
    }"""
    loops = "for { } lt(x, 9) { } { for { } lt(y, 9) { } {" + "x := step(y, x, y) y := step(x, y, x) " * 8 + "} }"
    source = f"{{ let x := calldataload(0) let y := calldataload(32) {loops} sstore(x, y) {step} }}"
    small, some, many = (sum(opcodes(source, runs).values()) for runs in (0, 200, 10_000))
    assert small < some < 1.5 * small
    assert many > 2 * small


def test_a_constant_in_a_loop_stays_short_at_few_runs() -> None:
    source = """{
        let x := calldataload(0)
        for { } lt(x, 9) { } { for { } lt(x, 8) { } { x := add(sload(x), shl(255, 1)) } }
    }"""
    assert opcodes(source)["PUSH32"] == 0
    assert opcodes(source, 10_000)["PUSH32"] == 1


def test_a_hash_is_pushed_once_and_kept_past_joins_and_loops() -> None:
    hashed = "0x290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e563"
    source = f"""{{
        let x := calldataload(0)
        if sload(add({hashed}, x)) {{ x := add(x, sload(x)) }}
        for {{ }} lt(x, 9) {{ }} {{ x := add(x, sload(add({hashed}, x))) }}
        sstore(add({hashed}, x), 1)
    }}"""
    assert opcodes(source)["PUSH32"] == 1
