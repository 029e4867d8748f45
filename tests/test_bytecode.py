"""Decoding, jump targets and basic blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusevm.evm.bytecode import JUMPDEST, basic_blocks, decode, jumpdests
from fusevm.evm.forks import Fork


def walk_dests(code: bytes) -> frozenset[int]:
    """The definition, byte by byte."""
    found, pc = set(), 0
    while pc < len(code):
        if code[pc] == 0x5B:
            found.add(pc)
        pc += code[pc] - 0x5E if 0x60 <= code[pc] <= 0x7F else 1
    return frozenset(found)


def test_truncated_push_data_is_padded_with_zeros_on_the_right() -> None:
    (push,) = decode(bytes.fromhex("6311"))
    assert push.push == 0x11000000
    assert push.size == 2
    assert push.truncated


def test_a_jumpdest_byte_inside_push_data_is_no_target() -> None:
    assert jumpdests(bytes.fromhex("605b5b615b5b5b")) == {2, 6}


def test_an_unknown_opcode_is_kept_and_ends_its_block() -> None:
    first, second = basic_blocks(bytes.fromhex("010c01"))
    assert first.last.op is None
    assert first.last.name == "UNKNOWN_0C"
    assert second.start == 2


def test_an_opcode_of_a_later_fork_is_unknown() -> None:
    assert decode(b"\x5f", Fork.PARIS)[0].op is None
    assert decode(b"\x5f", Fork.SHANGHAI)[0].push == 0


def test_blocks_are_cut_at_jumpdests_and_behind_jumps() -> None:
    blocks = basic_blocks(bytes.fromhex("6005575b60015b00fe"))
    assert [(block.start, block.end) for block in blocks] == [(0, 3), (3, 6), (6, 8), (8, 9)]
    assert [block.instructions[0].byte == JUMPDEST for block in blocks] == [False, True, True, False]


def test_empty_code_has_no_block() -> None:
    assert basic_blocks(b"") == []
    assert jumpdests(b"") == frozenset()


@given(st.binary(max_size=200) | st.lists(st.sampled_from([0x5B, 0x60, 0x61, 0x7F, 0]), max_size=80).map(bytes))
def test_jumpdests_agree_with_a_walk_over_the_bytes(code: bytes) -> None:
    assert jumpdests(code) == walk_dests(code)


@given(st.binary(max_size=200))
def test_instructions_and_blocks_tile_the_code(code: bytes) -> None:
    assert sum(each.size for each in decode(code)) == len(code)
    blocks = basic_blocks(code)
    assert [each for block in blocks for each in block.instructions] == decode(code)
