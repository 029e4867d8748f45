"""Guards: checks as instructions. One that always holds is dropped (DROP); one that never does ends a block (FAIL)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fusevm.ir.fold.alias import MemoryRange, covers, range_of
from fusevm.ir.values import CONST, Value

if TYPE_CHECKING:
    from fusevm.ir.fold.engine import Folder

# Memory of this size costs more than 2^64 gas: no frame can pay for it.
BEYOND_ALL_GAS = 1 << 43
_STEPS = 24


class Verdict(Enum):
    KEEP = "keep"
    KEPT = "kept"  # it has been emitted already
    DROP = "drop"  # DROPFOLD: it always holds
    FAIL = "fail"  # FAILFOLD: it always fails


def cond(holds: bool) -> Verdict:
    """CONDFOLD."""
    return Verdict.DROP if holds else Verdict.FAIL


def holds(condition: Value) -> Verdict:
    return cond(condition.number != 0) if condition.op == CONST else Verdict.KEEP


def reach(engine: Folder, offset: Value, size: Value) -> Verdict:
    """Memory up to offset + size. Memory never shrinks, so what a dominating check covers stays valid."""
    if size.op == CONST and size.number == 0:
        return Verdict.DROP
    if size.op != CONST:
        return Verdict.DROP if _same_guard(engine, (offset, size)) else Verdict.KEEP
    if offset.op == CONST:
        return _reach_constant(engine, offset.number + size.number)
    return _reach_relative(engine, offset, size)


def _same_guard(engine: Folder, args: tuple[Value, ...]) -> bool:
    guard, steps = engine.chains.get("REACH"), _STEPS
    while guard is not None and steps:
        if guard.args == args and engine.is_available(guard):
            return True
        guard, steps = guard.prev, steps - 1
    return False


def _reach_constant(engine: Folder, end: int) -> Verdict:
    """One check for the highest end: an earlier one of the block is extended, unless gas or MSIZE was read since."""
    world = engine.world
    if end >= BEYOND_ALL_GAS:
        return Verdict.FAIL
    if end <= world.reach:
        return Verdict.DROP
    world.reach = -(-end // 32) * 32
    earlier = engine.constant_guard
    if earlier is not None:
        earlier.args = (engine.const(0), engine.const(end))
        engine.stats.checks_merged += 1
        return Verdict.DROP
    guard = engine.raw("REACH", (engine.const(0), engine.const(end)))
    engine.note(guard)
    engine.constant_guard = guard
    return Verdict.KEPT


def _reach_relative(engine: Folder, offset: Value, size: Value) -> Verdict:
    wanted = range_of(Value("REACH", (offset, size)), (0, 1))
    guard, steps = engine.chains.get("REACH"), _STEPS
    while guard is not None and steps:
        known = range_of(guard, (0, 1))
        if known.base is wanted.base and known.size is not None and engine.is_available(guard):
            if covers(known, wanted):
                return Verdict.DROP
            if guard.block == engine.block.start and guard.id > engine.world.observer:
                merged = _merged(known, wanted)
                if merged is not None:
                    guard.args = (guard.args[0], engine.const(merged))
                    engine.stats.checks_merged += 1
                    return Verdict.DROP
        guard, steps = guard.prev, steps - 1
    return Verdict.KEEP


def _merged(known: MemoryRange, wanted: MemoryRange) -> int | None:
    """The size that makes the earlier check cover the later one too, if that begins after it and not far away.

    Either both are executed or the frame halts in between. If base + offset wraps for either, that check runs out of
    gas, as the merged one does. A gap between them is paid for by the second one anyway.
    """
    distance = known.distance_to(wanted)
    if not 0 <= distance < 1 << 32 or wanted.size is None or wanted.size >= 1 << 32:
        return None
    return max(known.size or 0, distance + wanted.size)
