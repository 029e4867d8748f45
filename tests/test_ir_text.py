"""`fusevm ir` on one block and on text: the design notes' examples from the command line, and text folded again."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from fusevm.cli.ir import ir
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import basic_blocks
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.stages import Mode
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule
from fusevm.ir.parse import parse
from fusevm.ir.text import block_text

app = typer.Typer()
app.command()(ir)
FIRST = """dependency block 1:
    $0 = Unspill -1
    $2 = Add #1 $0
    $1 = Unspill -2
    $3 = SStore $2 $1
    $4 = Spill #42 -2
    Jump #12
"""


def fusevm_ir(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def block_of(program: str, *options: str) -> str:
    """The block at pc 1: what the notes write, after a STOP."""
    return fusevm_ir(assemble(f"STOP {program}").hex(), "--block", "1", *options).output


def steps_of(program: str, *options: str) -> list[str]:
    return [line.strip() for line in block_of(program, *options).splitlines()[1:-1]]


def test_the_notes_first_example_as_corrected() -> None:
    assert block_of("PUSH 1 ADD SSTORE PUSH 42 PUSH 12 JUMP") == FIRST


def test_the_notes_swap1_and_dup1() -> None:
    assert steps_of("SWAP1") == ["$0 = Unspill -1", "$1 = Unspill -2", "$2 = Spill $1 -1", "$3 = Spill $0 -2"]
    assert steps_of("DUP1") == ["$0 = Unspill -1", "$1 = Spill $0 0"]


def test_the_notes_word_that_is_unspilled_again_after_a_run_time_call() -> None:
    assert steps_of("DUP1 PUSH1 34 ADD PUSH0 MSTORE PUSH1 12 ADD") == [
        "$0 = Unspill -1",
        "$1 = Add #34 $0",
        "$2 = MStore #0 $1",
        "$0 = Unspill -1",
        "$3 = Add #12 $0",
        "$4 = Spill $3 -1",
    ]


def test_the_notes_unspills_as_operands() -> None:
    assert steps_of("DUP1 ADD PUSH0 MSTORE", "--inline") == ["$1 = Add (Unspill -1) (Unspill -1)", "$2 = MStore #0 $1"]


def test_the_notes_word_that_is_reloaded_from_where_it_was_spilled() -> None:
    steps = steps_of("ADD DUP1 PUSH0 MSTORE DUP1 PUSH1 43 SWAP1 SUB")
    assert steps[3:7] == ["$6 = Spill $2 -2", "$3 = MStore #0 $2", "$2 = Unspill -2", "$4 = Sub $2 #43"]


@pytest.mark.parametrize(
    ("opcode", "terminator"),
    [
        ("RETURN", "Return $0 $1"),
        ("REVERT", "Revert $0 $1"),
        ("SELFDESTRUCT", "SelfDestruct $0"),
        ("INVALID", "InvalidInstruction"),
        ("STOP", "Stop"),
    ],
)
def test_the_notes_terminators(opcode: str, terminator: str) -> None:
    assert block_of(f"PUSH 9 POP {opcode}").splitlines()[-1].strip() == terminator


def test_one_block_can_be_folded() -> None:
    code = assemble("PUSH 5 loop: JUMPDEST PUSH 1 SWAP1 SUB PUSH 0 ADD DUP1 PUSH @loop JUMPI STOP").hex()
    assert "= Add " in fusevm_ir(code, "--block", "2").output
    assert "= Add " not in fusevm_ir(code, "--block", "2", "--fold").output


def test_one_block_is_given_as_data() -> None:
    (block,) = json.loads(fusevm_ir("0x00600101", "--block", "1", "--json").output)["blocks"]
    assert block["start"] == 1
    assert "Add #1 $0" in block["text"]


def test_text_is_parsed_folded_and_printed(tmp_path: Path) -> None:
    path = tmp_path / "block.ir"
    path.write_text(
        "dependency block 7:\n"
        "    $2 = ADD (unspill -1) #0 // nothing\n"
        "    $5 = Mul #3 #4\n"
        "    $6 = Add $5 $2\n"
        "    $4 = Spill $6 -1\n"
        "    Jump #12\n"
    )
    folded = "dependency block 7:\n    $0 = Unspill -1\n    $1 = Add $0 #12\n    $2 = Spill $1 -1\n    Jump #12\n"
    assert fusevm_ir("--text", str(path)).output == folded
    assert fusevm_ir("--text", "-", text=path.read_text()).output == folded
    assert json.loads(fusevm_ir("--text", str(path), "--json").output) == {"blocks": [{"start": 7, "text": folded}]}
    assert "Mul" in fusevm_ir("--text", str(path), "--stage", "cse").output


def test_one_block_of_a_text_can_be_chosen() -> None:
    text = "dependency block 0:\n    Stop\n\ndependency block 5:\n    InvalidInstruction\n"
    assert fusevm_ir("--text", "-", "--block", "5", text=text).output == "dependency block 5:\n    InvalidInstruction\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give CODE, or --text FILE"),
        (("0x00", "--text", "-"), "give CODE, or --text FILE"),
        (("--text", "nowhere.ir"), "cannot read IR text: no such file: nowhere.ir"),
        (("0x00", "--block", "7"), "no block at 7; blocks begin at 0x0"),
        (("--text", "-"), "-: ir: line 1: 'Frob' stands before the first 'dependency block N:'"),
    ],
)
def test_wrong_input_ends_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = fusevm_ir(*arguments, text="Frob")
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_a_block_knows_nothing_of_the_values_of_others() -> None:
    text = "dependency block 0:\n    $1 = Caller\n    Fall #2\n\ndependency block 2:\n    $2 = SStore #0 $1\n    Stop\n"
    result = fusevm_ir("--text", "-", text=text)
    assert result.exit_code == 2
    assert "ir: line 6: '$1' is never computed" in result.output


def test_all_blocks_of_a_code_are_folded_from_its_text() -> None:
    """Each numbers its values from zero."""
    text = fusevm_ir(assemble("PUSH 1 ADD SSTORE PUSH 7 JUMP JUMPDEST DUP1 PUSH 2 MUL SSTORE STOP").hex()).output
    alone = [fusevm_ir("--text", "-", "--block", block, text=text).output for block in ("0", "7")]
    assert fusevm_ir("--text", "-", text=text).output == "\n".join(alone)


NAMES = (
    "ADD", "MUL", "SUB", "AND", "ISZERO", "DUP1", "DUP2", "SWAP1", "SWAP2", "POP", "PUSH0", "PUSH1 1", "PUSH1 32",
    "MLOAD", "MSTORE", "SLOAD", "SSTORE", "KECCAK256", "EXP", "CALLDATALOAD", "GAS", "CALLER", "NOT", "SHL",
)  # fmt: skip


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("seed", range(40))
def test_text_folds_to_what_its_bytecode_folds_to(seed: int, mode: Mode) -> None:
    rng = random.Random(seed)
    ending = rng.choice(["PUSH2 0x1234 JUMP", "STOP", "RETURN", "JUMP", ""])
    (source,) = basic_blocks(assemble(" ".join(rng.choices(NAMES, k=24)) + " " + ending))
    (read,) = parse(block_text(lift_block(source), facts=True))
    again, _ = fold_block(read, mode=mode)
    expected, _ = fold_block(lift_block(source), mode=mode)
    assert _shape(again) == _shape(expected)


def _shape(block: object) -> tuple[list[str], str]:
    """What is done, without numbers of instructions: text keeps no order of what does not matter."""
    text = block_text(block, schedule(block))  # type: ignore[arg-type]
    lines = text.splitlines()
    return sorted(line.split(" = ")[-1].split(" ")[0] for line in lines[1:]), lines[-1].split(" ")[4]
