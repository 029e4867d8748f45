"""Graphs with a layout as SVG: boxes of lines, and edges from the foot of one to the head of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from fusevm.control_flow.layout import Box, Point

LINE, CHARACTER, PADDING = 14.0, 6.8, 8.0
PLAIN, GREY = "#2d3748", "#4a5568"
_ARROW = (
    '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
)


class EdgeLabel(NamedTuple):
    name: str
    box: Box
    lines: Sequence[str]
    colour: str = PLAIN
    stroke: int = 1


class Arrow(NamedTuple):
    points: Sequence[Point]
    colour: str = GREY
    dashed: bool = False


def size_of(lines: Sequence[str]) -> tuple[float, float]:
    """The width and height of a box with these lines."""
    return max(map(len, lines)) * CHARACTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING


def picture(width: float, height: float, labels: Iterable[EdgeLabel], arrows: Iterable[Arrow]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="11">',
        _ARROW,
        f'<rect {size} fill="#ffffff"/>',
    ]
    return "\n".join([*parts, *map(_arrow, arrows), *map(_label, labels), "</svg>"]) + "\n"


def _arrow(arrow: Arrow) -> str:
    """Curved on the way down, straight around what it passes on the way up."""
    path = "M{:.0f},{:.0f}".format(*arrow.points[0])
    for (x, y), (to_x, to_y) in pairwise(arrow.points):
        middle = (y + to_y) / 2
        bend = f"C{x:.0f},{middle:.0f} {to_x:.0f},{middle:.0f}" if x != to_x and to_y > y else "L"
        path += f" {bend} {to_x:.0f},{to_y:.0f}"
    dash = ' stroke-dasharray="5,3"' if arrow.dashed else ""
    return f'<path d="{path}" fill="none" stroke="{arrow.colour}"{dash} marker-end="url(#a)"/>'


def _label(label: EdgeLabel) -> str:
    box, lines = label.box, label.lines
    top = box.y + (box.h - LINE * len(lines)) / 2
    rows = "".join(
        f'<tspan x="{box.x + PADDING:.0f}" y="{top + (index + 0.8) * LINE:.0f}">{escape(line)}</tspan>'
        for index, line in enumerate(lines)
    )
    frame = f'x="{box.x:.0f}" y="{box.y:.0f}" width="{box.w:.0f}" height="{box.h:.0f}" rx="3"'
    style = f'fill="#f7fafc" stroke="{label.colour}" stroke-width="{label.stroke}"'
    return f'<g id="{label.name}"><rect {frame} {style}/><text>{rows}</text></g>'
