"""Which schedule a code runs on: plain, fused, with regions, or counting. Native frames and accounts point to these."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from fusevm.evm.forks import LATEST, Fork
from fusevm.native.host.code_records import ENTRY, CodeRecord, CodeRecords, schedule_places
from fusevm.native.host.hot_code import HotCode
from fusevm.native.host.init_code import InitCodeSchedules, Running
from fusevm.native.host.plain import PlainSchedule
from fusevm.native.host.retired import Retired
from fusevm.native.host.schedule_maker import MarksOf, ScheduleMaker
from fusevm.native.host.settings import Setting
from fusevm.native.host.tables import Tables
from fusevm.native.host.tier_policy import Key, TierPolicy
from fusevm.native.switches import is_on
from fusevm.schedule.build import Handlers, Schedule, ScheduleUnit

if TYPE_CHECKING:
    from fusevm.native.emit.build import Library
    from fusevm.native.host.all_regions import Regions

PREPARING = 0.6e-6  # seconds a byte: half of what a fused schedule takes, for it will be the better one from then on
MAX_FUSED = 1 << 17  # bytes of code; what is longer runs on a plain schedule: fusing it would take 0.2 s or more
FUSED_IN_CALL = 1 << 17  # bytes of code that one call may fuse
FUSED_IN_HASTE = 49_152  # bytes of code likewise, where a time limit is set: 0.1 s
KEPT = 1 << 26  # bytes of schedules that are kept, with their code

# Of one kind of recording: fused schedules, those with regions, and the policy.
Prepared = tuple[dict[Key, Schedule], dict[Key, Schedule], TierPolicy | None]


class CodeCache:
    """The schedules of one engine. What leaves the cache is retired, and `generation` tells what led to it."""

    def __init__(self, tables: Tables, native: Library, setting: Setting, regions: Regions | None) -> None:
        self._tables = tables
        self._native = native
        self.tiered = setting.tiered  # whether code runs plainly until that has taken as long as preparing it
        self.maker = ScheduleMaker(tables, native, setting, regions)
        adaptive = setting.tiered and not setting.compared and is_on("regions")
        self.hot_code = HotCode(self, self.maker, adaptive=adaptive)
        self.records = CodeRecords(tables, self.grow)
        self.init_code = InitCodeSchedules(tables, self._init_schedule, self._invalidate)
        self.retired = Retired()
        self.generation = 0  # incremented when addresses of schedules that anything has are no longer to be used
        self.needs_sweep = False  # whether `sweep` has something to do before the next call
        self.fork = LATEST
        self.schedules: dict[Key, Schedule] = {}  # plain and fused
        self._codes: dict[bytes, bytes] = {}  # of equal code one object, which schedules and accounts point to
        self._recorded: dict[frozenset[str], Prepared] = {}  # by the opcodes that are noted
        self.size = 0  # bytes, of all but init code
        self.in_use: set[Key] = set()  # code that this call runs plainly
        self._since = 0.0  # when the first code of this call began to run plainly
        self._spent: dict[Key, float] = {}  # seconds that code has run plainly
        self._fused = 0  # bytes of code fused in this call
        self._plain_exported = False  # whether native accounts have addresses of plain schedules
        self.has_time_limit: Callable[[], bool] = lambda: False

    # -- the schedule of a code

    def schedule(self, code: bytes, *, on_disk: bool = True) -> Schedule:
        key = (code, self.fork)
        schedule = self.schedules.get(key)
        hot = self.hot_code.schedule(key, schedule, on_disk=on_disk)
        if hot is not None:
            return hot
        if schedule is None:
            schedule = self._made(self.intern(code), on_disk=on_disk)
            self._add(key, schedule)
        if schedule.plain:
            self.run_plainly(code)
        return schedule

    def _made(self, code: bytes, *, on_disk: bool) -> Schedule:
        fork, maker = self.fork, self.maker
        if maker.has_one_kind:
            return maker.of_one_kind(code, fork) or self._begun(code)
        may_load = on_disk and self._may_be_on_disk(code)
        if self.is_worth_fusing_now((code, fork)) and self._may_fuse(code):
            self._fused += len(code)
            self.needs_sweep = True
            return maker.fused(code, fork, on_disk=on_disk)
        return (maker.store.kept(code, fork) if may_load else None) or self._begun(code)

    def _begun(self, code: bytes) -> Schedule:
        """A plain schedule, which native code writes as it runs."""
        schedule = self.maker.plain.schedule(code, self.fork)
        if self.maker.plain.is_crowded:
            self.needs_sweep = True
        return schedule

    def _init_schedule(self, code: bytes) -> Schedule:
        return self.maker.instrumented(code, self.fork) or self._begun(code)

    def fused_of(self, key: Key) -> Schedule:
        """The fused schedule that regions are put into."""
        fused = self.schedules.get(key)
        return self.maker.store.get(self.intern(key[0]), key[1]) if fused is None or fused.plain else fused

    def expect(self, code: bytes) -> None:
        """Code that will run before long: its plain schedule is begun now, if that is what it will run on."""
        if not (self.tiered and code) or self.maker.has_one_kind or self.is_ready(code):
            return
        if not (self.maker.plain.is_crowded or self._may_be_on_disk(code)):
            self._add((code, self.fork), self._begun(self.intern(code)))

    def is_ready(self, code: bytes) -> bool:
        key = code, self.fork
        return key in self.schedules or key in self.hot_code.schedules

    def _add(self, key: Key, schedule: Schedule) -> None:
        self.schedules[key] = schedule
        self.grow(schedule.size + ENTRY)

    def grow(self, size: int) -> None:
        self.size += size
        if self.size > KEPT:
            self.needs_sweep = True

    def intern(self, code: bytes) -> bytes:
        """The object for this code that schedules are made of. It is held until all code is forgotten, since native
        accounts point to it."""
        return self._codes.setdefault(code, code)

    def _may_be_on_disk(self, code: bytes) -> bool:
        """A quick look: the digest of unseen code takes longer than running it may pay for."""
        return self.maker.store.may_keep(code) or self.hot_code.may_be_on_disk(code)

    # -- what is worth fusing

    def is_worth_fusing(self, code: bytes, seconds: float) -> bool:
        """Whether code that has run plainly for so long should get a fused schedule."""
        return seconds >= PREPARING * len(code)

    def is_worth_fusing_now(self, key: Key) -> bool:
        return not self.tiered or self.is_worth_fusing(key[0], self._spent.get(key, 0.0))

    def _may_fuse(self, code: bytes) -> bool:
        """Preparing code is work that no gas pays for: there is a budget of it for each call."""
        return self._fused + len(code) <= (FUSED_IN_HASTE if self.has_time_limit() else FUSED_IN_CALL)

    def run_plainly(self, code: bytes) -> None:
        """This call runs the code on its plain schedule."""
        if not self.in_use:
            self._since = time.perf_counter()
        self.in_use.add((code, self.fork))

    def runs_plainly(self, code: bytes) -> bool:
        return (code, self.fork) in self.in_use

    def tally(self) -> None:
        """A call is over: what it ran plainly may now be worth fusing, with the next call.

        Codes share its time equally: which of them took it is not known, and together they cannot win back more.
        """
        seconds = (time.perf_counter() - self._since) / len(self.in_use)
        for key in self.in_use:
            self._spent[key] = spent = self._spent.get(key, 0.0) + seconds
            if self.is_worth_fusing(key[0], spent) and len(key[0]) <= MAX_FUSED:
                self._replace(key)
        if self._plain_exported:
            self._invalidate()
            self._plain_exported = False
        self.in_use.clear()

    def _replace(self, key: Key) -> None:
        """The next request for this code's schedule makes another one."""
        self._invalidate()
        schedule = self.schedules.get(key)
        if schedule is not None:
            self.retired.retire([schedule])
            del self.schedules[key]

    # -- frames

    def first_frame(self, code: bytes) -> bytes:
        """The part of a call's first frame that depends on the code."""
        return self.records.first_frames.get(code) or self.records.first_frame(code, self.schedule(code))

    def schedule_with(self, code: bytes, jumps: int) -> Schedule:
        """The schedule of this code whose table of jumps is at that address."""
        key, hot = (code, self.fork), self.hot_code
        present = self.schedules.get(key), hot.schedules.get(key), hot.counting.get(key)
        for found in (self.retired.find(jumps), self.init_code.schedules.get(code), *present):
            if found is not None and found.jumps_base == jumps:
                return found
        return self.schedule(code)

    def units(self, schedule: Schedule, at: int) -> list[ScheduleUnit]:
        """The units of a schedule, at least around one of its words, to locate a failure."""
        if not (schedule.units or isinstance(schedule, PlainSchedule)):
            self.size += 20 * len(schedule.code)
        return self.maker.units(schedule, self.fork, at)

    def from_inside(self, code: bytes, pc: int) -> tuple[Schedule, int] | None:
        """For code that has begun to run elsewhere: its plain schedule, and the place of an instruction in it. None
        if it has a better one, which can only be entered where jumps land."""
        if not self.is_ready(code):
            self.expect(code)
        schedule = self.schedules.get((code, self.fork))
        if not isinstance(schedule, PlainSchedule):
            return None
        self.run_plainly(code)
        return schedule, self.maker.entry(schedule, pc)[2]

    def prepared(self, code: bytes, jumps: int, at: int, *, on_disk: bool) -> tuple[int, int, int] | None:
        """For a frame that runs long on a plain schedule: base, jumps and place of a better one, if it is at a
        JUMPDEST."""
        key = (code, self.fork)
        plain = self.schedules.get(key)
        if plain is None or not plain.plain or plain.jumps_base != jumps or not self._may_fuse(code):
            return None
        pc = self.maker.landing(plain, at)
        if pc is None:
            return None
        self.retired.retire([plain])
        self.needs_sweep = True
        del self.schedules[key]
        self.in_use.discard(key)
        self._spent[key] = PREPARING * len(code)
        return self.maker.entry(self.schedule(code, on_disk=on_disk), pc)

    def hotter(self, code: bytes, jumps: int, at: int, seconds: float) -> tuple[int, int, int] | None:
        """For a frame that runs long: base, jumps and place of the schedule to continue with, if there is one and
        it is at a place where it can switch. It has run for `seconds` since the last request."""
        if self.hot_code.policy is None:
            return None
        if self.hot_code.install():
            self.change_schedules()
        self.hot_code.worked(None, seconds)
        present = self.schedule_with(code, jumps)
        better = self.schedule(code)
        if better is present or present.plain or better.plain:
            return None
        pc = self.maker.landing(present, at)
        return None if pc is None else self.maker.entry(better, pc)  # without a pc: tried again later

    # -- accounts

    def record_of(self, code: bytes) -> CodeRecord:
        return self.records.record_of(code, self.fork)

    def places(self, code: bytes, running: Running) -> bytes:
        """Where code and schedule are, for code that is about to run, as fields of an account."""
        if self.size > KEPT and not self.is_ready(code):
            self._forget_idle(running())
        schedule = self.schedule(code)
        places = schedule_places(schedule, len(code))
        if schedule.plain:
            self._plain_exported = True
        else:
            self.records.note_schedule(code, self.fork, places, schedule)
        return places

    # -- invalidation: see "Memory" in docs/state.md

    def _invalidate(self) -> None:
        """Addresses of schedules are not to be used in the next call, though in the present one they may be."""
        self.generation += 1
        self.needs_sweep = True

    def change_schedules(self) -> None:
        """Other schedules are in use from now on; running frames keep theirs."""
        self.records.forget_schedules()
        self._native.forget_schedules(self._tables.address)
        self._invalidate()

    def sweep(self) -> None:
        """Before a call, if `needs_sweep`. That stays set until `swept`, so that an interrupted sweep is repeated."""
        if self.size > KEPT or self.maker.plain.is_crowded:
            self.forget()
        if self.hot_code.install() or self.retired:  # retired: also where installing was interrupted
            self.change_schedules()
        self._fused = 0
        if not self.tiered:  # what ran plainly only because the last call's budget was used up
            for key in self.in_use:
                if len(key[0]) <= MAX_FUSED:
                    self._replace(key)
            self.in_use.clear()

    def swept(self) -> None:
        """After a sweep: nothing native, and nothing prepared for the next call, leads to what is retired."""
        self.retired.reclaim()
        self.needs_sweep = False
        if self.hot_code.has_answers:  # they arrived during the sweep
            self.needs_sweep = True

    def bind(self, fork: Fork) -> None:
        """Only between calls."""
        if fork != self.fork:
            self.init_code.forget()
            self._retire_code()
        self.fork = fork
        self._invalidate()
        self.records.first_frames.clear()

    def forget(self) -> None:
        """All code, as if none had run. Only between calls."""
        self._invalidate()
        self._retire_code()
        for schedules in (self.schedules, self.hot_code.schedules, self.hot_code.counting):
            self.retired.retire(schedules.values())
        self.schedules = {}
        self.hot_code.forget()
        self._spent.clear()
        self.size = 0
        self.init_code.forget()
        self.maker.plain.forget()

    def _retire_code(self) -> None:
        self.retired.retire_code(self._codes)
        self.retired.retire_code(*self.records.forget())
        self._codes = {}

    def _forget_idle(self, running: Container[int]) -> None:
        """In the middle of a call: frees the schedules that no frame runs, as soon as no account points to them."""
        self._retire_code()
        self.change_schedules()
        self._tables.shared.wanted = 1  # first frames of calls that follow natively point to them: there are none
        hot = self.hot_code
        self.schedules = {key: each for key, each in self.schedules.items() if each.jumps_base in running}
        hot.schedules = {key: each for key, each in hot.schedules.items() if each.jumps_base in running}
        hot.counting = {key: each for key, each in hot.counting.items() if each.jumps_base in running}
        left = (*self.schedules.values(), *hot.schedules.values(), *hot.counting.values())
        self._codes = {each.code: each.code for each in left}
        self.size = sum(each.size + ENTRY for each in left)
        self._spent.clear()
        self.in_use.intersection_update(self.schedules)

    # -- recordings

    def record(self, handlers: Handlers, marks: MarksOf | None, noted: frozenset[str]) -> None:
        """Schedules for a recording from now on: with handlers that note these opcodes, and marks where they count.

        Without marks there are regions, which leave those opcodes to the schedule. Their schedules and what is known
        of hot code are kept for the next recording of the same kind.
        """
        hot = self.hot_code
        if self.maker.marks is None and self.maker.noted:
            fused = {key: each for key, each in self.schedules.items() if not each.plain}
            self._recorded[self.maker.noted] = fused, hot.schedules, hot.policy
        hot.policy = None  # it knows of what is kept
        self.forget()  # before the maker changes: plain schedules point to what it holds
        self.maker.use(handlers, marks, noted)
        known = self._recorded.pop(noted, None) if marks is None else None
        self.schedules, hot.schedules, policy = known or ({}, {}, None)
        hot.begin_recording(policy)
        for each in (*self.schedules.values(), *hot.schedules.values()):
            self._codes[each.code] = each.code
            self.grow(each.size + ENTRY)
