"""Detects the fusions in some code, by the pc at which each begins (seed 000).

The seed's patterns are matched in the seed's order: constants folded first, then runs of PUSH and POP, a jump if
zero, a store with the next constant; then the longest sequence of the table. Blocks that only jump are reported as
JUMP_THREAD. This is what fusion sees in the code. `fusevm schedule` shows how the native tier's schedule splits it,
with the headers of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from fusevm.evm.bytecode import instructions, jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.schedule.fusions import SEED, FusionType, Sequence, fused_sequences
from fusevm.schedule.sections import PUSHES, HandlerToken, Section, sections_of
from fusevm.schedule.threading import hops_in, threaded

NATIVE = frozenset(BY_NAME)  # every opcode has a handler
COUNTED = (FusionType.MULTI_PUSH, FusionType.MULTI_POP, FusionType.SEQUENCE)


@dataclass(frozen=True, slots=True)
class FusionInfo:
    fusion_type: FusionType
    original_length: int  # bytes of code that it replaces
    folded_value: int | None = None  # of constants: the word that is pushed; of jumps to jumps: where they end
    count: int | None = None  # of PUSH and POP runs and of sequences: how many are fused into one


def fusions_in(code: bytes, fork: Fork = LATEST) -> dict[int, FusionInfo]:
    """Every fusion of the reachable code, by the pc of its first instruction, in code order."""
    dests = jumpdests(code)
    sections = sections_of(code, fork, NATIVE, dests)
    hops = hops_in(threaded(sections, dests), dests)
    found: dict[int, FusionInfo] = {}
    for section in sections:
        if section.row:
            continue
        if section.pc in hops:
            length = _length(code, fork, section.pc, section.steps)
            found[section.pc] = FusionInfo(FusionType.JUMP_THREAD, length, hops[section.pc].target)
            continue
        for fusion_type, tokens in _matches(section):
            steps = sum(token.steps for token in tokens)
            length = _length(code, fork, tokens[0].pc, steps)
            value = tokens[0].operand if fusion_type is FusionType.CONSTANT_FOLD else None
            count = len(tokens) if fusion_type in COUNTED else None
            found[tokens[0].pc] = FusionInfo(fusion_type, length, value, count)
    return found


def _matches(section: Section) -> Iterator[tuple[FusionType, list[HandlerToken]]]:
    """The fusions of a section, one after the other."""
    tokens, at = section.tokens, 0
    while at < len(tokens):
        length = 1
        if _is_folded(tokens[at]):
            yield FusionType.CONSTANT_FOLD, [tokens[at]]
        else:
            ahead = tokens[at : at + _longest()]
            names = tuple(token.name for token in ahead)
            stop = next((n for n, token in enumerate(ahead) if _is_folded(token)), len(ahead))
            fusion_type, length = _first(names[:stop])
            if length > 1:
                yield fusion_type, ahead[:length]
        at += length


def _first(names: Sequence) -> tuple[FusionType, int]:
    """The seed's first pattern that these names begin with, else the table's longest; its length is 1 if none does."""
    for fusion in SEED:
        if names[: len(fusion.sequence)] == fusion.sequence:
            return fusion.fusion_type, len(fusion.sequence)
    lengths = (length for length in range(len(names), 1, -1) if names[:length] in _table())
    return FusionType.SEQUENCE, next(lengths, 1)


def _is_folded(token: HandlerToken) -> bool:
    return token.name in PUSHES and token.steps > 1


@cache
def _table() -> frozenset[Sequence]:
    return frozenset(fused_sequences())


@cache
def _longest() -> int:
    return max(len(sequence) for sequence in _table())


def _length(code: bytes, fork: Fork, pc: int, steps: int) -> int:
    """The size of this many instructions in bytes, up to the end of the code."""
    *_, last = islice(instructions(code, fork, pc), steps)
    return min(last.pc + last.size, len(code)) - pc
