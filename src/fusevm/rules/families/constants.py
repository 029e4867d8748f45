"""Constant folding: every pure opcode of constants is a constant. The word meanings compute it; EXP is by squaring."""

# ruff: noqa: F403, F405
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import MEANINGS
from fusevm.rules.families.notation import *
from fusevm.rules.pattern import Node

# solc folds these, in this order, and neither SAR nor CLZ
SOLC = (
    "ADD", "MUL", "SUB", "DIV", "SDIV", "MOD", "SMOD", "EXP", "NOT", "LT", "GT", "SLT", "SGT", "EQ", "ISZERO",
    "AND", "OR", "XOR", "BYTE", "ADDMOD", "MULMOD", "SIGNEXTEND", "SHL", "SHR",
)  # fmt: skip


def _fold(op: str) -> Rule:
    """OP(A, B) → the number it is."""
    call = Node(op, (A, B, C)[: BY_NAME[op].pops])
    return rule(f"{op.lower()}-constants", call, call, solc=SOLC.index(op) + 1 if op in SOLC else None)


CONSTANTS = family("constants", (_fold(op) for op in MEANINGS))
