"""Bytecode as lines: one for each instruction, labels where blocks and functions begin, data at the end."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.evm.bytecode import Instruction, instructions, jumpdests
from fusevm.evm.forks import Fork
from fusevm.explanation.document import LABEL, NOTE, Line

DATA_PER_LINE = 32
MAX_DATA_LINES = 64


def instruction_text(instruction: Instruction) -> str:
    op = instruction.op
    if op is not None and op.immediate and instruction.push is not None:
        return f"{op.name} 0x{instruction.push:0{2 * op.immediate}x}"
    return instruction.name


def listed(
    code: bytes,
    fork: Fork,
    lines_at: Mapping[int, tuple[int, ...]],
    functions: Mapping[int, str],
    size: int = -1,
) -> list[Line]:
    """The instructions of the first `size` bytes, then the data."""
    size = len(code) if size < 0 else size
    found: list[Line] = []
    for each in instructions(code[:size], fork):
        if each.pc in functions:
            found.append(Line(f"function {functions[each.pc]}:", (), (each.pc,), LABEL))
        text = f"{each.pc:#06x}  {instruction_text(each)}"
        found.append(Line(text, lines_at.get(each.pc, ()), (each.pc,)))
    return found + _data(code, size)


def _data(code: bytes, size: int) -> list[Line]:
    rest = code[size:]
    if not rest:
        return []
    shown = min(len(rest), MAX_DATA_LINES * DATA_PER_LINE)
    found = [Line(f"data: {len(rest):,} bytes", (), (), LABEL)]
    for start in range(0, shown, DATA_PER_LINE):
        found.append(Line(f"{size + start:#06x}  {rest[start : start + DATA_PER_LINE].hex()}", (), (), NOTE))
    if shown < len(rest):
        found.append(Line(f"… {len(rest) - shown:,} bytes more", (), (), NOTE))
    return found


def source_listing(code: bytes, fork: Fork) -> tuple[list[Line], dict[int, tuple[int, ...]]]:
    """Code as a source: its lines, and the number of the line of every opcode, as a tuple."""
    dests = jumpdests(code)
    lines: list[Line] = []
    numbers: dict[int, tuple[int, ...]] = {}
    for each in instructions(code, fork):
        text = f"{each.pc:#06x}  {instruction_text(each)}"
        if each.pc in dests and lines:
            lines.append(Line("", (), (), LABEL))
        numbers[each.pc] = (len(lines) + 1,)
        lines.append(Line(text, (len(lines) + 1,)))
    return lines, numbers


def static_gas(code: bytes, fork: Fork) -> int:
    """Of every instruction, each counted once."""
    return sum(each.op.gas_at(fork) for each in instructions(code, fork) if each.op is not None)
