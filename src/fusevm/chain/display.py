"""How results, logs and what they hold are written for people: short text, and tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_SHOWN = 68  # bytes that are written out: a selector and two words


def shown_bytes(data: bytes) -> str:
    """0x hex text; of long data the beginning and the size."""
    if len(data) <= _SHOWN:
        return "0x" + data.hex()
    return f"0x{data[:_SHOWN].hex()}… ({len(data):,} bytes)"


def shown_word(word: int) -> str:
    """32 bytes in hex, as a topic or a slot is written."""
    return f"0x{word:064x}"


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title and rows of a name and a value, escaped."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left;font-family:monospace;overflow-wrap:anywhere">{_cell(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "<br>".join(escape(str(each)) for each in value)
    return escape(str(value))
