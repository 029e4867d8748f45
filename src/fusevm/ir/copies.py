"""Loop peeling: the first iteration becomes a copy before the loop, so that invariants are computed before the loop.

A copy is a separate block with the same instructions. Jumps only know program counters, so only loops whose header has
no unknown predecessors are copied. Edges between copied blocks lead to copies, back edges to the original header.
"""

from __future__ import annotations

from fusevm.analysis.graphs import Loop, natural_loops
from fusevm.evm import bytecode

COPY = 1 << 24  # above every program counter
LARGEST_LOOP = 400  # opcodes
GROWTH = 0.5  # the fraction of all opcodes that may be copied; one loop always may

Successors = dict[int, tuple[int, ...]]


def pc_of(key: int) -> int:
    return key & COPY - 1


def copy_of(key: int) -> int:
    """The number of the copy; 0 is the original."""
    return key // COPY


def name_of(key: int) -> str:
    return f"{pc_of(key)}.{copy_of(key)}" if key >= COPY else str(key)


def key_named(text: str) -> int:
    pc, _, copy = text.partition(".")
    return int(pc) + COPY * int(copy or 0)


def peel_loops(
    sources: dict[int, bytecode.BasicBlock], successors: Successors, roots: tuple[int, ...]
) -> tuple[dict[int, int], Successors]:
    """Copies the innermost loops once, before themselves; returns copies to originals, and the new successors."""
    root = -1
    loops = natural_loops({**successors, root: roots}, root)
    parents = {loop.parent for loop in loops}
    room = max(LARGEST_LOOP, int(GROWTH * sum(len(source.instructions) for source in sources.values())))
    ways = dict(successors)
    copies: dict[int, int] = {}
    for loop in loops:
        size = sum(len(sources[block].instructions) for block in loop.body)
        if loop.header in parents or loop.header in roots or size > min(LARGEST_LOOP, room):
            continue
        room -= size
        _peel(loop, ways, copies)
    return copies, ways


def _peel(loop: Loop, ways: Successors, copies: dict[int, int]) -> None:
    renamed = {block: block + COPY for block in loop.body}
    into = renamed[loop.header]
    for block, targets in list(ways.items()):
        if block not in loop.body and loop.header in targets:
            ways[block] = tuple(into if to == loop.header else to for to in targets)
    for block in loop.body:
        inside = {to: renamed[to] for to in loop.body if to != loop.header}
        ways[renamed[block]] = tuple(inside.get(to, to) for to in ways[block])
        copies[renamed[block]] = block
