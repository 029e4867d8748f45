"""Explanations in parts, and of what is not optimised."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusevm import explain
from fusevm.evm.bytecode import instructions
from fusevm.explanation import BadSource, compare

VAULT = Path(__file__).resolve().parent.parent / "examples" / "vault.yul"


def test_a_document_without_its_slow_parts_says_which_are_left_out() -> None:
    document = explain("{ sstore(0, 1) }").to_json(())
    assert document["pending"] == ["schedule", "graph", "machine"]
    assert document["graph"] is None
    assert [pane["id"] for pane in document["panes"]] == ["source", "yul", "ir", "bytecode"]


def test_the_parts_are_those_of_the_whole_document() -> None:
    explanation = explain("{ sstore(0, calldataload(0)) }")
    whole = explanation.to_json()
    assert whole["pending"] == ["machine"]
    assert explanation.part("graph") == whole["graph"]
    assert explanation.part("schedule") in whole["panes"]


def test_every_opcode_has_at_most_one_line_that_it_is_known_by() -> None:
    document = explain(VAULT).to_json(())
    bytecode = next(pane for pane in document["panes"] if pane["id"] == "bytecode")["lines"]
    sources = {pc: line["src"] for line in bytecode for pc in line["pcs"]}
    assert len(document["lines"]) > 0.9 * len(sources)
    assert all(line in sources[int(pc)] for pc, line in document["lines"].items())
    store = next(line for line in bytecode if line["text"].endswith("SSTORE"))
    assert document["lines"][str(store["pcs"][0])] == 61, "where it stands, not where its function was called"


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(BadSource, match="part 'nothing': unknown; known: "):
        explain("{ sstore(0, 1) }").part("nothing")


def test_yul_as_written_is_neither_optimised_nor_folded() -> None:
    written, optimised = explain(VAULT, optimised=False), explain(VAULT)
    document = written.to_json(())
    assert document["sequence"] is None
    assert document["steps"] == []
    assert len(written.code) == optimised.to_json(())["totals"]["bytes"]["before"]
    assert len(written.code) > len(optimised.code)


def test_code_as_written_leads_back_to_its_lines() -> None:
    written = explain(VAULT, optimised=False)
    lines = [line for line in written.pane("bytecode").lines if line.pcs]
    known = [line for line in lines if line.src]
    assert len(known) > 0.95 * len(lines)
    offsets = {each.pc for each in instructions(written.code)}
    assert {pc for line in lines for pc in line.pcs} <= offsets
    stores = [line for line in lines if line.text.endswith("SSTORE")]
    assert {number for line in stores for number in line.src} == {61, 62}


def test_what_got_cheaper_is_what_a_call_costs_less() -> None:
    written, optimised = explain(VAULT, optimised=False), explain(VAULT)
    found = compare(written, optimised, "deposit(uint256)", [1000]).as_data()
    assert found["run"]["gas"]["after"] < found["run"]["gas"]["before"]
    assert found["run"]["same_output"]
