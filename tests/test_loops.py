"""Loops: what is found, what a region can hold ("fused"), and that nobody can tell the difference."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import first
from fusevm.analysis.loops.counting import trips
from fusevm.analysis.loops.metadata import LoopMetadata
from fusevm.chain.outcome import Status
from fusevm.evm.assembly import assemble
from loopprograms import (
    ANSWER,
    LEAVING,
    RELATIONS,
    WORD,
    Shape,
    agreed,
    agreed_at_boundaries,
    check_random,
    loops_of,
)

SIGN = 1 << 255


def only(text: str) -> LoopMetadata:
    (found,) = loops_of(assemble(text))
    return found


def shape_of(relation: str, *, start: int = 3, count: int = 25, step: int = 1, **more: bool) -> Shape:
    """A loop that passes its test `count` times."""
    falling = relation in ("GT", "GE", "SGT", "SGE")
    step = -step if falling else step
    start = start + 200 if falling else start
    end = start + step * count
    bound = {"LE": end - 1, "SLE": end - 1, "GE": end + 1, "SGE": end + 1, "EQ": start}.get(relation, end)
    return Shape(relation=relation, start=start, bound=bound, step=step, **more)


# -- the number of iterations


@pytest.mark.parametrize("relation", RELATIONS)
def test_trips_are_what_counting_says(relation: str) -> None:
    dice = random.Random(relation)
    edges = [0, 1, 2, 5, 30, SIGN - 2, SIGN, SIGN + 3, WORD - 1, WORD - 4]
    checks = {
        "LT": lambda x, y: x < y, "LE": lambda x, y: x <= y, "GT": lambda x, y: x > y, "GE": lambda x, y: x >= y,
        "EQ": lambda x, y: x == y, "NE": lambda x, y: x != y,
    }  # fmt: skip
    check, flip = checks[relation.removeprefix("S")], SIGN if relation[0] == "S" else 0
    for _ in range(3_000):
        x, step = dice.choice(edges), dice.choice([1, 2, 3, 7, -1, -2, -5])
        bound = dice.choice([dice.choice(edges), (x + step * dice.randrange(20) + dice.randrange(-1, 2)) % WORD])
        found = trips(relation, x, bound, step)
        if found is None or found > 200:
            continue
        for index in range(found + 1):
            assert check((x + index * step) % WORD ^ flip, bound ^ flip) == (index < found)


# -- every comparison, direction, step, bound and form


@pytest.mark.parametrize(("bottom", "literal", "mirrored"), list(product((False, True), repeat=3)))
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_counting_loop_is_fused_and_agrees(relation: str, bottom: bool, literal: bool, mirrored: bool) -> None:
    for step, subtract in ((1, False), (3, True)):
        shape = shape_of(relation, step=step, bottom=bottom, literal=literal, mirrored=mirrored, subtract=subtract)
        found = only(shape.text())
        assert found.fused, found.reason
        assert (found.kind, found.comparison, found.increment) == (
            "do-while" if bottom else "while",
            relation,
            shape.step,
        )
        assert found.end_value == (shape.bound if literal else None)
        held = (1 if relation == "EQ" else 25) - bottom
        assert found.trips == (held if literal else None)
        assert agreed_at_boundaries(shape.text(), most=8)[0] is Status.SUCCESS


def test_metadata_tells_gas_stack_and_exit() -> None:
    found = only(Shape(bound=100).text())
    code = assemble(Shape(bound=100).text())
    assert (found.start_value, found.end_value, found.increment) == (0, 100, 1)
    assert (found.gas_per_iteration, found.gas_to_test) == (57, 26)  # 1+3+3+3+3+3+10, and 3+3+3+3+2+3+3+3+8 more
    assert (found.min_stack, found.max_stack, found.loop_id, found.parent_loop_id) == (2, 2, 0, None)
    assert code[found.header] == code[found.exit_pc or 0] == 0x5B


def test_all_gas_limits_agree_to_the_unit() -> None:
    text = Shape(bound=20, start=2).text()
    used = 1_000_000 - agreed(text)[1]
    for gas in range(used + 3):
        agreed(text, gas)


@pytest.mark.parametrize("start", [0, 1, 9, 10, 11, 1 << 64, WORD - 1, SIGN])
@pytest.mark.parametrize("relation", ["LT", "LE", "SLT", "NE"])
def test_any_start_agrees_where_the_loop_runs_not_at_all_once_or_wraps(relation: str, start: int) -> None:
    for bottom in (False, True):
        agreed(Shape(relation, start=start, bound=10, bottom=bottom, literal=False).text(), gas=30_000)


@pytest.mark.parametrize("bound", [WORD - 1, WORD - 2, WORD - 7])
def test_a_counter_that_wraps_past_its_bound_agrees(bound: int) -> None:
    for relation, step in (("LT", 5), ("LE", 3), ("LE", 1)):
        agreed(Shape(relation, start=WORD - 60, bound=bound, step=step).text(), gas=30_000)


def test_a_loop_counting_down_below_zero_ends_there() -> None:
    shape = Shape("LT", start=29, bound=30, step=-1)
    assert only(shape.text()).fused
    assert agreed_at_boundaries(shape.text())[0] is Status.SUCCESS


def test_more_gas_than_a_slice_agrees() -> None:
    text = Shape(bound=60_000).text()
    assert agreed(text, gas=10_000_000_000)[0] is Status.SUCCESS


# -- stack limits


@pytest.mark.parametrize("height", [1017, 1018, 1019, 1020, 1021])
def test_the_stack_limit_holds_at_the_entry(height: int) -> None:
    filled = "PUSH 0 " * height
    for bottom in (False, True):
        agreed(Shape(bound=20, before=filled, bottom=bottom).text())


def test_too_few_words_on_the_stack_halt() -> None:
    text = "PUSH 1 loop: JUMPDEST DUP3 DUP2 LT ISZERO PUSH2 @end JUMPI PUSH 1 ADD PUSH2 @loop JUMP end: JUMPDEST STOP"
    assert only(text).fused
    assert agreed(text)[0] is Status.HALT


# -- the edges of the code, and ways in


def test_a_loop_that_ends_the_code_stops_behind_it() -> None:
    text = "PUSH 40 loop: JUMPDEST PUSH 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    assert only(text).kind == "do-while"
    assert agreed_at_boundaries(text)[0] is Status.SUCCESS


@pytest.mark.parametrize(
    "ending", ["CALLER SELFDESTRUCT", "PUSH0 PUSH0 PUSH0 CREATE", "PUSH0 PUSH0 PUSH0 CREATE POP PUSH 3"]
)
def test_what_stands_before_a_loop_may_end_in_python(ending: str) -> None:
    loop = "loop: JUMPDEST PUSH 1 ADD DUP1 PUSH 40 GT PUSH2 @loop JUMPI STOP"
    text = f"PUSH 7 CALLDATASIZE PUSH2 @loop JUMPI {ending} {loop}"
    for data in (b"", b"1"):
        agreed(text, 100_000, data)


def test_a_loop_at_the_first_byte_is_entered() -> None:
    text = (
        "loop: JUMPDEST CALLDATASIZE POP MSIZE PUSH 0x400 GT ISZERO PUSH1 @end JUMPI "
        "MSIZE MLOAD POP PUSH1 @loop JUMP end: JUMPDEST"
    )
    agreed_at_boundaries(text)


@pytest.mark.parametrize("data", [b"", b"\1"])
def test_a_side_entry_into_the_body_agrees(data: bytes) -> None:
    text = (
        "PUSH 50 PUSH 0 PUSH 3 CALLDATASIZE PUSH2 @side JUMPI "
        "loop: JUMPDEST DUP3 DUP2 LT ISZERO PUSH2 @end JUMPI side: JUMPDEST DUP1 DUP3 ADD SWAP2 POP "
        "PUSH 1 ADD PUSH2 @loop JUMP end: JUMPDEST" + ANSWER
    )
    assert any(found.fused for found in loops_of(assemble(text)))
    assert agreed_at_boundaries(text, data=data)[0] is Status.SUCCESS


@pytest.mark.parametrize("target", ["@loop", "@side", "7", "0xffff", "@inside"])
def test_jumps_from_elsewhere_land_or_fail_as_they_should(target: str) -> None:
    text = (
        f"PUSH 50 PUSH 0 PUSH 3 PUSH2 {target} PUSH 0 ADD CALLDATASIZE ADD JUMP "
        "loop: JUMPDEST DUP3 DUP2 LT ISZERO PUSH2 @end JUMPI side: JUMPDEST DUP1 inside: DUP3 ADD SWAP2 POP "
        "PUSH 1 ADD PUSH2 @loop JUMP end: JUMPDEST" + ANSWER
    )
    agreed_at_boundaries(text, most=20)


# -- what is in the body


def test_a_branch_inside_keeps_its_own_charge() -> None:
    body = "DUP1 PUSH 1 AND PUSH2 @odd JUMPI DUP2 PUSH 7 MUL SWAP2 POP odd: JUMPDEST"
    for bottom in (False, True):
        shape = Shape(bound=40, body=body, bottom=bottom)
        assert only(shape.text()).fused
        agreed_at_boundaries(shape.text())


@pytest.mark.parametrize("condition", ["DUP1", "PUSH0", "DUP1 PUSH 1 AND", "DUP1 PUSH 30 EQ"])
def test_of_two_ways_back_each_is_charged_for_what_it_passes(condition: str) -> None:
    """A `continue` past the rest of the body: the rest is not part of every iteration."""
    body = f"{condition} PUSH2 @loop JUMPI DUP2 PUSH 7 MUL SWAP2 POP PUSH 2 PUSH 1 POP POP"
    shape = Shape(bound=40, body=body, first=True)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text())


@pytest.mark.parametrize(
    "body",
    [
        "DUP1 PUSH 5 SHL DUP2 SWAP1 MSTORE",
        "DUP1 PUSH 8 SHL MLOAD POP",
        "PUSH 0x40 PUSH 0 KECCAK256 DUP3 ADD SWAP2 POP",
        "DUP1 SLOAD DUP3 ADD SWAP2 POP",
        "DUP1 DUP2 EXP DUP3 ADD SWAP2 POP",
        "DUP1 PUSH 0 PUSH 0 LOG1",
        "DUP1 DUP1 TSTORE",
    ],
)
def test_dynamic_gas_is_charged_as_it_comes(body: str) -> None:
    shape = Shape(bound=30, body=body)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text())


@pytest.mark.parametrize(
    "body",
    [
        "DUP1 DUP1 SSTORE",
        "DUP1 DUP1 SSTORE next: JUMPDEST",
        "GAS DUP3 ADD SWAP2 POP",
        "GAS next: JUMPDEST DUP3 ADD SWAP2 POP",
    ],
)
def test_whoever_looks_at_the_gas_counter_in_a_region_sees_it_exact(body: str) -> None:
    shape = Shape(bound=12, body=body)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text(), most=15)


@pytest.mark.parametrize(
    ("body", "culprit"),
    [
        ("PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9000 CALL next: JUMPDEST POP", "no region does CALL"),
        ("PUSH 0 PUSH 0 PUSH 0 CREATE next: JUMPDEST POP", "no region does CREATE"),
    ],
)
def test_a_loop_that_leaves_the_region_in_every_iteration_is_not_fused(body: str, culprit: str) -> None:
    shape = Shape(bound=12, body=body)
    found = only(shape.text())
    assert (found.fused, found.trips) == (False, 12)
    assert culprit in found.reason
    assert culprit in [each.reason for each in found.side_exits]
    agreed_at_boundaries(shape.text(), most=15)


def test_a_call_in_some_iterations_is_a_side_exit() -> None:
    call = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 9000 CALL POP"
    shape = Shape(bound=30, body=f"DUP1 PUSH 7 AND PUSH2 @skip JUMPI {call} skip: JUMPDEST")
    found = only(shape.text())
    assert found.fused
    assert "no region does CALL" in [each.reason for each in found.side_exits]
    agreed_at_boundaries(shape.text())


@pytest.mark.parametrize("way", ["out", "bad", "invalid"])
@pytest.mark.parametrize("bottom", [False, True])
def test_an_early_exit_pays_for_what_was_run(way: str, bottom: bool) -> None:
    body = f"DUP1 PUSH 17 EQ PUSH2 @{way} JUMPI DUP1 DUP3 ADD SWAP2 POP"
    shape = Shape(bound=40, body=body, bottom=bottom, after=LEAVING)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text(), most=120)


@pytest.mark.parametrize("bound", [0, 1, 2, 3])
def test_a_loop_left_early_in_its_last_iteration_agrees(bound: int) -> None:
    branch = "CALLDATASIZE PUSH1 @skip JUMPI PUSH1 1 PUSH1 1 POP POP PUSH1 1 PUSH1 1 POP POP skip: JUMPDEST"
    text = f"PUSH0 loop: JUMPDEST {branch} CALLVALUE ISZERO PUSH1 @out JUMPI PUSH1 1 ADD"
    for gas in range(130):
        agreed(f"{text} PUSH1 {bound} DUP2 LT PUSH1 @loop JUMPI out: JUMPDEST STOP", gas)


def test_an_early_exit_beside_memory_without_bound_agrees() -> None:
    body = "DUP1 PUSH 17 EQ PUSH2 @out JUMPI DUP1 PUSH 5 SHL DUP2 SWAP1 MSTORE"
    shape = Shape(bound=40, body=body, after=LEAVING)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text())


def test_a_return_inside_agrees() -> None:
    text = (
        "PUSH 0 loop: JUMPDEST DUP1 PUSH 30 LT PUSH2 @end JUMPI DUP1 PUSH 11 SUB PUSH2 @on JUMPI STOP "
        "on: JUMPDEST PUSH 1 ADD PUSH2 @loop JUMP end: JUMPDEST STOP"
    )
    assert only(text).fused
    agreed_at_boundaries(text)


def test_an_endless_loop_with_a_break_counts_by_its_break() -> None:
    text = (
        "PUSH 0 loop: JUMPDEST DUP1 POP PUSH 1 ADD DUP1 PUSH 25 EQ PUSH2 @end JUMPI "
        "DUP1 POP PUSH2 @loop JUMP end: JUMPDEST"
    )
    found = only(text)
    assert (found.fused, found.comparison, found.end_value) == (True, "NE", 25)
    agreed_at_boundaries(text)


def test_a_test_in_the_middle_is_a_break() -> None:
    text = (
        "PUSH 0 loop: JUMPDEST CALLVALUE PUSH2 @skip JUMPI skip: JUMPDEST DUP1 PUSH 25 EQ PUSH2 @end JUMPI "
        "PUSH 1 ADD PUSH2 @loop JUMP end: JUMPDEST"
    )
    found = only(text)
    assert (found.fused, found.kind) == (True, "break")
    agreed_at_boundaries(text)


def test_a_body_that_writes_counter_or_bound_is_not_counted() -> None:
    for body in ("PUSH 1 SHR PUSH 1 ADD", "SWAP2 PUSH 1 AND SWAP2"):
        shape = Shape(bound=9, body=body, literal=False)
        found = only(shape.text())
        assert (found.comparison, found.fused) == (None, True)
        assert found.uncounted
        agreed(shape.text(), gas=20_000)


def test_a_loop_that_piles_up_words_is_not_fused() -> None:
    text = "PUSH 0 loop: JUMPDEST DUP1 PUSH 1 ADD DUP1 PUSH 50 GT PUSH2 @loop JUMPI"
    found = only(text)
    assert not found.fused
    assert "heights" in found.reason
    agreed_at_boundaries(text)
    agreed_at_boundaries(text + " STOP")


def test_a_call_inside_is_followed_to_its_return() -> None:
    body = "PUSH2 @back PUSH2 @double JUMP back: JUMPDEST"
    shape = Shape(bound=30, body=body * 1, after=LEAVING)
    assert only(shape.text()).fused
    agreed_at_boundaries(shape.text())


def test_a_jump_inside_that_goes_nowhere_fails_when_taken() -> None:
    body = "DUP1 PUSH 20 EQ PUSH 3 JUMPI"
    agreed_at_boundaries(Shape(bound=40, body=body).text())


def test_rotated_loops_are_entered_at_their_test() -> None:
    text = (
        "PUSH 50 PUSH 0 PUSH 3 PUSH2 @test JUMP loop: JUMPDEST DUP1 DUP3 ADD SWAP2 POP PUSH 1 ADD "
        "test: JUMPDEST DUP3 DUP2 LT PUSH2 @loop JUMPI" + ANSWER
    )
    found = only(text)
    assert found.fused
    assert assemble(text)[found.header] == 0x5B
    agreed_at_boundaries(text)


# -- nests

SEED_NEST = """PUSH1 0
outer: JUMPDEST PUSH1 0
inner: JUMPDEST PUSH1 1 ADD DUP1 PUSH1 16 {test} PUSH1 @inner JUMPI
POP PUSH1 1 ADD DUP1 PUSH1 16 {test} PUSH1 @outer JUMPI"""


def test_the_seeds_nested_loops_as_written_run_once() -> None:
    text = SEED_NEST.replace("{test}", "LT")  # asks whether 16 < i: it never is
    found = loops_of(assemble(text))
    assert [(each.fused, each.comparison) for each in found] == [(True, "GT"), (True, "GT")]
    assert 1_000_000 - agreed_at_boundaries(text)[1] < 100


def test_the_seeds_nested_loops_with_the_operands_the_right_way_round() -> None:
    text = SEED_NEST.replace("{test}", "GT")
    outer, inner = loops_of(assemble(text))
    assert outer.fused
    assert inner.fused
    assert (outer.parent_loop_id, inner.parent_loop_id) == (None, outer.loop_id)
    assert agreed_at_boundaries(text)[0] is Status.SUCCESS


@pytest.mark.parametrize("bound", [5, 40])
def test_three_loops_deep_agree(bound: int) -> None:
    inmost = f"PUSH 0 c: JUMPDEST DUP4 PUSH 1 ADD SWAP4 POP PUSH 1 ADD PUSH {bound} DUP2 LT PUSH2 @c JUMPI POP"
    middle = (
        f"PUSH 0 b: JUMPDEST PUSH 6 DUP2 LT ISZERO PUSH2 @e JUMPI {inmost} PUSH 1 ADD PUSH2 @b JUMP e: JUMPDEST POP"
    )
    shape = Shape(bound=7, body=middle)
    found = loops_of(assemble(shape.text()))
    assert [each.fused for each in found] == [True, True, True]
    assert [each.parent_loop_id for each in found] == [None, 0, 1]
    agreed_at_boundaries(shape.text(), most=40)


# -- a known number of iterations


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("bottom", [False, True])
def test_small_known_loops_agree_at_every_gas(count: int, bottom: bool) -> None:
    shape = Shape(start=4, bound=4 + count, bottom=bottom, body="DUP1 SWAP2 POP")
    assert only(shape.text()).trips == max(count - bottom, 0)
    used = 1_000_000 - agreed(shape.text())[1]
    for gas in range(used + 2):
        agreed(shape.text(), gas)


# -- what is recognised and reported


def test_walks_over_arrays_are_recognised() -> None:
    memory = only(Shape(bound=30, body="DUP1 PUSH 5 SHL PUSH 0x80 ADD DUP2 SWAP1 MSTORE").text())
    storage = only(Shape(bound=30, body="DUP1 PUSH 7 ADD SLOAD POP").text())
    assert memory.walks[0].startswith("memory +32 (MSTORE")
    assert storage.walks[0].startswith("storage +1 (SLOAD")


def test_independent_iterations_are_recognised() -> None:
    assert only(Shape(bound=30, body="DUP1 PUSH 5 SHL DUP2 SWAP1 MSTORE").text()).independent
    assert not only(Shape(bound=30).text()).independent  # a sum needs the one before
    assert not only(Shape(bound=30, body="DUP1 PUSH 0 MSTORE").text()).independent  # all write the same word


def test_code_without_a_jump_back_has_no_loops() -> None:
    assert loops_of(assemble("PUSH1 @on JUMP on: JUMPDEST STOP")) == []


# -- real code


def test_ten_thousand_hashes_is_fused(fixtures_dir: Path) -> None:
    bench = json.loads((fixtures_dir / "bench" / "ten-thousand-hashes.json").read_text())
    code = next(bytes.fromhex(account["code"][2:]) for account in bench["pre"].values() if len(account["code"]) > 10)
    (found,) = loops_of(code)
    assert (found.header, found.exit_pc, found.fused) == (0x34, 0x5E, True)
    assert (found.start_value, found.end_value, found.increment, found.comparison) == (0, 20_000, 1, "LT")
    data = bytes.fromhex(bench["call"]["data"].removeprefix("0x"))
    status, left, *_ = agreed(code, 10_000_000, data)
    assert status is Status.SUCCESS
    assert 10_000_000 - left == bench["expect"]["gas_used"]


@pytest.mark.parametrize("part", first(3, range(8)))
def test_random_loops_agree(part: int) -> None:
    for seed in range(part * 40, part * 40 + 40):
        check_random(seed)


# -- failures


@pytest.mark.parametrize("ending", ["INVALID", "PUSH 3 JUMP", "POP POP POP POP", "PUSH0 NOT MLOAD"])
def test_a_failure_outside_a_loop_agrees(ending: str) -> None:
    before, after = (f"{'CALLDATASIZE PUSH2 @on JUMPI ' if first else ''}{ending}" for first in (True, False))
    code = assemble(Shape(bound=100, before=f"{before} on: JUMPDEST", after=after).text())
    assert loops_of(code)[0].fused
    for data in (b"", b"1"):
        assert agreed(code, 100_000, data)[0] is Status.HALT
    for gas in (1, 5, 20, 40):  # too little for a first iteration
        agreed(code, gas, b"1")


def test_a_failure_in_a_loop_agrees() -> None:
    code = assemble(Shape(bound=100, body="DUP1 PUSH 50 EQ PUSH2 @bad JUMPI", after="bad: JUMPDEST INVALID").text())
    body = "DUP1 PUSH 24 SHL MLOAD POP"  # memory grows until gas ends, inside the loop
    grows = assemble(Shape(bound=100, body=body).text())
    assert agreed(code)[0] is Status.HALT
    assert agreed(grows, 100_000)[0] is Status.HALT


# -- what is known of a loop that is not fused, or not counted

CALL = "PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 0 ADDRESS GAS CALL POP"


def test_a_loop_that_is_not_fused_tells_its_counter_its_gas_and_its_stack() -> None:
    refused = only(Shape(bound=100, body=CALL).text())
    assert "no region does CALL" in refused.reason
    assert (refused.start_value, refused.end_value, refused.increment, refused.comparison) == (0, 100, 1, "LT")
    assert (refused.counter_slot, refused.bound_slot, refused.kind, refused.trips) == (1, None, "while", 100)
    assert refused.gas_per_iteration > 100
    assert (refused.min_stack, refused.max_stack) == (1, 7)


def test_what_reads_the_gas_counter_makes_iterations_depend_on_each_other_and_nothing_else() -> None:
    one, other = only(Shape(bound=100, body="GAS POP").text()), only(Shape(bound=100, body="NUMBER POP").text())
    assert replace(one, independent=True) == other


def test_a_loop_that_stores_tells_what_it_walks_over() -> None:
    found = only(Shape(bound=30, body="DUP1 DUP1 PUSH 7 ADD SSTORE").text())
    assert found.walks[0].startswith("storage +1 (SSTORE")


def test_a_loop_that_nobody_can_count_tells_how_it_is_left_and_what_an_iteration_costs() -> None:
    text = "PUSH 0 loop: JUMPDEST PUSH 3 MUL DUP1 PUSH 99 GT PUSH2 @loop JUMPI STOP"
    found = only(text)
    assert (found.kind, found.comparison, found.increment, found.counter_slot) == ("uncounted", None, None, None)
    assert found.uncounted == "no stack slot changes by a constant per iteration"
    assert found.early_exits == (len(assemble(text)) - 1,)
    assert found.gas_per_iteration == 1 + 3 + 5 + 3 + 3 + 3 + 3 + 10
    assert (found.min_stack, found.max_stack) == (1, 2)


def test_a_loop_that_piles_up_words_tells_what_an_iteration_costs() -> None:
    found = only("PUSH 0 loop: JUMPDEST DUP1 PUSH 1 ADD DUP1 PUSH 50 GT PUSH2 @loop JUMPI")
    assert "height" in found.uncounted
    assert found.gas_per_iteration == 1 + 3 + 3 + 3 + 3 + 3 + 3 + 3 + 10
    assert found.body == (found.header,)


def test_a_bound_in_a_slot_is_told() -> None:
    found = only(Shape(bound=100, literal=False, body="GAS POP").text())
    assert (found.end_value, found.bound_slot) == (None, 3)


def shown(code: bytes, *options: str) -> str:
    import typer

    from fusevm.cli.loops import loops

    app = typer.Typer()
    app.command()(loops)
    return CliRunner().invoke(app, [code.hex(), *options]).output


def test_the_command_tells_what_counts_a_loop_and_why_it_is_not_fused() -> None:
    text = shown(assemble(Shape(bound=100, body=CALL).text()))
    assert "counts slot 1 from 0 by +1 while LT 100: 100 times" in text
    assert "not fused: every iteration leaves the region, at 0x" in text
    assert "no region does CALL" in text
    assert "counts slot 1 from 0 by +1 while LT slot 3\n" in shown(assemble(Shape(bound=100, literal=False).text()))


def test_the_command_tells_why_a_loop_is_not_counted() -> None:
    text = shown(assemble("PUSH 0 loop: JUMPDEST PUSH 3 MUL DUP1 PUSH 99 GT PUSH2 @loop JUMPI STOP"))
    assert "not counted: no stack slot changes by a constant" in text
    assert "31 gas per iteration" in text
    assert "leaves to 0xd" in text


def test_the_command_tells_what_is_fused_and_where_the_region_is_left() -> None:
    text = shown(assemble("PUSH 9 loop: JUMPDEST PUSH 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI STOP"))
    assert "fused: a region from 0x2" in text
    assert "side exit at 0xb: it ends the frame: STOP" in text
    assert "1 loop, 1 fused" in text


def test_the_command_answers_in_json() -> None:
    (found,) = json.loads(shown(assemble(Shape(bound=100, body=CALL).text()), "--json"))
    assert "no region does CALL" in found["reason"]
    assert {"pc", "reason"} == found["side_exits"][0].keys()


@pytest.mark.parametrize(
    "code",
    [
        "60005b600a811015601857806005146012576001016002565b60005260206000f3",  # to its own way on
        "6000355b600a811015601957806005146021576001016003565b8060141060295760005260206000f35b60006000fd",  # early
        "60005b60038110156018576001016002565b60013560115760005260206000f3",  # the counted exit, unrolled
        "6000355b60038110156019576001016003565b60013560125760005260206000f3",  # and not
        "6000355b6003811015600157600101600356",  # to the middle of an instruction
        "005b60003560055b6003811015600257600101600756",  # and never run
    ],
)
def test_a_jump_out_of_a_loop_to_what_is_no_jumpdest_fails_when_it_is_taken(code: str) -> None:
    agreed_at_boundaries(bytes.fromhex(code), 100_000)


def test_a_loop_with_many_ways_in_agrees() -> None:
    ways = " ".join(f"w{n}: JUMPDEST PUSH0 PUSH2 @loop JUMP" for n in range(2_000))
    loop = "loop: JUMPDEST PUSH1 8 DUP2 LT ISZERO PUSH2 @end JUMPI PUSH1 1 ADD PUSH2 @loop JUMP end: JUMPDEST STOP"
    code = assemble(f"PUSH0 {loop} {ways}")
    assert loops_of(code)[0].start_value == 0
    agreed(code)
