"""A debug mode, FUSEVM_POISON=1: the memory of schedules is overwritten before it is freed.

Native code that still points there then raises `UseAfterFree` instead of running what happens to be there by now. With
PYTHONMALLOC=debug, CPython does the same to the bytes of code.
"""

from __future__ import annotations

import os
from array import array
from collections import deque

from fusevm.native.host.arena import Arena
from fusevm.schedule.build import Schedule

FIRST_ENTRY = 2  # the word that frames enter: the ones before are never used
QUARANTINE = 256  # overwritten schedules whose memory is not used for anything else yet


class UseAfterFree(RuntimeError):
    """Native code entered a schedule after it was freed: something leads to it that was not invalidated."""


def is_on() -> bool:
    return os.environ.get("FUSEVM_POISON") == "1"


class Poison:
    """Words of freed schedules hold the address of this handler, which returns PROBE."""

    def __init__(self, handler: int) -> None:
        self._word = array("Q", [handler])
        self._quarantine: deque[tuple[array[int], array[int]]] = deque(maxlen=QUARANTINE)

    def watch(self) -> None:
        """From now on, every schedule that is freed is overwritten first."""
        poison = self

        def overwritten(schedule: Schedule) -> None:
            poison.overwrite(schedule)

        Schedule.__del__ = overwritten  # type: ignore[attr-defined]

    def overwrite(self, schedule: Schedule) -> None:
        """Its own memory: that of a plain schedule belongs to the arena."""
        words: array[int] | None = getattr(schedule, "words", None)
        if words is not None:
            words[:] = self._word * len(words)
            schedule.jumps[:] = array("I", [FIRST_ENTRY]) * len(schedule.jumps)
            self._quarantine.append((words, schedule.jumps))

    def overwrite_arena(self, arena: Arena, start: int, end: int) -> None:
        """Words of plain schedules, by number."""
        arena.write(8 * start, self._word.tobytes() * (end - start))
