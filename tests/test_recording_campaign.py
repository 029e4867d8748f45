"""Recordings of random programs are equal on all tiers; and the campaign that says so finds errors."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import WHOLE
from fusevm.lab.recordings import KINDS, RecordingPlan, campaign
from fusevm.native.host import counting, halting, note_codec, recorder


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"mutated"}))
def test_recordings_of_random_programs_are_equal_on_all_tiers(kind: str) -> None:
    total = campaign(8 if WHOLE else 2, 77, RecordingPlan(kind))
    assert [f"{failure.seed}: {failure.difference}" for failure in total.failures] == []
    assert total.frames
    assert total.runs


def no_subtraction(*_: Any) -> None:
    pass


def never_led(*_: Any) -> bool:
    return False


def logs_too_late(self: recorder.Recorder) -> None:
    self._logged = 0


PLANTED = {
    "what a section did not run stays counted": (counting.Counting, "stopped", no_subtraction),
    "gas of an instruction that halts is not counted": (counting.Counting, "took", no_subtraction),
    "frames halt where native code finds out": (halting.Halting, "goes_on", never_led),
    "a meter runs on": (counting.Counting, "subtract", no_subtraction),
    "logs of a frame that Python ends are lost": (recorder.Recorder, "ending", logs_too_late),
    "undone logs are not kept": (note_codec._Decoder, "_place_logs", no_subtraction),
}


@pytest.mark.parametrize("error", PLANTED)
def test_the_campaign_finds_an_error_that_was_planted(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong = PLANTED[error]
    monkeypatch.setattr(owner, name, wrong)
    for seed in range(20):
        if campaign(4, seed, RecordingPlan("random", tiers=("native", "auto"), shrink=0, stop=1)).failures:
            return
    pytest.fail("nothing was found")
