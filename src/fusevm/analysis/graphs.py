"""Graph algorithms without recursion: depth-first order, data flow, components, dominators, natural loops.

A graph maps each node to its successors. Components take nodes of any hashable kind, everything else takes integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
S = TypeVar("S")
Graph = Mapping[int, Iterable[int]]  # node to successors


@dataclass(slots=True)
class Loop:
    """A natural loop: every path into it enters at the header."""

    header: int
    latches: tuple[int, ...]  # predecessors of the header inside the loop
    body: frozenset[int]  # header and latches included
    exits: tuple[tuple[int, int], ...] = ()  # edges that leave
    parent: int | None = None  # header of the smallest loop around it
    depth: int = 1


@dataclass(slots=True)
class Loops:
    by_header: dict[int, Loop] = field(default_factory=dict)
    irreducible: set[tuple[int, int]] = field(default_factory=set)  # edges into a cycle that has a second entry
    complete: bool = True  # False: the budget ended the search, some loops are not listed

    def __iter__(self) -> Iterator[Loop]:
        return iter(self.by_header.values())

    def innermost(self) -> dict[int, Loop]:
        """For each node in a loop, the innermost loop that contains it."""
        return {node: loop for loop in sorted(self, key=_size, reverse=True) for node in loop.body}


def _size(loop: Loop) -> int:
    return len(loop.body)


@dataclass(slots=True)
class Preorder:
    """A depth-first walk: the parent of each node, the order of visits, and the back edges to an ancestor."""

    order: list[int] = field(default_factory=list)
    parent: dict[int, int] = field(default_factory=dict)
    back: list[tuple[int, int]] = field(default_factory=list)
    postorder: list[int] = field(default_factory=list)


def preorder(graph: Graph, root: int) -> Preorder:
    walk = Preorder([root])
    seen, active = {root}, {root}
    stack = [(root, iter(graph.get(root, ())))]
    while stack:
        node, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                active.add(successor)
                walk.order.append(successor)
                walk.parent[successor] = node
                stack.append((successor, iter(graph.get(successor, ()))))
                break
            if successor in active:
                walk.back.append((node, successor))
        else:
            active.discard(node)
            walk.postorder.append(node)
            stack.pop()
    return walk


def postorder(root: N, successors: Callable[[N], Iterable[N]]) -> list[N]:
    """The nodes reached from the root; each comes after its successors, edges back to an ancestor aside."""
    order: list[N] = []
    seen = {root}
    work = [(root, iter(successors(root)))]
    while work:
        node, further = work[-1]
        for successor in further:
            if successor not in seen:
                seen.add(successor)
                work.append((successor, iter(successors(successor))))
                break
        else:
            order.append(node)
            work.pop()
    return order


def reverse_postorder(graph: Graph, root: int) -> list[int]:
    """The nodes reached from the root; each comes before its successors, edges back to an ancestor aside."""
    return postorder(root, lambda node: graph.get(node, ()))[::-1]


def settled(nodes: Collection[N], state: dict[N, S], flow: Callable[[N], S]) -> dict[N, S]:
    """Data flow: the state of each node anew from those of others, in the order of the nodes, until none changes."""
    changed = True
    while changed:
        changed = False
        for node in nodes:
            now = flow(node)
            if now != state[node]:
                state[node], changed = now, True
    return state


def strong_components(graph: Mapping[N, Collection[N]]) -> list[list[N]]:
    """Strongly connected components by Tarjan's algorithm: successors' first, members in the order they were met.

    Only the keys are nodes: a successor that is not a key is ignored.
    """
    index: dict[N, int] = {}
    low: dict[N, int] = {}  # the earliest node of the stack that can be reached
    stack: list[N] = []
    on_stack: set[N] = set()
    found: list[list[N]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, len(stack) - 1, iter(graph[root]))]
        while work:
            node, place, successors = work[-1]
            for successor in successors:
                if successor in on_stack:
                    if index[successor] < low[node]:
                        low[node] = index[successor]
                elif successor not in index and successor in graph:
                    index[successor] = low[successor] = len(index)
                    on_stack.add(successor)
                    work.append((successor, len(stack), iter(graph[successor])))
                    stack.append(successor)
                    break
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == index[node]:
                    part = stack[place:]
                    del stack[place:]
                    on_stack.difference_update(part)
                    found.append(part)
    return found


def cyclic_nodes(graph: Mapping[N, Collection[N]]) -> set[N]:
    """The nodes on a cycle."""
    return {node for part in strong_components(graph) for node in part if len(part) > 1 or node in graph[node]}


def predecessors_of(graph: Graph, nodes: Iterable[int]) -> dict[int, list[int]]:
    predecessors: dict[int, list[int]] = {node: [] for node in nodes}
    for node in predecessors:
        for successor in graph.get(node, ()):
            if successor in predecessors:
                predecessors[successor].append(node)
    return predecessors


def dominators(graph: Graph, root: int, walk: Preorder | None = None) -> dict[int, int]:
    """The immediate dominator of every node reached (the root's is itself), by semi-dominators (Semi-NCA)."""
    walk = walk or preorder(graph, root)
    number = {node: index for index, node in enumerate(walk.order)}
    size = len(walk.order)
    parent = [0] * size
    for node, above in walk.parent.items():
        parent[number[node]] = number[above]
    semi, label, ancestor = list(range(size)), list(range(size)), [-1] * size
    predecessors = predecessors_of(graph, walk.order)

    def evaluate(v: int) -> int:
        path = []
        while ancestor[v] != -1 and ancestor[ancestor[v]] != -1:
            path.append(v)
            v = ancestor[v]
        for u in reversed(path):
            above = ancestor[u]
            if semi[label[above]] < semi[label[u]]:
                label[u] = label[above]
            ancestor[u] = ancestor[above]
        return label[path[0] if path else v]

    for w in range(size - 1, 0, -1):
        for node in predecessors[walk.order[w]]:
            semi[w] = min(semi[w], semi[evaluate(number[node])])
        ancestor[w] = parent[w]
    immediate = list(parent)
    for w in range(1, size):
        while immediate[w] > semi[w]:
            immediate[w] = immediate[immediate[w]]
    return {walk.order[w]: walk.order[immediate[w]] for w in range(size)}


class DominatorTree:
    """Answers `dominates` in constant time, from the intervals of a walk of the tree."""

    def __init__(self, graph: Graph, root: int, walk: Preorder | None = None) -> None:
        self.above = dominators(graph, root, walk)
        children: dict[int, list[int]] = {node: [] for node in self.above}
        for node, above in self.above.items():
            if node != root:
                children[above].append(node)
        self.children = children
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        stack, clock = [(root, False)], 0
        while stack:
            node, done = stack.pop()
            if done:
                self.last[node] = clock
                continue
            self.first[node] = clock
            clock += 1
            stack.append((node, True))
            stack += [(child, False) for child in children[node]]

    def __contains__(self, node: int) -> bool:
        return node in self.first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DominatorTree) and self.above == other.above

    def dominates(self, one: int, other: int) -> bool:
        return self.first[one] <= self.first[other] < self.last[one]


