"""The shape of a walked loop: the nodes of an iteration, those that always run, and the exits."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.analysis.graphs import DominatorTree, cyclic_nodes, reverse_postorder
from fusevm.analysis.loops.walk import Walk


class LoopShape:
    """The nodes of an iteration, those that always run, and the exits."""

    def __init__(self, walk: Walk) -> None:
        self.nodes = nodes = walk.nodes
        self.blocks = walk.blocks
        into: dict[int, list[int]] = {}
        for node in nodes:
            for edge in node.edges:
                if edge.node >= 0:
                    into.setdefault(edge.node, []).append(node.number)
        staying, work = {0}, list(into.get(0, ()))
        while work:
            number = work.pop()
            if number not in staying:
                staying.add(number)
                work += into.get(number, ())
        self.staying = staying
        self.latches = sorted(set(into.get(0, ())))
        graph = {
            number: [edge.node for edge in nodes[number].edges if edge.node in staying and edge.node]
            for number in staying
        }
        self.inner = cyclic_nodes({number: graph[number] for number in graph if number})
        order = reverse_postorder(graph, 0)
        self.members = order
        straight = len(self.latches) == 1 and all(len(targets) <= 1 for targets in graph.values())
        spine = order if straight else _always_run(graph, order, self.latches)
        self.spine: dict[int, int] = {}
        gas = 0
        for each in spine:
            if each in self.inner:
                continue
            gas += nodes[each].block.gas
            self.spine[each] = gas
        self.gas = gas
        self.exits = [
            (number, way)
            for number in order
            for way, edge in enumerate(nodes[number].edges)
            if edge.node not in staying
        ]


def _always_run(graph: Mapping[int, list[int]], order: list[int], latches: list[int]) -> list[int]:
    """The nodes on every path from the header to a latch."""
    tree = DominatorTree(graph, 0)
    return [node for node in order if all(tree.dominates(node, latch) for latch in latches if latch in tree)]
