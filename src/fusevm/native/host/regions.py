"""Regions in schedules: handlers of compiled code in place of those that were there, and the code that is counted."""

from __future__ import annotations

from array import array

from fusevm.evm.forks import Fork
from fusevm.native.emit.build import library
from fusevm.native.region.compiled import Compiled, handler_name
from fusevm.schedule.build import PLACE, Handlers, Schedule, build_schedule


def patched(schedule: Schedule, compiled: Compiled) -> Schedule | None:
    """The schedule with regions in it, and itself as it was after that; None where they do not fit it."""
    count = len(schedule.words)
    if compiled.words != count:
        return None
    try:
        loaded = library().load(compiled.code, [handler_name(pc) for pc, _ in compiled.entries])
    except (RuntimeError, KeyError):  # not object code of this machine, or not with these handlers
        return None
    words = array("Q", schedule.words)
    words.extend(schedule.words)
    moved = words.buffer_info()[0] - schedule.base
    kinds = bytes(schedule.kinds)
    at = kinds.find(PLACE)
    while at >= 0:
        words[at] += moved
        words[at + count] += moved
        at = kinds.find(PLACE, at + 1)
    for pc, place in compiled.entries:
        words[place] = loaded.address(handler_name(pc))
    made = Schedule(words, schedule.jumps, schedule.code, schedule.units, kinds + kinds)
    made.twin, made.held, made.looped = count, loaded, schedule.looped
    return made


def counting_schedule(code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
    return build_schedule(code, fork, handlers, counts=True)


def counted(schedule: Schedule) -> dict[int, int]:
    """The count of each section, by its place."""
    return {pc: schedule.words[at] for pc, at in schedule.counters}
