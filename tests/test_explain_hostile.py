"""Explanations of hostile input: bounded work, stated limits, and nothing of a contract becomes markup."""

from __future__ import annotations

import gc
import json
import random
import time

import pytest

from fusevm import BadSource, explain
from fusevm.codegen.bytecode import optimize
from fusevm.evm.bytecode import instructions
from fusevm.ir.fold.functions import FunctionFolder

SECONDS = 15.0  # ten times what it is to take: a guard against work that grows too fast
MAX_JSON = 16_000_000


def jumping(blocks: int) -> bytes:
    """Blocks that jump to each other in no order, so that every loop has many entries."""
    return b"".join(
        bytes.fromhex("5b60015f525f3561") + (at * 7919 % blocks * 12).to_bytes(2, "big") + bytes.fromhex("575b")
        for at in range(blocks)
    )


HOSTILE = {
    "JUMPDESTs": b"\x5b" * 24_576,
    "jumps everywhere": jumping(1_990),
    "few jumps everywhere": jumping(300),
    "jumps to jumps": b"".join(b"\x5b\x61" + (at * 5 + 5).to_bytes(2, "big") + b"\x56" for at in range(4_900)),
    "branches": b"\x5f\x5f\x57" * 8_192,
    "additions": b"\x5f" + b"\x5f\x01" * 12_287,
    "copies": b"\x5f" + b"\x80" * 24_000,
    "random bytes": random.Random(1).randbytes(24_576),
    "pushes of JUMPDESTs": (b"\x7f" + b"\x5b" * 32) * 744,
    "a truncated push": b"\x7f\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.long
def test_hostile_code_is_explained_in_bounded_time_and_size(code: bytes) -> None:
    started = time.process_time()
    explanation = explain(code)
    data = explanation.to_json()
    assert time.process_time() - started < SECONDS
    assert len(json.dumps(data)) < MAX_JSON
    opcodes = {each.pc for each in instructions(explanation.code)}
    for pane in explanation.panes:
        assert all(opcodes >= set(line.pcs) for line in pane.lines)


def test_the_collector_is_on_again_afterwards() -> None:
    explain(b"\x5b" * 100).to_json()
    with pytest.raises(BadSource):
        explain("0x1")
    assert gc.isenabled()


def test_what_is_left_out_is_said() -> None:
    notes = explain(HOSTILE["JUMPDESTs"]).to_json()["notes"]
    assert [note.split(":")[0] for note in notes] == ["optimize", "IR", "graph"]


def test_code_that_jumps_everywhere_is_folded_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0
    run = FunctionFolder.run

    def counted(self: FunctionFolder) -> object:
        nonlocal runs
        runs += 1
        return run(self)

    monkeypatch.setattr(FunctionFolder, "run", counted)
    optimize(jumping(150))
    assert runs < 20


def test_a_graph_has_no_more_blocks_than_it_says() -> None:
    graph = explain(HOSTILE["branches"]).graph
    assert len(graph.blocks) == 4_000
    assert graph.notes == ["graph: the first 4,000 of 8,192 blocks, as if the code ended there"]


def test_a_loop_that_never_ends_is_run_to_the_end_of_its_gas() -> None:
    run = explain("0x5b600056").run(gas=2_000_000)
    assert (run.status, run.gas_used) == ("halt", 2_000_000)
    assert len(run.trace) == 5_000


def test_large_memory_ends_a_trace_before_it_takes_long() -> None:
    run = explain("0x5f621fffff53" + "5b600656", optimised=False).run(gas=9_000_000)  # 2 MiB, then an endless loop
    assert run.gas_used == 9_000_000
    assert run.notes == [f"trace: the first {len(run.trace)} steps: memory is large; heat and gas count all"]
    assert 200 < len(run.trace) < 300


def test_memory_of_a_trace_is_bounded() -> None:
    run = explain("0x5b60015a525f53600056").run(gas=3_000_000)
    assert sum(len(step.get("memory", "")) for step in run.trace) < 10_000_000
