"""The stages an instruction passes on its way into a block, and the last rule of each opcode."""

from __future__ import annotations

from enum import Enum, Flag, auto

from fusevm.ir.values import NAMES, TRAITS


class Stage(Flag):
    FOLD = auto()
    CSE = auto()
    FWD = auto()
    DSE = auto()


EVERYTHING = Stage.FOLD | Stage.CSE | Stage.FWD | Stage.DSE


class Then(Enum):
    """The least specific rule of an opcode: where it goes when no other rule changed it."""

    CSE = "cse"  # CSEFOLD: an equal one will do
    READ = "read"  # CSEFOLD, as long as nothing it reads was written
    FWD = "fwd"  # loads: the last store or load may tell
    DSE = "dse"  # stores: perhaps it need not be made, or an earlier one
    EXP = "exp"  # pure but for its price
    EMIT = "emit"  # EMITFOLD: it stays as it is


# Whose words are those that stores left, and stores of a word: that is their meaning, which no table of effects tells.
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
