"""DSE: a store of the word that is there already is not emitted; a store overwritten before it is read is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusevm.evm.opcodes import MSIZE, STORAGE, TRANSIENT
from fusevm.ir.fold.alias import MUST, NO, MemoryRange, covers, range_of, relation, same_slot, split
from fusevm.ir.fold.memory_facts import REMEMBERED
from fusevm.ir.values import READS_MEMORY, WRITES_MEMORY, Value, traits_of

if TYPE_CHECKING:
    from fusevm.ir.fold.engine import Folder

_OVERWRITTEN = "dead store: overwritten before anybody reads it"
PLAIN_STORES = ("MSTORE", "MSTORE8")  # their second operand holds the bytes stored


def stores_nothing_new(engine: Folder, op: str, args: tuple[Value, ...]) -> bool:
    """Whether memory is known to hold these bytes already, and so to be large enough."""
    if op != "MSTORE":
        return False
    address, word = args
    base, offset = split(address)
    wanted = MemoryRange(base, offset, 32)
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.op == "MLOAD" and event is word and relation(wanted, range_of(event, (0, -32))) is MUST:
            return True
        for place in WRITES_MEMORY.get(event.op, ()):
            found = relation(wanted, range_of(event, place))
            if found is MUST and event.op == "MSTORE":
                return event.args[1] is word
            if found is not NO:
                return False
    return False


def kill_overwritten(engine: Folder, op: str, args: tuple[Value, ...]) -> None:
    """Removes stores of this block whose every byte the new store overwrites before it is read."""
    base, offset = split(args[0])
    new = MemoryRange(base, offset, -WRITES_MEMORY[op][0].size)
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.block != engine.block.start or _reads(event, new):
            return
        if event.op in PLAIN_STORES and covers(new, range_of(event, WRITES_MEMORY[event.op][0])):
            engine.kill(event, _OVERWRITTEN)


def _reads(event: Value, bytes_: MemoryRange) -> bool:
    if traits_of(event).reads & MSIZE.value:  # MSIZE, and calls of functions, which may read anything
        return True
    return any(relation(bytes_, range_of(event, place)) is not NO for place in READS_MEMORY.get(event.op, ()))


def kill_unread(engine: Folder, op: str, args: tuple[Value, ...]) -> None:
    """Memory ends with the frame: removes stores that are read neither before that nor by RETURN or REVERT."""
    read = [range_of(Value(op, args), place) for place in READS_MEMORY.get(op, ())]
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.block != engine.block.start or event.op in ("CALLFN", "VERBATIM"):
            return
        if event.op == "MSIZE" and not engine.guards_growth:
            return  # it observed how far the earlier stores made memory grow
        if event.op in PLAIN_STORES:
            stored = range_of(event, WRITES_MEMORY[event.op][0])
            if all(relation(stored, each) is NO for each in read):
                engine.kill(event, "dead store: nobody reads it before the frame ends")
        read += [range_of(event, place) for place in READS_MEMORY.get(event.op, ())]
        if len(read) > 8:
            return


def slot_holds(engine: Folder, op: str, args: tuple[Value, ...]) -> bool:
    """Whether an earlier store wrote this word to the slot, so that the new store changes nothing and cannot halt.

    A store of a word that was loaded from the slot is kept: in a static call it halts.
    """
    key, word = args
    log, effect = (engine.world.storage, STORAGE) if op == "SSTORE" else (engine.world.transient, TRANSIENT)
    for event in reversed(log[-REMEMBERED:]):
        if event.op == op:
            found = same_slot(key, event.args[0])
            if found is MUST:
                return event.args[1] is word
            if found is not NO:
                return False
        elif traits_of(event).writes & effect.value:
            return False
    return False


def kill_overwritten_slot(engine: Folder, op: str, args: tuple[Value, ...]) -> None:
    """Removes the last store of this block to the same slot if nothing can have observed it.

    In a static call it halts: it stays if a call of a function after it may end the frame before the new one halts.
    """
    log, effect = (engine.world.storage, STORAGE) if op == "SSTORE" else (engine.world.transient, TRANSIENT)
    for event in reversed(log[-REMEMBERED:]):
        if event.block != engine.block.start or event.id < engine.world.ender:
            return
        if event.op == op:
            if same_slot(args[0], event.args[0]) is MUST:
                engine.kill(event, _OVERWRITTEN)
                return
        elif event.op in ("SLOAD", "TLOAD"):
            if same_slot(args[0], event.args[0]) is not NO:
                return
        elif traits_of(event).reads & effect.value:
            return
