"""The parser: literals, objects, places, and clean errors for everything that is not Yul."""

from __future__ import annotations

import random
import sys

import pytest

from fusevm.yul.syntax.ast import Data, FunctionCall, Literal, LiteralKind, Location, Object, VariableDeclaration
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.depth import PYTHON_FRAMES
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.parser import parse_block, parse_object
from fusevm.yul.syntax.printer import print_object


def literal(text: str) -> Literal:
    declaration = parse_block(f"{{ let x := {text} }}").statements[0]
    assert isinstance(declaration, VariableDeclaration)
    assert isinstance(declaration.value, Literal)
    return declaration.value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", LiteralKind.NUMBER, 12),
        ("0x0Ff", LiteralKind.NUMBER, 255),
        ("true", LiteralKind.BOOLEAN, 1),
        ("false", LiteralKind.BOOLEAN, 0),
        ('"a"', LiteralKind.STRING, ord("a") << 248),
        ("'a\"'", LiteralKind.STRING, 0x6122 << 240),
        ('hex"11_22"', LiteralKind.STRING, 0x1122 << 240),
        ("hex''", LiteralKind.STRING, 0),
    ],
)
def test_a_literal_has_kind_and_value(text: str, kind: LiteralKind, value: int) -> None:
    assert (literal(text).kind, literal(text).value) == (kind, value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\n\r\t\\\"\'"', b"\n\r\t\\\"'"),
        (r'"\x41\x00\xff"', b"A\x00\xff"),
        (r'"\u00e9\u20ac"', "é€".encode()),
        ('"a\\\nb"', b"ab"),
    ],
)
def test_escapes_stand_for_bytes(text: str, expected: bytes) -> None:
    assert literal(text).text.encode("latin-1") == expected


@pytest.mark.parametrize(
    "text", ["0123", "1e", "0x", "0xg", "1a", "1_000", "1.5", '"a\n"', '"\\b"', 'hex"1"', "hex", '"é"']
)
def test_a_bad_literal_is_an_error(text: str) -> None:
    with pytest.raises(YulError):
        parse_object(f"{{ let x := {text} }}")


def test_names_may_hold_dollars_and_dots() -> None:
    assert print_object(parse_object("{ let $a_.b$ := 1 }")) == "{ let $a_.b$ := 1 }"


def test_words_that_solidity_reserves_are_names() -> None:
    parse_object("{ let bool, contract, unicode := f() function f() -> a, b, c {} }")


def test_comments_of_all_kinds_are_skipped() -> None:
    source = "// a\n/* b */ { /** c\n*/ /***/ /**/ let x /// d\n //// e\n } // f"
    assert print_object(parse_object(source)) == "{ let x }"


def test_objects_keep_children_and_the_debug_comment() -> None:
    source = """/// @use-src 0:"a.sol"
    object "A" { code { } data "d" hex"0102" object "B" { code { let x } } }"""
    obj = parse_object(source)
    assert (obj.name, obj.debug) == ("A", '0:"a.sol"')
    data, sub = obj.children
    assert isinstance(data, Data)
    assert data.content == b"\1\2"
    assert isinstance(sub, Object)
    assert sub.name == "B"


def test_names_given_to_datasize_are_no_words() -> None:
    name = "a name of far more than thirty-two bytes"
    statement = parse_block(f'{{ let x := linkersymbol("{name}") }}').statements[0]
    assert isinstance(statement, VariableDeclaration)
    assert isinstance(statement.value, FunctionCall)
    argument = statement.value.arguments[0]
    assert isinstance(argument, Literal)
    assert (argument.text, argument.unlimited) == (name, True)


def test_places_count_bytes() -> None:
    block = parse_block("{ /* é */ let x := 1 }")
    assert block.statements[0].location == Location(11, 21)


def test_a_name_of_a_later_fork_is_free_before_it() -> None:
    parse_object("{ let mcopy }", dialect_for("shanghai"))
    with pytest.raises(YulError, match="mcopy"):
        parse_object("{ let mcopy }", dialect_for("cancun"))


def test_verbatim_says_how_many_it_takes_and_gives() -> None:
    builtin = dialect_for().builtin("verbatim_2i_1o")
    assert builtin is not None
    assert (builtin.parameters, builtin.returns) == (3, 1)
    assert dialect_for().builtin("verbatim_02i_1o") is None


def test_an_error_is_one_line_with_its_place() -> None:
    with pytest.raises(YulError) as caught:
        parse_object("{\n  let x = 1\n}")
    assert str(caught.value) == "yul: 2:9: expected a literal or an identifier but got '='"


def test_an_error_carries_the_others() -> None:
    with pytest.raises(YulError) as caught:
        parse_object("{ let add := 1 let mul := 2 }")
    assert [other.code for other in caught.value.others] == [5568]


DEEP = [
    "{" * 10_000,
    "{" * 10_000 + "}" * 10_000,
    "{ let x := " + "add(1, " * 10_000 + "1" + ")" * 10_000 + " }",
    "{ " + "if 1 { " * 10_000,
    "{ " + "for {} 1 {} { " * 10_000,
    "{ " + "switch 1 default { " * 10_000,
    "{ " + "function f() { " * 10_000,
    "".join(f'object "a{i}" {{ code {{}} ' for i in range(10_000)),
]


@pytest.mark.parametrize("source", DEEP, ids=[source[:12] for source in DEEP])
def test_nesting_too_deep_is_an_error(source: str) -> None:
    tree, errors = check(source)
    assert tree is None
    assert errors[0].code == 7319


def test_what_parses_can_be_walked() -> None:
    depth = 590
    tree, errors = check("{ let x := " + "add(" * depth + "1" + ", 1)" * depth + " }")
    assert tree is not None
    assert errors == []
    assert print_object(tree).count("add") == depth
    assert sys.getrecursionlimit() >= PYTHON_FRAMES


WORDS = """{ } ( ) , := let x y f function if switch case default for break continue leave 1 0x2 "a" add sstore ->
    object code data hex"00" : true pop verbatim_1i_0o datasize setimmutable memoryguard // /* */ ' " \\ """.split()  # noqa: SIM905


@pytest.mark.parametrize("seed", range(5))
def test_anything_gives_a_tree_or_errors(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(400):
        noise = bytes(source.randrange(256) for _ in range(source.randrange(60)))
        words = " ".join(source.choice(WORDS) for _ in range(source.randrange(40))).encode()
        for text in (noise, words, b"{ " + words + b" }"):
            tree, errors = check(text)
            assert tree is not None or errors
            assert all("\n" not in str(error) for error in errors)
