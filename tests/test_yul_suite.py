"""The suite: the corpus exact to the letter, sequences and their errors, creation and runtime code, determinism."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import chosen, fixtures_folder
from fusevm.yul.optimise import StepEvent, optimize
from fusevm.yul.sequence import (
    DEFAULT_CLEANUP,
    DEFAULT_SEQUENCE,
    Sequenced,
    SequenceError,
    named_sequence,
    parse_sequence,
    read_sequences,
)
from fusevm.yul.steps import BY_LETTER, OptimiserStep
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object

SHORT = {f"corpus/{name}" for name in ("Amm", "Merkle", "Numbers", "Text", "Token")}  # a second each, at most


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "contract" in metafunc.fixturenames:
        folder = fixtures_folder(metafunc.config)
        found = [path for part in ("corpus", "corpus_new") for path in sorted((folder / part).glob("*.opt.yul"))]
        missing = pytest.mark.skip(reason="conformance data not found (set FUSEVM_FIXTURES)")
        names = [str(path.relative_to(folder)).removesuffix(".opt.yul") for path in found]
        metafunc.parametrize("contract", chosen(SHORT, names) or [pytest.param("", marks=missing)])


def without_comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]


def test_a_contract_of_the_corpus_comes_out_exactly_as_from_solc(contract: str, fixtures_dir: Path) -> None:
    result = optimize(parse_object((fixtures_dir / f"{contract}.yul").read_text()))
    theirs = (fixtures_dir / f"{contract}.opt.yul").read_text()
    assert without_comments(print_object(result)) == without_comments(theirs)


# -- sequences --------------------------------------------------------------------------------------------------------


def letters(sequence: Sequenced) -> str:
    return "".join(step.letter or "?" if isinstance(step, OptimiserStep) else f"[{letters(step)}]" for step in sequence)


@pytest.mark.parametrize("text", ["", "a", "dhfo", "a[r]", "[a[bc]]", DEFAULT_CLEANUP])
def test_a_sequence_reads_as_it_is_written(text: str) -> None:
    text = text.replace("b", "x")
    assert letters(parse_sequence(text)) == text


def test_spaces_and_line_ends_between_steps_mean_nothing() -> None:
    assert letters(parse_sequence("d f\n[ r ]")) == "df[r]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("abc", "no step has the letter 'b' at 2"),
        ("a[r", "'[' is never closed"),
        ("ar]", "']' at 3 closes nothing"),
        ("a:b:c", "no step has the letter 'b' at 1"),
        ("a:x:c", "a second ':' at 2"),
        ("é", "no step has the letter 'é' at 1"),
    ],
)
def test_a_bad_sequence_is_refused_with_the_place(text: str, complaint: str) -> None:
    with pytest.raises(SequenceError, match=complaint.replace("[", r"\[")):
        read_sequences(text)


def test_names_old_and_new_mean_the_same_steps() -> None:
    old = named_sequence(["RedundantAssignEliminator", "FunctionalInliner", ["SSATransform"]])
    new = named_sequence(["UnusedAssignEliminator", "ExpressionInliner", ["SSATransform"]])
    assert old == new == [BY_LETTER["r"], BY_LETTER["e"], [BY_LETTER["a"]]]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SequenceError, match="no step is named 'Optimise'"):
        named_sequence(["Optimise"])


def test_the_cleanup_sequence_stands_behind_a_colon_and_has_a_default() -> None:
    assert [letters(each) for each in read_sequences("a:r")] == ["a", "r"]
    assert [letters(each) for each in read_sequences("a:")] == ["a", ""]
    assert [letters(each) for each in read_sequences("a")] == ["a", DEFAULT_CLEANUP]
    assert letters(read_sequences(None)[0]) == DEFAULT_SEQUENCE.replace(" ", "")


# -- the suite --------------------------------------------------------------------------------------------------------

SOURCE = """object "C" {
    code {
        sstore(0, 0xffffffffffffffffffffffff0000000000000000000000000000000000000000)
        datacopy(0, dataoffset("C_deployed"), datasize("C_deployed"))
        return(0, datasize("C_deployed"))
    }
    object "C_deployed" {
        code {
            function double(x) -> y { y := add(x, x) }
            sstore(0, double(calldataload(0)))
            sstore(1, 0xffffffffffffffffffffffff0000000000000000000000000000000000000000)
        }
    }
}"""


def optimized(source: str = SOURCE, **options: object) -> str:
    return print_object(optimize(parse_object(source), dialect_for(), **options))  # type: ignore[arg-type]


def test_the_result_is_the_same_every_time() -> None:
    assert optimized() == optimized()


def test_the_object_given_is_left_as_it_is() -> None:
    obj = parse_object(SOURCE)
    before = print_object(obj)
    optimize(obj)
    assert print_object(obj) == before


def test_what_comes_out_stays_as_it_is() -> None:
    once = optimized()
    assert optimized(once) == once


def test_few_runs_ask_for_small_code_and_many_for_cheap_code() -> None:
    few, many = optimized(runs=1, runtime=True), optimized(runs=1_000_000, runtime=True)
    assert "shl" in few
    assert "shl" not in many


def test_the_outermost_object_is_creation_code_and_a_deployed_one_is_not() -> None:
    creation, deployed = optimized(runs=1_000_000).split('object "C_deployed"')
    assert "shl" in creation
    assert "shl" not in deployed


def test_every_step_of_every_object_is_told_of() -> None:
    events: list[StepEvent] = []
    optimize(parse_object(SOURCE), steps="xa:", on_step=events.append)
    names = [event.step.name for event in events if event.object_name == "C.C_deployed"]
    assert names == [
        "Disambiguator", "FunctionHoister", "FunctionGrouper", "BlockFlattener", "ForLoopInitRewriter",
        "ExpressionSplitter", "SSATransform", "FunctionGrouper", "FunctionGrouper",
        "ConstantOptimiser", "StackCompressor", "StackLimitEvader", "NameSimplifier", "VarNameCleaner",
    ]  # fmt: skip
    assert {event.object_name for event in events} == {"C", "C.C_deployed"}


def test_a_repeated_part_ends_when_the_size_is_stable() -> None:
    def rounds(source: str) -> int:
        events: list[StepEvent] = []
        optimize(parse_object(source), steps="[s]:", on_step=events.append)
        return sum(event.step.letter == "s" for event in events)

    assert rounds("{ sstore(0, callvalue()) }") == 1
    assert (
        rounds("{ let x := callvalue() sstore(0, add(x, 0)) }") == 1 + 1
    )  # once to shrink, once to see that it is done


def test_sub_objects_begin_with_their_own_names() -> None:
    text = optimized('object "A" { code { { let x := 1 sstore(x, x) } { let x := callvalue() sstore(x, x) } }'
                     ' object "B" { code { let x := caller() sstore(x, x) } } }', steps=":")  # fmt: skip
    assert "let x_1 := callvalue()" in text
    assert "let x := caller()" in text


def test_deep_nesting_is_optimised_and_the_recursion_limit_put_back() -> None:
    deep = "{ sstore(0, " + "add(1, " * 400 + "calldataload(0)" + ")" * 400 + ") }"
    limit = sys.getrecursionlimit()
    assert optimized(deep) == "{\n    {\n        sstore(0, add(calldataload(0), 400))\n    }\n}"
    assert sys.getrecursionlimit() >= limit


def test_a_long_chain_of_variables_becomes_one_deep_expression() -> None:
    chain = "".join(f"let x{n + 1} := mload(x{n}) " for n in range(3000))
    text = optimized(f"{{ let x0 := calldataload(0) {chain} sstore(0, x3000) }}", steps="[j]:")
    assert text.count("mload(") == 3000
    assert "let" not in text


def test_debug_lines_survive() -> None:
    obj = Object("A", parse_object("{ }").code, debug='0:"a.sol"')
    assert optimize(obj).debug == '0:"a.sol"'
