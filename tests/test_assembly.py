"""Assembler and disassembler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusevm.cli.inputs import BadInput, read_code
from fusevm.evm.assembly import AssemblyError, assemble, disassemble
from fusevm.evm.forks import Fork


@given(st.binary(max_size=300), st.sampled_from(list(Fork)), st.booleans())
def test_disassembly_assembles_back_to_the_same_bytes(code: bytes, fork: Fork, labels: bool) -> None:
    assert assemble(disassemble(code, fork, labels), fork) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PUSH 0", "5f"),
        ("PUSH 1 PUSH 0x100 ADD", "600161010001"),
        ("PUSH4 7", "6300000007"),
        ("push1, 0x2a, sha3", "602a20"),
        ("DATA 0xdead_beef ; the rest\nSTOP // and this\nSTOP # too", "deadbeef0000"),
        ("start: JUMPDEST PUSH @start JUMP", "5b600056"),
        ("PUSH2 @end JUMP\nend:\nJUMPDEST", "610004565b"),
    ],
)
def test_text_assembles_to(text: str, code: str) -> None:
    assert assemble(text).hex() == code


def test_a_push_of_a_far_label_grows_to_two_bytes() -> None:
    code = assemble("PUSH @end JUMP DATA 0x" + "00" * 300 + " end: JUMPDEST")
    assert code[:4].hex() == "61013056"
    assert code[0x130] == 0x5B


def test_before_shanghai_a_zero_is_pushed_with_a_byte() -> None:
    assert assemble("PUSH 0", Fork.PARIS).hex() == "6000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("STOP\nADDD", "line 2: 'ADDD' is not an instruction"),
        ("PUSH", "line 1: 'PUSH' needs an operand"),
        ("PUSH1 0x100", "line 1: '0x100' does not fit PUSH1"),
        ("PUSH " + "9" * 80, f"line 1: '{'9' * 80}' does not fit a word of 32 bytes"),
        ("a:\na:", "line 2: 'a:' is declared twice"),
        ("PUSH @nowhere", "line 1: '@nowhere' names a label that is not declared"),
        ("PUSH @", "line 1: '@' names a label that is not declared"),
        ("STOP\nPUSH1 @end DATA 0x" + "00" * 300 + "\nend:", "line 2: '@end' is at 303, which does not fit PUSH1"),
        ("DATA 0x123", "line 1: '0x123' has an odd number of hex digits (3)"),
        ("PUSH 1.5", "line 1: '1.5' is not a number (decimal or 0x…) or a @label"),
        ("PUSH ADD", "line 1: 'ADD' is not a number (decimal or 0x…) or a @label"),
    ],
)
def test_an_error_names_the_line_and_the_word(text: str, message: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert str(caught.value) == message


def test_an_opcode_the_fork_lacks_is_refused() -> None:
    with pytest.raises(AssemblyError, match="does not exist before cancun"):
        assemble("TLOAD", Fork.PARIS)


def test_code_is_read_from_hex_and_from_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert read_code("0x6001") == read_code("6001") == read_code(" 60 01\n") == b"\x60\x01"
    assert read_code("0x") == b""
    (tmp_path / "code.hex").write_text("0x6001\n")
    (tmp_path / "code.bin").write_bytes(b"\x60\x01\x00\xff")
    assert read_code(str(tmp_path / "code.hex")) == b"\x60\x01"
    assert read_code(str(tmp_path / "code.bin")) == b"\x60\x01\x00\xff"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x600", "code has an odd number of hex digits: 3"),
        ("0x60zz", "code is not hex: 'z' at position 4"),
        ("missing/code.hex", "no such file: missing/code.hex"),
    ],
)
def test_bad_code_is_reported_in_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_code(text)
    assert str(caught.value) == message
