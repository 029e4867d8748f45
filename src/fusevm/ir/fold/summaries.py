"""Effect summaries of functions, including those of their callees."""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.analysis.graphs import cyclic_nodes
from fusevm.evm.opcodes import ACCESS, BY_NAME, MSIZE, WORLD, Effect
from fusevm.ir import analyses
from fusevm.ir.functions import JUMP, Unit
from fusevm.ir.values import traits_of


@dataclass(slots=True)
class EffectSummary:
    """The effects that a call of a function may have."""

    reads: int = 0
    writes: int = 0
    halts: bool = False
    ends: bool = False  # it may end the frame in order: by a return, or by a revert with data


def summaries(unit: Unit) -> dict[str, EffectSummary]:
    """Computed to a fixed point, since functions may be mutually recursive."""
    found = {name: EffectSummary() for name in unit.functions}
    calls = analyses.call_graph(unit)
    for name, function in unit.functions.items():
        summary = found[name]
        for block in analyses.order(function):
            for value in block.instructions:
                if value.op != "CALLFN":
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
        summary.halts |= any(
            start >= target for start, targets in analyses.successors(function).items() for target in targets
        )
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


def unseen_in(unit: Unit) -> Effect:
    """Effects that cannot be observed: memory growth if there is no MSIZE, warmth if there are no calls and no GAS."""
    unseen = MSIZE | ACCESS
    shows = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2", "GAS") if unit.keeps_warmth else ()
    for function in unit.functions.values():
        for value in function.instructions():
            if value.op in ("MSIZE", "VERBATIM"):
                unseen &= ~MSIZE
            if value.op == "VERBATIM" or value.op in shows:
                unseen &= ~ACCESS
    return unseen
