"""What folding did, as explanations show it: chains of rules, and what was taken out and why."""

from __future__ import annotations

import pytest

from conftest import first
from fusevm import Explanation, explain, optimize
from fusevm.codegen.bytecode import optimize as optimize_bytecode
from fusevm.codegen.yul import StepOrder, compile_object
from fusevm.evm.bytecode import basic_blocks
from fusevm.explanation.document import Line
from fusevm.explanation.irlines import Watching
from fusevm.ir.fold.block import fold_block
from fusevm.ir.lift import lift_block
from fusevm.ir.text import block_text
from fusevm.lab.yul.generate_contracts import random_contract
from fusevm.rules.families import RULES
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.errors import YulError

NO_STEPS = ":"  # the text goes to the back end as it is


def ir_line(explanation: Explanation, word: str) -> Line:
    return next(line for line in explanation.pane("ir").lines if word in line.text)


def chain(explanation: Explanation, word: str) -> list[dict[str, object]]:
    return explanation.to_json()["folds"].get(str(ir_line(explanation, word).value), [])


def test_a_value_has_the_rules_that_made_it_each_with_its_equation() -> None:
    explanation = explain("{ sstore(0, mul(add(calldataload(0), 0), 4)) }", steps=NO_STEPS)
    first, second = chain(explanation, "CallDataLoad")[0], chain(explanation, "Shl")[-1]
    assert (first["before"], first["after"]) == ("add(calldataload(0), 0)", "calldataload(0)")
    assert (second["before"], second["after"]) == ("mul(calldataload(0), 4)", "shl(2, calldataload(0))")
    by_name = {rule.name: rule.equation for rule in RULES}
    for each in (first, second):
        assert each["kind"] == "rule"
        assert each["proved"] is True
        assert each["equation"] == by_name[str(each["rule"])]


def test_a_literal_that_was_computed_is_explained_where_it_is_used() -> None:
    explanation = explain("{ sstore(0, add(1, mul(2, 3))) }", steps=NO_STEPS)
    changes = [(each["before"], each["after"]) for each in chain(explanation, "SStore")]
    assert changes == [("mul(2, 3)", "6"), ("add(1, 6)", "7")]


def test_an_equal_instruction_is_said_to_be_shared() -> None:
    text = "{ let a := calldataload(4) sstore(a, add(calldataload(4), a)) }"
    assert "shared" in {each["rule"] for each in chain(explain(text, steps=NO_STEPS), "CallDataLoad")}


def test_what_a_branch_decided_is_said_to_be_known() -> None:
    text = "{ let a := calldataload(0) if lt(a, 5) { sstore(0, lt(a, 9)) } }"
    found = [each for each in chain(explain(text, steps=NO_STEPS), "SStore") if each["kind"] == "known"]
    assert [(each["before"], each["after"]) for each in found] == [("lt(calldataload(0), 9)", "1")]


def removed(explanation: Explanation) -> dict[str, str | None]:
    return {line.text.strip(): line.why for line in explanation.pane("ir").lines if line.kind == "removed"}


@pytest.mark.parametrize(
    ("body", "gone", "why"),
    [
        ("mstore(0, 1) mstore(0, caller()) return(0, 32)", "mstore(0, 1)", "dead store: overwritten before anybody"),
        ("mstore(64, 1) return(0, 32)", "mstore(0x40, 1)", "dead store: nobody reads it before the frame ends"),
        ("sstore(1, 7) sstore(1, 8)", "sstore(1, 7)", "dead store: overwritten before anybody reads it"),
        ("sstore(1, 7) sstore(1, 7)", "sstore(1, 7)", "dead store: the slot holds this word already"),
        ("sstore(1, caller()) sstore(2, sload(1))", "sload(1)", "forwarded: what it loads is known: caller()"),
        ("mstore(0, caller()) sstore(2, mload(0))", "mload(0)", "forwarded: what it loads is known: caller()"),
    ],
)
def test_stores_and_loads_that_are_gone_are_shown_with_the_reason(body: str, gone: str, why: str) -> None:
    assert str(removed(explain(f"{{ {body} }}", steps=NO_STEPS))[gone]).startswith(why)


def test_what_is_gone_stands_where_it_stood() -> None:
    explanation = explain("{ sstore(0, 1) sstore(5, 7) sstore(2, sload(5)) sstore(3, 4) }", steps=NO_STEPS)
    texts = [line.text.strip() for line in explanation.pane("ir").lines]
    at = texts.index("sload(5)")
    assert texts[at - 1].endswith("SStore #5 #7")
    assert texts[at + 1].endswith("SStore #2 #7")


def test_what_is_removed_has_no_opcodes_and_its_source_line() -> None:
    explanation = explain("{\n  mstore(0, 1)\n  mstore(0, 2)\n  return(0, 32)\n}", steps=NO_STEPS)
    (line,) = [line for line in explanation.pane("ir").lines if line.kind == "removed"]
    assert (line.src, line.pcs) == ((2,), ())


def test_code_that_is_not_optimised_has_the_rules_of_its_dependency_blocks() -> None:
    code = "5f35600402" + "5f525f51" + "5f55"  # storage[0] = memory[0] = 4 * calldata[0]
    explanation = explain(code, optimised=False)
    assert chain(explanation, "Shl")[0]["before"] == "mul(calldataload(0), 4)"
    assert [line.text.strip() for line in explanation.pane("ir").lines if line.kind == "removed"] == ["mload(0)"]


@pytest.mark.parametrize("seed", first(10, range(30)))
def test_a_recorder_changes_nothing_in_dependency_blocks(seed: int) -> None:
    obj, _ = check(random_contract(seed).source)
    assert obj is not None
    try:
        code = compile_object(obj, runs=0).code
    except YulError:
        pytest.skip("does not compile")
    for source in basic_blocks(code):
        expected, stats = fold_block(lift_block(source))
        found, recorded = fold_block(lift_block(source), recorder=Watching())
        assert block_text(found) == block_text(expected)
        assert recorded == stats


@pytest.mark.parametrize("seed", first(15, range(60)))
def test_a_recorder_changes_nothing_in_yul(seed: int) -> None:
    obj, _ = check(random_contract(seed).source)
    assert obj is not None
    try:
        expected = compile_object(obj, order=StepOrder.AS_WRITTEN)
    except YulError:
        pytest.skip("does not compile")
    watching = Watching()
    assert compile_object(obj, recorder=watching).code == expected.code


@pytest.mark.parametrize("seed", first(8, range(60, 90)))
def test_a_recorder_changes_nothing_in_bytecode(seed: int) -> None:
    obj, _ = check(random_contract(seed).source)
    assert obj is not None
    try:
        code = compile_object(obj, runs=None).code
    except YulError:
        pytest.skip("does not compile")
    assert optimize_bytecode(code, recorder=Watching()).code == optimize(code).code
