"""Source maps of compiled code: the range of a Yul or Solidity source that each instruction was generated from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fusevm.evm.assembler import CALLS, RETURNS, Source
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.source_map import Mapped
from fusevm.yul.syntax.ast import Object

_JUMPS = {CALLS: "i", RETURNS: "o"}


class FunctionEntry(NamedTuple):
    """Debug data of a function: its entry, and how many stack slots it takes and leaves."""

    pc: int
    parameters: int
    results: int


def mapped_code(code: bytes, sources: Mapping[int, Source], obj: Object, fork: Fork) -> dict[int, Mapped]:
    """The source range of each instruction, by the offset of its opcode."""
    found: dict[int, Mapped] = {}
    for instruction in instructions(code, fork):
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


def debug_data(functions: Mapping[str, FunctionEntry]) -> dict[str, dict[str, int]]:
    """Debug data by function name, in solc's format."""
    return {
        name: {"entryPoint": entry.pc, "parameterSlots": entry.parameters, "returnSlots": entry.results}
        for name, entry in sorted(functions.items())
    }
