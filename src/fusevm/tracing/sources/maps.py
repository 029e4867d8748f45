"""From pcs to places: solc's compressed maps and Vyper's tables in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fusevm.evm.bytecode import JUMPDEST, instructions
from fusevm.evm.forks import Fork
from fusevm.evm.source_map import decompressed
from fusevm.tracing.sources.files import SourceFile, SourcePlace

Files = Mapping[int, SourceFile]  # by the number that maps use


@dataclass(slots=True)
class CodeMap:
    """Places by pc, of instructions that have one; and which jumps go into a function (`i`) or out of one (`o`)."""

    places: dict[int, SourcePlace] = field(default_factory=dict)
    jumps: dict[int, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)  # Vyper: what a failing check at this pc means


def from_solc(code: bytes, text: str, files: Files) -> CodeMap:
    """Of the text of a source map. Raises ValueError where it is not one."""
    found = CodeMap()
    for instruction, entry in zip(instructions(code, Fork.OSAKA), decompressed(text), strict=False):
        if entry.jump != "-":
            found.jumps[instruction.pc] = entry.jump
        file = files.get(entry.source)
        if file is not None and entry.start >= 0:
            found.places[instruction.pc] = file.place(entry.start, entry.start + entry.length)
    return found


def from_vyper(code: bytes, table: Mapping[str, Any], files: Files) -> CodeMap:
    """Of the object that Vyper writes as `source_map`; places are lines and columns, by pc.

    Many instructions have none: they belong to what is before them, in the same basic block.
    """
    found = CodeMap()
    nodes = table.get("pc_ast_map") or {}
    for key, where in (table.get("pc_pos_map") or {}).items():
        file = files.get(nodes[key][0] if key in nodes else 0)
        if file is None or not where or where[0] is None:
            continue
        line, column, last_line, last_column = where
        found.places[int(key)] = file.place(file.offset_of(line, column), file.offset_of(last_line, last_column))
    found.jumps = {int(pc): jump for pc, jump in (table.get("pc_jump_map") or {}).items() if jump in ("i", "o")}
    found.errors = {int(pc): str(text) for pc, text in (table.get("error_map") or {}).items()}
    _fill_gaps(code, found.places)
    return found


def _fill_gaps(code: bytes, places: dict[int, SourcePlace]) -> None:
    last: SourcePlace | None = None
    for instruction in instructions(code, Fork.OSAKA):
        if instruction.byte == JUMPDEST:
            last = None
        last = places.get(instruction.pc, last)
        if last is not None:
            places[instruction.pc] = last
