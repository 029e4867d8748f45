"""`fusevm schedule`, `fusevm fusions`, and `fusevm statetest` on the native tiers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import test_statetest
from commands import Command, fusevm_command  # noqa: F401
from fusevm.evm.assembly import assemble
from fusevm.schedule.fusions import fusions
from test_statetest import written

document = test_statetest.document  # a fixture: two cases at Osaka, one at Berlin

CODE = (
    "0x"
    + assemble("PUSH1 1 PUSH1 2 ADD PUSH0 MSTORE PUSH1 @end JUMP INVALID end: JUMPDEST PUSH1 32 PUSH0 RETURN").hex()
)


def units(fusevm: Command, *arguments: str) -> list[dict[str, Any]]:
    ran = fusevm("schedule", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["units"]
    return found


def test_schedule_shows_handlers_their_operands_and_what_they_stand_for(fusevm: Command) -> None:
    ran = fusevm("schedule", CODE)
    assert ran.code == 0
    assert "SECTION PUSH PUSH MSTORE" in ran.out
    assert "0x3" in ran.out  # 1 + 2, folded
    assert "→" in ran.out
    assert "% of the dispatches saved" in ran.out


def test_schedule_as_json_says_where_each_handler_stands(fusevm: Command) -> None:
    found = units(fusevm, CODE)
    assert [unit["entry"] for unit in found] == sorted(unit["entry"] for unit in found)
    assert found[0]["pc"] == 0
    assert found[0]["fused"]
    assert found[0]["sequence"][0] == "SECTION"


def test_schedule_without_fusions_has_one_handler_an_opcode(fusevm: Command) -> None:
    found = units(fusevm, CODE, "--no-fuse")
    assert all(len(unit["sequence"]) == 1 for unit in found)
    assert not any(unit["fused"] for unit in found)
    assert len(found) > len(units(fusevm, CODE))


def test_schedule_with_only_some_fusions_uses_no_others(fusevm: Command) -> None:
    found = units(fusevm, CODE, "--only", "PUSH PUSH", "--only", "MSTORE PUSH")
    assert {" ".join(unit["sequence"]) for unit in found if unit["fused"]} == {"PUSH PUSH"}


def test_schedule_of_an_unknown_fusion_is_a_line_that_helps(fusevm: Command) -> None:
    ran = fusevm("schedule", CODE, "--only", "ADD ADD ADD ADD")
    assert ran.code != 0
    assert ran.err.strip() == "fusevm: no fusion 'ADD ADD ADD ADD'; `fusevm fusions` lists them"


def test_schedule_asks_which_opcodes_a_fork_has(fusevm: Command) -> None:
    assert ["INVALID"] in [unit["sequence"][-1:] for unit in units(fusevm, "0x5f", "--fork", "london")]
    assert ["INVALID"] not in [unit["sequence"][-1:] for unit in units(fusevm, "0x5f")]


@pytest.mark.parametrize("code", ["0x", "0x60", "0xfe", "0x5b", "0x" + "5b" * 50])
def test_schedule_takes_any_code(code: str, fusevm: Command) -> None:
    assert units(fusevm, code)


def test_schedule_of_nonsense_is_a_line_that_helps(fusevm: Command) -> None:
    ran = fusevm("schedule", "0xzz")
    assert ran.code != 0
    assert ran.err.startswith("fusevm: ")
    assert len(ran.err.splitlines()) == 1


def test_fusions_lists_all_of_them_the_seeds_first(fusevm: Command) -> None:
    rows = json.loads(fusevm("fusions", "--json").out)["fusions"]
    assert [row["fusion"] for row in rows] == [" ".join(fusion.sequence) for fusion in fusions()]
    types = dict.fromkeys(row["type"] for row in rows)
    assert [*types] == ["multi_push", "multi_pop", "iszero_jumpi", "dup2_mstore_push", "sequence"]
    text = fusevm("fusions").out
    assert "DUP2 MSTORE PUSH" in text
    assert "constants folded" in text


def test_fusions_tells_those_in_some_code(fusevm: Command) -> None:
    """The address mask, then three constants, one of them wide."""
    code = assemble(f"PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB PUSH1 7 PUSH20 {1 << 100} PUSH0 SSTORE")
    first, second = json.loads(fusevm("fusions", code.hex(), "--json").out)["fusions"]
    assert first == {
        "pc": 0,
        "type": "constant_fold",
        "original_length": 8,
        "folded_value": hex(2**160 - 1),
        "count": None,
    }
    assert second == {"pc": 8, "type": "multi_push", "original_length": 24, "folded_value": None, "count": 3}
    assert "multi_push" in fusevm("fusions", code.hex()).out


def test_fusions_takes_code_or_counts(fusevm: Command) -> None:
    ran = fusevm("fusions", "0x00", "--count", "0x00")
    assert ran.code != 0
    assert ran.err == "fusevm: give either CODE, to see the fusions in it, or --count\n"


def test_fusions_counts_what_occurs_and_suggests_more(fusevm: Command, tmp_path: Path) -> None:
    code = assemble("CALLER ORIGIN ADDRESS " * 6 + "PUSH1 1 PUSH1 2")
    ran = fusevm("fusions", "--count", "0x" + code.hex(), "--suggest", "1", "--json")
    found = json.loads(ran.out)
    assert {"fusion": "PUSH PUSH", "occurs": 1, "saves": 1}.items() <= next(
        row for row in found["fusions"] if row["fusion"] == "PUSH PUSH"
    ).items()
    assert found["suggested"] == ["CALLER ORIGIN"] or found["suggested"] == ["ORIGIN ADDRESS"]


def test_fusions_counts_the_code_of_a_bench_file(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"pre": {"0x11": {"code": CODE}, "0x12": {"code": "0x"}}}))
    assert json.loads(fusevm("fusions", "--count", str(path), "--json").out)["fusions"]
    path.write_text("{")
    ran = fusevm("fusions", "--count", str(path))
    assert ran.code != 0
    assert ran.err.startswith("fusevm: cannot read code from")


@pytest.mark.parametrize("how", [(), ("--no-fuse",), ("--lockstep",), ("--tier", "native"), ("--tier", "reference")])
def test_statetest_passes_on_every_tier(
    how: tuple[str, ...], document: dict[str, Any], tmp_path: Path, fusevm: Command
) -> None:
    ran = fusevm("statetest", written(tmp_path, document), "-j", "1", *how)
    assert (ran.code, ran.out.strip()) == (0, "3 passed, 0 failed")


@pytest.mark.parametrize("how", ["--no-fuse", "--lockstep"])
def test_statetest_on_a_native_tier_fails_what_is_wrong(
    how: str, document: dict[str, Any], tmp_path: Path, fusevm: Command
) -> None:
    document["own"]["post"]["Osaka"][1]["hash"] = "0x" + "11" * 32
    ran = fusevm("statetest", written(tmp_path, document), "-j", "1", how)
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "2 passed, 1 failed"


def test_statetest_may_run_a_sample_spread_over_all_files(
    document: dict[str, Any], tmp_path: Path, fusevm: Command
) -> None:
    for number in range(3):
        written(tmp_path / "all", document, f"{number}.json")
    ran = fusevm("statetest", str(tmp_path / "all"), "-j", "1", "--sample", "3")
    assert (ran.code, ran.out.strip()) == (0, "3 passed, 0 failed")
    ran = fusevm("statetest", str(tmp_path / "all"), "-j", "1", "--sample", "100", "--lockstep")
    assert (ran.code, ran.out.strip()) == (0, "9 passed, 0 failed")
