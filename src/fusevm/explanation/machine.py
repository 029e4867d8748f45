"""Machine code of the regions that hot code becomes: LLVM's assembly, each line with the opcode it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.explanation.document import CODE, LABEL, NOTE, Line, Pane
from fusevm.native.emit.jit import optimised
from fusevm.native.region.build import placed_schedule, regions_of
from fusevm.native.region.choice import functions_and_loops, layout_of
from fusevm.native.region.compiled import handler_name
from fusevm.native.region.debug import FIRST
from fusevm.native.region.emit import region_module

MAX_LINES = 20_000
_LABEL = re.compile(r"([\w.$]+):")
_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_END = re.compile(r"\.Lfunc_end\d+:")
_NOTE = "What LLVM makes of all functions and loops, as if they were hot; a line belongs to the opcode it is made for."


def machine_pane(code: bytes, fork: Fork, lines_at: Mapping[int, tuple[int, ...]]) -> Pane:
    """Takes about a millisecond per opcode."""
    schedule = placed_schedule(code, fork)
    unit = regions_of(schedule, fork, functions_and_loops)
    opcodes = {each.pc for each in instructions(code, fork)}
    lines: list[Line] = []
    if unit.entries:
        module = region_module(unit, layout_of(schedule), located=True)
        parsed, machine = optimised(module, 1, scattered=True)
        names = {handler_name(pc): f"region at {pc:#x}" for pc in unit.entries}
        names |= {name: f"function {name}" for name in unit.unit.functions}
        reader = _Reader(names, opcodes, lines_at)
        for text in str(machine.emit_assembly(parsed)).splitlines():
            reader.read(text)
        lines = reader.lines
    for pc, why in sorted(unit.refused.items()):
        lines.append(Line(f"no region at {pc:#x}: {why}", lines_at.get(pc, ()), (pc,), NOTE, why))
    if len(lines) > MAX_LINES:
        left = len(lines) - MAX_LINES
        lines = [*lines[:MAX_LINES], Line(f"… {left:,} lines more", (), (), NOTE)]
    return Pane("machine", "Machine code", _NOTE, lines)


class _Reader:
    """Reads assembly line by line, and keeps the regions' own functions."""

    def __init__(self, names: Mapping[str, str], opcodes: set[int], lines_at: Mapping[int, tuple[int, ...]]) -> None:
        self.names, self.opcodes, self.lines_at = names, opcodes, lines_at
        self.lines: list[Line] = []
        self.inside = False
        self.pc = -1

    def read(self, text: str) -> None:
        label = _LABEL.match(text)
        if label is not None and label[1] in self.names:
            self.inside, self.pc = True, -1
            self.lines.append(Line(f"{self.names[label[1]]}:", (), (), LABEL))
        elif _END.match(text):
            self.inside = False
        elif self.inside:
            self._inside(text)

    def _inside(self, text: str) -> None:
        location = _LOCATION.match(text)
        if location is not None:
            self.pc = int(location[1]) - FIRST
        elif text.startswith((".LBB", "LBB")):
            self.lines.append(Line(text.partition(":")[0] + ":", (), (), LABEL))
        elif text.strip() and not text.lstrip().startswith((".", "#", "//", ";")) and not _LABEL.match(text):
            known = self.pc in self.opcodes
            pcs = (self.pc,) if known else ()
            self.lines.append(
                Line(f"    {' '.join(text.split())}", self.lines_at.get(self.pc, ()) if known else (), pcs, CODE)
            )
