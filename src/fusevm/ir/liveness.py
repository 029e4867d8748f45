"""Liveness in programs: unused PHIs are removed, and the live-out values of each block are found."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.evm.opcodes import Effect
from fusevm.ir.block import DependencyBlock, Edge, Program
from fusevm.ir.values import CONST, PHI, Value, traits_of


def is_root(value: Value, unseen: Effect | None) -> bool:
    """Whether it is kept even if its value is unused. In optimisation mode, not if all its effects are unseen."""
    traits = traits_of(value)
    if unseen is None or not traits.priced:
        return traits.is_root
    return bool(traits.leaves & ~unseen.value)


def prune(program: Program) -> None:
    needed, live_out = _needed(program)
    for block in program.blocks.values():
        block.live_out = live_out.get(block.start, {})
        block.params = tuple(slot for slot in block.params if block.entry[-1 - slot].id in needed)
    for block in program.blocks.values():
        for edge in block.terminator.edges:
            wanted = program.blocks[edge.target].params
            edge.args = {slot: value for slot, value in edge.args.items() if slot in wanted}


def _needed(program: Program) -> tuple[set[int], dict[int, dict[int, Value]]]:
    unseen = program.unseen
    edges_into: dict[int, list[tuple[DependencyBlock, Edge]]] = {}
    for block in program.blocks.values():
        for edge in block.terminator.edges:
            edges_into.setdefault(edge.target, []).append((block, edge))
    needed: set[int] = set()
    live_out: dict[int, dict[int, Value]] = {}
    work: list[Value] = []

    def use(value: Value, user: int) -> None:
        if value.op == CONST:
            return
        if value.block != user:
            live_out.setdefault(value.block, {})[value.id] = value
        if value.id not in needed:
            needed.add(value.id)
            work.append(value)

    for block in program.blocks.values():
        for value in block.instructions:
            if is_root(value, unseen):
                use(value, block.start)
        for value in (*block.terminator.args, *(spill.args[0] for spill in block.spills)):
            use(value, block.start)
    while work:
        value = work.pop()
        for arg in value.args:
            use(arg, value.block)
        if value.op == PHI:
            for block, edge in edges_into.get(value.block, ()):
                use(edge.args[value.number], block.start)
    return needed, live_out


def reads_before_writes(instructions: Iterable[Value], unseen: Effect | None) -> dict[int, list[Value]]:
    """For each write, the earlier reads that must stay before it."""
    before: dict[int, list[Value]] = {}
    readers: dict[int, list[Value]] = {}
    for value in instructions:
        traits = traits_of(value)
        if not is_root(value, unseen):
            bits = traits.reads
            while bits:
                bit = bits & -bits
                bits ^= bit
                readers.setdefault(bit, []).append(value)
        elif readers:
            seen = [reader for bit in list(readers) if bit & traits.writes for reader in readers.pop(bit)]
            if seen:
                before[value.id] = seen
    return before
