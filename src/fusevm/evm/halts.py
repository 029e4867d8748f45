"""Why a frame can end exceptionally: all its gas is taken and everything it did is undone."""

from __future__ import annotations

from enum import Enum


class HaltReason(Enum):
    """Why a frame halted.

    >>> HaltReason.OUT_OF_GAS.value
    'out of gas'
    """

    OUT_OF_GAS = "out of gas"
    STACK_UNDERFLOW = "stack underflow"
    STACK_OVERFLOW = "stack overflow"
    INVALID_OPCODE = "invalid opcode"
    INVALID_JUMP = "invalid jump"
    STATIC_WRITE = "state change in a static call"
    RETURNDATA_OUT_OF_BOUNDS = "read past the end of return data"
    PRECOMPILE_FAILED = "precompile failed"
    NONCE_OVERFLOW = "nonce overflow"
    ADDRESS_COLLISION = "address collision"
    CODE_TOO_LARGE = "code too large"
    INITCODE_TOO_LARGE = "init code too large"
    CODE_STARTS_WITH_EF = "code starts with 0xef"


class ExceptionalHalt(Exception):
    """Raised inside a frame; never leaves a tier."""

    def __init__(self, reason: HaltReason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
