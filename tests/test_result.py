"""Results: what a failed call says about itself, and the form machines read."""

from __future__ import annotations

import json

import pytest
from eth_abi.abi import encode

from fusevm import ExecutionFailed, Failure, HaltReason, Log, Result, Status
from fusevm.chain.result import PANICS, revert_reason


def error(text: str) -> bytes:
    return bytes.fromhex("08c379a0") + encode(["string"], [text])


def panic(code: int) -> bytes:
    return bytes.fromhex("4e487b71") + encode(["uint256"], [code])


@pytest.mark.parametrize("text", ["", "no", "ERC20: transfer amount exceeds balance", "ß∂ƒ 日本", "x" * 500])
def test_error_strings_are_read(text: str) -> None:
    assert revert_reason(error(text)) == f'Error("{text}")'


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (0x01, "Panic(0x01: assertion failed)"),
        (0x11, "Panic(0x11: arithmetic underflow or overflow)"),
        (0x12, "Panic(0x12: division or modulo by zero)"),
        (0x32, "Panic(0x32: array out-of-bounds access)"),
        (0x99, "Panic(0x99: unknown)"),
    ],
)
def test_panics_are_named(code: int, reason: str) -> None:
    assert revert_reason(panic(code)) == reason


def test_every_panic_of_solidity_has_a_name() -> None:
    assert set(PANICS) == {0x00, 0x01, 0x11, 0x12, 0x21, 0x22, 0x31, 0x32, 0x41, 0x51}


@pytest.mark.parametrize(
    "output",
    [
        b"\x01",
        b"\x01\x02\x03\x04\x05",  # a custom error
        bytes.fromhex("08c379a0"),  # a selector and nothing behind it
        error("cut off somewhere")[:-32],
        bytes.fromhex("08c379a0") + b"\xff" * 64,  # an offset to nowhere
        bytes.fromhex("08c379a0") + encode(["uint256", "uint256"], [32, 2**255]),  # longer than the data
        panic(1)[:-1],
        panic(1) + b"\0",
    ],
    ids=lambda output: output.hex()[:20],
)
def test_anything_else_is_shown_as_it_is(output: bytes) -> None:
    assert revert_reason(output) == "0x" + output.hex()


def test_bytes_that_are_no_text_do_not_stop_the_reading() -> None:
    data = bytes.fromhex("08c379a0") + encode(["bytes"], [b"ab\xff"])
    assert revert_reason(data) == 'Error("ab\N{REPLACEMENT CHARACTER}")'


def test_no_data_has_no_reason() -> None:
    assert revert_reason(b"") is None


SUCCESS = Result(Status.SUCCESS, b"\x01", 10, 0)
REVERT = Result(Status.REVERT, error("why"), 10, 0)
HALT = Result(Status.HALT, b"", 10, 0, failure=Failure(HaltReason.OUT_OF_GAS, "3 needed, 2 left", 4))


def test_the_error_is_one_line_with_reason_and_place() -> None:
    assert SUCCESS.error is None
    assert REVERT.error == 'reverted: Error("why")'
    assert Result(Status.REVERT, b"", 10, 0).error == "reverted"
    assert HALT.error == "halted: out of gas at pc 4 (3 needed, 2 left)"


def test_check_is_the_result_itself_or_an_exception_that_carries_it() -> None:
    assert SUCCESS.check() is SUCCESS
    for failed in (REVERT, HALT):
        with pytest.raises(ExecutionFailed) as caught:
            failed.check()
        assert str(caught.value) == failed.error
        assert caught.value.result is failed


def test_only_success_is_ok() -> None:
    assert (SUCCESS.ok, REVERT.ok, HALT.ok) == (True, False, False)


def test_as_json_is_plain_data() -> None:
    result = Result(Status.SUCCESS, b"\xab", 10, 2, [Log(b"\x11" * 20, (1,), b"\xcd")], b"\x22" * 20)
    assert json.loads(json.dumps(result.as_json())) == {
        "status": "success",
        "output": "0xab",
        "gas_used": 10,
        "gas_refunded": 2,
        "logs": [{"address": "0x" + "11" * 20, "topics": ["0x" + "00" * 31 + "01"], "data": "0xcd"}],
        "address": "0x" + "22" * 20,
        "error": None,
        "pc": None,
    }
    assert HALT.as_json()["pc"] == 4
    assert HALT.as_json()["error"] == HALT.error
