"""The laboratory command that looks for programs a tier runs slower than the reference tier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusevm.evm.forks import Fork
from fusevm.lab.fuzz import slower
from fusevm.lab.fuzz.slower import SlowerRow, Times, main, summary
from fusevm.lab.peers.bench import geometric_mean


def test_slower_is_what_takes_a_tenth_and_a_moment_longer() -> None:
    assert not Times(100e-6, 114e-6).slower
    assert Times(100e-6, 116e-6).slower
    assert not Times(10e-6, 15e-6).slower


def test_the_summary_counts_names_the_worst_and_takes_the_geometric_mean() -> None:
    rows = [
        SlowerRow(f"0.{n}", Fork.OSAKA, "halt", Times(1.0, 1.0), Times(1.0, warm)) for n, warm in enumerate((0.25, 4.0))
    ]
    found = summary(rows, "warm")
    assert (found["programs"], found["slower"], found["worst"]) == (2, 1, 4.0)
    assert found["geometric_mean"] == pytest.approx(1.0)
    assert geometric_mean([]) == 1.0


def test_a_tier_that_is_made_slow_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = slower.run_once

    def slow(work: Any, tier: str) -> tuple[float, str]:
        seconds, status = timed(work, tier)
        return (1.0 if tier == "native-unfused" else seconds), status

    monkeypatch.setattr(slower, "run_once", slow)
    monkeypatch.setattr(slower, "PROFILED", 2)
    main(["--programs", "2", "--seed", "5", "--fork", "osaka", "--tier", "native-unfused"])
    shown = capsys.readouterr().out
    assert "warm runs: 2 of 2 programs slower on native-unfused than on reference" in shown
    assert "5.0 osaka" in shown
    main(["--programs", "2", "--seed", "5", "--fork", "osaka", "--tier", "native-unfused", "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert [row["fork"] for row in figures["slower"]] == ["osaka", "osaka"]
