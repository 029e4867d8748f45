"""Bytes to instructions: decoding, valid jump targets, basic blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME, Opcode, opcodes_of

JUMPDEST = BY_NAME["JUMPDEST"].byte
JUMPI = BY_NAME["JUMPI"].byte
PUSH0 = BY_NAME["PUSH0"].byte


class Instruction(NamedTuple):
    pc: int
    byte: int
    op: Opcode | None  # of several variants the one it is; None: the fork has no such opcode, and executing it halts
    push: int | None  # the word a PUSH leaves on the stack, data past the end of the code read as zeros
    size: int  # bytes of code it takes; less than 1 + immediate where the code ends before

    @property
    def name(self) -> str:
        return self.op.name if self.op else f"UNKNOWN_{self.byte:02X}"

    @property
    def next_pc(self) -> int:
        return self.pc + self.size

    @property
    def truncated(self) -> bool:
        return self.op is not None and self.size <= self.op.immediate

    @property
    def ends_block(self) -> bool:
        return self.op is None or self.op.ends or self.byte == JUMPI


def decode(code: bytes, fork: Fork = LATEST) -> list[Instruction]:
    """Every instruction from the first byte to the last, data after the code included."""
    return list(instructions(code, fork))


def instructions(code: bytes, fork: Fork = LATEST, pc: int = 0) -> Iterator[Instruction]:
    table, end = opcodes_of(fork), len(code)
    while pc < end:
        byte = code[pc]
        op = table[byte]
        if op is None or not op.immediate:
            yield Instruction(pc, byte, op, 0 if byte == PUSH0 else None, 1)
            pc += 1
            continue
        if op.variants:
            op = op.variants[code[pc + 1] if pc + 1 < end else 0]
            size = 1 if op is None else min(2, end - pc)
            yield Instruction(pc, byte, op, None, size)
            pc += size
            continue
        data = code[pc + 1 : pc + 1 + op.immediate]
        word = int.from_bytes(data, "big") << 8 * (op.immediate - len(data))
        yield Instruction(pc, byte, op, word, 1 + len(data))
        pc += 1 + op.immediate


# One match per JUMPDEST or per PUSH with its data, so that the regex engine does the walking.
_DESTS_AND_PUSHES = re.compile(
    b"|".join([re.escape(bytes([JUMPDEST])), *(re.escape(bytes([PUSH0 + n])) + b".{0,%d}" % n for n in range(1, 33))]),
    re.DOTALL,
)


def jumpdests(code: bytes) -> frozenset[int]:
    """Where a jump may land: every JUMPDEST that is not inside push data. Push data is skipped in every fork alike.

    Other immediates are not skipped, or a fork that brings them would change where old code can jump. None of them has
    a variant for JUMPDEST or a PUSH (EIP-8024), so that no instruction is cut in two.
    """
    return frozenset([m.start() for m in _DESTS_AND_PUSHES.finditer(code) if code[m.start()] == JUMPDEST])


_PUSHES = re.compile(
    b"|".join([re.escape(bytes([PUSH0 + n])) + b".{0,%d}" % n for n in range(1, 33)]),
    re.DOTALL,
)
_BLANKS = [bytes(size) for size in range(34)]


def without_pushes(code: bytes) -> bytes:
    """The code with zeros for every PUSH and its data: a JUMPDEST that is left is a valid target."""
    return _PUSHES.sub(lambda push: _BLANKS[push.end() - push.start()], code)


class BasicBlock(NamedTuple):
    """A run of instructions entered only at its first and left only after its last."""

    start: int
    instructions: tuple[Instruction, ...]

    @property
    def last(self) -> Instruction:
        return self.instructions[-1]

    @property
    def end(self) -> int:
        """The pc after the last instruction."""
        return self.last.next_pc


def basic_blocks(code: bytes, fork: Fork = LATEST) -> list[BasicBlock]:
    """The code cut at every JUMPDEST and after every instruction that jumps or ends. Empty code has no block."""
    blocks: list[BasicBlock] = []
    current: list[Instruction] = []
    for instruction in instructions(code, fork):
        if instruction.byte == JUMPDEST and current:
            blocks.append(BasicBlock(current[0].pc, tuple(current)))
            current = []
        current.append(instruction)
        if instruction.ends_block:
            blocks.append(BasicBlock(current[0].pc, tuple(current)))
            current = []
    if current:
        blocks.append(BasicBlock(current[0].pc, tuple(current)))
    return blocks
