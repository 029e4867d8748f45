"""`fusevm yul optimize`: the program on standard output, what happened on standard error, errors in one line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from fusevm.cli.yul import app

SOURCE = "{ function f(x) -> y { y := add(x, 0) } sstore(0, f(calldataload(0))) }"
OPTIMISED = "{\n    { sstore(0, calldataload(0)) }\n}\n"


def optimize(*arguments: str, source: str = SOURCE) -> Result:
    return CliRunner().invoke(app, ["optimize", "-", *arguments], input=source)


def test_the_program_is_printed_optimised() -> None:
    result = optimize()
    assert result.exit_code == 0
    assert result.stdout == OPTIMISED


def test_only_the_steps_asked_for_are_run() -> None:
    text = optimize("--steps", ":").stdout
    assert "f(calldataload(0))" in text


def test_traced_steps_show_a_diff_with_size_and_gas() -> None:
    result = optimize("--trace-steps")
    assert result.stdout == OPTIMISED
    assert "ExpressionSplitter: size +0, gas" in result.stderr
    assert "+        let _1 := 0" in result.stderr
    assert "-        sstore(0, f(calldataload(0)))" in result.stderr


def test_statistics_are_a_table_by_step() -> None:
    result = optimize("--stats")
    assert result.stdout == OPTIMISED
    assert "UnusedPruner" in result.stderr
    assert "together" in result.stderr


def test_the_result_can_be_had_as_data() -> None:
    data = json.loads(optimize("--json").stdout)
    assert data["text"] + "\n" == OPTIMISED
    assert data["size"]["after"] < data["size"]["before"]
    assert data["gas"]["after"] < data["gas"]["before"]
    assert data["steps"]["SSATransform"]["calls"] == 4
    assert data["changes"][0].keys() == {"object", "step", "size", "gas"}


@pytest.mark.parametrize(
    ("arguments", "source", "message"),
    [
        (("--steps", "aQ"), SOURCE, "step sequence: no step has the letter 'Q' at 2"),
        (("--steps", "[a"), SOURCE, "step sequence: '[' is never closed"),
        (("--steps", "MainFuncton"), SOURCE, "no step is named 'MainFuncton'; did you mean MainFunction?"),
        (
            ("--steps", "SSATransfrom,UnusedPruner"),
            SOURCE,
            "no step is named 'SSATransfrom'; did you mean SSATransform",
        ),
        (("--steps", "SSATransform,x"), SOURCE, "no step is named 'x'; letters are written without commas"),
        (("--steps", "SSATransform xa"), SOURCE, "no step is named 'SSATransform xa'"),
        (("--steps", "NoSuchThing,UnusedPruner"), SOURCE, "no step is named 'NoSuchThing'"),
        (("--steps", "UnusedPruner,"), SOURCE, "no step is named ''"),
        (("--steps", "VarNameCleaner"), SOURCE, "VarNameCleaner can only come last"),
        (("--evm", "mars"), SOURCE, "unknown fork 'mars'"),
        ((), "{ sstore(0, x) }", "'x' is not declared"),
        ((), "{", "standard input:1:2:"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], source: str, message: str) -> None:
    result = optimize(*arguments, source=source)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert len([line for line in result.stderr.strip().splitlines() if not line.startswith("    ")]) == 1


def test_an_older_fork_keeps_to_its_instructions() -> None:
    assert "shl" not in optimize("--evm", "byzantium", source="{ sstore(0, mul(calldataload(0), 0x10000)) }").stdout


def test_a_step_can_be_named() -> None:
    assert "function main()" in optimize("--steps", "MainFunction").stdout
    assert "function main()" in optimize("--steps", "MainFunction:").stdout


def test_several_names_are_separated_by_commas() -> None:
    named = optimize("--steps", "ExpressionSplitter, SSATransform : UnusedPruner").stdout
    assert named == optimize("--steps", "xa:u").stdout
    assert named != optimize("--steps", "x:u").stdout


def test_names_run_what_their_letters_run() -> None:
    assert optimize("--steps", "FunctionalInliner").stdout == optimize("--steps", "e").stdout


@pytest.mark.parametrize("letters", ["xa[r]cLM", "dfDvulfnTUtnIfxa[r]EscLMVcul [j]", "main", "u"])
def test_letters_are_still_letters(letters: str) -> None:
    assert optimize("--steps", letters).exit_code == 0
