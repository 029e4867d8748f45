"""Every step of the Yul optimiser: the conformance suite exact to the letter, and steps that have no folder there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

from fusevm.yul.context import StepContext
from fusevm.yul.optimise import optimize
from fusevm.yul.stack.reach import unreachable_variables
from fusevm.yul.steps import BY_LETTER, BY_NAME, STEPS
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.steps.name_displacer import displace
from fusevm.yul.steps.stack_limit_evader import evade
from fusevm.yul.syntax.ast import Block, Object, VariableDeclaration
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.parser import parse_block, parse_object
from fusevm.yul.syntax.printer import print_block, print_object
from fusevm.yul.syntax.walk import functions_of, nodes
from yulfixtures import YulFixture, parametrize

Run = Callable[[StepContext, Block], None]

# A folder names a pipeline, in letters. `!` is a pipeline that does not begin with the Disambiguator.
PIPELINES = {
    "disambiguator": "",
    "blockFlattener": "gf",
    "constantOptimiser": "!+ConstantOptimiser",
    "varDeclInitializer": "!d",
    "varNameCleaner": "hg+VarNameCleaner",
    "forLoopConditionIntoBody": "I",
    "forLoopInitRewriter": "o",
    "commonSubexpressionEliminator": "ohc",
    "conditionalUnsimplifier": "U",
    "conditionalSimplifier": "C",
    "expressionSplitter": "!x",
    "expressionJoiner": "j",
    "splitJoin": "xjj",
    "functionGrouper": "g",
    "functionHoister": "h",
    "functionSpecializer": "hF",
    "expressionInliner": "e",
    "fullInliner": "hgxij",
    "fullInlinerWithoutSplitter": "hgi",
    "rematerialiser": "ohm",
    "expressionSimplifier": "ohxcsssujj",
    "fullSimplify": "gfxohcsulDjj",
    "unusedFunctionParameterPruner": "ohTp",
    "unusedPruner": "u",
    "circularReferencesPruner": "hl",
    "deadCodeEliminator": "oD",
    "ssaTransform": "oa",
    "unusedAssignEliminator": "or",
    "ssaPlusCleanup": "oar",
    "unusedStoreEliminator": "oxaSVj",
    "equalStoreEliminator": "hoE",
    "loadResolver": "gfohxcsLujj",
    "loopInvariantCodeMotion": "ohM",
    "controlFlowSimplifier": "on",
    "structuralSimplifier": "ohTt",
    "equivalentFunctionCombiner": "ohv",
    "ssaReverser": "V",
    "ssaAndBack": "oarVhcu",
    "stackCompressor": "ohg+StackCompressor+f",
}

# Two files record a bug that was fixed later: returndatacopy may fail, so it is never removed.
RECORDED_BUGS = {
    "unusedStoreEliminator/returndatacopy_returndatasize",
    "unusedStoreEliminator/returndatacopy_returndatasize_var",
}


def displace_illegal_names(context: StepContext, block: Block) -> None:
    displace(context.dispenser, block, {f"illegal{number}" for number in range(1, 6)})


def evade_what_the_old_generator_cannot_reach(context: StepContext, block: Block) -> None:
    evade(context, block, unreachable_variables(block, context.dialect))


def evade_names_with_a_dollar(context: StepContext, block: Block) -> None:
    moved: dict[str, list[str]] = {}
    for function, names in declared_by_function(block):
        chosen = [name for name in names if name.startswith("$")]
        if chosen:
            moved[function] = chosen
    evade(context, block, moved)


def declared_by_function(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The variables each function declares, in the order of the text."""
    bodies = [("", [], block)] + [
        (each.name, [name.name for name in (*each.parameters, *each.returns)], each.body)
        for each in functions_of(block)
    ]
    for function, names, body in bodies:
        declarations = [node for node in nodes(body, into_functions=False) if isinstance(node, VariableDeclaration)]
        declarations.sort(key=lambda each: each.location)
        yield function, names + [variable.name for each in declarations for variable in each.variables]


SPECIAL: dict[str, Run] = {
    "nameDisplacer": displace_illegal_names,
    "stackLimitEvader": evade_what_the_old_generator_cannot_reach,
    "fakeStackLimitEvader": evade_names_with_a_dollar,
}


