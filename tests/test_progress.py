"""The line that shows how far the building of handlers is: a bar on terminals, one line in a log."""

from __future__ import annotations

import io
import time

import pytest

from fusevm.native.emit import progress
from fusevm.native.emit.progress import ALMOST, WIDTH, Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_built_within_a_moment_is_not_mentioned_in_a_log() -> None:
    stream = io.StringIO()
    with Bar("5 things", stream) as bar:
        bar.reach(0.5)
        time.sleep(0.25)
    assert stream.getvalue() == ""


def test_a_log_gets_one_line_for_what_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MOMENT", 0.05)
    stream = io.StringIO()
    with Bar("5 things", stream) as bar:
        bar.reach(0.5)
        time.sleep(0.4)
    assert stream.getvalue() == "fusevm: building 5 things, once; this takes some seconds\n"


def test_a_terminal_sees_a_bar_that_grows_and_one_line_in_the_end() -> None:
    stream = Terminal()
    with Bar("5 things", stream) as bar:
        bar.reach(0.5)
        while "\r" not in stream.getvalue():
            time.sleep(0.01)
    drawn, *_ = stream.getvalue().split("\r")[1:]
    assert f"building 5 things, once: [{'#' * (WIDTH // 2)}{'.' * (WIDTH // 2)}]" in drawn
    last = stream.getvalue().split("\r")[-1]
    assert last.startswith("fusevm: built 5 things in ")
    assert last.endswith("\n")
    assert stream.getvalue().count("\n") == 1


def test_what_cannot_be_known_follows_the_clock_and_waits_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = Bar("5 things", io.StringIO())
    now[0] += 2
    bar.reach(0.2)
    bar.follow_clock(4)  # eight seconds more
    assert bar.share() == pytest.approx(0.2)
    now[0] += 4
    assert bar.share() == pytest.approx(0.6)
    now[0] += 100
    assert bar.share() == ALMOST


def test_an_error_ends_the_line() -> None:
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), Bar("5 things", stream):
        raise KeyboardInterrupt
    assert "interrupted while building 5 things in" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_a_terminal_that_is_gone_does_not_end_the_work() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    with Bar("5 things", Gone()) as bar:
        bar.reach(1.0)
        time.sleep(0.25)