def natural_loops(graph: Graph, root: int, budget: int = 200_000, tree: DominatorTree | None = None) -> Loops:
    """Loops by header, nested; `budget` bounds the sum of all body sizes."""
    walk = preorder(graph, root)
    tree = tree or DominatorTree(graph, root, walk)
    loops = Loops()
    latches: dict[int, list[int]] = {}
    for latch, header in walk.back:
        if tree.dominates(header, latch):
            latches.setdefault(header, []).append(latch)
        else:
            loops.irreducible.add((latch, header))
    predecessors = predecessors_of(graph, walk.order)
    # Inner loops first: a header met later in the walk cannot be outside one met earlier.
    position = {node: index for index, node in enumerate(walk.order)}
    for header in sorted(latches, key=position.__getitem__, reverse=True):
        body = _body(header, latches[header], predecessors)
        budget -= len(body)
        if budget < 0:
            loops.complete = False
            break
        exits = tuple((node, to) for node in sorted(body) for to in graph.get(node, ()) if to not in body)
        loops.by_header[header] = Loop(header, tuple(latches[header]), frozenset(body), exits)
    nest(loops)
    return loops


def _body(header: int, latches: Iterable[int], predecessors: Mapping[int, list[int]]) -> set[int]:
    body, work = {header}, list(latches)
    while work:
        node = work.pop()
        if node not in body:
            body.add(node)
            work += predecessors[node]
    return body


def nest(loops: Loops) -> None:
    """Parents and depths: the parent is the smallest other loop that holds the header."""
    by_size = sorted(loops, key=_size)
    outermost: dict[int, Loop] = {}  # of the loops seen so far, the largest that holds the node
    for loop in by_size:
        for node in loop.body:
            inner = outermost.get(node)
            if inner is not None and inner.parent is None and inner.header in loop.body:
                inner.parent = loop.header
            outermost[node] = loop
    for loop in reversed(by_size):
        loop.depth = 1 if loop.parent is None else loops.by_header[loop.parent].depth + 1
    loops.by_header = dict(sorted(loops.by_header.items()))
