"""Explanations of random programs: what they show is true, whatever the program is."""

from __future__ import annotations

import json

import pytest

from conftest import first
from fusevm import EVM, BadSource, Explanation, explain, yul
from fusevm.chain.outcome import Status
from fusevm.evm.bytecode import instructions
from fusevm.functions.yul import ADDRESS, CALLER, GAS
from fusevm.lab.yul.generate import random_program
from fusevm.lab.yul.generate_contracts import random_contract, without_own_code
from fusevm.yul.execution.host import LimitReached


def check_lines(explanation: Explanation) -> None:
    """Places are opcodes, source lines exist, and what folds are told of stands in the IR."""
    opcodes = {each.pc for each in instructions(explanation.code)}
    last = len(explanation.pane("source").lines)
    for pane in explanation.panes:
        for line in pane.lines:
            assert opcodes >= set(line.pcs), (pane.id, line)
            assert all(1 <= number <= last for number in line.src), (pane.id, line)
            assert list(line.pcs) == sorted(set(line.pcs))
            assert line.kind != "removed" or (line.why and not line.pcs)
    data = explanation.to_json()
    json.dumps(data)
    values = {str(line.value) for pane in explanation.panes if pane.id == "ir" for line in pane.lines}
    assert data["folds"].keys() <= values
    for edge in data["graph"]["edges"]:
        assert {edge["from"], edge["to"]} <= opcodes


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.long
def test_lines_of_random_contracts_lead_to_what_is_there(seed: int) -> None:
    try:
        explanation = explain(random_contract(seed).source)
    except BadSource:
        pytest.skip("does not compile")
    check_lines(explanation)


@pytest.mark.parametrize("seed", first(2, range(24, 30)))
def test_lines_of_random_bytecode_lead_to_what_is_there(seed: int) -> None:
    try:
        code = explain(random_contract(seed).source, steps=":").code
    except BadSource:
        pytest.skip("does not compile")
    check_lines(explain(code, optimised=True))


@pytest.mark.parametrize("seed", first(6, range(16)))
def test_the_bytecode_that_is_shown_does_what_the_source_says(seed: int) -> None:
    text = without_own_code(random_program(seed))
    try:
        code = explain(text).code
    except BadSource:
        pytest.skip("does not compile")
    for data in (b"", bytes(31) + b"\x07" + bytes(64), b"\xff" * 96):
        try:
            expected = yul.run(text, data)
        except LimitReached:
            continue
        evm = EVM()
        evm.set_code(ADDRESS, code)
        result = evm.call(ADDRESS, data, caller=CALLER, gas=GAS)
        if Status.HALT in (result.status, expected.status):  # gas, which the interpreter does not count
            continue
        assert (result.status, result.output) == (expected.status, expected.output)
        for slot, value in expected.storage.items():
            assert evm.get_storage(ADDRESS, slot) == value
