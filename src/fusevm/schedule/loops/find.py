"""Candidate loops: strongly connected components of the control flow graph, then of each without its header."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fusevm.analysis.graphs import strong_components
from fusevm.evm.opcodes import BY_NAME
from fusevm.schedule.loops.walk import Block


def regions_of(blocks: Mapping[int, Block], dests: Set[int], headers: Set[int]) -> list[tuple[int, frozenset[int]]]:
    """Headers, each with the blocks on a cycle through it; inner loops are the components left without the header.

    A pushed address may be a return address, so it counts as a successor.
    """
    graph: dict[int, list[int]] = {}
    for pc, block in blocks.items():
        targets = [
            token.operand
            for token in block.tokens
            if token.name in ("PUSH", "JUMP@", "JUMPI@") and token.operand in dests
        ]
        name = block.tokens[-1].name if block.tokens else ""
        if block.falls >= 0 and name != "JUMP@" and not (name in BY_NAME and BY_NAME[name].ends):
            targets.append(block.falls)
        graph[pc] = targets
    into: dict[int, list[int]] = {}
    for pc, targets in graph.items():
        for target in targets:
            into.setdefault(target, []).append(pc)
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
