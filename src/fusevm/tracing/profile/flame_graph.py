"""A flame graph as one SVG file: it needs no other file, and opens in any browser. Click a function to zoom in."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from fusevm.tracing.profile.samples import SampleTree

WIDTH, ROW, MARGIN, TITLE = 1200, 18, 10, 34
NARROWEST = 0.15  # pixels: what is narrower is left out
LETTER = 6.6  # pixels, of the font below

_SCRIPT = """
const svg = document.documentElement, frames = [...svg.querySelectorAll('g.f')];
const left = %(margin)d, wide = %(wide)d, letter = %(letter)s;
function show(from, size) {
  for (const g of frames) {
    const x = (g.dataset.x - from) / size * wide, w = g.dataset.w / size * wide;
    const a = Math.max(0, x), b = Math.min(wide, x + w), hidden = b - a < 0.15;
    g.style.display = hidden ? 'none' : '';
    if (hidden) continue;
    const rect = g.children[1], text = g.children[2], room = Math.floor((b - a - 6) / letter);
    rect.setAttribute('x', left + a); rect.setAttribute('width', b - a);
    text.setAttribute('x', left + a + 3);
    const name = g.dataset.n;
    text.textContent = room < 3 ? '' : name.length <= room ? name : name.slice(0, room - 1) + '\\u2026';
  }
}
for (const g of frames) g.addEventListener('click', () => show(+g.dataset.x, +g.dataset.w));
svg.addEventListener('dblclick', () => show(0, %(total)d));
"""


class _Box(NamedTuple):
    name: str
    start: int
    total: int
    own: int
    depth: int
    where: str


def flame_graph(tree: SampleTree, title: str) -> str:
    """The tree's root is at the bottom, what it calls above it; widths are gas."""
    total = max(tree.total, 1)
    wide = WIDTH - 2 * MARGIN
    boxes = [box for box in _boxes(tree, 0, 0) if box.total / total * wide >= NARROWEST]
    rows = 1 + max((box.depth for box in boxes), default=0)
    height = TITLE + rows * ROW + MARGIN
    script = _SCRIPT % {"margin": MARGIN, "wide": wide, "letter": LETTER, "total": total}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="11">',
        "<style>g.f{cursor:pointer}g.f:hover rect{stroke:#000}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fdf6ec"/>',
        f'<text x="{WIDTH // 2}" y="21" text-anchor="middle" font-size="15">{escape(title)}</text>',
        *(_drawn(box, total, wide, height) for box in boxes),
        f"<script><![CDATA[{script}]]></script>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _boxes(tree: SampleTree, start: int, depth: int) -> Iterator[_Box]:
    call = tree.call
    where = f"{call.path}:{call.line}" if call.path else ""
    yield _Box(call.name, start, tree.total, tree.own, depth, where)
    for each in sorted(tree.below, key=lambda below: below.call.name):
        yield from _boxes(each, start, depth + 1)
        start += each.total


def _drawn(box: _Box, total: int, wide: int, height: int) -> str:
    x, width = MARGIN + box.start / total * wide, box.total / total * wide
    y = height - MARGIN - (box.depth + 1) * ROW
    about = f"{box.name}: {box.total:,} gas ({100 * box.total / total:.1f} %), {box.own:,} itself"
    if box.where:
        about += f"\n{box.where}"
    return (
        f'<g class="f" data-x="{box.start}" data-w="{box.total}" data-n={quoteattr(box.name)}>'
        f"<title>{escape(about)}</title>"
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 1}" fill="{_colour(box.name)}" rx="2"/>'
        f'<text x="{x + 3:.2f}" y="{y + 12}">{escape(_cut(box.name, int((width - 6) / LETTER)))}</text></g>'
    )


def _cut(name: str, room: int) -> str:
    if room < 3:
        return ""
    return name if len(name) <= room else name[: room - 1] + "…"


def _colour(name: str) -> str:
    """Warm, and the same for the same name in every graph."""
    number = zlib.crc32(name.encode())
    return f"rgb({205 + number % 50},{90 + (number >> 8) % 120},{40 + (number >> 16) % 40})"
