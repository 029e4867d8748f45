"""Schedules and code that are out of use, but that native code may still point to."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.schedule.build import Schedule


class Retired:
    """Holds what leaves the code cache until nothing native leads to it: see "Memory" in docs/state.md.

    Frames that run point to their schedule and code, accounts in native tables to those of their code, and what is
    prepared for the next call from outside to the schedule it enters. All three end as the next such call begins:
    `WarmTables.begin` clears the pointers first, and `CodeCache.swept` reclaims afterwards.
    """

    def __init__(self) -> None:
        self.schedules: list[Schedule] = []
        self.code: list[object] = []  # that accounts in native tables lead to: EXTCODECOPY reads it

    def __bool__(self) -> bool:
        return bool(self.schedules or self.code)

    def retire(self, schedules: Iterable[Schedule]) -> None:
        """Before the cache drops its own references: an interrupt may come between."""
        self.schedules += schedules

    def retire_code(self, *holders: object) -> None:
        """Whatever holds code. Native tables must be emptied before it is reclaimed."""
        self.code += holders

    def reclaim(self) -> None:
        """Nothing native leads to any of it."""
        self.schedules, self.code = [], []

    def find(self, jumps: int) -> Schedule | None:
        """The schedule whose table of jumps is at that address."""
        return next((each for each in self.schedules if each.jumps_base == jumps), None)
