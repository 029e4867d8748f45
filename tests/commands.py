"""Runs the `fusevm` command inside the test's own process, as the installed script would."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from fusevm.cli.start import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "200")

    def __call__(self, *arguments: str) -> Ran:
        self.monkeypatch.setattr(sys, "argv", ["fusevm", *arguments])
        code: object = 0
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(1_000)  # a new process's; some libraries raise it as they are imported
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.setrecursionlimit(limit)
        out, err = self.capsys.readouterr()
        return Ran(int(str(code or 0)), out, err)


@pytest.fixture(name="fusevm")
def fusevm_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)
