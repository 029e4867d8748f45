"""The fusions: sequences of opcodes that one handler executes. Each is a line; the handler is derived, gas is the sum.

`PUSH` is any constant that fits 64 bits, `PUSHW` a wider one, `JUMP@` and `JUMPI@` are jumps whose target was pushed
just before (PUSH JUMP, PUSH JUMPI), `JUMPI@HOP` is a JUMPI@ over blocks that only jump, and `SECTION` is what opens
a block: its gas and the stack's bounds. The seed's patterns are here; the wider set is in `chosen.tsv`, which
`python -m fusevm.lab.fusions` writes: the sequences that are frequent in real contracts, with counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

TABLE = "chosen.tsv"
Sequence = tuple[str, ...]


class FusionType(Enum):
    """The seed's kinds, and two more."""

    CONSTANT_FOLD = "constants folded, at any depth"  # happens while sections are read: see schedule.sections
    MULTI_PUSH = "several constants at once"
    MULTI_POP = "several words dropped at once"
    ISZERO_JUMPI = "a jump if zero"
    DUP2_MSTORE_PUSH = "a store, and the next constant"
    JUMP_THREAD = "a jump to a jump"  # happens before the schedule is laid out: see schedule.threading
    SEQUENCE = "what real code is full of"


@dataclass(frozen=True, slots=True)
class Fusion:
    """A line of the table."""

    fusion_type: FusionType
    sequence: Sequence


class ChosenFusion(NamedTuple):
    """A line of `chosen.tsv`, with how often schedules of real code have it."""

    sequence: Sequence
    corpus: int  # in solc's builds of the corpus, which tests can reach
    elsewhere: int  # in other contracts: of npm and PyPI packages, and our own compiler's


def _pushes(count: int) -> list[Fusion]:
    return [Fusion(FusionType.MULTI_PUSH, each) for each in product(("PUSH", "PUSHW"), repeat=count)]


# The seed's own patterns in the seed's order of priority. Constant folding comes before all of them.
SEED: tuple[Fusion, ...] = (
    *_pushes(3),
    Fusion(FusionType.MULTI_POP, ("POP", "POP", "POP")),
    Fusion(FusionType.ISZERO_JUMPI, ("ISZERO", "JUMPI@")),
    Fusion(FusionType.DUP2_MSTORE_PUSH, ("DUP2", "MSTORE", "PUSH")),
    Fusion(FusionType.DUP2_MSTORE_PUSH, ("DUP2", "MSTORE", "PUSHW")),
    *_pushes(2),
    Fusion(FusionType.MULTI_POP, ("POP", "POP")),
)


@cache
def chosen() -> tuple[ChosenFusion, ...]:
    """The table of `chosen.tsv`, those that save most first; the seed's are in it too, for their counts."""
    lines = (files("fusevm.schedule") / TABLE).read_text("ascii").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return tuple(
        ChosenFusion(tuple(sequence.split()), int(corpus), int(elsewhere)) for sequence, corpus, elsewhere in rows
    )


def fusions() -> tuple[Fusion, ...]:
    """All fusions, the seed's first."""
    seed = {fusion.sequence for fusion in SEED}
    return SEED + tuple(Fusion(FusionType.SEQUENCE, each.sequence) for each in chosen() if each.sequence not in seed)


def fused_sequences() -> list[Sequence]:
    """Of all of them."""
    return [fusion.sequence for fusion in fusions()]
