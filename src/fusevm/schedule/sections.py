"""Bytes to sections: blocks split after instructions that read the gas counter, constants folded, jumps with targets.

Folding happens here, before sequences are fused: it is the first of the seed's patterns, and general. `PUSH a PUSH b
SUB` becomes `PUSH b - a`, at any depth, for every pure opcode. Gas and stack bounds are summed over the original
instructions, so folding makes nothing free.

JUMPDESTs in a row have many entries but one exit: each pays for the rest of the row and jumps to the
last, so that a long row costs no more than a short one. Bytes after the end of a block up to the next JUMPDEST
are unreachable and skipped: data costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from functools import cache, partial
from itertools import repeat
from typing import Any, NamedTuple

from fusevm.analysis import symbolic
from fusevm.analysis.symbolic import Action, Step
from fusevm.evm.bytecode import JUMPDEST, jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_BYTE, BY_NAME, OPCODES_TABLE, Opcode, opcodes_of
from fusevm.evm.words import INTEGER_MEANINGS

SECTION_LIMIT = 1 << 31  # gas; a longer section is split
SMALL = 1 << 64
# Instructions that may need to ask Python: the gas counter must be exact there.
OUTWARD = frozenset(op.name for op in OPCODES_TABLE if op.acts_outside)
TELLING = OUTWARD | {"RETURN", "REVERT"}  # their operand is the pc
PUSHES = ("PUSH", "PUSHW")
ROW_START = bytes((JUMPDEST,)) * 4  # a shorter row is as quick one by one
ROW = re.compile(re.escape(bytes((JUMPDEST,))) + b"+")
FOLDED = {name: meaning for name, meaning in INTEGER_MEANINGS.items() if not BY_NAME[name].dynamic}
COPY, SWAP = "COPY", "EXCHANGE"  # for words deeper than DUP16 and SWAP16 reach; the operand is the depth


class HandlerToken(NamedTuple):
    """An instruction in the form that handlers use."""

    name: str  # an opcode's, PUSH (fits 64 bits), PUSHW, JUMP@, JUMPI@, or SYNC if Python executes it
    operand: int
    pc: int
    steps: int  # how many instructions of the reference tier it covers


class Section(NamedTuple):
    pc: int
    gas: int
    needs: int  # words its block needs on the stack; -1 if this section does not open a block
    grows: int  # the maximum rise of the stack in its block
    tokens: list[HandlerToken]
    steps: int = 0  # how many instructions of the reference tier it covers
    row: int = 0  # of a row: how many JUMPDESTs it skips, itself included

    @property
    def opens_block(self) -> bool:
        return self.needs >= 0


# The stack effects of tokens.
ACTIONS = symbolic.ACTIONS | {
    "PUSH": Action(symbolic.PUSHES, 0, 1),
    "PUSHW": Action(symbolic.PUSHES, 0, 1),
    "JUMP@": Action(symbolic.OPERATES, 0, 0),
    "JUMPI@": Action(symbolic.OPERATES, 1, -1),
}
UNCLEAR = frozenset(("SYNC", COPY, SWAP))  # the effect of SYNC is unknown; the depth of COPY and SWAP is in the operand
ACTIONS |= dict.fromkeys(UNCLEAR, Action(symbolic.OPERATES, 0, 0))
JUMPS = frozenset(("JUMP", "JUMPI", "JUMP@", "JUMPI@"))


def steps_of(tokens: list[HandlerToken]) -> Iterable[Step[HandlerToken]]:
    return zip([ACTIONS[token.name] for token in tokens], [token.operand for token in tokens], tokens, strict=True)


# Named tuples from tuples: objects created for every byte of code must be cheap.
token_of: Callable[[tuple[str, int, int, int]], HandlerToken] = partial(tuple.__new__, HandlerToken)
section_of: Callable[[tuple[Any, ...]], Section] = partial(tuple.__new__, Section)

ROLE_PUSH, ROLE_PLAIN, ROLE_ASK, ROLE_PC, ROLE_DEST, ROLE_DEEP = range(6)  # what a token is made of
GOES_ON, ENDS_SECTION, ENDS_BLOCK = range(3)


class SectionOpcode(NamedTuple):
    name: str
    gas: int
    pops: int
    delta: int
    immediate: int
    role: int
    folds: int  # operands of a meaning that can be folded, 0 where it cannot
    ending: int
    operand: int = 0  # of ROLE_DEEP


Kinds = tuple[SectionOpcode | None, ...]


@cache
def kinds_of(fork: Fork, native: frozenset[str]) -> Kinds:
    """By byte; None if it is invalid, and if `variants_of` decides."""
    return tuple(
        None if op is None or op.variants or op.name == "INVALID" else _kind(op, fork, native)
        for op in opcodes_of(fork)
    )


@cache
def variants_of(fork: Fork) -> dict[int, Kinds]:
    """For opcodes whose instruction depends on the next byte: the instruction by that byte; None if it is invalid."""
    return {
        op.byte: tuple(None if each is None else _arranging(each, fork) for each in op.variants)
        for op in opcodes_of(fork)
        if op is not None and op.variants
    }


def _kind(op: Opcode, fork: Fork, native: frozenset[str]) -> SectionOpcode:
    if op.is_push:
        role = ROLE_PUSH
    elif op.name == "JUMPDEST":
        role = ROLE_DEST
    elif op.name == "PC":
        role = ROLE_PC
    else:
        role = ROLE_PLAIN if op.name in native else ROLE_ASK
    if op.ends or op.name == "JUMPI":
        ending = ENDS_BLOCK
    else:
        ending = ENDS_SECTION if op.observes_gas or role == ROLE_ASK or op.acts_outside else GOES_ON
    folds = op.pops if op.name in FOLDED else 0
    return SectionOpcode(op.name, op.gas_at(fork), op.pops, op.pushes - op.pops, op.immediate, role, folds, ending)


def _arranging(op: Opcode, fork: Fork) -> SectionOpcode:
    """DUP and SWAP, or their replacements if they reach deeper."""
    one, other = sorted(op.swaps)
    name, operand = (f"DUP{op.copies}", op.copies) if op.is_dup else (f"SWAP{other - 1}", one | other << 32)
    role = ROLE_PLAIN
    if name not in BY_NAME or one > 1:
        name, role = COPY if op.is_dup else SWAP, ROLE_DEEP
    return SectionOpcode(name, op.gas_at(fork), op.pops, op.pushes - op.pops, op.immediate, role, 0, GOES_ON, operand)


def variant_at(variants: dict[int, Kinds], code: bytes, pc: int) -> SectionOpcode | None:
    """The instruction at a pc of the code, if it is one that has variants."""
    kinds = variants.get(code[pc])
    return kinds[code[pc + 1] if pc + 1 < len(code) else 0] if kinds else None


def sections_of(code: bytes, fork: Fork, native: frozenset[str], dests: Set[int] | None = None) -> list[Section]:
    """All reachable sections, in code order; `native` has the opcodes that have handlers."""
    return _Reader(code, fork, native, jumpdests(code) if dests is None else dests).read()


class _Reader:
    def __init__(self, code: bytes, fork: Fork, native: frozenset[str], dests: Set[int]) -> None:
        self.code = code
        self.kinds = kinds_of(fork, native)
        self.variants = variants_of(fork)
        self.dests = dests
        self.jumpdest_gas = BY_BYTE[JUMPDEST].gas_at(fork)
        self.sections: list[Section] = []

    def read(self) -> list[Section]:
        """Block by block. A STOP follows the last byte of code."""
        code, end, dests, sections = self.code, len(self.code), self.dests, self.sections
        kinds, variants = self.kinds, self.variants
        pc = 0
        while pc <= end:
            if code.startswith(ROW_START, pc):
                pc = self._row(pc)
            start = opened = pc
            gas = steps = height = needs = grows = 0
            tokens: list[HandlerToken] = []
            first = len(sections)
            while True:
                if pc >= end or (kind := kinds[code[pc]] or variant_at(variants, code, pc)) is None:
                    tokens.append(token_of(("STOP" if pc >= end else "INVALID", 0, pc, 1)))
                    steps += 1
                    pc = self._next_target(pc + 1)
                    break
                if pc in dests and pc != start:
                    break
                name, cost, pops, delta, immediate, role, folds, ending, deep = kind
                gas += cost
                steps += 1
                if pops - height > needs:
                    needs = pops - height
                height += delta
                if height > grows:
                    grows = height
                if role == ROLE_PUSH:
                    after = pc + 1 + immediate
                    value = int.from_bytes(code[pc + 1 : after], "big")
                    if after > end:
                        value <<= 8 * (after - end)
                    tokens.append(token_of(("PUSH" if value < SMALL else "PUSHW", value, pc, 1)))
                    pc = after
                    continue
                if role == ROLE_PLAIN:
                    if not (tokens and tokens[-1][0] in PUSHES and _simplified(tokens, name, folds, pc)):
                        tokens.append(token_of((name, 0, pc, 1)))
                elif role == ROLE_ASK:
                    tokens.append(token_of(("SYNC", code[pc], pc, 1)))
                elif role == ROLE_PC:
                    tokens.append(token_of(("PUSH", pc, pc, 1)))
                elif role == ROLE_DEEP:
                    tokens.append(token_of((name, deep, pc, 1)))
                pc += 1 + immediate
                if ending == ENDS_BLOCK:
                    if name != "JUMPI" or (tokens and tokens[-1][0] == "JUMP@"):
                        pc = self._next_target(pc)
                    break
                if ending == ENDS_SECTION or gas > SECTION_LIMIT:
                    sections.append(section_of((opened, gas, -1, 0, tokens, steps, 0)))
                    tokens = []
                    opened, gas, steps = pc, 0, 0
            if first == len(sections):
                sections.append(section_of((opened, gas, needs, grows, tokens, steps, 0)))
                continue
            if tokens or gas:
                sections.append(section_of((opened, gas, -1, 0, tokens, steps, 0)))
            sections[first] = sections[first]._replace(needs=needs, grows=grows)
        return sections

    def _next_target(self, pc: int) -> int:
        """The next JUMPDEST, where reachable code continues after an instruction that does not fall through."""
        while (pc := self.code.find(JUMPDEST, pc)) >= 0 and pc not in self.dests:
            pc += 1
        return pc if pc >= 0 else len(self.code) + 1

    def _row(self, start: int) -> int:
        """Reads JUMPDESTs in a row except the last, which opens a block like any other; returns the pc of the last."""
        match = ROW.match(self.code, start)
        assert match is not None
        last, cost = match.end() - 1, self.jumpdest_gas
        way_on = [HandlerToken("JUMP@", last, start, 0)]  # one for all
        left = range(last - start, 0, -1)
        gas = range(cost * (last - start), 0, -cost)
        fields = zip(range(start, last), gas, repeat(0), repeat(0), repeat(way_on), left, left, strict=False)
        self.sections += map(section_of, fields)
        return last


def _simplified(tokens: list[HandlerToken], name: str, folds: int, pc: int) -> bool:
    """Simplifies an opcode after constants: folding, static jumps, DUP1. Returns whether it did."""
    if folds:
        return len(tokens) >= folds and _folded(tokens, name, folds)
    last = tokens[-1]
    if name == "JUMPI" and len(tokens) > 1 and tokens[-2].name in PUSHES:  # the condition is known
        steps = tokens[-2].steps + last.steps + 1
        taken = tokens[-2].operand != 0
        tokens[-2:] = [HandlerToken("JUMP@", last.operand, tokens[-2].pc, steps)] if taken else []
        return True
    if name in ("JUMP", "JUMPI"):
        tokens[-1] = token_of((name + "@", last.operand, last.pc, last.steps + 1))
        return True
    if name == "DUP1":
        tokens.append(token_of((last.name, last.operand, pc, 1)))
        return True
    return False


def _folded(tokens: list[HandlerToken], name: str, count: int) -> bool:
    """PUSH b PUSH a OP becomes the PUSH of its value."""
    operands = tokens[-count:]
    for token in operands:
        if token.name not in PUSHES:
            return False
    value = FOLDED[name](*[token.operand for token in reversed(operands)])
    steps = 1 + sum([token.steps for token in operands])
    tokens[-count:] = [token_of(("PUSH" if value < SMALL else "PUSHW", value, operands[0].pc, steps))]
    return True
