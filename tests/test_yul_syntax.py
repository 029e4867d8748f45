"""The conformance suite of Yul's syntax: every complaint's kind, number and place, warnings included, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import dialect_for
from yulfixtures import YulFixture, load_folder, parametrize

_LINE = re.compile(r"(\w+) (\d+): (?:\((\d+)-(\d+)\): )?.*")


def expected_complaints(fixture: YulFixture) -> list[tuple[str, int, int, int]]:
    lines = [match for line in fixture.expectation.splitlines() if (match := _LINE.fullmatch(line))]
    return [(line[1], int(line[2]), int(line[3] or -1), int(line[4] or -1)) for line in lines]


def complaints(fixture: YulFixture) -> list[tuple[str, int, int, int]]:
    assert fixture.fork is not None
    _, errors = check(fixture.source, dialect_for(fixture.fork))
    return [(error.kind.value, error.code, *error.location) for error in errors]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "yulSyntaxTests")


def test_complaints_are_those_of_the_fixture(fixture: YulFixture) -> None:
    assert complaints(fixture) == expected_complaints(fixture)


def test_only_files_of_the_withdrawn_format_are_left_out(fixtures_dir: Path) -> None:
    files = load_folder(fixtures_dir / "yul_tests" / "yulSyntaxTests")
    skipped = [fixture for fixture in files if fixture.is_eof]
    assert all(">=EOFv1" in fixture.settings["bytecodeFormat"] for fixture in skipped)
    assert len(skipped) < len(files) / 5


def test_every_complaint_names_its_line_and_column() -> None:
    _, errors = check("{\n  let x := 1\n  sstore(x, yy)\n}")
    assert [str(error) for error in errors] == ["yul: 3:13: 'yy' is not declared"]
