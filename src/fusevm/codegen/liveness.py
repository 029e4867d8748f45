"""Live-in and live-out values of the blocks of a function."""

from __future__ import annotations

from dataclasses import dataclass

from fusevm.analysis.graphs import settled
from fusevm.codegen.ordering import is_free
from fusevm.ir.functions import DependencyBlock, Function


@dataclass(slots=True)
class Liveness:
    entry: dict[DependencyBlock, set[int]]  # live-in
    exit: dict[DependencyBlock, set[int]]  # live-out


def liveness(function: Function) -> Liveness:
    blocks = function.blocks()[::-1]
    entry: dict[DependencyBlock, set[int]] = {block: set() for block in blocks}

    def after(block: DependencyBlock) -> set[int]:
        needed: set[int] = set()
        for arc in block.end.arcs:
            needed |= entry[arc.target] - {param.id for param in arc.target.params}
            needed.update(arg.id for arg in arc.args if not is_free(arg))
        return needed

    def before(block: DependencyBlock) -> set[int]:
        needed = after(block)
        params = {param.id for param in block.params} & _used(block, needed)
        needed.update(arg.id for arg in block.end.args if not is_free(arg))
        for value in reversed(block.instructions):
            needed.discard(value.id)
            needed.update(arg.id for arg in value.args if not is_free(arg) and arg.op != "CALLFN")
        return needed - {param.id for param in block.params} | params

    settled(blocks, entry, before)
    return Liveness(entry, {block: after(block) for block in blocks})


def _used(block: DependencyBlock, after: set[int]) -> set[int]:
    used = set(after)
    used.update(arg.id for arg in block.end.args)
    for value in block.instructions:
        used.update(arg.id for arg in value.args)
    return used
