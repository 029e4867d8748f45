"""Schedules of init code. Native code remembers where they are in a table of its own, by the code's content."""

from __future__ import annotations

from collections.abc import Callable, Container

from fusevm.native.host.code_records import ENTRY
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.schedule.build import Schedule

MAX_IDLE = 1 << 26  # bytes of schedules that are kept
MAX_RUNNING = 1 << 28  # bytes of those that run at once

Running = Callable[[], Container[int]]  # the addresses of the tables of jumps of all frames


class InitCodeSchedules:
    """Of one fork. No account leads to these schedules: only the native table and frames do."""

    def __init__(self, tables: Tables, make: Callable[[bytes], Schedule], invalidate: Callable[[], None]) -> None:
        self._tables = tables
        self._make = make
        self._invalidate = invalidate
        self.schedules: dict[bytes, Schedule] = {}
        self._size = 0

    def schedule(self, code: bytes, running: Running) -> Schedule:
        schedule = self.schedules.get(code)
        if schedule is None:
            if self._size > MAX_IDLE:
                self.forget(running())
            schedule = self.schedules[code] = self._make(code)
            self._size += schedule.size + ENTRY
        return schedule

    def forget(self, running: Container[int] = ()) -> None:
        """Drops all but those that are running. The native table is emptied first: nothing leads to them then."""
        if not self.schedules:
            return
        self._tables.init_codes.clear()
        self._invalidate()
        self.schedules = {code: each for code, each in self.schedules.items() if each.jumps_base in running}
        self._size = sum(each.size + ENTRY for each in self.schedules.values())
        if self._size > MAX_RUNNING:
            raise NativeLimit(f"more than {MAX_RUNNING >> 20} MiB of schedules of init code running at once")
