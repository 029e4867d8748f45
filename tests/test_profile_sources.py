"""Sources of contracts: artifacts of all tools, source maps, functions in texts, and codes that are recognised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import handmade
from fusevm.tracing.sources.artifacts import BadArtifact, read_sources
from fusevm.tracing.sources.contracts import CompiledCode, SourceContract, Sources
from fusevm.tracing.sources.files import SourceFile
from fusevm.tracing.sources.functions import functions_of
from fusevm.tracing.sources.maps import from_vyper

# -- artifacts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", handmade.FORMS, ids=lambda write: str(write.__name__))
def test_artifacts_of_all_tools_say_the_same(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    (contract,) = read_sources([write(tmp_path)])
    assert (contract.name, contract.creation.code, contract.runtime.code) == ("Safe", handmade.INIT, handmade.RUNTIME)
    places = contract.runtime.map.places
    assert [places[pc].line for pc in sorted(places)] == [3, 3, 3, 3, 2, 5, 6, 6, 6, 5, 6, 6, 6, 6]
    assert sorted(contract.runtime.map.jumps.values()) == ["i", "o"]
    assert contract.file is not None
    assert contract.file.path.endswith("Safe.sol")
    assert [each.name for each in contract.file.functions] == ["Safe.open", "Safe.close"]


def test_a_source_that_is_not_there_leaves_the_code_without_places(tmp_path: Path) -> None:
    path = handmade.standard_json(tmp_path)
    (tmp_path / "Safe.sol").unlink()
    (contract,) = read_sources([path])
    assert contract.runtime.map.places == {}
    assert len(contract.runtime.map.jumps) == 2


def test_sources_are_looked_for_in_the_given_folder(tmp_path: Path) -> None:
    path = handmade.standard_json(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "Safe.sol").rename(tmp_path / "elsewhere" / "Safe.sol")
    (contract,) = read_sources([path], root=tmp_path / "elsewhere")
    assert contract.runtime.map.places


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "expected an object"),
        ("{}", "not an artifact of Foundry or Hardhat, nor output of solc or Vyper"),
        ('{"contracts": {"a.sol": {"A": {"evm": {"bytecode": {"object": "0xzz"}}}}}}', "malformed: ValueError"),
        ('{"contracts": {"a.sol": {"A": {"evm": {"bytecode": {"object": "00", "sourceMap": "x:y:z"}}}}}}', "malformed"),
        ('{"_format": "hh-sol-artifact-1", "contractName": "A", "sourceName": "A.sol"}', "its build info is missing"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(BadArtifact, match=message) as error:
        read_sources([path])
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match=r"cannot read .*: No such file"):
        read_sources([tmp_path / "x.json"])


# -- functions --------------------------------------------------------------------------------------------------------

_SOLIDITY = b"""
// contract Ghost { function no() {} }
function free(uint x) pure returns (uint) { return x; }
abstract contract A is B("}") {
    string constant S = "function no() { '";
    modifier only() virtual { _; }
    modifier bare { _; }
    constructor() { /* } */ }
    function none(uint) external virtual;
    function (uint) internal pointer;
    receive() external payable { unchecked { if (true) {} } }
    function yul() public { assembly { function inner(a) -> b { b := a } } }
}
library L { function f() internal {} }
"""


def test_functions_of_solidity_are_found_in_the_text() -> None:
    found = functions_of("a.sol", _SOLIDITY)
    names = [each.name for each in found]
    assert names == ["free", "A.only", "A.bare", "A.constructor", "A.receive", "A.yul", "A.inner", "L.f"]
    for each in found:
        assert _SOLIDITY[each.body : each.body + 1] == b"{"
        assert _SOLIDITY[each.end - 1 : each.end] == b"}"
    receive = found[names.index("A.receive")]
    assert _SOLIDITY[receive.start : receive.end] == b"receive() external payable { unchecked { if (true) {} } }"


def test_the_innermost_function_around_a_place_is_told() -> None:
    file = SourceFile("a.sol", _SOLIDITY)
    inner, outer = file.function_at(_SOLIDITY.index(b"b := a")), file.function_at(_SOLIDITY.index(b"assembly"))
    assert inner is not None
    assert outer is not None
    assert (inner.name, outer.name) == ("A.inner", "A.yul")
    assert file.function_at(_SOLIDITY.index(b"string")) is None


def test_functions_of_vyper_end_where_the_text_is_not_indented() -> None:
    f = b"def f(\n    a: uint256\n) -> uint256:\n    return a\n# note\n    \n"
    text = b"@external\n" + f + b"@internal\ndef g():\n    pass\n"
    first, second = functions_of("dir/purse.vy", text)
    assert (first.name, second.name) == ("purse.f", "purse.g")
    assert text[first.start : first.end] == f
    assert text[first.body : first.end].lstrip().startswith(b"return a")
    assert text[second.start : second.end] == b"def g():\n    pass\n"


def test_lines_are_counted_in_bytes() -> None:
    file = SourceFile("a.sol", "é\nü = 1;\n".encode())
    place = file.place(3, 5)
    assert (place.line, place.text, file.line(2)) == (2, "ü", "ü = 1;")


# -- maps -------------------------------------------------------------------------------------------------------------


def test_instructions_of_vyper_without_a_place_belong_to_what_is_before_them_in_the_block() -> None:
    file = SourceFile("a.vy", b"a\nb\nc\n")
    code = bytes.fromhex("5f5f5b5f5f5f")
    table = {"pc_pos_map": {"0": [1, 0, 1, 1], "4": [3, 0, 3, 1]}, "pc_jump_map": {"1": "i", "2": "-"}}
    found = from_vyper(code, table, {0: file})
    assert {pc: place.line for pc, place in found.places.items()} == {0: 1, 1: 1, 4: 3, 5: 3}
    assert found.jumps == {1: "i"}


# -- recognising codes ------------------------------------------------------------------------------------------------


def contract(name: str, runtime: CompiledCode, creation: bytes = b"") -> SourceContract:
    return SourceContract(name, None, CompiledCode(creation), runtime)


def test_immutables_and_library_addresses_do_not_matter() -> None:
    known = Sources([contract("A", CompiledCode(b"\x7f" + bytes(32) + b"\x50", holes=((1, 32),)))])
    assert known.of_code(b"\x7f" + b"\xaa" * 32 + b"\x50") is not None
    assert known.of_code(b"\x7f" + b"\xaa" * 32 + b"\x51") is None
    library = Sources([contract("L", CompiledCode(b"\x73" + bytes(20) + b"\x30"))])
    assert library.of_code(b"\x73" + b"\xaa" * 20 + b"\x30") is not None


def test_arguments_may_follow_init_code_and_immutables_runtime_code() -> None:
    known = Sources([contract("A", CompiledCode(b"\x5b\x00"), b"\x5f\x5f")])
    for code in (b"\x5f\x5f", b"\x5f\x5f\x01", b"\x5b\x00", b"\x5b\x00\x07"):
        assert known.of_code(code) is not None
    assert known.of_code(b"\x5b") is None
    assert known.of_code(b"") is None


def test_of_contracts_that_fit_the_longest_is_meant() -> None:
    known = Sources([contract("A", CompiledCode(b"\x5b")), contract("B", CompiledCode(b"\x5b\x00"))])
    found = known.of_code(b"\x5b\x00\x01")
    assert found is not None
    assert found.contract.name == "B"


def test_an_interface_that_cannot_be_read_has_no_names() -> None:
    broken = SourceContract("A", None, CompiledCode(), CompiledCode(b"\x00"), [{"type": "function"}])
    assert Sources([broken]).signature_of(b"\1\2\3\4") is None


def test_vypers_combined_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.vy").write_text("x: uint256\n")
    table = {"pc_pos_map": {"0": [1, 0, 1, 1]}}
    form = {"bytecode": "0x5f", "bytecode_runtime": "0x5f5f", "source_map": table, "source_map_runtime": table}
    path = tmp_path / "combined.json"
    path.write_text(json.dumps({"p.vy": form, "version": "0.4.3"}))
    (found,) = read_sources([path])
    assert (found.name, found.runtime.code, sorted(found.runtime.map.places)) == ("p", b"\x5f\x5f", [0, 1])
