"""Solidity and Vyper explained by the compilers that are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusevm import BadSource, explain
from fusevm.evm.bytecode import instructions

COUNTER = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Counter {
    uint256 public total;
    event Added(address indexed who, uint256 amount);
    function add(uint256 amount) external returns (uint256) {
        require(amount != 7, "no sevens");
        total += amount;
        emit Added(msg.sender, amount);
        return total;
    }
}
"""
_SOLC = """const solc = require('solc');
console.log(solc.compile(require('fs').readFileSync(0, 'utf8')));"""


def program(folder: Path, name: str, text: str) -> str:
    """An executable file."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="session")
def solc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """solc's npm package as a command: the one that FUSEVM_SOLC names, or a new one."""
    node, npm, given = shutil.which("node"), shutil.which("npm"), os.environ.get("FUSEVM_SOLC")
    if node is None or (given is None and npm is None):
        pytest.skip("npm and node are needed to ask solc itself")
    folder = Path(given) if given is not None else tmp_path_factory.mktemp("solc")
    if given is None:
        assert npm is not None
        try:
            subprocess.run([npm, "install", "solc@0.8"], cwd=folder, capture_output=True, check=True, timeout=60)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"npm could not install solc: {error}")
    body = f"import os\nos.chdir({str(folder)!r})\nos.execv({node!r}, ['node', '-e', {_SOLC!r}])\n"
    return program(tmp_path_factory.mktemp("bin"), "solc", body)


def test_lines_of_solidity_lead_to_the_bytecode_made_of_them(solc: str) -> None:
    explanation = explain(COUNTER, compiler=solc)
    assert explanation.language == "solidity"
    assert [pane.id for pane in explanation.panes] == ["source", "yul", "ir", "bytecode", "schedule"]
    names = {each.pc: each.name for each in instructions(explanation.code)}
    source = explanation.pane("source").lines
    assert "SSTORE" in {names[pc] for pc in source[7].pcs}  # total += amount
    assert "LOG2" in {names[pc] for pc in source[8].pcs}
    code = [line for line in explanation.pane("bytecode").lines if line.kind == "code"]
    assert all(line.src for line in code)
    assert sum(line.src != (3,) for line in code) > len(code) / 2  # more than that the contract has it


def test_a_call_of_solidity_is_decoded_and_its_gas_is_counted_to_the_lines(solc: str) -> None:
    explanation = explain(COUNTER, compiler=solc)
    run = explanation.run("add", [5])
    assert (run.status, run.decoded) == ("success", "5")
    assert "amount=5" in run.logs[0]["decoded"]
    (function,) = [each for each in run.flame["children"] if each["name"] == "Counter.add"]
    assert function["children"][0]["name"] == "8: total += amount;"
    assert explanation.run("add", [7]).reason == 'Error("no sevens")'


def test_what_solc_says_of_a_wrong_text_is_one_line(solc: str) -> None:
    with pytest.raises(BadSource, match=r"solc: DeclarationError: Undeclared identifier\. "):
        explain(COUNTER.replace("return total", "return totals"), compiler=solc)
    with pytest.raises(BadSource, match="solc: no contract 'Nothing' with code; there are Counter"):
        explain(COUNTER, compiler=solc, contract="Nothing")


def test_a_compiler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BadSource, match="solc is not on PATH: install it, or give a build tool's artifact"):
        explain(COUNTER)
    with pytest.raises(BadSource, match="vyper is not there: '/nowhere/vyper'"):
        explain("# @version ^0.4.0\n", compiler="/nowhere/vyper")


VYPER = "# @version ^0.4.0\ntotal: uint256\n\n@external\ndef __default__():\n    self.total = 5\n"


def test_lines_of_vyper_lead_to_the_bytecode_made_of_them(tmp_path: Path) -> None:
    """A program that answers as vyper does."""
    runtime = "60055f5500"
    table = {"pc_pos_map": {"0": [6, 17, 6, 18], "3": [6, 4, 6, 18]}, "pc_ast_map": {"0": [0, 1], "3": [0, 2]}}
    answers = ["0x6005600b5f3960055ff3" + runtime, "0x" + runtime, json.dumps(table), "[]"]
    body = "import sys\nassert sys.argv[1] == '-f' and open(sys.argv[3]).read().startswith('# @version')\n"
    vyper = program(tmp_path, "vyper", body + "".join(f"print({each!r})\n" for each in answers))
    explanation = explain(VYPER, compiler=vyper)
    assert explanation.language == "vyper"
    store = next(line for line in explanation.pane("bytecode").lines if "SSTORE" in line.text)
    assert store.src == (6,)
    assert explanation.run().status == "success"


@pytest.mark.parametrize("answer", ["print('nonsense')", "import sys; sys.exit('SyntaxException: wrong')"])
def test_what_a_compiler_answers_in_another_way_is_one_line(tmp_path: Path, answer: str) -> None:
    for name, text in (("vyper", VYPER), ("solc", COUNTER)):
        with pytest.raises(BadSource, match=f"^{name}: [^\n]*$"):
            explain(text, compiler=program(tmp_path, name, answer))
