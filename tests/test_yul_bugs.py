"""Published bugs of solc's optimiser, each with a program that shows this one does not have it."""

from __future__ import annotations

import pytest

from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.lab.yul.seeded_world import SeededWorld, Trace
from fusevm.yul.context import StepContext
from fusevm.yul.execution.host import Limits
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.optimise import optimize
from fusevm.yul.steps import BY_LETTER, BY_NAME
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.steps.stack_limit_evader import evade
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall, Literal
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_block, parse_object
from fusevm.yul.syntax.printer import print_block

WORDS = (0, 1, 2, 31, 32, 33, 255, 256, 2**160 - 1, 2**255, 2**256 - 1)
CALLDATA = [word.to_bytes(32, "big") + other.to_bytes(32, "big") for word in WORDS for other in (0, 1, 2**256 - 1)]


def after(steps: str, source: str) -> Block:
    """The program after the Disambiguator and the steps, which are letters, or a name behind a plus sign."""
    letters, *names = steps.split("+")
    block = disambiguated(dialect_for(), parse_block(source))
    context = StepContext.for_block(dialect_for(), block)
    for step in [*(BY_LETTER[letter] for letter in letters), *(BY_NAME[name] for name in names)]:
        step.run(context, block)
    return block


def trace_of(block: Block, calldata: bytes) -> Trace:
    world = SeededWorld(1, calldata)
    return world.trace(interpret(block, world, dialect_for(), Limits(steps=10_000)))


def same_meaning(source: str, changed: Block) -> None:
    _, errors = check(print_block(changed))
    assert [str(error) for error in errors if not error.is_warning] == []
    for calldata in CALLDATA:
        before = trace_of(parse_block(source), calldata)
        assert before.conclusive
        assert trace_of(changed, calldata) == before


def survives(source: str, *sequences: str) -> None:
    """The sequences and the whole suite keep the program's meaning."""
    for steps in sequences:
        same_meaning(source, after(steps, source))
    same_meaning(source, optimize(parse_object(source)).code)


def test_storage_write_removal_before_conditional_termination() -> None:
    source = """{
        sstore(0, 1)
        maybe_stop()
        sstore(0, 2)
        function maybe_stop() { if calldataload(0) { return(0, 0) } }
    }"""
    survives(source, "hgfoxaS", "S", "hgfoxaSuLcsSu")
    assert print_block(after("hgfoxaS", source)).count("sstore(") == 2


def test_full_inliner_non_expression_split_argument_evaluation_order() -> None:
    source = """{
        sstore(9, sub3(a(), b(), 7))
        function a() -> x { x := sload(1) sstore(1, add(x, 1)) }
        function b() -> x { x := sload(1) sstore(1, add(x, 2)) }
        function sub3(x, y, z) -> r { r := sub(x, mul(y, z)) }
    }"""
    survives(source, "hgi", "hgij", "hgei", "hgxi")


def test_inline_assembly_memory_side_effects() -> None:
    # Memory written at the end of a block or function belongs to whoever reads it later.
    source = """{
        prepare(0x40)
        { mstore(0x60, 8) }
        sstore(0, keccak256(0x40, 0x40))
        function prepare(p) { mstore(p, calldataload(0)) }
    }"""
    survives(source, "hgfoxaS", "S", "oxaSVj")


@pytest.mark.parametrize("way", ["break", "continue"])
def test_yul_optimizer_redundant_assignment_break_continue(way: str) -> None:
    source = f"""{{
        let x := 1
        let i := 0
        for {{ }} lt(i, 3) {{ i := add(i, 1) sstore(i, x) }} {{
            if eq(i, calldataload(0)) {{ x := 2 {way} }}
            x := 3
        }}
        sstore(9, x)
    }}"""
    survives(source, "or", "oar", "oarVcu")


def test_abi_encoder_v2_loop_yul_optimizer() -> None:
    # A function's loop that writes memory in its condition, post block or body invalidates what was known.
    for loop in (
        "for { } lt(i, 2) { mstore(p, 9) i := add(i, 1) } { }",
        "for { } lt(i, 2) { i := add(i, 1) } { mstore(p, 9) }",
        "for { } lt(write(p), 3) { i := add(i, 1) } { if i { break } }",
    ):
        source = f"""{{
            let p := 0x40
            let v := calldataload(0)
            mstore(p, v)
            f(p)
            sstore(0, mload(p))
            function f(p) {{ let i := 0 {loop} }}
            function write(p) -> r {{ r := 1 mstore(p, 10) }}
        }}"""
        survives(source, "hgoxcL", "hgoxEcLS")


def test_verbatim_invalid_deduplication() -> None:
    # Functions whose verbatim code differs are different, also beyond the first 32 bytes.
    long = "60" * 40
    source = f"""{{
        f() g()
        function f() {{ verbatim_0i_0o(hex"{long}01") }}
        function g() {{ verbatim_0i_0o(hex"{long}02") }}
    }}"""
    text = print_block(after("ohv", source))
    assert "f()\n    g()" in text


def test_keccak_caching() -> None:
    source = """{
        let p := 0
        let v := calldataload(0)
        mstore(p, v)
        let size := 0x20
        let half := 0x10
        let a := keccak256(p, size)
        let b := keccak256(p, half)
        let q := 0x10
        mstore(q, v)
        let c := keccak256(p, size)
        sstore(1, a) sstore(2, b) sstore(3, c)
    }"""
    survives(source, "oL", "oxcL", "oxcLcL")


