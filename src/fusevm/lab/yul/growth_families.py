"""Wide and deep programs of any size, one family per dimension in which a program can be large."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Family(NamedTuple):
    """`source(n)` is a program whose length grows in proportion to n; `size` is the smallest n worth measuring."""

    size: int
    source: Callable[[int], str]


def _block(lines: Iterable[str]) -> str:
    return "{\n" + "\n".join(lines) + "\n}"


def _each(n: int, line: Callable[[int], str], before: str = "", after: str = "") -> str:
    return _block([before, *map(line, range(n)), after])


def _nested(n: int, opening: Callable[[int], str], inner: str, closing: str = "}") -> str:
    return _block([*map(opening, range(n)), inner, closing * n])


def _switch(n: int) -> str:
    return _block(
        ["switch calldataload(0)", *(f"case {i} {{ sstore({i}, calldataload({32 * i})) }}" for i in range(n))]
    )


def _switch_assigning(n: int) -> str:
    cases = (f"case {i} {{ x := add(x, {i}) }}" for i in range(n))
    return _block(["let x := calldataload(32)", "switch calldataload(0)", *cases, "sstore(0, x)"])


def _switch_ending(n: int) -> str:
    cases = (f"case {i} {{ mstore(0, {i}) return(0, 32) }}" for i in range(n))
    return _block(["switch calldataload(0)", *cases, "default { revert(0, 0) }"])


def _switch_calling(n: int) -> str:
    cases = (f"case {i} {{ f{i}(calldataload({i})) }}" for i in range(n))
    functions = (f"function f{i}(x) {{ sstore(x, {i}) sstore(add(x, 1), {i}) }}" for i in range(n))
    return _block(["switch calldataload(0)", *cases, *functions])


def _chain_of_functions(n: int) -> str:
    functions = (f"function f{i}(x) -> y {{ y := add(f{i - 1}(x), sload(x)) sstore(y, x) }}" for i in range(1, n))
    return _block([f"sstore(0, f{n - 1}(calldataload(0)))", "function f0(x) -> y { y := sload(x) }", *functions])


def _functions_from_main(n: int) -> str:
    calls = (f"f{i}(calldataload({i}))" for i in range(n))
    functions = (f"function f{i}(x) {{ if sload(x) {{ sstore(x, {i}) }} sstore(add(x, 1), x) }}" for i in range(n))
    return _block([*calls, *functions])


def _ring_of_functions(n: int) -> str:
    functions = (f"function f{i}(x) -> y {{ if x {{ y := f{(i + 1) % n}(sub(x, 1)) }} }}" for i in range(n))
    return _block(["sstore(0, f0(calldataload(0)))", *functions])


def _loops_with_exits(n: int) -> str:
    exits = (f"if eq(x, {i}) {{ y := {i} {'break' if i % 2 else 'continue'} }}" for i in range(n))
    return _block(
        ["let y let x := calldataload(0)", "for { } lt(x, 1000) { x := add(x, 1) } {", *exits, "}", "sstore(0, y)"]
    )


def _ifs_in_a_function(n: int) -> str:
    return _block(
        ["f() f()", "function f() {", *(f"if calldataload({i}) {{ sstore({i}, {i}) }}" for i in range(n)), "}"]
    )


def _deep_expression(n: int) -> str:
    return _block(["sstore(0, " + "".join(f"add(calldataload({i}), " for i in range(n)) + "1" + ")" * n + ")"])


def _deep_calls(n: int) -> str:
    return _block(["sstore(0, " + "f(" * n + "1" + ")" * n + ")", "function f(x) -> y { y := add(sload(x), x) }"])


FAMILIES: dict[str, Family] = {
    "switch": Family(250, _switch),
    "switch assigning": Family(250, _switch_assigning),
    "switch ending": Family(250, _switch_ending),
    "switch calling": Family(150, _switch_calling),
    "mstores": Family(400, lambda n: _each(n, lambda i: f"mstore({32 * i}, {i})", after=f"return(0, {32 * n})")),
    "mstores computed": Family(
        400,
        lambda n: _each(
            n, lambda i: f"mstore(add(p, {32 * i}), calldataload({i}))", "let p := mload(64)", f"return(p, {32 * n})"
        ),
    ),
    "mstores unknown": Family(
        400, lambda n: _each(n, lambda i: f"mstore(calldataload({i}), {i})", after="return(0, calldatasize())")
    ),
    "mstores and mloads": Family(
        250, lambda n: _each(n, lambda i: f"mstore({32 * i}, {i}) sstore({i}, mload({16 * i}))")
    ),
    "sstores": Family(400, lambda n: _each(n, lambda i: f"sstore({i}, {i + 1})")),
    "sstores computed": Family(
        400, lambda n: _each(n, lambda i: f"sstore(add(p, {i}), calldataload({i}))", "let p := calldataload(0)")
    ),
    "sstores unknown": Family(400, lambda n: _each(n, lambda i: f"sstore(calldataload({i}), {i})")),
    "sstores of one value": Family(400, lambda n: _each(n, lambda i: f"sstore(calldataload({i}), 7)")),
    "stores and ifs": Family(
        200,
        lambda n: _each(n, lambda i: f"mstore({32 * i}, {i}) sstore({i}, {i}) if calldataload({i}) {{ log0(0, {i}) }}"),
    ),
    "hashes": Family(
        250, lambda n: _each(n, lambda i: f"mstore({i}, {i}) sstore(keccak256({i}, 32), keccak256({i + 1}, 32))")
    ),
    "function chain": Family(150, _chain_of_functions),
    "functions from main": Family(150, _functions_from_main),
    "function ring": Family(150, _ring_of_functions),
    "variables": Family(
        400,
        lambda n: _block(
            [*(f"let x{i} := calldataload({i})" for i in range(n)), *(f"sstore({i}, x{i})" for i in range(n))]
        ),
    ),
    "let chain": Family(
        400, lambda n: _each(n, lambda i: f"let x{i + 1} := add(x{i}, {i})", "let x0 := gas()", f"sstore(0, x{n})")
    ),
    "opaque let chain": Family(
        400, lambda n: _each(n, lambda i: f"let x{i + 1} := sload(x{i})", "let x0 := gas()", f"sstore(0, x{n})")
    ),
    "assignments": Family(
        400, lambda n: _each(n, lambda i: f"x := mul(x, calldataload({i}))", "let x := calldataload(0)", "sstore(0, x)")
    ),
    "assignments of many": Family(
        200,
        lambda n: _block(
            [
                *(f"let x{i} := {i}" for i in range(n)),
                *(f"if calldataload({i}) {{ x{i} := sload({i}) }}" for i in range(n)),
                *(f"sstore({i}, x{i})" for i in range(n)),
            ]
        ),
    ),
    "uses of one": Family(400, lambda n: _each(n, lambda i: f"sstore({i}, add(x, {i}))", "let x := calldataload(0)")),
    "ifs": Family(
        250, lambda n: _each(n, lambda i: f"if calldataload({i}) {{ x := sload({i}) }}", "let x", "sstore(0, x)")
    ),
    "ifs in a function": Family(200, _ifs_in_a_function),
    "ifs ending": Family(300, lambda n: _each(n, lambda i: f"if calldataload({i}) {{ revert(0, {i}) }}")),
    "loops": Family(
        120,
        lambda n: _each(
            n, lambda i: f"for {{ let i{i} }} lt(i{i}, 9) {{ i{i} := add(i{i}, 1) }} {{ sstore(i{i}, mload({i})) }}"
        ),
    ),
    "loop with exits": Family(200, _loops_with_exits),
    "large constants": Family(
        200, lambda n: _each(n, lambda i: f"sstore({i}, {(i + 1) << 160 | 0xFFFF_FFFF_FFFF})")
    ),
    "blocks nested": Family(60, lambda n: _nested(n, lambda i: f"{{ let x{i} := calldataload({i}) ", "sstore(0, 1)")),
    "variables nested": Family(
        60,
        lambda n: _nested(
            n, lambda i: f"{{ let x{i + 1} := sload(x{i})", f"sstore(0, x{n})", "}"
        ).replace("{", "{ let x0 := calldataload(0)", 1),
    ),
    "ifs nested": Family(60, lambda n: _nested(n, lambda i: f"if calldataload({i}) {{", "sstore(0, 1)")),
    "assigning ifs nested": Family(
        60,
        lambda n: _nested(
            n, lambda i: f"if calldataload({i}) {{ x := add(x, {i})", "sstore(0, 1)", "sstore(1, x) }"
        ).replace("{", "{ let x", 1),
    ),
    "loops nested": Family(
        40,
        lambda n: _nested(
            n, lambda i: f"for {{ let i{i} := 0 }} lt(i{i}, 3) {{ i{i} := add(i{i}, 1) }} {{", "sstore(0, 1)"
        ),
    ),
    "switches nested": Family(
        60, lambda n: _nested(n, lambda i: f"switch calldataload({i}) case 0 {{ sstore({i}, 1) }} default {{", "stop()")
    ),
    "functions nested": Family(
        60,
        lambda n: _nested(n, lambda i: f"sstore({i}, f{i}(1)) function f{i}(a{i}) -> r{i} {{", "sstore(0, 1)"),
    ),
    "expression nested": Family(120, _deep_expression),
    "calls nested": Family(120, _deep_calls),
}  # fmt: skip
