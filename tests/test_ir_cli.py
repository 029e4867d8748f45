"""The commands that show: disasm, asm, cfg, ir."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from fusevm.cli.asm import asm
from fusevm.cli.cfg import cfg
from fusevm.cli.disasm import disasm
from fusevm.cli.ir import ir

app = typer.Typer()
for command in (asm, cfg, disasm, ir):
    app.command()(command)

COUNTDOWN = "60055b6001900380600257"


def fusevm(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_disasm_and_asm_are_each_others_inverse() -> None:
    text = fusevm("disasm", COUNTDOWN).output
    assert fusevm("asm", text).output == f"0x{COUNTDOWN}\n"


def test_disasm_lists_instructions_as_data() -> None:
    (push,) = json.loads(fusevm("disasm", "0x6005", "--json").output)
    assert push == {"pc": 0, "byte": 0x60, "name": "PUSH1", "push": "0x5", "size": 2}


def test_asm_reads_a_file(tmp_path: Path) -> None:
    (tmp_path / "code.asm").write_text("PUSH 1 ; one\nPOP\n")
    assert json.loads(fusevm("asm", str(tmp_path / "code.asm"), "--json").output) == {"code": "0x600150", "size": 3}


def test_cfg_shows_loops_in_every_form() -> None:
    assert "loop 0x0002: depth 1" in fusevm("cfg", COUNTDOWN).output
    assert json.loads(fusevm("cfg", COUNTDOWN, "--json").output)["loops"][0]["latches"] == [2]
    assert fusevm("cfg", COUNTDOWN, "--format", "dot").output.startswith("digraph")
    assert fusevm("cfg", COUNTDOWN, "--format", "svg").output.startswith("<svg")


def test_ir_shows_blocks_as_they_are() -> None:
    output = fusevm("ir", COUNTDOWN).output
    assert "    $1 = Sub $0 #1\n" in output
    assert "stage" not in output


def test_ir_fold_shows_the_functions_that_are_compiled_and_what_folding_did() -> None:
    output = fusevm("ir", "60025f355b600190038060045700", "--fold").output
    assert output.startswith("function f_0() never returns\n")
    assert "function f_4(" in output
    assert "dependency block 13:\n" in output
    assert "    $0 = Unspill -1\n" in output
    assert "    Spill " in output
    output = fusevm("ir", "600260030160005560005460005460005260005100", "--fold").output
    assert "     1  add-constants" in output
    assert "fwd: 3 loads known" in output


def test_ir_as_data_has_functions_counts_and_rules() -> None:
    data = json.loads(fusevm("ir", "600260030160005500", "--fold", "--json").output)
    assert [each["start"] for each in data["blocks"]] == [0]
    assert data["counts"]["folded"] == 1
    assert data["rules"] == {"add-constants": 1}
    data = json.loads(fusevm("ir", "60025f355b600190038060045700", "--fold", "--json").output)
    assert [each["name"] for each in data["functions"]] == ["f_0", "f_4"]


def test_ir_of_code_that_cannot_be_optimised_says_why() -> None:
    result = fusevm("ir", "5f3556", "--fold", "--mode", "optimisation")
    assert result.exit_code == 2
    assert "--mode optimisation: " in result.output


def test_ir_can_show_one_stage_alone() -> None:
    everything = fusevm("ir", "333302600052", "--fold").output
    only_fold = fusevm("ir", "333302600052", "--stage", "fold").output
    assert everything.count("= Caller") == 1
    assert only_fold.count("= Caller") == 2


def test_ir_keeps_modes_apart() -> None:
    assert "Reach" in fusevm("ir", "3360005260005100", "--fold").output
    assert "Reach" not in fusevm("ir", "3360005260005100", "--fold", "--mode", "optimisation").output


def test_ir_shows_one_block() -> None:
    assert "dependency block 2:" in fusevm("ir", COUNTDOWN, "--block", "0x2").output
    missing = fusevm("ir", COUNTDOWN, "--block", "0x7")
    assert missing.exit_code == 2
    assert "no block at 0x7; blocks begin at 0x0, 0x2" in missing.output


@pytest.mark.parametrize("name", ["disasm", "cfg", "ir"])
def test_bad_code_ends_in_one_line(name: str) -> None:
    result = fusevm(name, "0x600")
    assert result.exit_code == 2
    assert result.output == "fusevm: code has an odd number of hex digits: 3\n"


def test_bad_assembly_ends_in_one_line() -> None:
    result = fusevm("asm", "PUSH1 0x100")
    assert (result.exit_code, result.output) == (2, "fusevm: line 1: '0x100' does not fit PUSH1\n")


def test_an_unknown_fork_ends_in_one_line() -> None:
    result = fusevm("ir", "00", "--fork", "atlantis")
    assert result.exit_code == 2
    assert "unknown fork 'atlantis'" in result.output
