"""JUMPDESTs in a row: a way into each of them, one way on, and gas to the unit wherever it ends."""

from __future__ import annotations

import json

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.analysis.loops.metadata import loops_of
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import LATEST
from fusevm.native.emit.build import library
from fusevm.schedule.build import PLACE, STACK_LIMIT, Schedule, build_schedule
from fusevm.schedule.sections import ROW_START, Section, sections_of
from fusevm.schedule.threading import threaded
from nativeprograms import Case, agreed, agreed_at_every_gas

ROW = "JUMPDEST " * 9
ANSWER = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
LOOPS = {
    "to its first": f"PUSH1 5 top: JUMPDEST {ROW} PUSH1 1 SWAP1 SUB DUP1 PUSH1 @top JUMPI STOP",
    "into its middle": f"PUSH1 5 {ROW} top: JUMPDEST {ROW} PUSH1 1 SWAP1 SUB DUP1 PUSH1 @top JUMPI STOP",
    "to its last": f"PUSH1 5 {ROW} top: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @top JUMPI STOP",
    "by a jump that always jumps": f"PUSH0 top: JUMPDEST {ROW} DUP1 PUSH1 7 LT PUSH1 @end JUMPI PUSH1 1 ADD "
    "PUSH1 @top JUMP end: JUMPDEST",
    "around it": f"PUSH0 top: JUMPDEST PUSH1 1 ADD DUP1 POP {ROW} DUP1 PUSH1 6 GT PUSH1 @top JUMPI",
    "by a computed jump": f"NUMBER POP PUSH1 4 PUSH1 @top top: JUMPDEST {ROW} SWAP1 PUSH1 1 SWAP1 SUB SWAP1 DUP2 DUP2 "
    "JUMPI STOP",
    "that is left from the row": f"PUSH1 5 top: JUMPDEST {ROW} DUP1 PUSH1 2 EQ PUSH1 @end JUMPI {ROW} PUSH1 1 SWAP1 "
    f"SUB DUP1 PUSH1 @top JUMPI {ROW} end: JUMPDEST {ROW} STOP",
}


def read(program: str | bytes) -> list[Section]:
    code = program if isinstance(program, bytes) else assemble(program)
    return sections_of(code, LATEST, library().handlers.native)


def relative(schedule: Schedule) -> list[int]:
    """The words with places as distances."""
    pairs = zip(schedule.words, schedule.kinds, strict=True)
    return [word - schedule.base if kind == PLACE else word for word, kind in pairs]


# -- sections


def test_each_of_a_row_pays_for_the_rest_and_goes_to_the_last() -> None:
    *row, block = read("JUMPDEST " * 6 + "NUMBER POP")
    assert [(section.pc, section.gas, section.steps, section.row) for section in row] == [
        (0, 5, 5, 5),
        (1, 4, 4, 4),
        (2, 3, 3, 3),
        (3, 2, 2, 2),
        (4, 1, 1, 1),
    ]
    assert all(section.tokens[0][:2] == ("JUMP@", 5) and section.opens_block for section in row)
    assert (block.pc, block.gas, block.steps, block.row) == (5, 1 + 2 + 2, 4, 0)


def test_a_row_asks_nothing_of_the_stack() -> None:
    assert all((section.needs, section.grows) == (0, 0) for section in read(ROW)[:-1])
    assert read(f"{ROW} POP POP")[-1].needs == 2


def test_a_short_row_is_left_as_it_stands() -> None:
    assert not any(section.row for section in read("JUMPDEST " * (len(ROW_START) - 1) + "STOP"))
    assert read("JUMPDEST " * len(ROW_START) + "STOP")[0].row == len(ROW_START) - 1


def test_push_data_is_no_row_and_a_row_may_begin_behind_it() -> None:
    code = assemble("PUSH8 0x5b5b5b5b5b5b5b5b " + ROW)
    assert [section.pc for section in read(code)] == [0, *range(9, 18)]


def test_a_static_jump_into_a_row_goes_to_its_last_and_pays() -> None:
    code = assemble(f"PUSH1 @in JUMP {ROW} in: JUMPDEST {ROW} STOP")
    first = threaded(read(code), jumpdests(code))[0]
    assert first.tokens[-1].operand == len(code) - 2
    assert (first.gas, first.steps) == (3 + 8 + 9, 2 + 9)


def test_a_row_in_front_of_a_hop_does_not_skip_the_hops_push() -> None:
    code = assemble(f"{ROW} PUSH1 @end JUMP end: JUMPDEST")
    assert threaded(read(code), jumpdests(code))[0].tokens[-1].operand == 8


# -- schedules


@pytest.mark.parametrize("program", [ROW, f"{ROW} STOP {ROW} POP {ROW}", *LOOPS.values()])
def test_a_row_laid_out_at_once_is_what_it_is_one_by_one(program: str) -> None:
    code, handlers = assemble(program), library().handlers
    quick = build_schedule(code, LATEST, handlers)
    careful = build_schedule(code, LATEST, handlers, keep_units=True)
    assert relative(quick) == relative(careful)
    assert (quick.jumps, quick.kinds) == (careful.jumps, careful.kinds)


