"""The fusions: sequences of opcodes that one handler does. Each is one line; its handler is derived."""

from __future__ import annotations

SEQUENCES: tuple[str, ...] = (
    "PUSH PUSH PUSH",
    "POP POP POP",
    "ISZERO JUMPI@",
    "DUP2 MSTORE PUSH",
    "PUSH PUSH",
    "POP POP",
)


def fused_sequences() -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in SEQUENCES]
