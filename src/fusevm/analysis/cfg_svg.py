"""A control-flow graph drawn as SVG: layers from top to bottom, a layer's order by the mean place of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from fusevm.analysis.cfg import Cfg, Node
from fusevm.analysis.cfg_view import label_lines
from fusevm.analysis.graphs import preorder

_LINE, _CHARACTER, _MARGIN, _GAP_X, _GAP_Y = 13, 6.7, 8, 26, 44
_SWEEPS = 6
_TAKEN, _FALLS, _BACK, _UNKNOWN, _PLAIN = "#2b6cb0", "#4a5568", "#c05621", "#c53030", "#2d3748"
_ARROW = (
    '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
)


@dataclass(slots=True)
class Box:
    lines: list[str]
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * _CHARACTER + 2 * _MARGIN

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _MARGIN

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


def as_svg(cfg: Cfg) -> str:
    nodes = {start: node for start, node in cfg.nodes.items() if node.reached}
    boxes = {start: Box(label_lines(node)) for start, node in nodes.items()}
    width, height = _place(_layers(nodes), boxes) if nodes else (10, 10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="monospace" font-size="11">',
        _ARROW,
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for start, node in nodes.items():
        parts += [_edge(boxes[start], boxes[target], _TAKEN) for target in node.taken if target in boxes]
        if node.falls in boxes:
            parts.append(_edge(boxes[start], boxes[node.falls], _FALLS, ' stroke-dasharray="5,3"'))
    for start, node in nodes.items():
        header = start in cfg.loops.by_header
        colour = _BACK if header else _UNKNOWN if node.unknown else _PLAIN
        parts.append(_drawn(start, boxes[start], colour, 2 if header else 1))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _layers(nodes: dict[int, Node]) -> list[list[int]]:
    """A node is below everything that leads to it, edges back to an ancestor left out."""
    graph: dict[int, tuple[int, ...]] = {start: node.successors for start, node in nodes.items()}
    graph[-1] = tuple(nodes)  # a root above the entry and above what only unknown jumps reach
    walk = preorder(graph, -1)
    back, order = set(walk.back), walk.postorder[::-1][1:]
    depth = dict.fromkeys(order, 0)
    for node in order:
        for successor in graph[node]:
            if successor in depth and (node, successor) not in back:
                depth[successor] = max(depth[successor], depth[node] + 1)
    layers: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in order:
        layers[depth[node]].append(node)
    _untangle(layers, nodes)
    return layers


def _untangle(layers: list[list[int]], nodes: dict[int, Node]) -> None:
    rank = {node: float(index) for layer in layers for index, node in enumerate(layer)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            mean: dict[int, float] = {}
            for node in layer:
                near = nodes[node].predecessors if down else nodes[node].successors
                ranks = [rank[other] for other in near if other in rank]
                mean[node] = sum(ranks) / len(ranks) if ranks else rank[node]
            layer.sort(key=mean.__getitem__)
            for index, node in enumerate(layer):
                rank[node] = index - len(layer) / 2


def _place(layers: list[list[int]], boxes: dict[int, Box]) -> tuple[float, float]:
    """Gives every box its corner; returns the size of the whole."""
    widths = [sum(boxes[node].width for node in layer) + _GAP_X * (len(layer) - 1) for layer in layers]
    total, y = max(widths) + 4 * _GAP_X, float(_MARGIN)
    for layer, width in zip(layers, widths, strict=True):
        x = (total - width) / 2
        for node in layer:
            boxes[node].x, boxes[node].y = x, y
            x += boxes[node].width + _GAP_X
        y += max(boxes[node].height for node in layer) + _GAP_Y
    return total, y


def _edge(source: Box, target: Box, colour: str, dash: str = "") -> str:
    x0, y0, x1, y1 = source.centre, source.bottom, target.centre, target.y
    if y1 > y0:
        bend = (y1 - y0) / 2
        path = f"M{x0:.0f},{y0:.0f} C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}"
    else:  # back up, around the right side of both
        side = max(source.x + source.width, target.x + target.width) + _GAP_X
        low, middle, high = y0 + _GAP_Y, (y0 + y1) / 2, y1 - _GAP_Y
        path = (
            f"M{x0:.0f},{y0:.0f} C{x0:.0f},{low:.0f} {side:.0f},{low:.0f} {side:.0f},{middle:.0f} "
            f"S{x1:.0f},{high:.0f} {x1:.0f},{y1:.0f}"
        )
        colour = _BACK
    return f'<path d="{path}" fill="none" stroke="{colour}"{dash} marker-end="url(#a)"/>'


def _drawn(start: int, box: Box, colour: str, stroke: int) -> str:
    left, top = box.x + _MARGIN, box.y + _MARGIN
    rows = "".join(
        f'<tspan x="{left:.0f}" y="{top + (index + 0.8) * _LINE:.0f}">{escape(line)}</tspan>'
        for index, line in enumerate(box.lines)
    )
    return (
        f'<g id="b{start}"><rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="3" fill="#f7fafc" stroke="{colour}" stroke-width="{stroke}"/><text>{rows}</text></g>'
    )
