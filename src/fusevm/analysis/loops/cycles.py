"""Candidate loops: strongly connected components of the control flow graph, then of each without its header."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fusevm.analysis.graphs import strong_components
from fusevm.analysis.loops.walk import LoopBlock, run
from fusevm.analysis.loops.words import EMPTY


def static_targets(blocks: Mapping[int, LoopBlock]) -> dict[int, int]:
    """Of the blocks that jump where they say themselves."""
    found: dict[int, int] = {}
    for pc, block in blocks.items():
        if block.last is not None and block.last.name in ("JUMP", "JUMPI"):
            pushed = block.steps[-2][2].push if len(block.steps) > 1 else None
            target = run(block, EMPTY).target if pushed is None else pushed
            if isinstance(target, int):
                found[pc] = target
    return found


def headers_in(blocks: Mapping[int, LoopBlock], targets: Mapping[int, int], dests: Set[int]) -> set[int]:
    """Where static backward jumps lead."""
    return {to for pc, to in targets.items() if to in dests and (last := blocks[pc].last) and to <= last.pc}


def cycles_in(
    blocks: Mapping[int, LoopBlock], targets: Mapping[int, int], dests: Set[int], headers: Set[int]
) -> list[tuple[int, frozenset[int]]]:
    """Headers, each with the blocks on a cycle through it; inner loops are the components left without the header.

    A pushed address may be a return address, so it counts as a successor.
    """
    graph: dict[int, list[int]] = {}
    for pc, block in blocks.items():
        pushed = {number for _, number, step in block.steps if step.push is not None}
        to = [*(number for number in pushed if number in dests), block.falls]
        if targets.get(pc) in dests:
            to.append(targets[pc])
        graph[pc] = [each for each in to if each in blocks]
    into: dict[int, list[int]] = {}
    for pc, successors in graph.items():
        for each in successors:
            into.setdefault(each, []).append(pc)
    found: list[tuple[int, frozenset[int]]] = []
    budget = 4 * len(graph)  # deeper nests are not analysed
    work = [graph]
    while work and budget > 0:
        part = work.pop()
        budget -= len(part)
        for members in strong_components(part):
            if len(members) == 1 and members[0] not in graph[members[0]]:
                continue
            inside = frozenset(members)
            entered = [pc for pc in members if pc == 0 or any(each not in inside for each in into[pc])]
            header = min(entered or members, key=lambda pc: (pc not in headers, pc))
            if header in dests:
                found.append((header, inside))
            if len(members) > 1:
                work.append({pc: graph[pc] for pc in members if pc != header})
    return found
