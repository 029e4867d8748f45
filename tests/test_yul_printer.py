"""The printer: exact layout, and texts that parse to what they were printed from."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusevm.evm.forks import LATEST
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_block, parse_object
from fusevm.yul.syntax.printer import print_block, print_object, quote
from yulfixtures import YulFixture, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "yulOptimizerTests")


def test_an_expected_text_is_printed_as_it_stands(fixture: YulFixture) -> None:
    text = fixture.expectation.split("\n", 2)[2]
    assert print_object(parse_object(text, dialect_for(fixture.fork or LATEST))) == text


def test_the_corpus_is_printed_as_it_stands_comments_aside(fixtures_dir: Path) -> None:
    for path in sorted((fixtures_dir / "corpus").glob("*.opt.yul")):
        lines = [line for line in path.read_text().splitlines() if line and not line.lstrip().startswith(("//", "/*"))]
        printed = print_object(parse_object(path.read_text())).splitlines()
        assert [line for line in printed if not line.lstrip().startswith("/// @use-src")] == lines, path.name


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{}", "{ }"),
        ("{ let x := 1 }", "{ let x := 1 }"),
        ("{ let a_name_of_some_length := 1 }", "{\n    let a_name_of_some_length := 1\n}"),
        ("{ let x let y }", "{\n    let x\n    let y\n}"),
        ("{ if 1 { let x } }", "{ if 1 { let x } }"),
        ("{ function f(a, b) -> c { leave } }", "{\n    function f(a, b) -> c\n    { leave }\n}"),
        ("{ switch 1 case 2 { } default { let x } }", "{\n    switch 1\n    case 2 { }\n    default { let x }\n}"),
        ("{ for { } 1 { } { break } }", "{\n    for { } 1 { }\n    { break }\n}"),
    ],
)
def test_layout(source: str, expected: str) -> None:
    assert print_block(parse_block(source)) == expected


def test_a_long_loop_head_stands_on_several_lines() -> None:
    source = "{ for { let index := 0 } lt(index, calldatasize()) { index := add(index, 1) } { } }"
    expected = """{
    for { let index := 0 }
    lt(index, calldatasize())
    { index := add(index, 1) }
    { }
}"""
    assert print_block(parse_block(source)) == expected


def test_data_is_printed_as_hex() -> None:
    source = 'object "A" { code { } data "d" "ab" object "B" { code { } } }'
    expected = 'object "A" {\n    code { }\n    data "d" hex"6162"\n    object "B" {\n        code { }\n    }\n}'
    assert print_object(parse_object(source)) == expected


def test_every_byte_of_a_string_survives() -> None:
    text = bytes(range(256)).decode("latin-1")
    source = f"{{ let x := verbatim_0i_1o({quote(text)}) }}"
    printed = print_object(parse_object(source))
    assert print_object(parse_object(printed)) == printed
    assert "\\x00" in printed
    assert "\\xff" in printed
