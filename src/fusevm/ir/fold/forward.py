"""FWD: a load whose value is known is replaced by that value; a hash of known bytes by a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusevm.evm.keccak import keccak256
from fusevm.evm.opcodes import STORAGE, TRANSIENT
from fusevm.ir.fold.alias import MUST, NO, MemoryRange, range_of, relation, same_slot, split
from fusevm.ir.fold.memory_facts import REMEMBERED
from fusevm.ir.values import CONST, READS_MEMORY, WRITES_MEMORY, Value, traits_of

if TYPE_CHECKING:
    from fusevm.ir.fold.engine import Folder

LONGEST_HASH = 2048  # bytes tracked through stores; a longer hash is left to run time


def load_memory(engine: Folder, address: Value) -> Value | None:
    """The word at that address, if the last stores or a load of it determine it."""
    base, offset = split(address)
    wanted = MemoryRange(base, offset, 32)
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.op == "MLOAD" and relation(wanted, range_of(event, (0, -32))) is MUST:
            return event
        for place in WRITES_MEMORY.get(event.op, ()):
            found = relation(wanted, range_of(event, place))
            if found is MUST and event.op == "MSTORE":
                return event.args[1]
            if found is not NO:
                known = known_bytes(engine, wanted)
                return None if known is None else engine.const(int.from_bytes(known, "big"))
    known = known_bytes(engine, wanted)
    return None if known is None else engine.const(int.from_bytes(known, "big"))


def known_bytes(engine: Folder, wanted: MemoryRange) -> bytes | None:
    """The bytes of a range, collected from stores of constants and from memory that was never written."""
    world, size = engine.world, wanted.size
    if size is None or size > LONGEST_HASH:
        return None
    if size == 0:
        return b""
    found: dict[int, int] = {}
    events = world.memory[-REMEMBERED:]
    for event in reversed(events):
        for place in WRITES_MEMORY.get(event.op, ()):
            written = range_of(event, place)
            if relation(wanted, written) is NO:
                continue
            data = _constant_bytes(event)
            if data is None or written.base is not wanted.base:
                missing = [at for at in range(size) if at not in found]
                if any(relation(MemoryRange(wanted.base, wanted.offset + at, 1), written) is not NO for at in missing):
                    return None
                continue
            start = wanted.distance_to(written)
            for index, byte in enumerate(data):
                if 0 <= start + index < size:
                    found.setdefault(start + index, byte)
        if len(found) == size:
            break
    if len(found) < size and not _was_zero(engine, wanted, len(events)):
        return None
    return bytes(found.get(at, 0) for at in range(size))


def _was_zero(engine: Folder, wanted: MemoryRange, seen: int) -> bool:
    world = engine.world
    if not world.zeroed or seen < len(world.memory) or wanted.base is not None:
        return False
    # Where growth is not charged separately, a load that expands memory must stay.
    return engine.guards_growth or not engine.keeps_growth or wanted.offset + (wanted.size or 0) <= world.reach


def _constant_bytes(event: Value) -> bytes | None:
    if event.op in ("MSTORE", "MSTORE8") and event.args[1].op == CONST:
        word = event.args[1].number
        return word.to_bytes(32, "big") if event.op == "MSTORE" else bytes([word & 0xFF])
    return None


def hash_memory(engine: Folder, args: tuple[Value, ...]) -> Value | None:
    """The hash, if the bytes are known, or an earlier hash of the same bytes, if they were not written since."""
    address, size = args
    if size.op != CONST:
        return None
    base, offset = split(address)
    wanted = MemoryRange(base, offset, size.number)
    known = known_bytes(engine, wanted)
    if known is not None:
        return engine.const(int.from_bytes(keccak256(known), "big"))
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.op == "KECCAK256" and relation(wanted, range_of(event, READS_MEMORY["KECCAK256"][0])) is MUST:
            return event
        if any(relation(wanted, range_of(event, place)) is not NO for place in WRITES_MEMORY.get(event.op, ())):
            return None
    return None


def load_slot(engine: Folder, op: str, key: Value) -> Value | None:
    """SLOAD and TLOAD: the word that the last load or store of that key read or wrote; that also warmed the slot."""
    log, effect = (engine.world.storage, STORAGE) if op == "SLOAD" else (engine.world.transient, TRANSIENT)
    for event in reversed(log[-REMEMBERED:]):
        if event.op == op:
            if same_slot(key, event.args[0]) is MUST:
                return event
        elif event.op in ("SSTORE", "TSTORE"):
            found = same_slot(key, event.args[0])
            if found is MUST:
                return event.args[1]
            if found is not NO:
                return None
        elif traits_of(event).writes & effect.value:
            return None
    return None
