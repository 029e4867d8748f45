"""The command `fusevm optimize`: hex, files and artifacts in, code and a report out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.evm.assembly import assemble

RUNTIME = assemble("PUSH1 1 PUSH1 2 ADD PUSH32 0 ADD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN")
PLACE = 6  # of the immutable in it
CREATION = assemble(
    f"PUSH1 {len(RUNTIME)} PUSH1 @runtime PUSH1 0 CODECOPY CALLER PUSH1 {PLACE} MSTORE "
    f"PUSH1 {len(RUNTIME)} PUSH1 0 RETURN INVALID runtime: DATA 0x{RUNTIME.hex()}"
)
ADDS = "0x600160020160005260206000f3"


def foundry() -> dict[str, Any]:
    return {
        "abi": [],
        "bytecode": {"object": "0x" + CREATION.hex(), "sourceMap": "1:2:3", "linkReferences": {}},
        "deployedBytecode": {
            "object": "0x" + RUNTIME.hex(),
            "sourceMap": "1:2:3",
            "immutableReferences": {"7": [{"start": PLACE, "length": 32}]},
        },
    }


def test_the_report_tells_bytes_and_gas_before_and_after(fusevm: Command) -> None:
    ran = fusevm("optimize", ADDS)
    assert ran.code == 0
    assert "runtime code: 13 → 8 bytes (-38.5%), static gas of a run 21 → 13 (-38.1%)" in ran.out
    assert ran.out.endswith("\n0x60035f5260205ff3\n")


def test_json_has_the_code_and_the_report(fusevm: Command) -> None:
    told = json.loads(fusevm("optimize", ADDS, "--json").out)
    assert told["code"] == "0x60035f5260205ff3"
    assert told["report"]["changed"] is True
    assert (told["report"]["before"]["bytes"], told["report"]["after"]["bytes"]) == (13, 8)
    assert told["report"]["after"]["blocks"] == [{"pc": 0, "bytes": 8, "weight": 1.0, "static_gas": 13}]


def test_code_that_is_left_as_it_is_comes_back_with_the_reason(fusevm: Command) -> None:
    ran = fusevm("optimize", "0x5a5f5260205ff3")
    assert ran.code == 0
    assert "left as it is: GAS is used for more than a call (at 0x0)" in ran.out
    assert ran.out.endswith("0x5a5f5260205ff3\n")


def test_a_file_of_hex_is_read_and_the_result_written(fusevm: Command, tmp_path: Path) -> None:
    (tmp_path / "code.hex").write_text(ADDS)
    ran = fusevm("optimize", str(tmp_path / "code.hex"), "-o", str(tmp_path / "out.hex"))
    assert (tmp_path / "out.hex").read_text() == "0x60035f5260205ff3\n"
    assert "0x6003" not in ran.out


def test_an_artifact_of_foundry_keeps_its_form_with_new_code_and_places(fusevm: Command, tmp_path: Path) -> None:
    (tmp_path / "C.json").write_text(json.dumps(foundry()))
    assert fusevm("optimize", str(tmp_path / "C.json"), "-o", str(tmp_path / "D.json")).code == 0
    made = json.loads((tmp_path / "D.json").read_text())
    creation, runtime = (bytes.fromhex(made[name]["object"][2:]) for name in ("bytecode", "deployedBytecode"))
    assert len(creation) < len(CREATION)
    assert runtime in creation
    ((reference,),) = made["deployedBytecode"]["immutableReferences"].values()
    assert runtime[reference["start"] - 1] == 0x7F  # PUSH32
    assert made["bytecode"]["sourceMap"] == ""
    assert made["abi"] == []


def test_an_artifact_of_hardhat_has_plain_hex(fusevm: Command, tmp_path: Path) -> None:
    form = {"bytecode": "0x" + CREATION.hex(), "deployedBytecode": "0x" + RUNTIME.hex()}
    (tmp_path / "C.json").write_text(json.dumps(form))
    made = json.loads(fusevm("optimize", str(tmp_path / "C.json"), "--json").out)["artifact"]
    assert made["deployedBytecode"][2:] in made["bytecode"]
    assert len(made["bytecode"]) < len(form["bytecode"])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"abi": []}, "is not an artifact of Foundry or Hardhat: it has no 'bytecode'"),
        ({"bytecode": "0x"}, "has no code: an interface, or an abstract contract"),
        ({"bytecode": {"object": "0x6001__$" + "a" * 34 + "$__00"}}, "needs a library at digit 6: link the artifact"),
        ({"bytecode": 7}, "'bytecode' is not hex"),
    ],
)
def test_an_artifact_without_code_to_optimise_is_refused_in_one_line(
    fusevm: Command, tmp_path: Path, form: object, message: str
) -> None:
    (tmp_path / "C.json").write_text(json.dumps(form))
    ran = fusevm("optimize", str(tmp_path / "C.json"))
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0x60zz"], "code is not hex: 'z' at position 4"),
        (["0x"], "there is no code to optimise"),
        (["nosuch.json"], "no such file: nosuch.json"),
        ([ADDS, "--fork", "paris2"], "paris2"),
        ([ADDS, "-o", "/nowhere/at/all"], "--output /nowhere/at/all: cannot write"),
    ],
)
def test_wrong_input_ends_in_one_line(fusevm: Command, arguments: list[str], message: str) -> None:
    ran = fusevm("optimize", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
