"""What explanations show beside their panes: steps, the graph, dependencies, comparisons, also in notebooks."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.dom import minidom

import pytest

from fusevm import BadSource, Explanation, explain
from fusevm.control_flow.layout import laid_out
from fusevm.explanation import compare
from fusevm.explanation.steps import MAX_COMPARED, MAX_DIFF, changes

EXAMPLES = Path(__file__).parent.parent / "examples"
NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def vault() -> Explanation:
    return explain(EXAMPLES / "vault.yul")


# -- steps


def test_every_step_has_size_and_gas_after_it_and_a_diff_where_it_changed_something(vault: Explanation) -> None:
    assert [step.index for step in vault.steps] == list(range(len(vault.steps)))
    assert {step.object for step in vault.steps} == {"Vault", "Vault_deployed"}
    for step in vault.steps:
        assert bool(step.diff) == step.changed
        assert step.bytes > 0
        assert step.gas > 0


@pytest.mark.parametrize("size", [0, 1, 5, 30, MAX_COMPARED + 50])
def test_a_diff_takes_out_and_puts_in_what_makes_the_one_text_the_other(size: int) -> None:
    random = Random(size)
    for _ in range(20):
        old = [f"line {random.randrange(size + 1)}" for _ in range(size)]
        new = list(old)
        for _ in range(random.randrange(4)):
            at = random.randrange(len(new) + 1)
            new[at : at + random.randrange(3)] = [f"new {random.randrange(9)}" for _ in range(random.randrange(3))]
        change: Counter[str] = Counter()
        for sign, number in changes(old, new):
            if sign in "+-":
                change[(old if sign == "-" else new)[number]] += 1 if sign == "+" else -1
            elif sign == " ":
                assert new[number] in old
        expected = Counter(new)
        expected.subtract(old)
        assert {text: count for text, count in change.items() if count} == {k: v for k, v in expected.items() if v}


def test_the_steps_before_and_after_a_change_are_smaller_or_larger_by_it(vault: Explanation) -> None:
    mine = [step for step in vault.steps if step.object == "Vault_deployed"]
    for before, after in pairwise(mine):
        if not after.changed:
            assert (before.bytes, before.gas) == (after.bytes, after.gas)


def test_a_sequence_is_run_as_it_is_asked_for() -> None:
    explanation = explain(EXAMPLES / "vault.yul", steps="dhfo:")
    names = [step.name for step in explanation.steps]
    assert "FullInliner" not in names
    assert explanation.to_json()["sequence"] == "dhfo:"
    with pytest.raises(BadSource, match="no step has the letter"):
        explain(EXAMPLES / "vault.yul", steps="Z")


def test_a_long_diff_is_cut_and_says_so() -> None:
    body = "".join(f"let v{n} := calldataload({n}) sstore(v{n}, {n}) " for n in range(700))
    explanation = explain(f"{{ {body} }}")
    longest = max(explanation.steps, key=lambda step: len(step.diff))
    assert len(longest.diff) == MAX_DIFF + 1
    assert longest.diff[-1].sign == "…"


# -- the graph


def test_the_graph_has_blocks_edges_loops_and_functions(vault: Explanation) -> None:
    data = json.loads(json.dumps(vault.graph.as_data()))
    starts = {block["id"] for block in data["blocks"]}
    assert all(edge["from"] in starts and edge["to"] in starts for edge in data["edges"])
    assert len(data["loops"]) == 2
    assert {loop["header"] for loop in data["loops"]} == {
        edge["to"] for edge in data["edges"] if edge["kind"] == "back"
    }
    assert [function["name"] for function in data["functions"]] == ["return_word"]
    inside = {block["id"]: block["loop"] for block in data["blocks"] if block["loop"] is not None}
    assert inside == {block: loop["header"] for loop in data["loops"] for block in loop["blocks"]}


def test_no_two_blocks_overlap_and_edges_end_at_their_blocks(vault: Explanation) -> None:
    blocks = vault.graph.as_data()["blocks"]
    for at, one in enumerate(blocks):
        for other in blocks[at + 1 :]:
            apart = (
                one["x"] + one["w"] <= other["x"]
                or other["x"] + other["w"] <= one["x"]
                or one["y"] + one["h"] <= other["y"]
                or other["y"] + other["h"] <= one["y"]
            )
            assert apart, (one["id"], other["id"])
    by_id = {block["id"]: block for block in blocks}
    for edge in vault.graph.as_data()["edges"]:
        (x, y), target = edge["points"][-1], by_id[edge["to"]]
        assert target["x"] <= x <= target["x"] + target["w"]
        assert y == pytest.approx(target["y"], abs=0.2)


def test_a_layout_puts_what_follows_below() -> None:
    drawing = laid_out(dict.fromkeys(range(4), (10.0, 10.0)), {0: [1, 2], 1: [3], 2: [3], 3: [0]})
    assert drawing.back == {(3, 0)}
    assert drawing.boxes[0].y < drawing.boxes[1].y == drawing.boxes[2].y < drawing.boxes[3].y


def test_branches_say_which_way_is_which() -> None:
    graph = explain("0x5f3560065700" + "5b00", optimised=False).graph
    assert {(edge.source, edge.target, edge.kind) for edge in graph.edges} == {(0, 6, "true"), (0, 5, "false")}


# -- dependencies


def test_dependencies_show_which_word_an_instruction_needs_and_what_stays_in_order() -> None:
    found = explain("0x5f355f55" + "5f545f52" + "00", optimised=False).dependencies(2)
    texts = {node["id"]: node["text"] for node in found.nodes}
    edges = {(texts[source], texts[target], kind) for source, target, kind in found.edges}
    assert {("CALLDATALOAD", "SSTORE", "value"), ("SLOAD", "MSTORE", "value")} <= edges
    assert {("SSTORE", "SLOAD", "order"), ("SLOAD", "MSTORE", "order")} <= edges
    minidom.parseString(found._repr_svg_())


def test_there_are_no_dependencies_where_there_is_no_code() -> None:
    with pytest.raises(BadSource, match="block 0x10: none begins there"):
        explain("0x00").dependencies(16)


# -- comparisons


def test_two_versions_are_compared_block_by_block(vault: Explanation) -> None:
    plain = explain(EXAMPLES / "vault.yul", steps=":", runs=0)
    plain.reset()
    vault.reset()
    found = compare(plain, vault, "deposit", [5])
    data = json.loads(json.dumps(found.as_data()))
    assert data["run"]["same_output"]
    for side, name in (("before", "a"), ("after", "b")):
        total = sum(each["run"][side] for each in data["blocks"] if each[name] is not None)
        assert total == data["run"]["gas"][side]
    assert {each["b"] for each in data["blocks"]} - {None} == {block.id for block in vault.graph.blocks}


def test_a_version_compared_with_itself_is_the_same(vault: Explanation) -> None:
    found = vault.compare(vault)
    assert all(pair.before is pair.after for pair in found.blocks)


def test_lines_that_moved_are_still_the_same_lines(vault: Explanation) -> None:
    moved = explain("\n\n" + (EXAMPLES / "vault.yul").read_text())
    for pair in vault.compare(moved).blocks:
        assert pair.before is not None
        assert pair.after is not None
        assert pair.before.id == pair.after.id


# -- notebooks


def test_whatever_comes_from_a_contract_is_escaped_in_html() -> None:
    text = f'object "{NASTY}" {{ code {{ mstore(0, "{NASTY[:31]}") sstore(0, mload(0)) }} }}'
    explanation = explain(text, name=NASTY)
    run = explanation.run()
    run.reason = NASTY
    shown = [
        explanation._repr_html_(),
        explanation.steps._repr_html_(),
        explanation.graph._repr_svg_(),
        explanation.dependencies(0)._repr_svg_(),
        run._repr_html_(),
        explanation.compare(explanation)._repr_html_(),
    ]
    for markup in shown:
        assert "<script" not in markup
        assert markup.startswith("<")
    assert "&lt;script&gt;" in shown[0]


def test_html_of_a_large_pane_is_bounded() -> None:
    markup = explain(b"\x5b" * 24_000)._repr_html_()
    assert len(re.findall("<span", markup)) <= 3 * 400
    assert "lines more" in markup


def test_explanations_and_runs_print_in_one_line() -> None:
    explanation = explain("{ sstore(0, 1) }")
    assert repr(explanation) == f"<Explanation of {explanation.name}: yul, {len(explanation.code)} bytes at osaka>"
    assert repr(explanation.run(b"")) == "<Run: success, 22,105 gas, 4 steps>"
