"""Bytes to sections: blocks cut behind whatever looks at the gas counter, constants folded, jumps with their targets.

Folding happens here, before sequences are fused: it is the first of the seed's patterns, and general. `PUSH a PUSH b
SUB` becomes `PUSH b - a`, at any depth, for every pure opcode. Gas and stack bounds are summed from the instructions as
they stand in the code, so nothing that is folded away is ever free.

JUMPDESTs in a row are a way into each of them, but only one way on: each pays for the rest of the row and goes to the
last, so that a long row costs no more than a short one.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import repeat
from typing import NamedTuple

from fusevm.evm.bytecode import JUMPDEST, jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_BYTE, opcodes_of
from fusevm.evm.words import INTEGER_MEANINGS

SECTION_LIMIT = 1 << 31  # gas; a longer section is split
SMALL = 1 << 64
# What may need Python for lack of knowledge: the gas counter must be exact there.
OUTWARD = frozenset(("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"))
PUSHES = ("PUSH", "PUSHW")
ROW_START = bytes((JUMPDEST,)) * 4  # a shorter row is as quick one by one
ROW = re.compile(re.escape(bytes((JUMPDEST,))) + b"+")
FOLDED = {name: INTEGER_MEANINGS[name] for name in INTEGER_MEANINGS if name != "EXP"}  # EXP's gas is dynamic


class Token(NamedTuple):
    """An instruction as handlers know it."""

    name: str  # an opcode's, PUSH (fits 64 bits), PUSHW, JUMP@, JUMPI@, or SYNC for what Python does
    operand: int
    pc: int
    steps: int  # how many instructions of the reference tier it stands for


class Section(NamedTuple):
    pc: int
    gas: int
    needs: int  # words its block needs below; -1 where this section does not open a block
    grows: int  # words its block rises at most above its entry
    tokens: list[Token]
    steps: int = 0  # how many instructions of the reference tier it stands for
    row: int = 0  # how many JUMPDESTs it goes past, itself included, where it is one of a row

    @property
    def opens_block(self) -> bool:
        return self.needs >= 0


class _Kind(NamedTuple):
    name: str
    gas: int
    pops: int
    delta: int
    immediate: int
    is_push: bool
    ends_block: bool
    ends_section: bool
    folds: int  # operands of a meaning that can be folded, 0 where it cannot


@cache
def _kinds(fork: Fork, native: frozenset[str]) -> tuple[_Kind | None, ...]:
    kinds: list[_Kind | None] = []
    for op in opcodes_of(fork):
        if op is None or op.name == "INVALID":
            kinds.append(None)
            continue
        handled = op.name in native or op.is_push or op.name in ("JUMPDEST", "PC")
        kinds.append(
            _Kind(
                op.name if handled else "SYNC",
                op.gas_at(fork),
                op.pops,
                op.pushes - op.pops,
                op.immediate,
                op.is_push,
                op.ends or op.name == "JUMPI",
                op.observes_gas or not handled or op.name in OUTWARD,
                op.pops if op.name in FOLDED else 0,
            )
        )
    return tuple(kinds)


def sections_of(code: bytes, fork: Fork, native: frozenset[str]) -> list[Section]:
    """All sections in the order of the code; `native` names the opcodes that have handlers."""
    return _Reader(code, fork, native).read()


class _Reader:
    def __init__(self, code: bytes, fork: Fork, native: frozenset[str]) -> None:
        self.code = code
        self.kinds = _kinds(fork, native)
        self.dests = jumpdests(code)
        self.jumpdest_gas = BY_BYTE[JUMPDEST].gas_at(fork)
        self.sections: list[Section] = []
        self.tokens: list[Token] = []

    def read(self) -> list[Section]:
        pc = 0
        while pc <= len(self.code):
            if self.code.startswith(ROW_START, pc):
                pc = self._row(pc)
            pc = self._block(pc)
        return self.sections

    def _row(self, start: int) -> int:
        """Reads JUMPDESTs in a row but for the last, which opens a block as any other; where that one is."""
        match = ROW.match(self.code, start)
        assert match is not None
        last, cost = match.end() - 1, self.jumpdest_gas
        way_on = [Token("JUMP@", last, start, 0)]  # one for all
        left = range(last - start, 0, -1)
        gas = [cost * each for each in left]
        fields = zip(range(start, last), gas, repeat(0), repeat(0), repeat(way_on), left, left, strict=False)
        self.sections += map(Section._make, fields)
        return last

    def _block(self, start: int) -> int:
        """Reads one block; where the next begins. Behind the last byte of code stands a STOP."""
        code, end, kinds, dests, sections = self.code, len(self.code), self.kinds, self.dests, self.sections
        first, opened, gas, steps = len(sections), start, 0, 0
        height = needs = grows = 0
        self.tokens = tokens = []
        pc = start
        while True:
            if pc >= end:
                tokens.append(Token("STOP", 0, pc, 1))
                pc += 1
                steps += 1
                break
            byte = code[pc]
            kind = kinds[byte]
            if kind is None:
                tokens.append(Token("INVALID", 0, pc, 1))
                pc += 1
                steps += 1
                break
            if pc != start and pc in dests:
                break
            name, cost, pops, delta, immediate, is_push, ends_block, ends_section, folds = kind
            gas += cost
            steps += 1
            if pops - height > needs:
                needs = pops - height
            height += delta
            if height > grows:
                grows = height
            if is_push:
                data = code[pc + 1 : pc + 1 + immediate]
                value = int.from_bytes(data, "big")
                if len(data) < immediate:
                    value <<= 8 * (immediate - len(data))
                tokens.append(Token("PUSH" if value < SMALL else "PUSHW", value, pc, 1))
            elif folds and len(tokens) >= folds and tokens[-1].name in PUSHES and self._folded(name, folds, pc):
                pass
            elif name == "PC":
                tokens.append(Token("PUSH", pc, pc, 1))
            elif name == "SYNC":
                tokens.append(Token("SYNC", byte, pc, 1))
            elif name == "JUMPDEST":
                pass  # its gas is the section's, and there is nothing else to it
            elif tokens and tokens[-1].name in PUSHES and self._shortened(name, pc):
                pass
            else:
                tokens.append(Token(name, 0, pc, 1))
            pc += 1 + immediate
            if ends_block:
                break
            if ends_section or gas > SECTION_LIMIT:
                sections.append(Section(opened, gas, -1, 0, tokens, steps))
                self.tokens = tokens = []
                opened, gas, steps = pc, 0, 0
        if tokens or gas or len(sections) == first:
            sections.append(Section(opened, gas, -1, 0, tokens, steps))
        sections[first] = sections[first]._replace(needs=needs, grows=grows)
        return pc

    def _folded(self, name: str, count: int, pc: int) -> bool:
        """PUSH b PUSH a OP becomes the PUSH of its value."""
        operands = self.tokens[-count:]
        for token in operands:
            if token.name not in PUSHES:
                return False
        value = FOLDED[name](*[token.operand for token in reversed(operands)])
        steps = 1 + sum(token.steps for token in operands)
        self.tokens[-count:] = [Token("PUSH" if value < SMALL else "PUSHW", value, operands[0].pc, steps)]
        return True

    def _shortened(self, name: str, pc: int) -> bool:
        """What a stack or jump opcode makes of a constant just pushed."""
        tokens = self.tokens
        last = tokens[-1]
        if name == "JUMPI" and len(tokens) > 1 and tokens[-2].name in PUSHES:  # the condition is known
            steps = tokens[-2].steps + last.steps + 1
            taken = tokens[-2].operand != 0
            tokens[-2:] = [Token("JUMP@", last.operand, tokens[-2].pc, steps)] if taken else []
            return True
        if name in ("JUMP", "JUMPI"):
            tokens[-1] = Token(name + "@", last.operand, last.pc, last.steps + 1)
            return True
        if name == "DUP1":
            tokens.append(Token(last.name, last.operand, pc, 1))
            return True
        return False
