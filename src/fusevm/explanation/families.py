"""Opcodes by what they are for: the families by which a run's gas is shown."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import MEMORY, STORAGE, TRANSIENT, Opcode

_RANGES = (  # the first byte of each family, in order
    (0x00, "halts"), (0x01, "arithmetic"), (0x10, "comparison and bits"), (0x20, "hashing"), (0x30, "environment"),
    (0x40, "block"), (0x50, "stack"), (0xA0, "logs"), (0xF0, "calls and creation"),
)  # fmt: skip
_NAMED = {"JUMP": "control flow", "JUMPI": "control flow", "JUMPDEST": "control flow", "STOP": "halts"}
_NAMED |= dict.fromkeys(("RETURN", "REVERT", "INVALID", "SELFDESTRUCT"), "halts")
_NAMED |= dict.fromkeys(("PC", "GAS", "MSIZE"), "environment")
OTHER = "not in this code"  # gas of a frame that no instruction took, and of other contracts


def family_of(op: Opcode | None) -> str:
    if op is None:
        return "halts"
    if op.name in _NAMED:
        return _NAMED[op.name]
    if op.byte < 0xA0:
        if (op.reads | op.writes) & STORAGE:
            return "storage"
        if (op.reads | op.writes) & TRANSIENT:
            return "transient storage"
        if op.byte >= 0x30 and (op.reads | op.writes) & MEMORY:
            return "memory"
    return next(name for first, name in reversed(_RANGES) if op.byte >= first)


def by_family(code: bytes, fork: Fork, heat: Mapping[int, tuple[int, int]]) -> dict[str, list[int]]:
    """Count and gas of each family, the most expensive first."""
    found: dict[str, list[int]] = {}
    for each in instructions(code, fork):
        if each.pc in heat:
            count, gas = heat[each.pc]
            total = found.setdefault(family_of(each.op), [0, 0])
            total[0] += count
            total[1] += gas
    return dict(sorted(found.items(), key=lambda item: -item[1][1]))
