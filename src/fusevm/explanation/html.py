"""Explanations in notebooks. Whatever comes from a contract is text: all of it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fusevm.explanation.document import Pane, Totals
from fusevm.explanation.steps import StepRun

MAX_ROWS = 400  # of a pane or a table
_STRUCK = ' style="text-decoration: line-through; opacity: 0.6"'


def panes_html(name: str, panes: Iterable[Pane], totals: Totals, notes: Iterable[str]) -> str:
    head = (
        f"<p><b>{escape(name)}</b>: {totals.bytes_before:,} → {totals.bytes_after:,} bytes, "
        f"static gas {totals.gas_before:,} → {totals.gas_after:,}</p>"
    )
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return head + said + "".join(map(_pane_html, panes))


def _pane_html(pane: Pane) -> str:
    rows = []
    for line in pane.lines[:MAX_ROWS]:
        hint = f' title="{escape(line.why, quote=True)}"' if line.why else ""
        style = _STRUCK if line.kind == "removed" else ""
        rows.append(f"<span{hint}{style}>{escape(line.text)}</span>")
    if len(pane.lines) > MAX_ROWS:
        rows.append(f"… {len(pane.lines) - MAX_ROWS:,} lines more")
    text = "\n".join(rows)
    return f"<details><summary>{escape(pane.title)}: {escape(pane.note)}</summary><pre>{text}</pre></details>"


class Steps(list[StepRun]):
    """The steps of the optimiser in the order in which they ran; in a notebook, a table of those that changed anything.

    >>> from fusevm import explain
    >>> steps = explain("{ let x := add(1, 2) sstore(0, x) }").steps
    >>> [step.name for step in steps if step.changed][:2]
    ['FunctionGrouper', 'ExpressionSplitter']
    """

    def _repr_html_(self) -> str:
        changed = [step for step in self if step.changed]
        rows = "".join(_step_html(step) for step in changed[:MAX_ROWS])
        head = "<tr><th>step</th><th>object</th><th>bytes</th><th>gas</th><th>change</th></tr>"
        return f"<table>{head}{rows}</table><p>{len(changed):,} of {len(self):,} steps changed something</p>"


def _step_html(step: StepRun) -> str:
    diff = "\n".join(escape(f"{line.sign} {line.text}") for line in step.diff[:MAX_ROWS])
    cells = (escape(step.name), escape(step.object), f"{step.bytes:,}", f"{step.gas:,}")
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr>{row}<td><details><summary>{len(step.diff):,} lines</summary><pre>{diff}</pre></details></td></tr>"
