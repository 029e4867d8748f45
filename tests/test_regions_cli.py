"""`fusevm regions` and `fusevm schedule --regions`: what is compiled, what is refused, and its forms as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.evm.assembly import assemble
from regionprograms import SUM, TRIPLE

LOOP = "0x" + assemble(SUM).hex()
HEADER = assemble(SUM).index(b"\x5b")
CALLS = (
    "0x"
    + assemble(
        "PUSH2 300 loop: JUMPDEST PUSH1 @back PUSH1 5 PUSH1 @triple JUMP back: JUMPDEST POP PUSH1 1 SWAP1 SUB DUP1 "
        f"PUSH1 @loop JUMPI PUSH0 PUSH0 RETURN {TRIPLE}"
    ).hex()
)
THOUSAND = f"0x{1_000:064x}"  # turns: the loop is hot, and what leads to it is not


def report(fusevm: Command, *arguments: str) -> dict[str, Any]:
    ran = fusevm("regions", *arguments, "--json")
    assert ran.code == 0, ran.err
    (found,) = json.loads(ran.out)
    return dict(found)


def test_a_call_is_counted_and_its_hot_loop_becomes_a_region(fusevm: Command) -> None:
    found = report(fusevm, LOOP, "--data", THOUSAND)
    (entry,) = found["entries"]
    assert (entry["pc"], entry["count"], entry["loops"]) == (HEADER, 1_001, [HEADER])


def test_what_ends_the_frame_is_refused_and_told_with_its_reason(fusevm: Command) -> None:
    refused = report(fusevm, LOOP, "--data", THOUSAND)["refused"]
    assert [(each["count"], each["reason"]) for each in refused] == [(1, "it ends the frame: RETURN")]


def test_an_error_in_the_compiler_is_told_as_the_reason(fusevm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("f_17")

    monkeypatch.setattr("fusevm.lab.regions.report.regions_of", fails)
    assert report(fusevm, LOOP, "--data", THOUSAND)["failure"].startswith("the compiler failed: KeyError: 'f_17'")
    assert "refused: the compiler failed" in fusevm("regions", LOOP, "--data", THOUSAND).out


def test_functions_are_told_with_what_they_take_leave_and_call(fusevm: Command) -> None:
    entries = report(fusevm, CALLS)["entries"]
    kinds = {entry["pc"]: (entry["kind"], entry["takes"], entry["leaves"]) for entry in entries}
    triple = max(kinds)
    assert kinds[triple] == ("function", 2, 1)
    assert [triple] in [entry["calls"] for entry in entries]


def test_all_functions_and_loops_are_shown_without_a_run(fusevm: Command) -> None:
    found = report(fusevm, CALLS, "--all")
    assert {entry["count"] for entry in found["entries"]} == {None}
    assert len(found["entries"]) == 3  # the beginning, the loop, the function


def test_a_table_is_for_people(fusevm: Command) -> None:
    ran = fusevm("regions", CALLS)
    assert "function" in ran.out
    assert "left at" in ran.out
    assert "it ends the frame: RETURN" in ran.out


@pytest.mark.parametrize(("form", "part"), [("--ir", "function f_"), ("--llvm", "define"), ("--asm", "region_")])
def test_a_region_is_shown_in_each_of_its_forms(form: str, part: str, fusevm: Command) -> None:
    ran = fusevm("regions", LOOP, "--data", THOUSAND, form, "--at", hex(HEADER))
    assert (ran.code, ran.err) == (0, "")
    assert part in ran.out
    assert len(fusevm("regions", LOOP, "--data", THOUSAND, form).out) >= len(ran.out)


def test_the_ir_tells_where_a_region_is_left(fusevm: Command) -> None:
    exits = report(fusevm, LOOP, "--data", THOUSAND)["entries"][0]["exits"]
    assert f"Exit {exits[0]:#x}\n" in fusevm("regions", LOOP, "--data", THOUSAND, "--ir").out


def test_a_state_file_is_called_as_run_calls_it(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    account = {"0x" + "c0" * 20: {"code": LOOP, "balance": "0x0", "nonce": "0x0", "storage": {}}}
    path.write_text(json.dumps({"pre": account, "call": {"to": "0x" + "c0" * 20, "data": THOUSAND}}))
    assert report(fusevm, str(path))["entries"][0]["count"] == 1_001


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((LOOP, "--at", "0x1"), "no region begins at pc 0x1"),
        ((LOOP, "--at", "here"), "--at: 'here' is not a pc"),
        ((LOOP, "--ir", "--asm"), "give one of --ir, --llvm, --asm and --json"),
        (("0xzz",), "code is not hex"),
        (("nowhere.json",), "no such file: nowhere.json"),
        (("0x",), "code is empty"),
    ],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], problem: str, fusevm: Command) -> None:
    ran = fusevm("regions", *arguments)
    assert ran.code == 2
    assert ran.err.startswith("fusevm: ")
    assert problem in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_schedule_marks_the_words_that_regions_replace(fusevm: Command) -> None:
    units = json.loads(fusevm("schedule", LOOP, "--regions", "--json").out)["units"]
    marked = {unit["region"]: unit["pc"] for unit in units if "region" in unit}
    assert HEADER in marked
    assert all(region == pc for region, pc in marked.items())
    assert f"region {HEADER:#x} instead of" in fusevm("schedule", LOOP, "--regions").out
    assert "region" not in fusevm("schedule", LOOP).out


def test_the_schedule_has_regions_only_with_all_fusions(fusevm: Command) -> None:
    ran = fusevm("schedule", LOOP, "--regions", "--no-fuse")
    assert ran.code == 2
    assert ran.err == "fusevm: --regions goes with all fusions: leave out --no-fuse and --only\n"
