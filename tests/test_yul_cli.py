"""`fusevm yul`: errors in lines, results as text or data, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from conftest import chosen
from fusevm.cli.yul import app
from fusevm.evm.keccak import keccak256
from yulfixtures import YulFixture, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "yulSyntaxTests")


def yul(*arguments: str, source: str | bytes = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=source)


def clean(result: Result) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output


def test_every_faulty_source_of_the_suite_gives_error_lines(fixture: YulFixture) -> None:
    fork = fixture.fork.label if fixture.fork is not None else "osaka"
    result = yul("check", "-", "--evm", fork, source=fixture.source.encode())
    clean(result)
    errors = [line for line in fixture.expectation.splitlines() if "Error" in line.split(":")[0]]
    assert result.exit_code == (1 if errors else 0)
    lines = [line for line in result.stderr.splitlines() if line.startswith("standard input:")]
    assert len(lines) == len([line for line in fixture.expectation.splitlines() if ":" in line])


def test_check_says_nothing_about_a_good_program() -> None:
    result = yul("check", "-", source="{ sstore(0, 1) }")
    assert (result.exit_code, result.output) == (0, "")


def test_check_gives_a_line_an_error() -> None:
    result = yul("check", "-", source="{ sstore(x, y) }")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "standard input:1:13: 'y' is not declared",
        "    { sstore(x, y) }",
        "                ^",
        "standard input:1:10: 'x' is not declared",
        "    { sstore(x, y) }",
        "             ^",
    ]


def test_an_error_names_the_file_and_points_at_the_place(tmp_path: Path) -> None:
    """Tabs stay tabs, so that the carets stand under the place however wide they are."""
    path = tmp_path / "vault.yul"
    path.write_text("{\n\tlet long := 1\n\tsstore(0, longer)\n}\n")
    for command in ("check", "compile", "optimize", "run", "format"):
        result = yul(command, str(path))
        assert result.exit_code == 1
        assert (
            result.stderr == f"{path}:3:12: 'longer' is not declared\n    \tsstore(0, longer)\n    \t          ^^^^^^\n"
        )


def test_a_very_long_line_is_not_shown() -> None:
    result = yul("check", "-", source="{ " + "sstore(0, 1) " * 100 + "sstore(0, x) }")
    assert result.stderr == "standard input:1:1313: 'x' is not declared\n"


def test_check_gives_data_if_asked() -> None:
    result = yul("check", "-", "--json", source="{ let x := y }")
    assert json.loads(result.stdout) == [
        {
            "kind": "DeclarationError",
            "code": 8198,
            "line": 1,
            "column": 12,
            "start": 11,
            "end": 12,
            "message": "'y' is not declared",
        }
    ]


@pytest.mark.parametrize("source", [b"\xff\xfe\0", b"{" * 10_000, b"object", b"{ let x := \xc3\xa9 }"])
@pytest.mark.parametrize("command", ["check", "format", "run", "compile"])
def test_no_input_gives_a_traceback(command: str, source: bytes) -> None:
    result = yul(command, "-", source=source)
    clean(result)
    assert result.exit_code == 1
    assert result.stderr.startswith("standard input:")


@pytest.mark.parametrize("command", ["check", "format", "run", "compile", "optimize"])
def test_an_empty_text_is_one_line(command: str) -> None:
    result = yul(command, "-", source=b" \n")
    assert (result.exit_code, result.stderr) == (2, "fusevm: standard input: empty; Yul is needed\n")


def test_a_missing_file_is_one_line() -> None:
    result = yul("check", "nowhere.yul")
    assert (result.exit_code, result.stderr) == (2, "fusevm: no such file: nowhere.yul\n")


def test_an_unknown_fork_is_one_line() -> None:
    result = yul("check", "-", "--evm", "atlantis", source="{}")
    assert result.exit_code == 2
    assert "unknown fork 'atlantis'" in result.stderr


def test_format_prints_the_program(tmp_path: Path) -> None:
    file = tmp_path / "a.yul"
    file.write_text("{let   x:=1 if x{sstore(0,x)}}")
    assert yul("format", str(file)).stdout == "{\n    let x := 1\n    if x { sstore(0, x) }\n}\n"


def test_run_shows_output_logs_and_storage() -> None:
    result = yul(
        "run", "-", "--data", "0x05", source="{ sstore(1, calldatasize()) log1(0, 1, 7) mstore(0, 2) return(0, 32) }"
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["success", f"output: 0x{2:064x}", "log: 0x7 0x00", "storage: 0x1 = 0x1"]


def test_run_fails_where_the_program_reverts() -> None:
    result = yul("run", "-", "--json", source="{ revert(0, 0) }")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["end"] == "revert"


def test_run_can_imagine_a_chain() -> None:
    result = yul("run", "-", "--imagined", source="{ sstore(0, timestamp()) stop() }")
    assert result.exit_code == 0
    assert "  STOP()" in result.stdout
    assert f"{0x88888888:064x}" in result.stdout


def test_run_takes_a_sub_object() -> None:
    source = 'object "A" { code { invalid() } object "B" { code { sstore(1, datasize("B")) } } }'
    assert yul("run", "-", source=source).exit_code == 1
    assert yul("run", "-", "--object", "A.B", source=source).stdout.startswith("success")
    assert yul("run", "-", "--object", "C", source=source).exit_code == 2


def test_an_endless_program_is_stopped() -> None:
    result = yul("run", "-", "--steps", "1000", source="{ for {} 1 {} {} }")
    assert result.exit_code == 1
    assert "step limit" in result.stdout


def test_compile_gives_creation_and_runtime_code() -> None:
    source = 'object "A" { code { sstore(0, dataoffset("R")) } object "R" { code { stop() } } }'
    creation, runtime = yul("compile", "-", source=source).stdout.splitlines()
    assert creation.startswith("creation: 0x")
    assert runtime == "runtime:  0x00"
    assert yul("compile", "-", "--runtime", source=source).stdout == "0x00\n"
    assert json.loads(yul("compile", "-", "--json", source=source).stdout)["runtime"] == "R"


def test_compile_names_what_it_cannot_reach() -> None:
    lets = " ".join(f"let v{i} := sload({i})" for i in range(22))
    uses = " ".join(f"sstore({i + 1}, add(v{i}, mul(v{21 - i}, v{i * 7 % 22})))" for i in range(22))
    result = yul("compile", "-", source=f"{{ {lets} {uses} }}")
    assert result.exit_code == 1
    names = "v0, v1, v2, v3, v4, v5, v6"
    assert result.stderr == f"standard input: stack too deep in the main code: cannot reach {names}\n"


# -- libraries --------------------------------------------------------------------------------------------------------

WITH_DEAD_LIBRARIES = ("Amm", "Nft", "Text", "Timelock", "Vault")
LIBRARIES = """object "A" {
    code { sstore(0, linkersymbol("m.sol:M")) datacopy(0, dataoffset("R"), datasize("R")) return(0, datasize("R")) }
    object "R" { code { sstore(0, linkersymbol("l.sol:L")) sstore(1, linkersymbol("m.sol:M")) } }
}"""
L, M = "--library=l.sol:L=0x" + "11" * 20, "--library=m.sol:M=0x" + "22" * 20
L_PLACEHOLDER = f"__${keccak256(b'l.sol:L').hex()[:34]}$__"
M_PLACEHOLDER = f"__${keccak256(b'm.sol:M').hex()[:34]}$__"


def test_compile_refuses_libraries_without_an_address() -> None:
    result = yul("compile", "-", source=LIBRARIES)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("fusevm: no address of l.sol:L, m.sol:M: give --library")
    assert "no address of l.sol:L:" in yul("compile", "-", M, source=LIBRARIES).stderr


def test_a_library_that_only_dead_code_uses_needs_no_address() -> None:
    source = '{ sstore(0, 1) function unused() -> a { a := linkersymbol("l.sol:L") } }'
    for options in ([], ["--exact"]):
        result = yul("compile", "-", "--bin", *options, source=source)
        assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("name", chosen(["corpus/Amm"], [f"corpus/{name}" for name in WITH_DEAD_LIBRARIES]))
def test_what_solc_has_not_optimised_needs_no_addresses(name: str, fixtures_dir: Path) -> None:
    result = yul("compile", str(fixtures_dir / f"{name}.yul"), "--bin")
    assert (result.exit_code, result.stderr) == (0, "")


def test_compile_refuses_libraries_that_nobody_uses() -> None:
    result = yul("compile", "-", L, M, "--library=l.sol:l=0x" + "33" * 20, source=LIBRARIES)
    assert result.exit_code == 2
    assert result.stderr == "fusevm: --library: the program does not use l.sol:l; it uses l.sol:L, m.sol:M\n"
    assert "it uses none" in yul("compile", "-", L, source="{ sstore(0, 1) }").stderr


def test_compile_links_libraries_in_creation_and_runtime_code() -> None:
    creation, runtime = yul("compile", "-", L, M, source=LIBRARIES).stdout.splitlines()
    assert creation.count("22" * 20) == 2
    assert creation.count("11" * 20) == runtime.count("11" * 20) == runtime.count("22" * 20) == 1


def test_compile_writes_placeholders_if_asked() -> None:
    creation, runtime = yul("compile", "-", M, "--link-placeholders", source=LIBRARIES).stdout.splitlines()
    assert creation.count(L_PLACEHOLDER) == runtime.count(L_PLACEHOLDER) == 1
    assert len(L_PLACEHOLDER) == 40
    assert M_PLACEHOLDER not in creation


def test_placeholders_filled_in_at_their_places_give_the_linked_code() -> None:
    data = json.loads(yul("compile", "-", "--json", "--link-placeholders", source=LIBRARIES).stdout)
    linked = json.loads(yul("compile", "-", "--json", L, M, source=LIBRARIES).stdout)
    for part, whole in ((data, linked), (data["children"][0], linked["children"][0])):
        digits = part["code"][2:]
        for name, address in (("l.sol:L", "11" * 20), ("m.sol:M", "22" * 20)):
            for place in part["linkReferences"][name]:
                assert place["length"] == 20
                start = 2 * place["start"]
                assert digits[start : start + 4] == "__$" + keccak256(name.encode()).hex()[0]
                digits = digits[:start] + address + digits[start + 40 :]
        assert "0x" + digits == whole["code"]
        assert whole["linkReferences"] == {}


def test_equal_code_that_wants_different_libraries_is_embedded_twice() -> None:
    source = """object "A" {
        code { sstore(dataoffset("B"), dataoffset("C")) }
        object "B" { code { sstore(0, linkersymbol("x")) } }
        object "C" { code { sstore(0, linkersymbol("y")) } }
    }"""
    x, y = "--library=x=0x" + "11" * 20, "--library=y=0x" + "22" * 20
    linked = yul("compile", "-", x, y, source=source).stdout
    later = yul("compile", "-", "--link-placeholders", source=source).stdout
    for name, address in (("x", "11" * 20), ("y", "22" * 20)):
        later = later.replace(f"__${keccak256(name.encode()).hex()[:34]}$__", address)
    assert later == linked
