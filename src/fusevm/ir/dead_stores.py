"""Dead stores to memory across blocks: what every path overwrites before it is read, or ends the frame unread."""

from __future__ import annotations

from fusevm.analysis.graphs import settled
from fusevm.evm.opcodes import ACCESS, MEMORY, Effect
from fusevm.ir.fold.alias import MemoryRange, range_of
from fusevm.ir.fold.stores import PLAIN_STORES
from fusevm.ir.fold.summaries import EffectSummary
from fusevm.ir.functions import LEAVE, DependencyBlock, Function, Unit
from fusevm.ir.values import READS_MEMORY, WRITES_MEMORY, Value, traits_of

_BYTES = 1 << 10  # of memory, from its start, that are looked at by themselves; one more bit is for all others
_ALL = (1 << _BYTES + 1) - 1
# They write every byte of their range. A call may write fewer.
_OVERWRITES = ("MSTORE", "MSTORE8", "CALLDATACOPY", "CODECOPY", "EXTCODECOPY", "RETURNDATACOPY", "MCOPY")
_DROPPED = (*PLAIN_STORES, "CALLDATACOPY", "CODECOPY", "MCOPY")  # they do nothing else


def drop_unread_stores(unit: Unit, function: Function, effects: dict[str, EffectSummary], unseen: Effect) -> None:
    """For units that do not ask how large memory is."""
    dropped = (*_DROPPED, "EXTCODECOPY") if unseen & ACCESS else _DROPPED
    blocks = function.blocks()
    if not any(value.op in dropped for block in blocks for value in block.instructions):
        return
    read_from: dict[DependencyBlock, int] = dict.fromkeys(blocks, 0)  # a bit for each byte that may be read later

    def read_in(block: DependencyBlock) -> int:
        read = _read_after(block, read_from)
        for value in reversed(block.instructions):
            read = _read_before(value, read, unit, effects)
        return read

    settled(blocks[::-1], read_from, read_in)
    for block in blocks:
        read = _read_after(block, read_from)
        kept: list[Value] = []
        for value in reversed(block.instructions):
            if value.op in dropped and not value.keep:
                (place,) = WRITES_MEMORY[value.op]
                if not _possibly(range_of(value, place)) & read:
                    continue
            kept.append(value)
            read = _read_before(value, read, unit, effects)
        block.instructions = kept[::-1]


def _read_after(block: DependencyBlock, read_from: dict[DependencyBlock, int]) -> int:
    end = block.end
    if end.op == LEAVE:
        return _ALL
    read = 0
    for place in READS_MEMORY.get(end.op, ()):
        read |= _possibly(range_of(Value(end.op, end.args), place))
    for target in block.targets:
        read |= read_from[target]
    return read


def _read_before(value: Value, read: int, unit: Unit, effects: dict[str, EffectSummary]) -> int:
    if value.op in _OVERWRITES:
        read &= ~_certainly(range_of(value, WRITES_MEMORY[value.op][0]))
    if value.op == "CALLFN":
        return _ALL if effects[unit.names[value.number]].reads & MEMORY.value else read
    places = READS_MEMORY.get(value.op)
    if places is None:
        return _ALL if traits_of(value).reads & MEMORY.value else read
    for place in places:
        read |= _possibly(range_of(value, place))
    return read


def _possibly(bytes_: MemoryRange) -> int:
    """The bytes that may be in the range."""
    if bytes_.size == 0:
        return 0
    if bytes_.base is not None:
        return _ALL
    end = bytes_.offset + bytes_.size if bytes_.size is not None else _BYTES + 1
    first, last = min(bytes_.offset, _BYTES), min(end, _BYTES + 1)
    return (1 << last) - (1 << first)


def _certainly(bytes_: MemoryRange) -> int:
    """The bytes of the range, if they are known and all looked at; otherwise none."""
    if bytes_.base is not None or bytes_.size is None or bytes_.offset + bytes_.size > _BYTES:
        return 0
    return _possibly(bytes_)
