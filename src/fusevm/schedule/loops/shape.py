"""The shape of a loop that has been walked: what makes an iteration, what of it always runs, and how it is left."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.schedule.loops.find import strong
from fusevm.schedule.loops.walk import Walk


class Shape:
    """Which nodes make an iteration, which of them always run, and how it can be left."""

    def __init__(self, walk: Walk) -> None:
        self.nodes = nodes = walk.nodes
        self.kind = "uncounted"
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
        parts = strong({number: graph[number] for number in graph if number})
        self.inner = {number for part in parts if len(part) > 1 or part[0] in graph[part[0]] for number in part}
        order = order_of(graph)
        self.members = order
        straight = len(self.latches) == 1 and all(len(targets) <= 1 for targets in graph.values())
        spine = order if straight else [each for each in order if each not in self.inner and self._always(each, graph)]
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

    def _always(self, number: int, graph: Mapping[int, list[int]]) -> bool:
        """Whether every way from the header to a latch passes this node."""
        if number == 0:
            return True
        seen, work = {0, number}, [0]
        while work:
            at = work.pop()
            if at in self.latches:
                return False
            for target in graph[at]:
                if target not in seen:
                    seen.add(target)
                    work.append(target)
        return True


def order_of(graph: Mapping[int, list[int]]) -> list[int]:
    """Reverse postorder from the header: what runs first comes first."""
    seen, postorder = {0}, []
    work = [(0, iter(graph[0]))]
    while work:
        node, targets = work[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                work.append((target, iter(graph[target])))
                break
        else:
            postorder.append(node)
            work.pop()
    return postorder[::-1]
