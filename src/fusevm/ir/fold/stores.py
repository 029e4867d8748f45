"""DSE: a store of what is there already is not made, a store nobody reads before the next one is unmade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusevm.evm.opcodes import MSIZE, STORAGE, TRANSIENT
from fusevm.ir.fold.alias import MUST, NO, Range, covers, range_of, relation, same_slot, split
from fusevm.ir.fold.facts import REMEMBERED
from fusevm.ir.values import READS_MEMORY, WRITES_MEMORY, Value, traits_of

if TYPE_CHECKING:
    from fusevm.ir.fold.engine import Folder

_OVERWRITTEN = "dead store: overwritten before anybody reads it"
PLAIN_STORES = ("MSTORE", "MSTORE8")  # of bytes of their second operand


def stores_nothing_new(engine: Folder, op: str, args: tuple[Value, ...]) -> bool:
    """Memory certainly holds these bytes already, and reaches so far."""
    if op != "MSTORE":
        return False
    address, word = args
    base, offset = split(address)
    wanted = Range(base, offset, 32)
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
    """Unmakes stores of this block whose every byte the new one overwrites before anybody read it."""
    base, offset = split(args[0])
    new = Range(base, offset, -WRITES_MEMORY[op][0].size)
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.block != engine.block.start or _reads(event, new):
            return
        if event.op in PLAIN_STORES and covers(new, range_of(event, WRITES_MEMORY[event.op][0])):
            engine.kill(event, _OVERWRITTEN)


def _reads(event: Value, bytes_: Range) -> bool:
    if traits_of(event).reads & MSIZE.value:  # functions that are called look at everything
        return True
    return any(relation(bytes_, range_of(event, place)) is not NO for place in READS_MEMORY.get(event.op, ()))


def kill_unread(engine: Folder, op: str, args: tuple[Value, ...]) -> None:
    """At the end of a frame memory is gone: only what RETURN or REVERT hands out was worth storing."""
    read = [range_of(Value(op, args), place) for place in READS_MEMORY.get(op, ())]
    for event in reversed(engine.world.memory[-REMEMBERED:]):
        if event.block != engine.block.start or event.op in ("CALLFN", "VERBATIM"):
            return
        if event.op == "MSIZE" and not engine.guards_growth:
            return  # it saw how far the stores before it made memory grow
        if event.op in PLAIN_STORES:
            stored = range_of(event, WRITES_MEMORY[event.op][0])
            if all(relation(stored, each) is NO for each in read):
                engine.kill(event, "dead store: nobody reads it before the frame ends")
        read += [range_of(event, place) for place in READS_MEMORY.get(event.op, ())]
        if len(read) > 8:
            return


def slot_holds(engine: Folder, op: str, args: tuple[Value, ...]) -> bool:
    """The slot was stored to before, with this word, so that the new store changes nothing and halts nothing.

    A store of what a load gave is kept: in a static call it halts.
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
    """Unmakes stores of this block to the same slot that nobody could have seen."""
    log, effect = (engine.world.storage, STORAGE) if op == "SSTORE" else (engine.world.transient, TRANSIENT)
    for event in reversed(log[-REMEMBERED:]):
        if event.block != engine.block.start:
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
