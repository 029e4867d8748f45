"""Source maps: for each instruction the part of a source it was made from, in solc's compressed text `s:l:f:j:m`.

Entries are in the order of the instructions, with `;` between them. A field that is as in the entry before is left
out, and so are colons at the end. `s` and `l` are offset and length in bytes, `f` is the number of the source, `j`
tells whether a jump goes into a function (`i`), out of one (`o`) or neither (`-`), `m` is the modifier depth.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Mapped(NamedTuple):
    """What one instruction was made from; a source of -1 is none."""

    start: int = -1
    length: int = -1
    source: int = -1
    jump: str = "-"
    depth: int = 0

    @property
    def is_known(self) -> bool:
        return self.source >= 0


def compressed(entries: Iterable[Mapped]) -> str:
    parts: list[str] = []
    before: tuple[object, ...] = (-1, -1, -1, None, None)  # what solc begins with
    for entry in entries:
        fields = ["" if new == old else str(new) for new, old in zip(entry, before, strict=True)]
        while fields and not fields[-1]:
            fields.pop()
        parts.append(":".join(fields))
        before = entry
    return ";".join(parts)


def decompressed(text: str) -> list[Mapped]:
    """The entries of a source map, ours or solc's. Raises ValueError where it is not one."""
    if not text:
        return []
    entries: list[Mapped] = []
    now = Mapped()
    for part in text.split(";"):
        fields = part.split(":")
        if len(fields) > len(now):
            raise ValueError(f"source map: entry {len(entries)} has {len(fields)} fields: {part!r}")
        given = [*fields, *[""] * (len(now) - len(fields))]
        values = [new or str(old) for new, old in zip(given, now, strict=True)]
        start, length, source, jump, depth = values
        if jump not in ("i", "o", "-"):
            raise ValueError(f"source map: entry {len(entries)} has an unknown jump type: {jump!r}")
        now = Mapped(int(start), int(length), int(source), jump, int(depth))
        entries.append(now)
    return entries