def steps_of(pipeline: str) -> Iterator[Run]:
    letters, *rest = pipeline.lstrip("!").split("+")
    yield from (BY_LETTER[letter].run for letter in letters)
    yield from ((BY_NAME.get(name) or BY_LETTER[name]).run for name in rest)


def run_pipeline(folder: str, obj: Object, dialect: Dialect) -> Object:
    if folder == "fullSuite":
        return optimize(obj, dialect, runtime=True)
    pipeline = PIPELINES.get(folder, "")
    steps = [SPECIAL[folder]] if folder in SPECIAL else list(steps_of(pipeline))

    def transformed(obj: Object) -> Object:
        block = obj.code if pipeline.startswith("!") else disambiguated(dialect, obj.code)
        context = StepContext.for_block(dialect, block)
        for step in steps:
            step(context, block)
        children = [transformed(child) if isinstance(child, Object) else child for child in obj.children]
        return Object(obj.name, block, children)

    return transformed(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "yulOptimizerTests")


def test_the_text_is_that_of_the_fixture(fixture: YulFixture) -> None:
    head, _, expected = fixture.expectation.partition("\n\n")
    assert fixture.fork is not None
    dialect = dialect_for(fixture.fork)
    result = run_pipeline(head.removeprefix("step: "), parse_object(fixture.source, dialect), dialect)
    text = print_object(result) if result.children else print_block(result.code)
    if fixture.name in RECORDED_BUGS:
        assert "returndatacopy" in text
        assert "returndatacopy" not in expected
    else:
        assert text == expected


# -- steps without a folder -------------------------------------------------------------------------------------------


def after(steps: str, source: str) -> str:
    """The text after the Disambiguator and the steps."""
    block = disambiguated(dialect_for(), parse_block(source))
    context = StepContext.for_block(dialect_for(), block)
    for step in steps_of(steps):
        step(context, block)
    return " ".join(print_block(block).split())


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_step_says_at_its_head_what_it_needs_does_and_is_for() -> None:
    for step in STEPS:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=SSA)", "_", step.name).lower()
        text = import_module(f"fusevm.yul.steps.{name}").__doc__ or ""
        assert text.startswith(step.name)
        assert all(part in text for part in ("\nNeeds: ", "\nDoes: ", "\nWhy: ")), step.name


def test_a_condition_comes_out_of_the_body_where_it_went_in() -> None:
    source = "{ for { let i := 0 } lt(i, 9) { i := add(i, 1) } { mstore(i, 1) } }"
    assert after("IO", source) == flat(print_block(parse_block(source)))


def test_a_condition_without_iszero_comes_out_negated() -> None:
    source = "{ for { } true { } { if calldataload(0) { break } mstore(0, 1) } }"
    assert after("O", source) == "{ for { } iszero(calldataload(0)) { } { mstore(0, 1) } }"


@pytest.mark.parametrize(
    "source",
    [
        "{ for { } 1 { } { if iszero(mload(0)) { break } mstore(0, 1) } }",  # not movable
        "{ for { } 0 { } { if iszero(callvalue()) { break } } }",  # the loop never runs
        "{ for { } callvalue() { } { if iszero(caller()) { break } } }",  # it has a condition already
        "{ for { } 1 { } { mstore(0, 1) if iszero(caller()) { break } } }",  # not at the head
        "{ for { } 1 { } { if iszero(caller()) { mstore(0, 1) break } } }",  # it does something first
    ],
)
def test_a_condition_stays_in_the_body_where_moving_it_would_change_something(source: str) -> None:
    assert after("O", source) == flat(print_block(parse_block(source)))


SIMPLIFIED = {
    "abi_encode_tuple_t_uint256__to_t_uint256__fromStack_reversed": "abi_encode_uint256",
    "fun_transfer_1234": "fun_transfer",
    "convert_t_uint8_to_t_uint256": "convert_uint8_to_uint256",
    "var_amount_55": "var_amount",
    "array_length_t_array$_t_uint256_$dyn_storage_ptr": "array_length_array_uint256_dyn_storage_ptr",
    "revert_error_0cc013b6b3b6beabea4e3a74a6d380f0df81852ca99887912475e1f66b2a2c20": (
        "revert_error_0cc013b6b3b6beabea4e3a74a6d380f0df81852ca99887912475e1f66b2a2c20"
    ),
    "value_memory_ptr": "value",
    "read_calldata_ptr": "read_calldata",
    "plain": "plain",
}