def test_every_jumpdest_of_a_row_has_a_place_of_its_own() -> None:
    code = assemble(f"NUMBER {ROW} POP")
    jumps = build_schedule(code, LATEST, library().handlers).jumps
    places = [jumps[pc] for pc in range(1, 10)]
    assert all(places)
    assert len(set(places)) == 9
    assert not jumps[0]
    assert not jumps[10]


def test_a_schedule_of_nothing_but_jumpdests_is_three_words_a_byte() -> None:
    code = bytes((0x5B,)) * 24_576
    assert len(build_schedule(code, LATEST, library().handlers).words) <= 3 * len(code) + 8


def test_the_schedule_command_counts_every_instruction_once(fusevm: Command) -> None:
    found = json.loads(fusevm("schedule", "0x6001" + "5b" * 9 + "50", "--json").out)
    assert found["steps"] == 1 + 9 + 1 + 1
    assert [unit["steps"] for unit in found["units"]][1:9] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_a_loop_around_a_long_row_is_found() -> None:
    code = assemble(f"PUSH2 256 top: JUMPDEST {'JUMPDEST ' * 5_000} PUSH1 1 SWAP1 SUB DUP1 PUSH1 @top JUMPI")
    (loop,) = loops_of(code, LATEST)
    assert (loop.header, loop.trips, loop.gas_per_iteration) == (3, 255, 5_001 + 5 * 3 + 10)


# -- on all tiers, with gas enough and without


@pytest.mark.parametrize(
    "program",
    [
        ROW,
        f"NUMBER {ROW}",
        f"NUMBER {ROW} POP {ROW} STOP",
        f"{ROW} POP",
        f"{ROW} INVALID",
        f"NUMBER PUSH0 MSTORE {ROW} GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN",
        f"PUSH1 1 PUSH1 @in JUMPI INVALID {ROW} in: JUMPDEST {ROW} GAS {ANSWER}",
        f"NUMBER PUSH1 @in JUMPI INVALID {ROW} in: JUMPDEST {ROW} GAS {ANSWER}",
        f"PUSH1 @in JUMP {ROW} in: JUMPDEST {ROW} GAS {ANSWER}",
        f"NUMBER POP PUSH0 MLOAD POP PUSH1 @in JUMP {ROW} in: JUMPDEST {ROW} PUSH1 200 JUMP",
        f"PUSH1 @hop JUMP hop: JUMPDEST PUSH1 @in JUMP {ROW} in: JUMPDEST {ROW} PUSH1 @end JUMP end: JUMPDEST",
        f"{ROW} PUSH0 JUMP",
    ],
)
def test_gas_ends_in_a_row_where_it_ends(program: str) -> None:
    agreed_at_every_gas(program, 400)


@pytest.mark.parametrize("at", range(9))
def test_a_row_can_be_entered_at_each_of_it(at: int) -> None:
    static = f"PUSH1 {3 + at} JUMP {ROW} GAS {ANSWER}"
    seen = agreed_at_every_gas(static, 200)
    assert seen.word == 200 - 3 - 8 - (9 - at) - 2
    computed = f"PUSH0 CALLDATALOAD JUMP {ROW} GAS {ANSWER}"
    for gas in range(31):
        agreed(Case(computed, data=(3 + at).to_bytes(32, "big")), gas)
    maybe = f"NUMBER PUSH1 {4 + at} JUMPI {ROW} GAS {ANSWER}"
    agreed_at_every_gas(maybe, 200)


@pytest.mark.parametrize("tail", ["STOP", "PUSH0 STOP", "POP", "PUSH2 @end JUMP end: JUMPDEST", "PUSH0 JUMP"])
def test_a_full_stack_passes_a_row_and_overflows_behind_it_where_it_does(tail: str) -> None:
    for height in (STACK_LIMIT - 1, STACK_LIMIT):
        agreed("ADDRESS " * height + ROW + tail, 10_000)
        agreed("ADDRESS " * height + ROW + tail, 2 * height + 5)
    agreed(ROW + "POP", 100)


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_over_a_row_cost_what_they_cost(loop: str) -> None:
    agreed_at_every_gas(LOOPS[loop], 5_000, most=400)


@pytest.mark.parametrize("program", [f"NUMBER {ROW} POP", f"PUSH1 @in JUMP {ROW} in: JUMPDEST {ROW}", *LOOPS.values()])
def test_lockstep_stands_where_a_row_ends(program: str) -> None:
    used = agreed(program, 5_000, ["lockstep"]).gas_used
    for gas in (used, used - 1, used // 2, used // 3, 5, 12, 13):
        agreed(program, gas, ["lockstep"])


def test_a_whole_code_of_jumpdests_runs_and_starves() -> None:
    code = bytes((0x5B,)) * 24_576
    assert agreed(code, 30_000).gas_used == 24_576
    for gas in (24_576, 24_575, 20_000, 1, 0):
        agreed(code, gas)
