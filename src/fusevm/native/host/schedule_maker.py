"""Builds schedules for one engine: plain, fused, with probes, with counters of a recording, or with all regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fusevm.evm.bytecode import JUMPDEST
from fusevm.evm.forks import Fork
from fusevm.native.host import poison
from fusevm.native.host.plain import PlainSchedule, PlainScheduler
from fusevm.native.host.poison import Poison
from fusevm.native.host.schedule_cache import ScheduleStore
from fusevm.native.host.settings import Setting
from fusevm.native.host.tables import Tables
from fusevm.schedule.build import Handlers, Marks, Schedule, ScheduleUnit, build_schedule
from fusevm.schedule.sections import TELLING

if TYPE_CHECKING:
    from fusevm.native.emit.build import Library
    from fusevm.native.host.all_regions import Regions

_JUMPDEST = bytes([JUMPDEST])
MarksOf = Callable[[Fork], Marks]


class ScheduleMaker:
    """Decides nothing: which of a code's schedules is made, and when, is the cache's decision."""

    def __init__(self, tables: Tables, native: Library, setting: Setting, regions: Regions | None) -> None:
        """With `regions`, they are compiled before code runs."""
        self._tables = tables
        self._native = native
        self._regions = regions
        self.has_probes = setting.compared
        self._poison = Poison(native.handlers.addresses["PROBE",]) if poison.is_on() else None
        if self._poison is not None:
            self._poison.watch()
        self.use(native.handlers if setting.fused else native.handlers.only(frozenset()), None, frozenset())

    def use(self, handlers: Handlers, marks: MarksOf | None, noted: frozenset[str]) -> None:
        """From now on: these handlers; with marks, counters; `noted` are the opcodes that a recording notes."""
        self.handlers, self.marks, self.noted = handlers, marks, noted
        self.store = ScheduleStore(self._native, handlers)
        self.plain = PlainScheduler(self._native, handlers, self._tables)
        self.plain.poison = self._poison

    @property
    def regions(self) -> Regions | None:
        """What compiles regions before code runs, if that is wanted. Regions leave TELLING opcodes to the schedule."""
        return self._regions if self.marks is None and self.noted <= TELLING else None

    @property
    def has_one_kind(self) -> bool:
        """Whether all code runs on the same kind of schedule, which is made at once."""
        return self.has_probes or self.marks is not None or self.regions is not None

    def of_one_kind(self, code: bytes, fork: Fork) -> Schedule | None:
        """The schedule, where there is one kind only."""
        if self.regions is not None:
            return self.regions.schedule(code, fork, self.handlers, probes=self.has_probes)
        return self.instrumented(code, fork)

    def instrumented(self, code: bytes, fork: Fork) -> Schedule | None:
        """The schedule with probes or counters, where those are wanted."""
        if self.marks is not None:
            return build_schedule(code, fork, self.handlers, keep_units=True, marks=self.marks(fork))
        return build_schedule(code, fork, self.handlers, probes=True) if self.has_probes else None

    def fused(self, code: bytes, fork: Fork, *, on_disk: bool) -> Schedule:
        return self.store.get(code, fork) if on_disk else build_schedule(code, fork, self.handlers)

    def units(self, schedule: Schedule, fork: Fork, at: int) -> list[ScheduleUnit]:
        """The units of a schedule, at least around one of its words: built on demand, to locate a failure."""
        if isinstance(schedule, PlainSchedule):
            schedule.units = self.plain.section(schedule, fork, at)
        elif not schedule.units:
            again = build_schedule(schedule.code, fork, self.handlers, keep_units=True, probes=self.has_probes)
            schedule.units = again.units
        return schedule.units

    # -- places where a running frame can switch to another schedule

    def entry(self, schedule: Schedule, pc: int) -> tuple[int, int, int]:
        """For a frame that goes on in a schedule at a JUMPDEST: base, jumps and place."""
        at = self.plain.block(schedule, pc) if isinstance(schedule, PlainSchedule) else schedule.jumps[pc]
        return schedule.base, schedule.jumps_base, schedule.base + 8 * at

    def landing(self, schedule: Schedule, at: int) -> int | None:
        """The JUMPDEST that a word of a schedule belongs to, if it is the first of its block."""
        if isinstance(schedule, PlainSchedule):
            first, pc, opens = self.plain.origin(at)
            return pc if first == at and opens and schedule.code[pc : pc + 1] == _JUMPDEST else None
        if schedule.twin and at >= schedule.twin:
            at -= schedule.twin
        try:
            return schedule.jumps.index(at)
        except ValueError:
            return None
