"""`fusevm yul compile`: what it prints for each option, always the same bytes, and code that behaves as the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from conftest import WHOLE, fixtures_folder
from fusevm.cli.yul import app
from fusevm.codegen.listing import listing
from fusevm.codegen.yul import compile_object
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST, Fork
from fusevm.lab.contracts import run_contract, wrong_answers
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object

SOURCE = """object "A" {
    code { datacopy(0, dataoffset("A_deployed"), datasize("A_deployed")) return(0, datasize("A_deployed")) }
    object "A_deployed" { code {
        sstore(0, f(calldataload(0), 9)) sstore(1, f(3, calldataload(32))) sstore(2, g(calldataload(64)))
        function f(a, b) -> c { c := add(mul(a, 8), g(b)) }
        function g(x) -> y { if x { y := add(g(sub(x, 1)), 2) } }
    } data "d" "0123456789" }
}"""


def yul(*arguments: str, source: str | bytes = SOURCE) -> Result:
    return CliRunner().invoke(app, list(arguments), input=source)


def test_bin_prints_hex_and_nothing_else() -> None:
    digits = yul("compile", "-", "--bin").stdout
    assert digits == compile_object(parse_object(SOURCE)).code.hex() + "\n"
    runtime = yul("compile", "-", "--bin-runtime").stdout
    assert yul("compile", "-", "--bin", "--bin-runtime").stdout == digits + runtime
    assert digits.strip().endswith(runtime.strip())


def test_bin_runtime_needs_a_runtime_object() -> None:
    result = yul("compile", "-", "--bin-runtime", source="{ stop() }")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "fusevm: - has no runtime object\n")


def test_few_runs_give_smaller_code_than_many() -> None:
    few, many = (len(yul("compile", "-", "--bin", "--runs", runs).stdout) for runs in ("0", "1000000"))
    plain = len(yul("compile", "-", "--bin", "--no-optimize").stdout)
    assert few <= many
    assert few < plain


def test_negative_runs_are_one_line() -> None:
    result = yul("compile", "-", "--runs", "-1")
    assert result.exit_code == 2


def test_optimised_is_the_default() -> None:
    assert yul("compile", "-", "--optimize", "--runs", "200").stdout == yul("compile", "-").stdout
    assert yul("compile", "-", "--no-optimize").stdout != yul("compile", "-").stdout


@pytest.mark.parametrize("command", ["check", "format", "run", "compile", "optimize"])
def test_every_command_takes_a_fork_by_either_name(command: str) -> None:
    source = "{ sstore(0, clz(calldataload(0))) }"
    for option in ("--fork", "--evm", "-f"):
        assert yul(command, "-", option, "osaka", source=source).exit_code == 0
        assert yul(command, "-", option, "prague", source=source).exit_code == 1
    assert "unknown fork 'atlantis'" in yul(command, "-", "--fork", "atlantis", source=source).stderr


def test_the_fork_decides_which_instructions_are_used() -> None:
    assert "5f" in yul("compile", "-", "--bin", "--fork", "shanghai", source="{ sstore(0, 1) }").stdout
    assert yul("compile", "-", "--bin", "--fork", "london", source="{ sstore(0, 1) }").stdout == "600160005500\n"


def test_steps_are_named_one_or_many_or_spelt_by_letters() -> None:
    source = "{ let x := add(calldataload(0), 1) sstore(x, x) let unused := 7 }"
    one = yul("optimize", "-", "--steps", "UnusedPruner:", source=source)
    assert one.exit_code == 0
    assert "unused" not in one.stdout
    assert one.stdout == yul("optimize", "-", "--steps", "u:", source=source).stdout
    text = " ".join(yul("optimize", "--help").stdout.replace("│", " ").split())
    assert "by letter" in text
    assert "by name" in text
    assert "one alone too" in text


# -- assembly and maps ------------------------------------------------------------------------------------------------


def test_the_assembly_names_objects_functions_and_labels_and_can_be_read_back() -> None:
    text = yul("compile", "-", "--asm", "--runs", "0").stdout
    creation, runtime = text.split('; object "A_deployed"')
    assert creation.startswith('; object "A", ')
    assert "; function g: 1 in, 1 out\n" in runtime
    compiled = compile_object(parse_object(SOURCE), runs=0)
    assert compiled.runtime is not None
    for part in (compiled, compiled.runtime):
        assert assemble(listing(part, LATEST, deep=False)) == part.code


def test_assembly_of_every_fixture_can_be_read_back(request: pytest.FixtureRequest) -> None:
    path = fixtures_folder(request.config) / "corpus" / "Token.yul"
    if not path.exists():
        pytest.skip(f"corpus not found at {path.parent} (set FUSEVM_FIXTURES)")
    compiled = compile_object(parse_object(path.read_bytes()))
    assert assemble(listing(compiled, Fork.OSAKA, deep=False)) == compiled.code


def test_a_source_map_is_a_line_for_each_object() -> None:
    creation, runtime = yul("compile", "-", "--source-map").stdout.splitlines()
    assert creation.split(":")[2] == "0"
    assert ":::i;" in runtime or ":i" in runtime
    data = json.loads(yul("compile", "-", "--source-map", "--asm", "--json").stdout)
    assert data["sourceMap"] == creation
    assert data["children"][0]["sourceMap"] == runtime
    assert data["sourceNames"] == {}
    assert data["assembly"].startswith('; object "A"')
    assert set(data["children"][0]["functionDebugData"]["g"]) == {"entryPoint", "parameterSlots", "returnSlots"}


def test_the_names_of_sources_come_with_the_map() -> None:
    source = '/// @use-src 3:"x.sol"\nobject "A" { code { /// @src 3:1:2\n stop() } }'
    data = json.loads(yul("compile", "-", "--source-map", "--json", source=source).stdout)
    assert (data["sourceMap"], data["sourceNames"]) == ("1:1:3:-:0", {"3": "x.sol"})


# -- exact ------------------------------------------------------------------------------------------------------------


def test_exact_compiles_the_text_of_the_steps_and_nothing_else() -> None:
    source = "{ let a := calldataload(0) sstore(f(a), f(sload(a))) function f(x) -> y { y := byte(0, not(x)) } }"
    tree, _ = check(source)
    assert tree is not None
    text = print_object(optimize(tree))
    expected = compile_object(parse_object(text), exact=True).code.hex()
    assert yul("compile", "-", "--exact", "--bin", source=source).stdout == expected + "\n"


def test_exact_does_not_fold_what_the_text_says() -> None:
    source = "{ sstore(0, add(calldataload(0), add(1, 2))) sstore(0, g(7)) function g(x) -> y { y := mul(x, 2) } }"
    tree = parse_object(source)
    exact, free = (compile_object(tree, exact=each).code for each in (True, False))
    names = {each.upper() for each in listing(compile_object(tree, exact=True), LATEST).split()}
    assert {"ADD", "MUL", "JUMP"} <= names
    assert len(exact) > len(free)


def test_exact_takes_a_switch_with_nothing_but_a_default() -> None:
    """Folding makes a jump of it; without folding it gets as far as the stack code."""
    tree = parse_object("{ switch calldataload(0) default { sstore(0, 1) } sstore(1, 2) }")
    assert listing(compile_object(tree, exact=True), LATEST).count("SSTORE") == 2


def test_exact_and_no_optimize_exclude_each_other() -> None:
    result = yul("compile", "-", "--exact", "--no-optimize")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["Token", "Amm", "Merkle"])
def test_exact_code_of_a_contract_answers_as_it_should(name: str, request: pytest.FixtureRequest) -> None:
    path = fixtures_folder(request.config) / "corpus" / f"{name}.opt.yul"
    if not path.exists():
        pytest.skip(f"corpus not found at {path.parent} (set FUSEVM_FIXTURES)")
    facts = json.loads((path.parent / f"{name}.json").read_text())
    code = compile_object(parse_object(path.read_bytes()), exact=True).code
    assert wrong_answers(run_contract(code, facts), facts) == []


# -- determinism ------------------------------------------------------------------------------------------------------


def test_the_same_bytes_come_out_whatever_the_hash_seed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = fixtures_folder(request.config) / "corpus" / ("Vault.yul" if WHOLE else "Token.yul")
    if not path.exists():
        path = tmp_path / "a.yul"
        path.write_text(SOURCE)
    program = "from fusevm.cli.start import main; main()"
    options = ["--json", "--source-map", "--asm", "--link-placeholders"]
    command = [sys.executable, "-c", program, "yul", "compile", str(path), *options]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1", "random")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000
