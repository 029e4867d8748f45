"""`fusevm.explain`: what became of a contract, from source to bytecode, with lines that lead to each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fusevm
from conftest import first
from fusevm import BadSource, Explanation, explain
from fusevm.codegen.yul import compile_object
from fusevm.evm.bytecode import instructions
from fusevm.ir.names import TEXT_OF
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.printer import print_object

EXAMPLES = Path(__file__).parent.parent / "examples"
YUL = sorted(EXAMPLES.glob("*.yul"))
SUM = "0x6001600201600301" + "5f5260205ff3"  # return 1 + 2 + 3


@pytest.fixture(scope="module", params=YUL, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest) -> Explanation:
    return explain(request.param)


def test_every_pane_of_yul_is_there_and_the_whole_is_json(example: Explanation) -> None:
    data = json.loads(json.dumps(example.to_json()))
    assert [pane["id"] for pane in data["panes"]][:4] == ["source", "yul", "ir", "bytecode"]
    assert data["language"] == "yul"
    assert data["object"] == example.to_json()["objects"][1]
    assert all(pane["lines"] for pane in data["panes"])


def test_every_pc_of_a_line_is_an_opcode_and_every_source_line_exists(example: Explanation) -> None:
    opcodes = {each.pc for each in instructions(example.code)}
    last = len(example.pane("source").lines)
    for pane in example.panes:
        for line in pane.lines:
            assert opcodes >= set(line.pcs), line
            assert all(1 <= number <= last for number in line.src), line


def test_every_instruction_has_a_source_line(example: Explanation) -> None:
    shown = [line for line in example.pane("bytecode").lines if line.kind == "code"]
    assert all(line.src for line in shown)


def test_lines_that_are_watched_do_not_change_the_code(example: Explanation) -> None:
    text = (EXAMPLES / example.name).read_text()
    obj, _ = check(text)
    assert obj is not None
    compiled = compile_object(obj)
    assert compiled.runtime is not None
    assert example.code == compiled.runtime.code


def test_a_line_of_optimised_yul_leads_to_the_opcodes_made_of_it() -> None:
    explanation = explain("{\n  let x := calldataload(0)\n  sstore(x, add(x, 1))\n  sstore(1, x)\n}")
    by_text = {line.text.strip(): line for line in explanation.pane("yul").lines}
    names = {each.pc: each.name for each in instructions(explanation.code)}
    store = by_text["sstore(1, x)"]
    assert store.src == (4,)
    assert "SSTORE" in {names[pc] for pc in store.pcs}
    assert "CALLDATALOAD" not in {names[pc] for pc in store.pcs}


def test_a_call_leads_to_all_that_became_of_it_though_it_was_inlined() -> None:
    text = """{
        let x := calldataload(0)
        store(x)
        store(add(x, 1))
        function store(y) { sstore(slot(y), y) }
        function slot(y) -> z { mstore(0, y) z := keccak256(0, 32) }
    }"""
    for steps in (None, ":"):  # by the steps of the optimiser, and by the back end
        explanation = explain(text, steps=steps)
        names = {each.pc: each.name for each in instructions(explanation.code)}
        assert "JUMP" not in names.values()
        of_line = [[names[pc] for pc in line.pcs] for line in explanation.pane("source").lines]
        assert [of_line[line - 1].count("SSTORE") for line in (3, 4, 5)] == [1, 1, 2]
        assert [of_line[line - 1].count("KECCAK256") for line in (3, 4, 5, 6)] == [1, 1, 2, 2]
        assert of_line[1] == ["PUSH0", "CALLDATALOAD"]


def test_code_that_is_written_once_for_several_places_leads_to_all_of_them() -> None:
    text = "{\n if calldataload(0) { revert(0, 0) }\n if calldataload(32) { revert(0, 0) }\n sstore(0, 1)\n}"
    explanation = explain(text)
    (line,) = [line for line in explanation.pane("bytecode").lines if "REVERT" in line.text]
    assert line.src == (2, 3)
    assert sum("Revert" in each.text and bool(each.pcs) for each in explanation.pane("ir").lines) == 2


def test_a_case_leads_to_its_comparison() -> None:
    text = "{\n switch calldataload(0)\n case 5 { sstore(0, 1) }\n case 6 { sstore(0, 2) }\n}"
    explanation = explain(text)
    found = {line.text.split("  ")[1]: line.src for line in explanation.pane("bytecode").lines}
    assert found["PUSH1 0x05"] == (3,)
    assert found["PUSH1 0x06"] == (4,)


@pytest.mark.parametrize("path", YUL, ids=lambda path: path.stem)
def test_remembering_calls_does_not_change_what_the_steps_make(path: Path) -> None:
    obj, _ = check(path.read_text())
    assert obj is not None
    assert print_object(optimize(obj, keep_calls=True)) == print_object(optimize(obj))


def test_code_that_does_not_fit_on_the_stack_by_the_ir_has_none_and_says_so() -> None:
    names = [f"v{number}" for number in range(20)]
    loads = "".join(f"let {name} := calldataload({at}) " for at, name in enumerate(names))
    text = f"{{ {loads} recurse({', '.join(names[:3])}) sstore(0, add({names[0]}, {names[-1]})) "
    text += "function recurse(a, b, c) { if a { recurse(sub(a, 1), b, c) } sstore(b, c) } }"
    for optimised in (None, False):
        explanation = explain(text, optimised=optimised)
        shown = any(pane.id == "ir" for pane in explanation.panes)
        assert shown != any(note.startswith("IR: not made, because ") for note in explanation.notes)
        assert all(line.src for line in explanation.pane("bytecode").lines if line.kind == "code")


def test_what_is_pushed_wherever_it_is_used_leads_to_those_places() -> None:
    explanation = explain("{ if lt(calldatasize(), 36) { revert(0, 0) } sstore(caller(), calldatasize()) }")
    names = {each.pc: each.name for each in instructions(explanation.code)}
    for name in ("CALLDATASIZE", "CALLER"):
        lines = [line for line in explanation.pane("ir").lines if line.text.endswith(f"= {TEXT_OF[name]}")]
        assert {names[pc] for line in lines for pc in line.pcs} == {name}


def test_instructions_of_the_ir_cover_all_that_is_not_stack_or_jump(example: Explanation) -> None:
    shown = {pc for line in example.pane("ir").lines for pc in line.pcs}
    computing = {
        each.pc
        for each in instructions(example.code)
        if each.op is not None and not each.op.is_stack and each.name not in ("JUMPDEST", "JUMP", "JUMPI")
    }
    assert computing <= shown


@pytest.mark.parametrize("name", first(1, ["Amm", "Numbers"]))
def test_the_instructions_of_real_contracts_have_lines_in_every_pane(fixtures_dir: Path, name: str) -> None:
    explanation = explain(fixtures_dir / "corpus" / f"{name}.yul")
    code = [line for line in explanation.pane("bytecode").lines if line.kind == "code"]
    assert all(line.src for line in code)
    for pane, least in (("source", 1.0), ("yul", 0.99), ("ir", 0.99)):
        shown = {pc for line in explanation.pane(pane).lines for pc in line.pcs}
        assert sum(line.pcs[0] in shown for line in code) >= least * len(code), pane


def test_folded_bytecode_leads_back_to_the_instructions_it_came_from() -> None:
    explanation = explain(SUM)
    source, bytecode = explanation.pane("source"), explanation.pane("bytecode")
    by_text = {line.text.split(maxsplit=1)[1]: line for line in source.lines}
    assert [line.text.split(maxsplit=1)[1] for line in bytecode.lines if 7 in line.src] == [
        "PUSH1 0x06",
        "PUSH0",
        "MSTORE",
    ]
    assert by_text["MSTORE"].pcs == (0, 2, 3)
    assert explanation.code == fusevm.optimize(SUM).code


def test_code_that_is_not_understood_is_shown_as_dependency_blocks() -> None:
    explanation = explain("0x5f355600")  # jumps nobody knows where
    assert explanation.code.hex() == "5f355600"
    assert any(note.startswith("optimize: ") for note in explanation.notes)
    assert {pc for line in explanation.pane("ir").lines for pc in line.pcs} >= {1}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("{ }", "yul"),
        ("// a comment\n{ stop() }", "yul"),
        ('object "a" { code { } }', "yul"),
        ("0x00", "bytecode"),
        ("60 01\n", "bytecode"),
        ('{"abi": [], "bytecode": "0x00"}', "bytecode"),
        ("PUSH1 1 ; hex", "assembly"),
        ("", "bytecode"),
    ],
)
def test_the_language_is_told_by_the_text(text: str, language: str) -> None:
    assert explain(text).language == language


RUNTIME = "602a5f5260205ff3"  # return 42
CREATION = "60088060095f395ff3" + RUNTIME


def test_creation_code_is_told_from_what_it_deploys() -> None:
    creation, runtime = explain(CREATION), explain(CREATION, object="runtime")
    assert (creation.objects, creation.object) == (["creation", "runtime"], "creation")
    assert (runtime.object, runtime.code.hex()) == ("runtime", RUNTIME)
    assert int(runtime.run().output, 16) == 42
    assert creation.run().status == "success"
    with pytest.raises(BadSource, match="the code deploys nothing: it returns no code"):
        explain("0x00", object="runtime")


def test_an_artifact_has_both_codes() -> None:
    artifact = {"abi": [], "bytecode": "0x" + CREATION, "deployedBytecode": "0x" + RUNTIME}
    assert explain(artifact).code.hex() == RUNTIME
    assert explain(artifact, object="creation").objects == ["creation", "runtime"]


def test_assembly_is_its_own_source() -> None:
    explanation = explain("top: JUMPDEST\nPUSH1 1\nPUSH0 SSTORE ; twice\nCALLDATASIZE PUSH1 @top\nJUMPI")
    assert explanation.language == "assembly"
    assert explanation.pane("source").lines[2].text == "PUSH0 SSTORE ; twice"
    stores = [line for line in explanation.pane("bytecode").lines if "SSTORE" in line.text]
    assert stores[0].src == (3,)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("0x123", "source: hex text with an odd number of digits: 3"),
        ("{ sstore(0, x) }", "yul: 1:13: 'x' is not declared"),
        ("PUSH1 1\nBLAH", "assembly: line 2: 'BLAH' is not an instruction"),
        ("nothing.yul", "cannot read nothing.yul: No such file or directory"),
    ],
)
def test_what_cannot_be_explained_is_one_line(source: str, message: str) -> None:
    with pytest.raises(BadSource) as caught:
        explain(source)
    assert str(caught.value) == message


def test_machine_code_is_made_when_asked_for_and_leads_to_opcodes() -> None:
    explanation = explain(EXAMPLES / "vault.yul", machine=True)
    assert explanation.panes[-1] is explanation.pane("machine")
    opcodes = {each.pc: each.name for each in instructions(explanation.code)}
    lines = [line for line in explanation.machine.lines if line.kind == "code"]
    assert {line.text.split()[0] for line in lines} & {"movq", "mov", "str", "ldr"}
    linked = [line for line in lines if line.pcs]
    assert len(linked) > len(lines) / 2
    assert {"MUL", "KECCAK256", "SSTORE"} <= {opcodes[pc] for line in linked for pc in line.pcs}


def test_machine_code_with_places_is_the_code_that_runs() -> None:
    """Debug locations change nothing but the directives."""
    from fusevm.evm.forks import LATEST
    from fusevm.native.emit.jit import optimised
    from fusevm.native.region.build import placed_schedule, regions_of
    from fusevm.native.region.choice import functions_and_loops, layout_of
    from fusevm.native.region.emit import region_module

    code = explain(EXAMPLES / "vault.yul").code
    schedule = placed_schedule(code, LATEST)
    texts = []
    for located in (False, True):
        unit = regions_of(schedule, LATEST, functions_and_loops)
        parsed, machine = optimised(region_module(unit, layout_of(schedule), located=located), 1, scattered=True)
        rows = (line.strip() for line in str(machine.emit_assembly(parsed)).splitlines())
        texts.append([row for row in rows if row and not row.startswith((".", "#")) and not row.endswith(":")])
    assert texts[0] == texts[1]
