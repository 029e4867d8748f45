"""Effect summaries of functions, including those of their callees."""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.analysis.graphs import cyclic_nodes
from fusevm.evm.opcodes import BY_NAME, WORLD
from fusevm.ir.functions import JUMP, Unit
from fusevm.ir.values import traits_of


@dataclass(slots=True)
class Summary:
    """The effects that a call of a function may have."""

    reads: int = 0
    writes: int = 0
    halts: bool = False
    ends: bool = False  # it may end the frame in order: by a return, or by a revert with data


def summaries(unit: Unit) -> dict[str, Summary]:
    """Computed to a fixed point, since functions may be mutually recursive."""
    found = {name: Summary() for name in unit.functions}
    calls: dict[str, set[str]] = {name: set() for name in unit.functions}
    for name, function in unit.functions.items():
        summary = found[name]
        for block in function.blocks():
            for value in block.instructions:
                if value.op == "CALLFN":
                    calls[name].add(unit.names[value.number])
                else:
                    traits = traits_of(value)
                    summary.reads |= traits.reads
                    summary.writes |= traits.writes
                    summary.halts |= traits.halts
            if block.end.op in BY_NAME and block.end.op != JUMP:
                summary.halts = True
                summary.reads |= BY_NAME[block.end.op].reads.value
                summary.ends |= block.end.op != "INVALID"
                if block.end.op not in ("REVERT", "INVALID"):
                    summary.reads |= WORLD.value  # all changes so far are committed, so they are observed
        summary.halts |= any(block.start >= target.start for block in function.blocks() for target in block.targets)
    for name in cyclic_nodes(calls):
        found[name].halts = True  # functions that call each other may do so until the stack is full
    changed = True
    while changed:
        changed = False
        for name, callees in calls.items():
            mine = found[name]
            before = mine.reads, mine.writes, mine.halts, mine.ends
            for callee in callees:
                mine.reads |= found[callee].reads
                mine.writes |= found[callee].writes
                mine.halts |= found[callee].halts
                mine.ends |= found[callee].ends
            changed |= before != (mine.reads, mine.writes, mine.halts, mine.ends)
    return found
