"""Regions in schedules: handlers of compiled code in place of those that were there."""

from __future__ import annotations

from array import array

from fusevm.native.emit.build import library
from fusevm.native.region.compiled import Compiled, handler_name
from fusevm.schedule.build import PLACE, Schedule


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
    jumps = schedule.jumps[:]  # where a frame's are says which schedule it runs
    made = Schedule(words, jumps, schedule.code, schedule.units, kinds + kinds)
    made.twin, made.held = count, loaded
    return made
