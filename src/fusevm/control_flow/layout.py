"""A layered layout of a graph: layers by the longest path, order by the neighbours' mean place, edges between boxes.

After Sugiyama, Tagawa and Toda: edges back are left out of the layers, edges over several layers pass through points
that take room like nodes. The work is bounded: edges past the budget of such points go straight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fusevm.analysis.graphs import preorder

GAP_X, GAP_Y, MARGIN = 28.0, 42.0, 16.0
SWEEPS = 4  # of ordering
PULLS = 3  # of moving nodes to their neighbours
MAX_BENDS = 12_000  # points of long edges altogether
LONGEST = 24  # layers that an edge may pass through points in; a longer one goes round
ROOT = -1

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(slots=True)
class Box:
    w: float
    h: float
    x: float = 0.0
    y: float = 0.0

    @property
    def head(self) -> Point:
        """The middle of the upper side."""
        return self.x + self.w / 2, self.y

    @property
    def foot(self) -> Point:
        return self.x + self.w / 2, self.y + self.h


@dataclass(slots=True)
class Drawing:
    boxes: dict[int, Box]
    edges: dict[Edge, list[Point]]
    back: set[Edge]
    width: float = 0.0
    height: float = 0.0


@dataclass(slots=True)
class _Graph:
    """Nodes and bends by number: bends have numbers below ROOT."""

    layers: list[list[int]]
    above: dict[int, list[int]] = field(default_factory=dict)
    below: dict[int, list[int]] = field(default_factory=dict)
    bends: dict[Edge, list[int]] = field(default_factory=dict)

    def link(self, one: int, other: int) -> None:
        self.below.setdefault(one, []).append(other)
        self.above.setdefault(other, []).append(one)


def laid_out(sizes: Mapping[int, tuple[float, float]], successors: Mapping[int, Sequence[int]]) -> Drawing:
    """`sizes` are width and height of each node; `successors` may name others, which are left out."""
    boxes = {node: Box(w, h) for node, (w, h) in sizes.items()}
    graph = {node: tuple(each for each in dict.fromkeys(successors.get(node, ())) if each in boxes) for node in boxes}
    if not boxes:
        return Drawing({}, {}, set())
    order, back = _ordered(graph)
    depth = _depths(graph, order, back)
    layered = _layered(graph, order, depth, back)
    _untangle(layered)
    drawing = Drawing(boxes, {}, back)
    places = _placed(layered, boxes, drawing)
    for node, targets in graph.items():
        for target in targets:
            drawing.edges[node, target] = _route(boxes, node, target, layered, places, drawing)
    return drawing


def _ordered(graph: Mapping[int, tuple[int, ...]]) -> tuple[list[int], set[Edge]]:
    rooted: dict[int, tuple[int, ...]] = {**graph, ROOT: tuple(graph)}
    walk = preorder(rooted, ROOT)
    return walk.postorder[::-1][1:], set(walk.back)


def _depths(graph: Mapping[int, tuple[int, ...]], order: list[int], back: set[Edge]) -> dict[int, int]:
    depth = dict.fromkeys(order, 0)
    for node in order:
        for target in graph[node]:
            if (node, target) not in back:
                depth[target] = max(depth[target], depth[node] + 1)
    return depth


def _layered(graph: Mapping[int, tuple[int, ...]], order: list[int], depth: dict[int, int], back: set[Edge]) -> _Graph:
    found = _Graph([[] for _ in range(max(depth.values()) + 1)])
    for node in order:
        found.layers[depth[node]].append(node)
    number = ROOT
    for node in order:
        for target in graph[node]:
            if (node, target) in back:
                continue
            span = depth[target] - depth[node]
            if span > LONGEST or ROOT - number + span > MAX_BENDS:
                continue
            last = node
            bends: list[int] = []
            for layer in range(depth[node] + 1, depth[target]):
                number -= 1
                found.layers[layer].append(number)
                bends.append(number)
                found.link(last, number)
                last = number
            found.link(last, target)
            found.bends[node, target] = bends
    return found


def _untangle(graph: _Graph) -> None:
    rank = {node: float(index) for layer in graph.layers for index, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = graph.above if down else graph.below
        for layer in graph.layers if down else reversed(graph.layers):
            mean = {node: _mean([rank[other] for other in near.get(node, ())], rank[node]) for node in layer}
            layer.sort(key=mean.__getitem__)
            middle = len(layer) / 2
            for index, node in enumerate(layer):
                rank[node] = index - middle


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _placed(graph: _Graph, boxes: dict[int, Box], drawing: Drawing) -> dict[int, list[Point]]:
    """Gives boxes their corners; where each bend enters and leaves its layer."""
    width = {node: boxes[node].w if node in boxes else 6.0 for layer in graph.layers for node in layer}
    centre: dict[int, float] = {}
    for layer in graph.layers:
        x = -(sum(width[node] for node in layer) + GAP_X * (len(layer) - 1)) / 2
        for node in layer:
            centre[node] = x + width[node] / 2
            x += width[node] + GAP_X
    for pull in range(PULLS):
        down = pull % 2 == 0
        near = graph.above if down else graph.below
        for layer in graph.layers if down else reversed(graph.layers):
            _pull(layer, near, centre, width)
    left = min(centre[node] - width[node] / 2 for node in centre) - MARGIN
    y, places = MARGIN, dict[int, list[Point]]()
    for layer in graph.layers:
        height = max([boxes[node].h for node in layer if node in boxes], default=0.0)
        for node in layer:
            x = centre[node] - left
            if node in boxes:
                box = boxes[node]
                box.x, box.y = x - box.w / 2, y
            else:
                places[node] = [(x, y), (x, y + height)]
        y += height + GAP_Y
    drawing.width = max(box.x + box.w for box in boxes.values()) + MARGIN
    drawing.height = y - GAP_Y + MARGIN
    return places


def _pull(
    layer: list[int], near: Mapping[int, list[int]], centre: dict[int, float], width: Mapping[int, float]
) -> None:
    """Moves nodes to the mean of their neighbours, in their order, and as far as they have room."""
    wanted = [_mean([centre[other] for other in near.get(node, ())], centre[node]) for node in layer]
    at: list[float] = []
    for index, node in enumerate(layer):
        least = at[-1] + (width[layer[index - 1]] + width[node]) / 2 + GAP_X if at else wanted[index]
        at.append(max(wanted[index], least))
    shift = sum(want - have for want, have in zip(wanted, at, strict=True)) / len(at)
    for node, have in zip(layer, at, strict=True):
        centre[node] = have + shift


def _route(
    boxes: Mapping[int, Box], node: int, target: int, graph: _Graph, places: Mapping[int, list[Point]], drawing: Drawing
) -> list[Point]:
    source, goal = boxes[node], boxes[target]
    start, end = source.foot, goal.head
    if (node, target) in graph.bends:
        return _rounded([start, *[point for bend in graph.bends[node, target] for point in places[bend]], end])
    side = max(source.x + source.w, goal.x + goal.w) + GAP_X * 0.7
    drawing.width = max(drawing.width, side + MARGIN)
    low, high = start[1] + GAP_Y * 0.35, end[1] - GAP_Y * 0.35
    return _rounded([start, (start[0], low), (side, low), (side, high), (end[0], high), end])


def _rounded(points: list[Point]) -> list[Point]:
    return [(round(x, 1), round(y, 1)) for x, y in points]
