"""From bytes to sections: where blocks and sections are cut, what they cost, and how much stack they need."""

from __future__ import annotations

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.lab.fusions import choose, streams_of
from fusevm.native.emit.build import library
from fusevm.schedule.build import STACK_LIMIT, build_schedule, with_header
from fusevm.schedule.sections import Section, sections_of
from nativeprograms import agreed, agreed_at_every_gas


def read(program: str | bytes, fork: Fork = LATEST) -> list[Section]:
    code = program if isinstance(program, bytes) else assemble(program)
    return sections_of(code, fork, library().handlers.native)


def names(section: Section) -> str:
    return " ".join(token.name for token in section.tokens)


def test_empty_code_is_one_section_that_stops() -> None:
    (section,) = read(b"")
    assert (names(section), section.gas, section.needs, section.grows) == ("STOP", 0, 0, 0)


def test_behind_the_last_byte_of_code_stands_a_stop() -> None:
    assert names(read("PUSH1 1")[0]) == "PUSH STOP"


def test_a_section_costs_the_sum_of_what_stands_in_the_code_folded_or_not() -> None:
    (section,) = read("PUSH1 1 PUSH1 2 ADD PUSH1 3 MUL POP")
    assert names(section) == "PUSH POP STOP"
    assert section.gas == 3 + 3 + 3 + 3 + 5 + 2
    assert section.steps == 7


def test_a_block_needs_what_it_reaches_down_for_and_grows_to_its_highest_point() -> None:
    (section,) = read("SWAP2 POP POP PUSH1 1 PUSH1 2 PUSH1 3 DUP4 POP POP POP")
    assert (section.needs, section.grows) == (3, 2)


def test_a_jumpdest_opens_a_block_and_so_does_what_follows_a_jumpi() -> None:
    found = read("NUMBER PUSH1 9 JUMPI NUMBER JUMPDEST NUMBER")
    assert [(section.pc, section.opens_block) for section in found] == [(0, True), (4, True), (5, True)]


@pytest.mark.parametrize(
    "observer", ["GAS", "SSTORE", "CALL", "DELEGATECALL", "STATICCALL", "CREATE", "CALLCODE", "SELFDESTRUCT"]
)
def test_whatever_looks_at_the_gas_counter_ends_a_section(observer: str) -> None:
    found = read(f"{'NUMBER ' * 7} {observer} NUMBER NUMBER")
    assert found[0].tokens[-1].pc == 7
    if observer != "SELFDESTRUCT":
        assert (found[1].pc, found[1].opens_block, found[1].gas) == (8, False, 4)


@pytest.mark.parametrize(
    "end", ["STOP", "PUSH0 PUSH0 RETURN", "NUMBER JUMP", "PUSH0 JUMP", "PUSH1 1 PUSH0 JUMPI", "INVALID"]
)
def test_what_cannot_be_reached_is_passed_over(end: str) -> None:
    found = read(assemble(end) + bytes.fromhex("00ff01605b5b") + assemble("NUMBER STOP") + bytes(1000))
    assert len(found) == 2
    assert (names(found[1]), found[1].pc) == ("NUMBER STOP", len(assemble(end)) + 5)


def test_what_follows_a_jump_that_is_never_taken_is_reached() -> None:
    found = read("PUSH0 PUSH1 9 JUMPI NUMBER STOP NUMBER")
    assert [names(section) for section in found] == ["", "NUMBER STOP"]


def test_stack_bounds_are_checked_once_for_all_sections_of_a_block() -> None:
    first, second = read("NUMBER GAS NUMBER NUMBER POP POP POP POP POP")
    assert (first.needs, first.grows, second.needs) == (1, 4, -1)


def test_a_block_no_stack_can_hold_asks_for_more_than_there_can_be() -> None:
    header = with_header(read("NUMBER " * (STACK_LIMIT + 1))[0])[0]
    assert header.operand >> 32 & 0xFFFF > STACK_LIMIT
    assert "overflow" in str(agreed("NUMBER " * (STACK_LIMIT + 1), 100_000).error)


def test_what_a_fork_does_not_know_ends_a_block_as_invalid() -> None:
    assert names(read(bytes.fromhex("5f5f01"), fork_named("paris"))[0]) == "INVALID"
    assert names(read(bytes.fromhex("5f5f01"), fork_named("shanghai"))[0]) == "PUSH STOP"


@pytest.mark.parametrize("junk", ["0c", "fe", "ef", "21"])
def test_undefined_bytes_fail_where_they_stand_and_not_before(junk: str) -> None:
    seen = agreed_at_every_gas(bytes.fromhex("6001600255" + junk), 100_000, most=100)
    assert "invalid opcode" in str(seen.error)
    assert "pc 5" in str(seen.error)


FILLING = "PUSH32 1 " * 2200


def test_jumps_find_their_places_in_code_of_more_than_65535_bytes() -> None:
    far = "PUSH3 @far JUMP " + FILLING + "far: JUMPDEST PUSH1 1 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    assert agreed(far).word == 1
    dynamic = (
        "NUMBER POP PUSH3 @far NUMBER SWAP1 JUMP "
        + FILLING
        + "far: JUMPDEST PUSH1 1 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    )
    assert agreed(dynamic).word == 1


def test_dynamic_jumps_are_checked_as_whole_words() -> None:
    for high in (0, 1 << 16, 1 << 32, 1 << 64, 1 << 255):
        program = f"NUMBER PUSH32 {high + 38} SWAP1 POP NUMBER SWAP1 JUMP INVALID JUMPDEST"
        code = assemble(program)
        seen = agreed(code.replace((high + 38).to_bytes(32, "big"), (high + len(code) - 1).to_bytes(32, "big")))
        assert (seen.status == "SUCCESS") == (high == 0)


def test_a_schedule_names_the_place_of_every_jumpdest_and_of_nothing_else() -> None:
    code = assemble("PUSH1 0x5b JUMPDEST PUSH2 0x5b5b JUMPDEST")
    jumps = build_schedule(code, LATEST, library().handlers).jumps
    assert [pc for pc in range(len(code)) if jumps[pc]] == [2, 6]


def test_counting_prefers_the_pair_that_meets_most_often() -> None:
    native = library().handlers.native
    streams = streams_of(assemble("CALLER ORIGIN CALLER ORIGIN CALLER ORIGIN ADDRESS"), LATEST, native)
    assert choose(streams, 1) == [("CALLER", "ORIGIN")]


def test_what_python_does_is_never_chosen_to_be_fused() -> None:
    native = library().handlers.native
    streams = streams_of(assemble("NUMBER EXTCODECOPY " * 20), LATEST, native)
    assert not any("SYNC" in fusion for fusion in choose(streams, 10))
