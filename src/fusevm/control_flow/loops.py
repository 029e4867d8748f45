"""Loops among the blocks that control can reach, calls stepped over: a function called twice in a row makes no loop."""

from __future__ import annotations

from collections.abc import Iterator

from fusevm.analysis.graphs import Loop, Loops, natural_loops, nest, preorder
from fusevm.ir.recovery.finder import Key
from fusevm.ir.recovery.flow import ANYWHERE, Jumps, Routine

_CALLEE_BUDGET = 200_000

_Node = tuple[int, tuple[int, ...]]  # a block and the addresses on the stack, as if each caller had a copy


def loops_of(jumps: Jumps) -> Loops:
    """The loops of every routine on its own, those with one header joined, callees counted into the body."""
    found = Loops()
    others = [jumps.routines[ANYWHERE]] if ANYWHERE in jumps.routines else []
    for routine in (*jumps.functions.values(), *others):
        nodes: dict[_Node, int] = {}
        for graph, root in _rooted(routine, nodes):
            part = natural_loops(graph, root)
            pcs = [pc for pc, _ in nodes]
            found.irreducible |= {(pcs[latch], pcs[header]) for latch, header in part.irreducible}
            found.complete &= part.complete
            for loop in part:
                header = pcs[loop.header]
                known = found.by_header.get(header, Loop(header, (), frozenset()))
                found.by_header[header] = _joined(known, loop, pcs)
    _count_callees(found, jumps)
    for loop in found:
        loop.parent = None
    nest(found)
    return found


def _rooted(routine: Routine, nodes: dict[_Node, int]) -> Iterator[tuple[dict[int, set[int]], int]]:
    """The graph of the routine, its nodes numbered, and where it is entered.

    Unknown jumps may enter anywhere; in the order of the code, loops are most likely entered at their headers.
    """

    def number(key: Key) -> int:
        return nodes.setdefault((key.pc, tuple([target for _, target in key.labels])), len(nodes))

    roots = [number(key) for key in routine.states]
    graph: dict[int, set[int]] = {}
    for key, onward in routine.graph.items():
        graph.setdefault(number(key), set()).update(map(number, onward))
    for root in roots:
        if root in graph:
            yield graph, root
            for seen in preorder(graph, root).order:
                graph.pop(seen, None)


def _joined(known: Loop, loop: Loop, pcs: list[int]) -> Loop:
    """What is known of a loop of blocks, and the same loop of one routine, whose nodes are blocks with addresses."""
    body = known.body | {pcs[node] for node in loop.body}
    latches = {*known.latches, *(pcs[node] for node in loop.latches)}
    exits = {*known.exits, *((pcs[node], pcs[to]) for node, to in loop.exits)}
    left = sorted(edge for edge in exits if edge[1] not in body)
    return Loop(known.header, tuple(sorted(latches)), body, tuple(left))


def _count_callees(loops: Loops, jumps: Jumps) -> None:
    """Blocks that run inside a loop because its body calls them belong to its body."""
    calls: dict[int, set[int]] = {}  # block to the routines it calls
    for routine in jumps.routines.values():
        for site, entries in routine.calls.items():
            calls.setdefault(site.pc, set()).update(entries)
    budget = _CALLEE_BUDGET
    for loop in loops:
        body = set(loop.body)
        work = [entry for block in body for entry in calls.get(block, ())]
        seen: set[int] = set()
        while work and budget > 0:
            entry = work.pop()
            if entry in seen:
                continue
            seen.add(entry)
            blocks = jumps.routines[entry].blocks
            budget -= len(blocks)
            for block in blocks - body:
                work += calls.get(block, ())
            body |= blocks
        loop.body = frozenset(body)
        loop.exits = tuple(edge for edge in loop.exits if edge[1] not in body)
    if budget <= 0:
        loops.complete = False