@pytest.mark.parametrize("position", ["31", "calldataload(0)"])
@pytest.mark.parametrize("word", ["31", "calldataload(0)", "calldataload(32)"])
def test_incorrect_byte_instruction_optimization(position: str, word: str) -> None:
    survives(f"{{ sstore(0, byte({position}, {word})) }}", "oxcs", "s", "oxcscs")


@pytest.mark.parametrize("inner", [1, 255, 256, 2**255, 2**256 - 1])
@pytest.mark.parametrize("outer", [1, 255, 256, 2**255, 2**256 - 1])
@pytest.mark.parametrize("shift", ["shl", "shr"])
def test_double_shift_size_overflow(shift: str, outer: int, inner: int) -> None:
    source = f"{{ sstore(0, {shift}({outer}, {shift}({inner}, calldataload(0)))) }}"
    same_meaning(source, after("oxcs", source))


def value_of(expression: Expression) -> int:
    if isinstance(expression, Literal):
        return expression.value
    assert isinstance(expression, FunctionCall)
    arguments = [value_of(each) for each in expression.arguments]
    return int(INTEGER_MEANINGS[expression.function.name.upper()](*arguments))


def test_constant_optimizer_subtraction() -> None:
    numbers = {
        ((1 << bits) + delta) % 2**256
        for bits in (16, 24, 64, 128, 160, 224, 248, 255, 256)
        for delta in (-2, -1, 0, 1, 2, -(1 << 12), 1 << 12)
    }
    source = "{ " + " ".join(f"sstore(0, {number})" for number in sorted(numbers)) + " }"
    for runs in (None, 1, 200):
        block = parse_block(source)
        context = StepContext.for_block(dialect_for(), block, runs)
        BY_NAME["ConstantOptimiser"].run(context, block)
        made = [statement.expression.arguments[1] for statement in block.statements]  # type: ignore[union-attr]
        assert [value_of(each) for each in made] == sorted(numbers)


def moved(source: str) -> str:
    """The program after moving every variable whose name begins with `$` to memory."""
    block = disambiguated(dialect_for(), parse_block(source))
    context = StepContext.for_block(dialect_for(), block)
    functions = {"c": ["$c"], "d": ["$d"], "a": ["$a"]}
    evade(context, block, {name: names for name, names in functions.items() if names[0] in source})
    return print_block(block)


def test_unsound_spill_in_mutual_recursion() -> None:
    # a calls itself through b and through c: its variable may not live at a fixed place.
    source = """{
        mstore(0x40, memoryguard(0x80))
        a(3)
        function a(n) { let $a := n if n { b(sub(n, 1)) c2(sub(n, 1)) } sstore(n, $a) }
        function b(n) { c2(n) a(n) }
        function c2(n) { if n { b(sub(n, 1)) } }
    }"""
    assert moved(source) == print_block(disambiguated(dialect_for(), parse_block(source)))


def test_spill_slot_collision_in_stack_limit_evader() -> None:
    # d is active while c is, by way of a cycle that itself has nothing to spill.
    source = """{
        mstore(0x40, memoryguard(0x80))
        p(1)
        d()
        function p(n) { if n { q(sub(n, 1)) } c() }
        function q(n) { p(n) }
        function c() { let $c := 1 sstore(0, $c) }
        function d() { let $d := 2 q(1) sstore(1, $d) }
    }"""
    text = moved(source)
    assert "mstore(0x80, 2)" in text
    assert "mstore(0xa0, 1)" in text
    assert "memoryguard(0xc0)" in text


def test_unused_store_eliminator_on_code_that_is_not_ssa() -> None:
    source = """{
        let x := 0x20
        let a := add(x, 0x20)
        mstore(a, 1)
        x := add(and(calldataload(0), 0xff), 0x60)
        let b := add(x, 0x20)
        mstore(b, 2)
        let from := 0x40
        let size := 0x20
        return(from, size)
    }"""
    survives(source, "S", "oS", "oxS")


def test_a_store_of_an_earlier_round_is_not_covered_by_this_rounds() -> None:
    source = """{
        let i := 0
        for { } 1 { i := add(i, 1) } {
            let x := mul(i, 32)
            let one := 1
            mstore(x, one)
            if eq(i, 3) { let zero := 0 let size := 0x80 return(zero, size) }
            let two := 2
            mstore(x, two)
        }
    }"""
    survives(source, "oS", "oxaS", "oxarS")


def test_stale_returndatasize_in_unused_store_eliminator() -> None:
    # The size was asked for before the call: copying that much may fail, so it has to be done.
    source = """{
        let size := returndatasize()
        pop(call(gas(), 1, 0, 0, 0, 0, 0))
        let zero := 0
        returndatacopy(zero, zero, size)
        let p := calldataload(0)
        if p { returndatacopy(zero, zero, 1) }
        sstore(0, returndatasize())
    }"""
    survives(source, "oxaS", "S")
    assert print_block(after("oxaS", source)).count("returndatacopy(") == 2


def test_out_of_scope_substitution_in_expression_simplifier() -> None:
    source = """{
        let a
        { let b := calldataload(0) a := add(b, 1) }
        sstore(0, sub(a, 1))
        { let c := calldataload(32) a := and(c, 255) }
        sstore(1, shl(8, a))
    }"""
    survives(source, "os", "oxcs", "osm", "ocmT")
