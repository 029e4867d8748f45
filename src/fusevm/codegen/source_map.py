"""Source maps: for each instruction the part of a source it was made from, in solc's compressed text `s:l:f:j:m`.

Entries are in the order of the instructions, with `;` between them. A field that is as in the entry before is left
out, and so are colons at the end. `s` and `l` are offset and length in bytes, `f` is the number of the source, `j`
tells whether a jump goes into a function (`i`), out of one (`o`) or neither (`-`), `m` is the modifier depth, always 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fusevm.evm.assembler import CALLS, RETURNS, Layout, Source
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.yul.syntax.ast import Object

_JUMPS = {CALLS: "i", RETURNS: "o"}


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


class FunctionEntry(NamedTuple):
    """What a debugger wants to know of a function: where it begins, and how many slots it takes and leaves."""

    pc: int
    parameters: int
    results: int


def mapped_code(layout: Layout, size: int, obj: Object, fork: Fork) -> dict[int, Mapped]:
    """For each of the instructions in the first `size` bytes, by the offset of its opcode."""
    sources = layout.sources()
    found: dict[int, Mapped] = {}
    for instruction in instructions(layout.code[:size], fork):
        start, end, jump = (*sources.get(instruction.pc, ()), -1, -1, 0)[:3]
        is_jump = instruction.name == "JUMP"
        found[instruction.pc] = _mapped(obj, (start, end), _JUMPS.get(jump, "-") if is_jump else "-")
    return found


def _mapped(obj: Object, place: Source, jump: str) -> Mapped:
    start, end = place
    if start < 0:
        return Mapped(jump=jump)
    if obj.debug is None or not obj.origins.places:  # Yul is its own source
        return Mapped(start, end - start, 0, jump)
    origin = obj.origins.at(start, *obj.code.location)
    if origin.source < 0 or origin.start < 0 or origin.end < 0:
        return Mapped(jump=jump)
    return Mapped(origin.start, origin.end - origin.start, origin.source, jump)


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


def debug_data(functions: Mapping[str, FunctionEntry]) -> dict[str, dict[str, int]]:
    """In solc's form, by name."""
    return {
        name: {"entryPoint": entry.pc, "parameterSlots": entry.parameters, "returnSlots": entry.results}
        for name, entry in sorted(functions.items())
    }
