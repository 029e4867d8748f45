"""What folding does: its mode, the stages of the emission pipeline, and the last rule of each opcode."""

from __future__ import annotations

from enum import Enum, Flag, StrEnum, auto

from fusevm.ir.values import NAMES, TRAITS


class Mode(StrEnum):
    EXECUTION = "execution"  # gas and memory size stay exact
    OPTIMISATION = "optimisation"  # what a caller can observe is preserved; gas may only fall


class Stage(Flag):
    FOLD = auto()
    CSE = auto()
    FWD = auto()
    DSE = auto()
    RANGES = auto()  # the least and greatest word of each value, and the bits that may be set
    FACTS = auto()  # what branches imply in the blocks they dominate


EVERYTHING = ~Stage(0)


class Then(Enum):
    """The least specific rule of an opcode: what happens to an instruction that no other rule changed."""

    CSE = "cse"  # CSEFOLD: reuse an equal instruction
    READ = "read"  # CSEFOLD, as long as nothing it reads was written
    FWD = "fwd"  # loads: forward the last store or load
    DSE = "dse"  # stores: it, or an earlier one, may be dead
    EXP = "exp"  # pure except for its dynamic gas
    EMIT = "emit"  # EMITFOLD: emitted unchanged


# Loads of what stores wrote, and stores of one word. This is their semantics, so it is not in the table of effects.
_LOADS = ("MLOAD", "SLOAD", "TLOAD", "KECCAK256")
_STORES = ("MSTORE", "MSTORE8", "SSTORE", "TSTORE")


def _then(op: str) -> Then:
    traits = TRAITS[op]
    if op in _LOADS:
        return Then.FWD
    if op in _STORES:
        return Then.DSE
    if traits.pure:
        return Then.CSE
    if op == "EXP":
        return Then.EXP
    return Then.EMIT if traits.is_root and not traits.priced else Then.READ


DISPATCH: dict[str, Then] = {op: _then(op) for op in NAMES}
