"""The schedule of the code, as lines: what each native handler does, and the opcodes it covers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.explanation.document import CODE, NOTE, Line, Pane
from fusevm.native.emit.build import all_sequences
from fusevm.schedule.build import Handlers, ScheduleUnit, build_schedule
from fusevm.schedule.sections import PUSHES, HandlerToken

MAX_LINES = 12_000
_HEADERS = ("SECTION", "GASSECTION")
_NOTE = "What native code runs: one handler per line, fused where several opcodes share one."


@cache
def _handlers() -> Handlers:
    """All that there are, without the code they would be compiled to: nothing is run from here."""
    return Handlers(dict.fromkeys(all_sequences(), 1))


def schedule_pane(code: bytes, fork: Fork, lines_at: Mapping[int, tuple[int, ...]]) -> Pane:
    schedule = build_schedule(code, fork, _handlers(), keep_units=True)
    following = _following(code, fork)
    lines: list[Line] = []
    for unit in schedule.units[:MAX_LINES]:
        pcs = _opcodes_of(unit, following)
        src = tuple(sorted({line for pc in pcs for line in lines_at.get(pc, ())}))
        fused = len(unit.sequence) > 1
        why = f"{unit.steps} opcodes by one handler" if fused and unit.steps > 1 else None
        lines.append(Line(f"{unit.at:>6}  {' '.join(unit.sequence)}{_operands(unit)}", src, pcs, CODE, why))
    if len(schedule.units) > MAX_LINES:
        lines.append(Line(f"… {len(schedule.units) - MAX_LINES:,} more", (), (), NOTE))
    return Pane("schedule", "Schedule", _NOTE, lines)


def _following(code: bytes, fork: Fork) -> dict[int, int]:
    """The next opcode of each in its block; -1 after the last: a threaded jump covers the hops as well."""
    found: dict[int, int] = {}
    for block in basic_blocks(code, fork):
        pcs = [each.pc for each in block.instructions]
        found.update(zip(pcs, [*pcs[1:], -1], strict=True))
    return found


def _opcodes_of(unit: ScheduleUnit, following: Mapping[int, int]) -> tuple[int, ...]:
    if unit.section is not None and unit.section.row:  # one of many JUMPDESTs in a row
        return (unit.section.pc,)
    return tuple(sorted({pc for token in unit.tokens for pc in _opcodes(token, following)}))


def _opcodes(token: HandlerToken, following: Mapping[int, int]) -> list[int]:
    """The opcodes that a token covers, except the headers of sections."""
    found: list[int] = []
    pc = token.pc
    if token.name not in _HEADERS:
        while len(found) < token.steps and pc in following:
            found.append(pc)
            pc = following[pc]
    return found


def _operands(unit: ScheduleUnit) -> str:
    found = " ".join(filter(None, map(_operand, unit.tokens)))
    return f"  {found}" if found else ""


def _operand(token: HandlerToken) -> str:
    if token.name in _HEADERS:
        return f"gas {token.operand & 0xFFFFFFFF}"
    if token.name in PUSHES:
        return f"{token.operand:#x}"
    return f"→{token.operand:#x}" if token.name in ("JUMP@", "JUMPI@") else ""
