"""Where loops can be: strongly connected parts of the graph of blocks, and of what is left without their headers."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fusevm.evm.opcodes import BY_NAME
from fusevm.schedule.loops.walk import Block


def regions_of(blocks: Mapping[int, Block], dests: Set[int], headers: Set[int]) -> list[tuple[int, frozenset[int]]]:
    """Headers, each with the blocks that lie on a cycle through it; inner loops are what is left without the header.

    A pushed address may be where a call returns, so it counts as a successor.
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
    budget = 4 * len(graph)  # a nest of many loops is not followed to its end
    work = [graph]
    while work and budget > 0:
        part = work.pop()
        budget -= len(part)
        for members in strong(part):
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


def strong(graph: Mapping[int, list[int]]) -> list[list[int]]:
    """Tarjan's strongly connected components, without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    held: list[int] = []
    on_stack: set[int] = set()
    parts: list[list[int]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        held.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    held.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack and index[target] < low[node]:
                    low[node] = index[target]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == index[node]:
                    part = []
                    while True:
                        member = held.pop()
                        on_stack.discard(member)
                        part.append(member)
                        if member == node:
                            break
                    parts.append(part)
    return parts
