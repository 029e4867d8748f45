"""Live-in and live-out values of the blocks of a function."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.codegen.ordering import is_free
from fusevm.ir.functions import Function, GraphBlock


@dataclass(slots=True)
class Liveness:
    entry: dict[GraphBlock, set[int]] = field(default_factory=dict)  # live-in
    exit: dict[GraphBlock, set[int]] = field(default_factory=dict)  # live-out


def liveness(function: Function) -> Liveness:
    found = Liveness()
    blocks = function.blocks()
    for block in blocks:
        found.entry[block], found.exit[block] = set(), set()
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            after: set[int] = set()
            for arc in block.end.arcs:
                after |= found.entry[arc.target] - {param.id for param in arc.target.params}
                after.update(arg.id for arg in arc.args if not is_free(arg))
            found.exit[block] = after
            now = set(after)
            now.update(arg.id for arg in block.end.args if not is_free(arg))
            for value in reversed(block.instructions):
                now.discard(value.id)
                now.update(arg.id for arg in value.args if not is_free(arg) and arg.op != "CALLFN")
            now -= {param.id for param in block.params}
            now |= {param.id for param in block.params} & _used(block, after)
            if now != found.entry[block]:
                found.entry[block] = now
                changed = True
    return found


def _used(block: GraphBlock, after: set[int]) -> set[int]:
    used = set(after)
    used.update(arg.id for arg in block.end.args)
    for value in block.instructions:
        used.update(arg.id for arg in value.args)
    return used
