"""Analyses of a function are computed once, kept as long as a pass says, and equal to what is computed anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from conftest import chosen
from fusevm.codegen import backend, bytecode
from fusevm.codegen.validation import Validation
from fusevm.codegen.yul import compile_object
from fusevm.evm.assembly import assemble
from fusevm.ir import analyses
from fusevm.ir.analyses import ANALYSES, Keeps, StaleAnalysis
from fusevm.ir.functions import BRANCH, Function, Unit
from fusevm.ir.recovery.unit import recover
from fusevm.yul.syntax.parser import parse_object

Changed = TypeVar("Changed")
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.yul"))
CORPUS = ("Amm", "Merkle", "Nft", "Numbers", "Text", "Timelock", "Token", "Vault")
LOOP = (
    "PUSH 0 CALLDATALOAD top: JUMPDEST DUP1 ISZERO PUSH @end JUMPI PUSH 1 SWAP1 SUB PUSH @top JUMP end: JUMPDEST STOP"
)


def compute_all(function: Function) -> None:
    for analysis in ANALYSES.values():
        analysis(function)


def knowing_everything(name: str, unit: Unit, change: Callable[[], Changed]) -> Changed:
    """Runs a pass on functions of which everything is known, and compares what it keeps."""
    for function in unit.functions.values():
        compute_all(function)
    result = change()
    for function in unit.functions.values():
        analyses.check(function)
    return result


def loop() -> Function:
    return recover(assemble(LOOP)).unit.functions[""]


def test_an_analysis_is_computed_once() -> None:
    function = loop()
    assert analyses.dominators(function) is analyses.dominators(function)
    (header,) = analyses.loops(function).by_header
    assert header in {block.start for block in analyses.order(function)}


def test_forgetting_values_keeps_the_graph() -> None:
    function = loop()
    compute_all(function)
    tree, counts = analyses.dominators(function), analyses.use_counts(function)
    analyses.forget(function, Keeps.GRAPH)
    assert analyses.dominators(function) is tree
    assert analyses.use_counts(function) is not counts


def test_each_use_has_its_place() -> None:
    function = loop()
    uses = analyses.uses(function)
    counts = {number: len(found) for number, found in uses.items()}
    assert counts == analyses.use_counts(function)
    ends = [use for found in uses.values() for use in found if use.user is None]
    assert {use.op for use in ends} == {"PHI", BRANCH}


def test_what_was_kept_and_has_changed_is_found() -> None:
    function = loop()
    compute_all(function)
    branch = next(block for block in function.blocks() if block.end.op == BRANCH)
    branch.end.arcs.reverse()
    with pytest.raises(StaleAnalysis, match="has changed"):
        analyses.check(function)


def test_validation_checks_what_passes_keep() -> None:
    unit = recover(assemble(LOOP)).unit

    def careless() -> None:
        compute_all(unit.functions[""])
        for block in unit.functions[""].blocks():
            block.instructions.clear()

    with pytest.raises(StaleAnalysis):
        Validation().run("careless", unit, careless)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_passes_keep_what_they_say_on_examples(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_what_they_say(path, monkeypatch)


@pytest.mark.parametrize("name", chosen(["Amm", "Text"], CORPUS))
def test_passes_keep_what_they_say_on_contracts(name: str, fixtures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_what_they_say(fixtures_dir / "corpus" / f"{name}.yul", monkeypatch)


def keep_what_they_say(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = parse_object(path.read_text())
    expected = compile_object(tree).code
    right = backend.generate

    def generate(*given: object, **named: object) -> object:
        return right(*given, **{**named, "run": knowing_everything})  # type: ignore[arg-type]

    monkeypatch.setattr(backend, "generate", generate)
    assert compile_object(tree).code == expected


@pytest.mark.parametrize("name", chosen(["Amm"], CORPUS))
def test_passes_keep_what_they_say_on_bytecode(name: str, fixtures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = json.loads((fixtures_dir / "corpus" / f"{name}.json").read_text())
    code = bytes.fromhex(facts["solc"]["legacy_opt"]["creation"].removeprefix("0x"))
    expected = bytecode.optimize(code).code
    monkeypatch.setattr(bytecode, "Work", partial(bytecode.Work, run=knowing_everything))
    assert bytecode.optimize(code).code == expected != code
