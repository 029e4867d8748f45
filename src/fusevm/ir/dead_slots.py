"""Dead stores to storage across blocks: what every path overwrites before it is read, or undoes by a revert.

A store also halts a static call. It is dropped only where another instruction halts that call anyway: one that is
executed before in any case, or one that every path reaches before the frame can end in another way.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.analysis.graphs import settled
from fusevm.evm.opcodes import BY_NAME, LOGS, OPCODES_TABLE, STORAGE, TRANSIENT
from fusevm.ir import analyses
from fusevm.ir.fold.alias import split
from fusevm.ir.fold.summaries import EffectSummary
from fusevm.ir.functions import NEVER, DependencyBlock, Function, Unit
from fusevm.ir.values import CONST, Value, traits_of

_MAX_KEYS = 64  # at one place
_STORES = {"SSTORE": STORAGE.value, "TSTORE": TRANSIENT.value}
_LOADS = {"SLOAD": STORAGE.value, "TLOAD": TRANSIENT.value}
_READERS = STORAGE.value | TRANSIENT.value
# What a static call may not do, whatever the operands are.
_HALTS_STATIC_CALLS = frozenset(
    op.name for op in OPCODES_TABLE if op.writes & (STORAGE | TRANSIENT | LOGS) and (not op.calls or op.pops < 5)
)
_UNDONE = frozenset(("REVERT", "INVALID", NEVER))


class MemorySlot(NamedTuple):
    kind: int  # STORAGE or TRANSIENT
    base: int  # the value that its key is relative to; -1: none
    offset: int

    def differs_from(self, other: MemorySlot) -> bool:
        return self.kind != other.kind or (self.base == other.base and self.offset != other.offset)


class Unread(NamedTuple):
    """Slots whose words nobody sees from some place on: all but some, or some alone."""

    all: bool
    slots: frozenset[MemorySlot]

    def has(self, slot: MemorySlot) -> bool:
        return all(slot.differs_from(each) for each in self.slots) if self.all else slot in self.slots

    def and_written(self, slot: MemorySlot) -> Unread:
        if self.all:
            return Unread(True, self.slots - {slot})
        return self if len(self.slots) >= _MAX_KEYS else Unread(False, self.slots | {slot})

    def but_read(self, slot: MemorySlot) -> Unread:
        if not self.all:
            return Unread(False, frozenset(each for each in self.slots if each.differs_from(slot)))
        return _NONE if len(self.slots) >= _MAX_KEYS else Unread(True, self.slots | {slot})

    def before(self, value: Value) -> Unread:
        """Where the value is not known yet, it may be another one: in the iteration before."""
        unknown = {slot for slot in self.slots if slot.base == value.id}
        if not unknown:
            return self
        return _NONE if self.all else Unread(False, self.slots - unknown)

    def joined(self, other: Unread) -> Unread:
        if self.all and other.all:
            return Unread(True, self.slots | other.slots)
        if self.all or other.all:
            some, most = (other, self) if self.all else (self, other)
            return Unread(False, frozenset(slot for slot in some.slots if most.has(slot)))
        return Unread(False, self.slots & other.slots)


_NONE, _ALL = Unread(False, frozenset()), Unread(True, frozenset())


def drop_unread_slots(unit: Unit, function: Function, effects: dict[str, EffectSummary]) -> None:
    blocks = function.blocks()
    if not any(value.op in _STORES for block in blocks for value in block.instructions):
        return
    found, undone = _unread_stores(blocks, unit, effects)
    found |= _stores_back(blocks)
    while found:
        dropped = _not_needed(found, function, unit, effects)
        if dropped:
            for block in blocks:
                block.instructions = [value for value in block.instructions if value.id not in dropped]
            found -= dropped
        else:  # one of them stays, for static calls
            found.remove(_keep_one(found, undone if unit.fork >= BY_NAME["TSTORE"].since else set(), blocks))


def _keep_one(found: set[int], undone: set[int], blocks: list[DependencyBlock]) -> int:
    """The id of a store that stays, the cheapest; of one that is undone anyway only that it halts a static call."""
    stores = [(value, block) for block in blocks for value in block.instructions if value.id in found]
    cheap = [each for each in stores if each[0].op == "TSTORE" or each[0].id in undone]
    value, block = (cheap or stores)[0]
    if value.op == "SSTORE" and value.id in undone:
        zero = Value(CONST, (), 0)
        other = Value("TSTORE", (zero, zero), 0, value.id, value.block)
        other.where = value.where
        block.instructions = [other if each is value else each for each in block.instructions]
    return value.id


def _slot(value: Value, kind: int) -> MemorySlot:
    base, offset = split(value.args[0])
    return MemorySlot(kind, -1 if base is None else base.id, offset)


def _unread_stores(
    blocks: list[DependencyBlock], unit: Unit, effects: dict[str, EffectSummary]
) -> tuple[set[int], set[int]]:
    """The stores whose word nobody sees, and those where all is undone and no transient storage is read before."""
    at: dict[DependencyBlock, Unread] = dict.fromkeys(blocks, _ALL)
    found: set[int] = set()
    undone: set[int] = set()

    def walk(block: DependencyBlock) -> Unread:
        unread = _ALL if block.end.arcs or block.end.op in _UNDONE else _NONE
        for target in block.targets:
            unread = unread.joined(at[target])
        for value in reversed(block.instructions):
            kind = _STORES.get(value.op)
            if kind is not None:
                slot = _slot(value, kind)
                if unread.has(slot):
                    found.add(value.id)
                    if unread.all and not any(each.kind == TRANSIENT.value for each in unread.slots):
                        undone.add(value.id)
                unread = unread.and_written(slot)
            else:
                unread = _before(value, unread, unit, effects)
        for param in block.params:
            unread = unread.before(param)
        return unread

    settled(blocks[::-1], at, walk)
    found.clear()  # what was thought before the last round
    undone.clear()
    for block in blocks:
        walk(block)
    return found, undone


def _stores_back(blocks: list[DependencyBlock]) -> set[int]:
    """The stores of a word that was loaded from the slot in the same block, with no store to it between."""
    found: set[int] = set()
    for block in blocks:
        loaded: dict[MemorySlot, Value] = {}
        for value in block.instructions:
            kind = _LOADS.get(value.op) or _STORES.get(value.op)
            if kind is None:
                if value.op == "CALLFN" or traits_of(value).writes & _READERS:
                    loaded.clear()
                continue
            slot = _slot(value, kind)
            if value.op in _LOADS:
                loaded[slot] = value
            elif loaded.get(slot) is value.args[1]:
                found.add(value.id)
            else:
                loaded = {other: word for other, word in loaded.items() if other.differs_from(slot)}
    return found


def _before(value: Value, unread: Unread, unit: Unit, effects: dict[str, EffectSummary]) -> Unread:
    unread = unread.before(value)
    kind = _LOADS.get(value.op)
    if kind is not None:
        return unread.but_read(_slot(value, kind))
    reads = effects[unit.names[value.number]].reads if value.op == "CALLFN" else traits_of(value).reads
    return _NONE if reads & _READERS else unread


def _not_needed(found: set[int], function: Function, unit: Unit, effects: dict[str, EffectSummary]) -> set[int]:
    """Those of the stores without which a static call halts all the same, though all of them are gone."""

    def halts(value: Value) -> bool:
        return value.op in _HALTS_STATIC_CALLS and value.id not in found

    def halted_before(block: DependencyBlock) -> bool:
        sources = into[block]
        return bool(sources) and block is not blocks[0] and all(done[each] for each in sources)

    blocks, into = analyses.order(function), analyses.predecessors(function)
    done = dict.fromkeys(blocks, True)  # whether it has halted where the block ends
    coming = dict.fromkeys(blocks, True)  # whether it certainly halts from where the block begins

    def coming_in(block: DependencyBlock) -> bool:
        before = _halts_at_end(block, coming)
        for value in reversed(block.instructions):
            before = _halts_from(value, before, unit, effects) or halts(value)
        return before

    settled(blocks, done, lambda block: halted_before(block) or any(map(halts, block.instructions)))
    settled(blocks[::-1], coming, coming_in)
    dropped: set[int] = set()
    for block in blocks:
        was_halted, before = halted_before(block), _halts_at_end(block, coming)
        later: dict[int, bool] = {}
        for value in reversed(block.instructions):
            later[value.id] = before
            before = _halts_from(value, before, unit, effects) or halts(value)
        for value in block.instructions:
            if value.id in found and (was_halted or later[value.id]):
                dropped.add(value.id)
            was_halted |= halts(value)
    return dropped


def _halts_at_end(block: DependencyBlock, coming: dict[DependencyBlock, bool]) -> bool:
    """Whether a static call certainly halts after the last instruction of the block."""
    if block.end.arcs:
        return all(coming[target] for target in block.targets)
    return block.end.op in ("INVALID", NEVER, "SELFDESTRUCT")


def _halts_from(value: Value, after: bool, unit: Unit, effects: dict[str, EffectSummary]) -> bool:
    if value.op == "CALLFN" and effects[unit.names[value.number]].ends:
        return False
    return after and value.op != "VERBATIM"