@pytest.mark.parametrize(("long", "short"), SIMPLIFIED.items(), ids=list(SIMPLIFIED))
def test_names_of_the_solidity_compiler_become_shorter(long: str, short: str) -> None:
    assert after("+NameSimplifier", f"{{ let {long} := 1 }}") == f"{{ let {short} := 1 }}"


def test_a_short_name_that_is_taken_is_not_used() -> None:
    assert after("+NameSimplifier", "{ let x_1 := 1 let x := 2 }") == "{ let x_1 := 1 let x := 2 }"


def test_main_code_becomes_a_function_and_another_main_makes_room() -> None:
    source = "{ sstore(main(), 1) function main() -> x { x := 7 } }"
    expected = "{ function main() { sstore(main_1(), 1) } function main_1() -> x { x := 7 } }"
    assert after("hg+MainFunction", source) == expected


def test_main_function_asks_for_the_grouper() -> None:
    with pytest.raises(ValueError, match="needs FunctionGrouper"):
        after("+MainFunction", "{ sstore(0, 1) }")


# -- the examples of the seed, where they still hold ------------------------------------------------------------------


def test_the_seeds_pseudo_ssa_example() -> None:
    source = """{
        let a := calldataload(0)
        let b := calldataload(0x20)
        if gt(a, 0) { b := mul(b, 0x20) }
        a := add(a, 1)
        sstore(a, add(b, 0x20))
    }"""
    expected = """{
        let _1 := 0
        let a_1 := calldataload(_1)
        let a := a_1
        let _2 := 0x20
        let b_2 := calldataload(_2)
        let b := b_2
        let _3 := 0
        let _4 := gt(a_1, _3)
        if _4 {
            let _5 := 0x20
            let b_3 := mul(b_2, _5)
            b := b_3
        }
        let b_5 := b
        let _6 := 1
        let a_4 := add(a_1, _6)
        let _7 := 0x20
        let _8 := add(b_5, _7)
        sstore(a_4, _8)
    }"""
    assert normal(after("xar", source)) == normal(flat(expected))


def normal(text: str) -> str:
    """With variables numbered by their first mention, whatever they are called."""
    numbers: dict[str, str] = {}
    return re.sub(r"\b(?:_|[ab])(?:_?\d+)?\b", lambda m: numbers.setdefault(m[0], f"v{len(numbers)}"), text)


def test_the_seeds_splitter_example() -> None:
    source = "{ let x := 1 let y := 2 let z := add(mload(x), mul(mload(y), 0x20)) }"
    expected = (
        "{ let x := 1 let y := 2 let _1 := 0x20 let _2 := mload(y) let _3 := mul(_2, _1) "
        "let _4 := mload(x) let z := add(_4, _3) }"
    )
    assert after("x", source) == expected


def test_the_seeds_redundant_assign_example() -> None:
    source = "{ let a := 1 a := mload(a) a := sload(a) sstore(a, 1) }"
    expected = "{ let a_1 := 1 let a := a_1 let a_2 := mload(a_1) let a_3 := sload(a_2) sstore(a_3, 1) }"
    assert after("ar", source) == expected


def test_the_seeds_joiner_examples() -> None:
    moved = after("j", "{ let x := add(0, 2) let y := mul(x, 3) sstore(y, y) }")
    assert moved == "{ { let y := mul(add(0, 2), 3) sstore(y, y) } }"
    kept = after("j", "{ let x := add(0, 2) let y := mul(x, mload(2)) sstore(y, y) }")
    assert kept == "{ { let x := add(0, 2) let y := mul(x, mload(2)) sstore(y, y) } }"


def test_the_seeds_flattener_example() -> None:
    source = "{ { let x := 2 { let y := 3 mstore(x, y) } } }"
    assert after("f", source) == "{ { let x := 2 let y := 3 mstore(x, y) } }"


def test_the_seeds_reverser_example() -> None:
    source = "{ let a let a_1 := calldataload(0) a := a_1 mstore(a_1, 1) }"
    assert after("V", source) == "{ let a a := calldataload(0) let a_1 := a mstore(a_1, 1) }"


def test_a_loops_init_block_moves_without_a_block_around_it() -> None:
    source = "{ for { let i := 0 } lt(i, 2) { i := add(i, 1) } { mstore(i, i) } }"
    assert after("o", source) == "{ let i := 0 for { } lt(i, 2) { i := add(i, 1) } { mstore(i, i) } }"
