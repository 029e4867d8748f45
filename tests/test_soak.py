"""A long life in short: what `auto` learns of code, forgets and puts in place must not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusevm.lab import soak
from fusevm.lab.soak import Soak, sooner
from fusevm.native.host import tier_policy


def test_answers_stay_those_of_the_reference_tier(fixtures_dir: Path) -> None:
    with sooner(1_000):
        soaked = Soak(7, 8, fixtures_dir)
        assert [wrong for wrong in (soaked.step() for _ in range(120)) if wrong is not None] == []
    assert len(soaked.done) == 6


def test_what_fails_after_a_while_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        tier_policy.TierPolicy, "counts", lambda *_: 1 / 0
    )  # a planted error, in what only hot code comes to
    assert (
        soak.main(["--seconds", "60", "--stop", "1", "--sooner", "100000", "--fixtures", str(tmp_path / "none")]) == 1
    )


def test_time_passes_as_before_afterwards() -> None:
    before = tier_policy.WINDOW, tier_policy.WORSE
    with sooner(10):
        assert before[0] / 10 == tier_policy.WINDOW
    assert before == (tier_policy.WINDOW, tier_policy.WORSE)
