"""Which part of memory or storage a builtin touches, and which of its arguments say so.

From the opcode table. Lengths that are only a bound (the room a call's output may fill) are not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fusevm.evm.opcodes import OPCODES_TABLE, Effect, Opcode, Span


class AccessPlace(Enum):
    MEMORY = "memory"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Access:
    """`start` and `length` are the numbers of arguments; `size` is a fixed length; None where nothing is known."""

    place: AccessPlace
    writes: bool
    start: int | None = None
    length: int | None = None
    size: int | None = None


def _spans(spans: tuple[Span, ...], writes: bool, bounds: bool) -> list[Access]:
    return [
        Access(AccessPlace.MEMORY, writes, start, size=-size)
        if size < 0
        else Access(AccessPlace.MEMORY, writes, start, None if bounds else size)
        for start, size in spans
    ]


def _accesses(op: Opcode) -> tuple[Access, ...]:
    """What is read is read before anything is written. A store of a slot is not a read of it, whatever its price."""
    reads, writes = bool(op.reads & Effect.STORAGE), bool(op.writes & Effect.STORAGE)
    slots = [Access(AccessPlace.STORAGE, each) for each, there in ((False, reads), (True, writes)) if there]
    if slots and not op.calls:
        return (Access(AccessPlace.STORAGE, writes, 0, size=1),)
    before = _spans(op.reads_at, False, False) + slots[:1]
    return (*before, *_spans(op.writes_at, True, bounds=op.calls), *slots[1:])


ACCESSES: dict[str, tuple[Access, ...]] = {op.name.lower(): found for op in OPCODES_TABLE if (found := _accesses(op))}
