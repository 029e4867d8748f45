"""Side effects and control flow of functions: the conformance suites, and what follows from the table of opcodes."""

from __future__ import annotations

import pytest

from fusevm.yul.analysis.callgraph import call_graph
from fusevm.yul.analysis.controlflow import function_flows
from fusevm.yul.analysis.effects import (
    IMMOVABLE,
    IMMOVABLE_APART,
    IRREMOVABLE,
    IRREMOVABLE_WITHOUT_MSIZE,
    builtin_effects,
    describe,
    function_effects,
    uses_msize,
)
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_block
from fusevm.yul.syntax.walk import functions_of
from yulfixtures import YulFixture, parametrize

FOLDERS = {
    "test_side_effects_are_those_of_the_fixture": "functionSideEffects",
    "test_control_flow_is_that_of_the_fixture": "controlFlowSideEffects",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, FOLDERS.get(metafunc.function.__name__, ""))


def described(names_and_words: list[tuple[str, list[str]]]) -> list[str]:
    return [f"{name}: {', '.join(words)}".rstrip() for name, words in names_and_words]


def test_side_effects_are_those_of_the_fixture(fixture: YulFixture) -> None:
    dialect = dialect_for(fixture.fork or "latest")
    graph = call_graph(parse_block(fixture.source, dialect))
    table = function_effects(dialect, graph)
    assert described([(name, describe(table[name])) for name in sorted(graph.calls)]) == [
        line.rstrip() for line in fixture.expectation.splitlines()
    ]


def test_control_flow_is_that_of_the_fixture(fixture: YulFixture) -> None:
    dialect = dialect_for(fixture.fork or "latest")
    block = parse_block(fixture.source, dialect)
    names = [function.name for function in functions_of(block)]
    flows = function_flows(dialect, disambiguated(dialect, block)).values()
    words = [
        [
            text
            for text, holds in (
                ("can terminate", flow.can_terminate),
                ("can revert", flow.can_revert),
                ("can continue", flow.can_continue),
            )
            if holds
        ]
        for flow in flows
    ]
    assert described(list(zip(names, words, strict=True))) == [
        line.rstrip() for line in fixture.expectation.splitlines()
    ]


READERS = [
    "keccak256", "mload", "sload", "tload", "balance", "selfbalance", "extcodesize", "extcodehash", "returndatasize",
    "pc", "gas", "msize",
]  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_builtins_that_read_what_may_change_are_not_movable(name: str) -> None:
    assert builtin_effects(dialect_for())[name] & IMMOVABLE


@pytest.mark.parametrize("name", READERS)
def test_only_pc_gas_and_msize_stay_even_if_nothing_is_written(name: str) -> None:
    assert bool(builtin_effects(dialect_for())[name] & IMMOVABLE_APART) == (name in ("pc", "gas", "msize"))


@pytest.mark.parametrize("name", READERS)
def test_readers_can_be_removed_those_of_memory_only_where_nobody_asks_for_its_size(name: str) -> None:
    effects = builtin_effects(dialect_for())[name]
    assert not effects & IRREMOVABLE_WITHOUT_MSIZE
    assert bool(effects & IRREMOVABLE) == (name in ("mload", "keccak256"))


@pytest.mark.parametrize("name", ["add", "memoryguard", "datasize", "dataoffset", "loadimmutable", "linkersymbol"])
def test_what_is_fixed_for_the_call_is_pure(name: str) -> None:
    assert builtin_effects(dialect_for())[name] == 0


def test_an_unknown_function_is_taken_as_the_worst() -> None:
    words = describe(builtin_effects(dialect_for())["somebody"])
    assert words == ["can loop", "writes other state", "writes storage", "writes memory"]


def test_recursion_is_found_through_any_number_of_functions_and_nowhere_else() -> None:
    block = parse_block("{ function a() { b() } function b() { c() } function c() { a() } function d() { a() } d() }")
    assert call_graph(block).recursive() == {"a", "b", "c"}


def test_callees_come_before_their_callers() -> None:
    block = parse_block("{ f() function f() { g() h() } function g() { h() } function h() {} }")
    assert call_graph(block).components() == [["h"], ["g"], ["f"], [""]]


@pytest.mark.parametrize("source", ["{ pop(msize()) }", '{ verbatim_0i_0o("x") }', "{ function f() { pop(msize()) } }"])
def test_msize_and_verbatim_count_as_asking_for_the_size_of_memory(source: str) -> None:
    assert uses_msize(parse_block(source))


def test_an_empty_program_has_no_effects() -> None:
    assert function_effects(dialect_for(), call_graph(Block()))[""] == 0
