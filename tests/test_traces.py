"""EIP-3155 traces against those of the executable specification, field by field."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ethereum_spec_tools")

from fusevm.evm.forks import Fork
from fusevm.lab.peers.spec import MODULES
from fusevm.lab.peers.traces import (
    FIELDS,
    TraceTally,
    compare,
    contract_works,
    excuse,
    random_works,
    spec_trace_of,
    trace_of,
)

CONTRACTS = ("Token", "Nft", "Vault", "Timelock", "Amm")


def test_random_programs_are_traced_as_by_the_specification() -> None:
    """Two programs per fork, each also short of gas; `python -m fusevm.lab.peers.traces` runs as many as one likes."""
    tally = TraceTally()
    for name, work in random_works(2 * len(MODULES), seed=77):
        tally.add(name, work)
    assert tally.differed == []
    assert tally.agreed > 2 * len(MODULES)
    assert tally.lines > 5_000
    assert tally.with_memory > len(MODULES)


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_compiled_contract_is_traced_as_by_the_specification(name: str, fixtures_dir: Path) -> None:
    tally = TraceTally()
    for what, work in contract_works(fixtures_dir / "corpus" / f"{name}.json"):
        tally.add(what, work)
    assert tally.differed == []
    assert tally.agreed >= 6


@pytest.fixture(scope="module")
def traces() -> tuple[list[dict[str, Any]], list[dict[str, Any]], Fork]:
    for _, work in random_works(20, seed=5, limits=0):
        ours = trace_of(work)
        if work.fork > Fork.BERLIN and 50 < len(ours) < 2_000 and any("memory" in line for line in ours):
            return ours, spec_trace_of(work), work.fork
    raise AssertionError("no such program")


@pytest.mark.parametrize("field", [name for name in FIELDS if name != "error"])
def test_a_field_that_is_wrong_is_found(field: str, traces: tuple[Any, Any, Fork]) -> None:
    ours, theirs, fork = traces
    assert list(compare(ours, theirs, fork, Counter())) == []
    at = next(index for index, line in enumerate(ours) if field in line and index > 20)
    changed = [dict(line) for line in ours]
    changed[at][field] = "0x77777"
    found = list(compare(changed, theirs, fork, Counter()))
    assert [(each.line, each.field, each.ours) for each in found] == [(at, field, "0x77777")]


def test_a_line_too_few_is_found(traces: tuple[Any, Any, Fork]) -> None:
    ours, theirs, fork = traces
    assert [each.field for each in compare(ours[:-1], theirs, fork, Counter())] == ["number of lines"]


def test_an_error_that_is_missing_or_another_is_not_excused() -> None:
    ours, theirs = {"opName": "SSTORE"}, {"opName": "SSTORE", "error": "Revert"}
    assert excuse("error", ours, theirs, Fork.OSAKA) is None
    assert excuse("error", {"opName": "REVERT", "error": "out of gas"}, {"error": "Revert"}, Fork.OSAKA) is None
