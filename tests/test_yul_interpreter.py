"""The interpreter: the conformance suite's traces and dumps, limits that end runs cleanly, and traces to compare."""

from __future__ import annotations

import pytest

from fusevm.evm.forks import LATEST
from fusevm.lab.yul.seeded_world import SeededWorld, Trace
from fusevm.yul.execution.host import Limits, RunEnd
from fusevm.yul.execution.imagined import LIMITS, FakeWorld
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from yulfixtures import YulFixture, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "yulInterpreterTests")


def test_trace_and_dumps_are_those_of_the_fixture(fixture: YulFixture) -> None:
    fork = fixture.fork or LATEST
    program = parse_object(fixture.source, dialect_for(fork))
    world = FakeWorld(fork, program.code if fixture.settings.get("simulateExternalCall") == "true" else None)
    outcome = interpret(program.code, world, dialect_for(fork), LIMITS)
    if outcome.end is RunEnd.LIMIT:
        world.lines.append(outcome.reason)
    assert world.dump() == fixture.expectation


def trace_of(source: str, seed: int = 0, calldata: bytes = b"", limits: Limits | None = None) -> Trace:
    world = SeededWorld(seed, calldata)
    return world.trace(interpret(parse_object(source), world, limits=limits or Limits()))


def test_arguments_are_evaluated_from_the_last_to_the_first() -> None:
    source = """{
        function f(x) -> y { sstore(sload(0), x) sstore(0, add(sload(0), 1)) y := x }
        sstore(0, 1)
        pop(add(f(7), f(8)))
    }"""
    assert trace_of(source).storage == {(0, 3), (1, 8), (2, 7)}


def test_break_continue_and_leave_go_where_they_should() -> None:
    source = """{
        function f() -> r {
            for { let i := 0 } lt(i, 10) { i := add(i, 1) } {
                if eq(i, 2) { continue }
                if eq(i, 5) { break }
                r := add(r, i)
            }
            for {} 1 {} { leave }
            r := 0
        }
        sstore(0, f())
    }"""
    assert trace_of(source).storage == {(0, 0 + 1 + 3 + 4)}


def test_a_variable_declared_in_a_loop_starts_at_zero_each_round() -> None:
    source = "{ for { let i := 0 } lt(i, 3) { i := add(i, 1) } { let x x := add(x, 1) sstore(i, x) } }"
    assert trace_of(source).storage == {(0, 1), (1, 1), (2, 1)}


def test_reverting_shows_only_the_data() -> None:
    trace = trace_of("{ sstore(0, 1) log0(0, 0) mstore(0, 5) revert(31, 1) }")
    assert not trace.succeeded
    assert trace.data == b"\x05"
    assert (trace.events, trace.storage) == ((), frozenset())


def test_endless_recursion_ends_at_a_limit() -> None:
    trace = trace_of("{ function f(x) { f(add(x, 1)) } f(0) }", limits=Limits(steps=0, calls=0))
    assert not trace.conclusive


def test_an_endless_loop_ends_at_a_limit() -> None:
    outcome = interpret(parse_object("{ for {} 1 {} {} }"), SeededWorld(), limits=Limits(steps=1000))
    assert outcome.end is RunEnd.LIMIT


def test_the_same_seed_gives_the_same_calls() -> None:
    source = """{
        let x := call(gas(), calldataload(0), 0, 0, 32, 0, 64)
        sstore(1, x) sstore(2, mload(0)) sstore(3, returndatasize())
    }"""
    assert trace_of(source, 7, b"\1" * 32) == trace_of(source, 7, b"\1" * 32)
    assert len({trace_of(source, seed) for seed in range(20)}) > 1


def test_a_call_shows_the_storage_of_its_moment() -> None:
    trace = trace_of("{ sstore(0, 1) pop(staticcall(1, 2, 0, 0, 0, 0)) sstore(0, 2) }")
    assert [event.storage for event in trace.events] == [{(0, 1)}]


def test_reading_past_return_data_halts() -> None:
    assert interpret(parse_object("{ returndatacopy(0, 0, 1) }"), SeededWorld()).end is RunEnd.INVALID


def test_a_callee_cannot_tell_a_slot_set_to_zero_from_one_never_set() -> None:
    """Steps may drop the store: what calls do in these worlds must not depend on it."""
    for seed in range(40):
        traces = [
            trace_of(
                f"{{ sstore(5, 9) {store} pop(callcode(gas(), 1, 0, 0, 0, 0, 0)) sstore(6, sload(0)) }}", seed=seed
            )
            for store in ("", "sstore(0, 0)", "sstore(0, sload(0))")
        ]
        assert traces[0] == traces[1] == traces[2], seed
