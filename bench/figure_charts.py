"""Bar charts as SVG, readable on light and dark pages. By hand: a library would be a dependency for one shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

WIDTH, LABELS, VALUES, BAR, GAP = 720, 230, 60, 14, 8  # pixels
COLOURS = ("#0f766e", "#d97706")
STYLE = "text{font:12px sans-serif;fill:#444}.t{font-weight:600}.u{stroke:#888;stroke-dasharray:3 3}"
DARK = "@media(prefers-color-scheme:dark){text{fill:#ccc}}"


def bars(title: str, rows: Sequence[tuple[str, Sequence[float]]], series: Sequence[str]) -> str:
    """A group of bars for each row, and a line where the other side is: at one."""
    group = BAR * len(series) + GAP
    top = 30 + (20 if len(series) > 1 else 0)
    height = top + group * len(rows) + GAP
    scale = (WIDTH - LABELS - VALUES) / max(1.0, *(value for _, values in rows for value in values))
    unit = LABELS + scale
    parts = [f'<text class="t" x="8" y="20">{escape(title)}</text>', *(_legend(series) if len(series) > 1 else ())]
    for number, (name, values) in enumerate(rows):
        parts += _row(name, values, top + number * group, scale)
    parts.append(f'<line class="u" x1="{unit:.1f}" x2="{unit:.1f}" y1="{top - 4}" y2="{height - GAP}"/>')
    named = f'role="img" aria-label="{escape(title)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {named}>'
    return "\n".join([head, f"<style>{STYLE}{DARK}</style>", *parts, "</svg>"]) + "\n"


def _legend(series: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(series):
        x = LABELS + 150 * number
        yield f'<rect x="{x}" y="30" width="12" height="12" fill="{COLOURS[number]}"/>'
        yield f'<text x="{x + 18}" y="40">{escape(name)}</text>'


def _row(name: str, values: Sequence[float], y: float, scale: float) -> Iterator[str]:
    middle = y + BAR * len(values) / 2 + 4
    yield f'<text x="{LABELS - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>'
    for number, value in enumerate(values):
        at = y + BAR * number
        yield f'<rect x="{LABELS}" y="{at}" width="{value * scale:.1f}" height="{BAR - 2}" fill="{COLOURS[number]}"/>'
        yield f'<text x="{LABELS + value * scale + 6:.1f}" y="{at + 10}">{value:.{1 if value >= 2 else 2}f}</text>'
