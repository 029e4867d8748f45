"""Errors in geth's words, which tools that read traces match on."""

from __future__ import annotations

import re

from fusevm.chain.result import ERROR_SELECTOR, PANIC_SELECTOR
from fusevm.evm.halts import HaltReason
from fusevm.evm.opcodes import BY_BYTE
from fusevm.tracing.recording import Refusal

REVERTED = "execution reverted"

_TEXTS: dict[HaltReason | Refusal, str] = {
    HaltReason.OUT_OF_GAS: "out of gas",
    HaltReason.STACK_UNDERFLOW: "stack underflow",
    HaltReason.STACK_OVERFLOW: "stack limit reached 1024 (1023)",
    HaltReason.INVALID_OPCODE: "invalid opcode",
    HaltReason.INVALID_JUMP: "invalid jump destination",
    HaltReason.STATIC_WRITE: "write protection",
    HaltReason.RETURNDATA_OUT_OF_BOUNDS: "return data out of bounds",
    HaltReason.PRECOMPILE_FAILED: "precompile failed",
    HaltReason.NONCE_OVERFLOW: "nonce uint64 overflow",
    HaltReason.ADDRESS_COLLISION: "contract address collision",
    HaltReason.CODE_TOO_LARGE: "max code size exceeded",
    HaltReason.INITCODE_TOO_LARGE: "max initcode size exceeded",
    HaltReason.CODE_STARTS_WITH_EF: "invalid code: must not begin with 0xef",
    Refusal.DEPTH: "max call depth exceeded",
    Refusal.BALANCE: "insufficient balance for transfer",
    Refusal.NONCE: "nonce uint64 overflow",
}
_PANICS = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}
_HEIGHTS = re.compile(r"(\d+) words needed, (\d+) there")


def error_text(reason: HaltReason | Refusal, byte: int | None = None, detail: str = "") -> str:
    """`byte` is the opcode that failed, and `detail` what a failure says, where these are known."""
    text = _TEXTS[reason]
    if reason is HaltReason.INVALID_OPCODE and byte is not None:
        known = BY_BYTE.get(byte)
        return f"{text}: {known.name if known else f'opcode {byte:#x} not defined'}"
    heights = _HEIGHTS.match(detail)
    if reason is HaltReason.STACK_UNDERFLOW and heights:
        return f"{text} ({heights[2]} <=> {heights[1]})"
    return text


def revert_text(output: bytes) -> str | None:
    """The reason that a revert gives as Error(string) or Panic(uint256); None where it gives none."""
    selector, body = output[:4], output[4:]
    if selector == PANIC_SELECTOR and len(body) >= 32:
        code = int.from_bytes(body[:32], "big")
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    if selector != ERROR_SELECTOR or len(body) < 64:
        return None
    offset = int.from_bytes(body[:32], "big")
    size = int.from_bytes(body[offset : offset + 32], "big")
    text = body[offset + 32 : offset + 32 + size]
    return text.decode(errors="replace") if len(text) == size and offset + 32 <= len(body) else None
