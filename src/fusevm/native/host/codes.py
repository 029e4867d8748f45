"""What is known of code that ran before: its schedule, and what frames and accounts with that code have in common."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Container
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from fusevm.chain.state import EMPTY_CODE_HASH, delegate_in
from fusevm.evm.bytecode import JUMPDEST
from fusevm.evm.forks import LATEST, Fork, rules_of
from fusevm.native.host.compiler import region_names
from fusevm.native.host.heat import Heat
from fusevm.native.host.kept_schedules import LARGE, ScheduleStore, checksum
from fusevm.native.host.plain import PlainSchedule, PlainScheduler
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import packed
from fusevm.native.layout import (
    ACCOUNT_DELEGATED,
    ACCOUNT_HASHED,
    ACCOUNT_PLAIN,
    STACK_ALIGN,
    WORD,
    Account,
    NativeFrame,
)
from fusevm.native.switches import is_on
from fusevm.schedule.build import Handlers, Marks, Schedule, Unit, address_of, build_schedule

if TYPE_CHECKING:
    from fusevm.native.emit.build import Library
    from fusevm.native.host.all_regions import Regions

PREPARING = 0.6e-6  # seconds a byte: half of what a fused schedule takes, for it will be the better one from then on
FUSED_MOST = 1 << 17  # bytes of code; what is longer runs on a plain schedule: fusing it would take 0.2 s or more
FUSED_IN_CALL = 1 << 17  # bytes of code that one call may fuse
FUSED_IN_HASTE = 49_152  # bytes of code likewise, where a time limit is set: 0.1 s
KEPT = 1 << 26  # bytes of schedules that are kept, with their code
INIT_KEPT = 1 << 26  # bytes of init code's schedules likewise
INIT_MOST = 1 << 28  # bytes of those that run at once
_ACCOUNT_CODE = packed(Account, "code_hash code code_size schedule jumps entry delegate")
NO_ACCOUNT = bytes(_ACCOUNT_CODE.size)
NO_CODE = EMPTY_CODE_HASH[::-1].ljust(_ACCOUNT_CODE.size, b"\0")
_FRAME_REST = packed(
    NativeFrame,
    "ip sp memory memory_size load_limit zeroed schedule jumps code code_size returned returned_size "
    "output_offset output_size pc call_offset call_size journal_mark log_mark refund_mark "
    "in_python serial code_account creates engine depth",
)
_FIRST_FRAME = packed(NativeFrame, "ip sp memory memory_size load_limit zeroed schedule jumps code code_size")
_PLACES = packed(Account, "code code_size schedule jumps entry")
_ZERO = bytes(WORD)
_JUMPDEST = bytes([JUMPDEST])
ENTRY = 1024  # bytes that an entry takes beside its content

Running = Callable[[], Container[int]]  # says where the tables of jumps of frames are


class CodeFacts(NamedTuple):
    """What an account's native copy says of its code."""

    flags: int
    fields: bytes  # from `code_hash` on
    code: bytes  # held, since the fields say where it is


class Codes:
    """Schedules and what follows from them. Native frames and accounts hold addresses into these."""

    def __init__(
        self,
        tables: Tables,
        native: Library,
        store: ScheduleStore,
        handlers: Handlers,
        *,
        probes: bool,
        tiered: bool,
        regions: Regions | None = None,
    ) -> None:
        self._tables = tables
        self._native = native
        self._store = store
        self.handlers = handlers
        self._plain = PlainScheduler(native, handlers, tables)
        self._probes = probes
        self._all_regions = self._regions = regions  # where they are wanted at once
        self.marks: Callable[[Fork], Marks] | None = None  # where all that runs is counted
        self.heat = Heat(handlers, self.tidy_up) if tiered and not probes and is_on("regions") else None
        self.tiered = tiered  # whether code is run plainly until that has taken as long as preparing it
        self.fork = LATEST
        self.schedules: dict[tuple[bytes, Fork], Schedule] = {}
        self.first_frames: dict[bytes, bytes] = {}  # of the present fork, as the facts
        self.facts: dict[bytes | int, CodeFacts] = {}  # by code, or by its identity where it is large
        self.size = 0
        self._init_codes: dict[bytes, Schedule] = {}  # of the present fork; native code remembers where they are
        self._init_size = 0
        self.in_use: set[tuple[bytes, Fork]] = set()  # code that this call runs plainly
        self._spent: dict[tuple[bytes, Fork], float] = {}  # seconds that took
        self._retired: list[Schedule] = []  # frames may still hold addresses into these
        self._held: list[object] = []  # code whose address native code may hold, until the next call
        self.dropped = 0  # moves on whenever code is held no more that kept accounts may lead to: EXTCODECOPY reads it
        self._fused = 0  # bytes of code fused in this call
        self._lent = False  # whether native accounts have addresses of plain schedules
        self._since = 0.0  # when the first code of this call began to run plainly
        self.generation = 0  # moves on whenever addresses of schedules that native code has may be good no more
        self.has_time_limit: Callable[[], bool] = lambda: False
        self.untidy = False  # whether there is something to do before the next call
        blank = _FRAME_REST.pack(*[0] * 24, tables.address, 0)
        self._first_frame_end = blank[_FIRST_FRAME.size :]  # what first frames have in common

    def bind(self, fork: Fork) -> None:
        """Only between calls."""
        if fork != self.fork:
            self._forget_init_codes()
            self._drop_facts()
        self.fork = fork
        self._drop()
        self.first_frames.clear()

    def _grow(self, size: int) -> None:
        self.size += size
        if self.size > KEPT:
            self.untidy = True

    def _drop(self) -> None:
        self.generation += 1
        self.untidy = True

    def _drop_facts(self) -> None:
        """Accounts that are described already lead to the code of these."""
        self.dropped += 1
        self._held.append(self.facts)
        self.facts = {}

    def make_room(self) -> None:
        """Only between calls, where it is `untidy`; which it stays until nothing leads to what is dropped here."""
        if self.size > KEPT or self._plain.is_crowded:
            self.forget()
        if self.heat is not None:
            self._take_regions(self.heat)
        if self._retired:  # nothing may lead to them any more, even if what retired them was interrupted
            self._change_schedules()
        self._retired, self._held, self._fused = [], [], 0
        if not self.tiered:  # what ran plainly for the last call's sake
            for key in self.in_use:
                if len(key[0]) <= FUSED_MOST:
                    self.generation += 1
                    self.dropped += 1
                    self.schedules.pop(key, None)
            self.in_use.clear()

    def tidied(self) -> None:
        """Room was made, and nothing leads any more to what was dropped."""
        self.untidy = self.heat is not None and self.heat.counting is not None
        if self.heat is not None and self.heat.finished:  # sent while this was done
            self.untidy = True

    def tidy_up(self) -> None:
        """Before the next call."""
        self.untidy = True

    def ran_for(self, code: bytes, seconds: float) -> None:
        """Reports the time of one or several calls of the code, which may start counting its blocks."""
        if self.heat is not None and self.heat.note((code, self.fork), seconds):
            self.heat.begin()
            self._change_schedules()

    def _take_regions(self, heat: Heat) -> None:
        """Between two calls: ends counting, puts regions in place that have been compiled."""
        changed = self._install(heat)
        if heat.counting is not None and heat.next_call():
            self._retired += heat.counting.values()
            heat.end()
            changed = True
        if changed:
            self._change_schedules()

    def _install(self, heat: Heat) -> bool:
        """Puts what has been compiled in place; whether there was anything."""
        changed = False
        while heat.finished:
            key, compiled = heat.take_finished()
            made = heat.with_regions(key, compiled)
            if made is not None and key[1] == self.fork:
                before = self.schedules.get(key)
                if before is not None:
                    self._retired.append(before)
                self.schedules[key] = made
                self.size += made.size
                changed = True
        return changed

    def hotter(self, code: bytes, jumps: int, at: int, seconds: float) -> tuple[int, int, int] | None:
        """For a frame that runs long: base, jumps and place of the schedule to continue with, if there is one and
        it is at a place where it can switch. It has run for `seconds` since the last request."""
        heat, key = self.heat, (code, self.fork)
        if heat is None:
            return None
        changed = self._install(heat)
        if heat.counting is None:
            if heat.note(key, seconds):
                heat.begin()
                changed = True
        elif heat.has_counted_enough:
            self._retired += heat.counting.values()
            heat.end()
            changed = True
        if changed:
            self._change_schedules()
        present = self.schedule_with(code, jumps)
        better = self.schedule(code)
        if better is present or present.plain or better.plain:
            return None
        if present.twin and at >= present.twin:
            at -= present.twin
        units = self.units(present, at)
        found = bisect_left(units, at, key=attrgetter("at"))
        if found == len(units) or units[found].at != at:
            return None
        pc = units[found].tokens[0].pc  # a section's first instruction, or that of a fused loop
        if not better.jumps[pc]:  # not at a JUMPDEST: tried again later
            return None
        return better.base, better.jumps_base, better.base + 8 * better.jumps[pc]

    def _change_schedules(self) -> None:
        """Other schedules are in use from now on; running frames keep theirs."""
        self.first_frames.clear()
        self._drop_facts()
        self._native.forget_schedules(self._tables.address)
        self._drop()

    def record(
        self, store: ScheduleStore, handlers: Handlers, marks: Callable[[Fork], Marks] | None, *, regions: bool
    ) -> None:
        """Schedules for a recording from now on: with handlers that note, and marks where they count."""
        self.use(store, handlers)
        self.marks = marks
        self._regions = self._all_regions if regions else None
        self.heat = Heat(handlers, self.tidy_up) if regions and self.tiered else None

    def use(self, store: ScheduleStore, handlers: Handlers) -> None:
        """Other handlers from now on. Only between calls."""
        self.forget()  # first: plain schedules lead to what their scheduler holds
        self._store, self.handlers = store, handlers
        self._plain = PlainScheduler(self._native, handlers, self._tables)

    def forget(self) -> None:
        """All code, as if none had run. Only between calls."""
        self._drop()
        self.first_frames.clear()
        self._drop_facts()
        self.schedules.clear()
        self._spent.clear()
        self.size = 0
        self._forget_init_codes()
        self._plain.forget()

    def schedule(self, code: bytes, *, on_disk: bool = True) -> Schedule:
        key = (code, self.fork)
        schedule = self.schedules.get(key)
        if self.heat is not None and self.heat.counting is not None:
            counting = self.heat.counting.get(key)
            if counting is None and self._is_worth_counting(key, schedule):
                counting = self.heat.count(key)
                if counting is not None and schedule is not None:
                    schedule.units = []  # two such lists would be the most memory that is ever taken
            if counting is not None:
                return counting
        if schedule is None:
            schedule = self.schedules[key] = self._made(code, on_disk=on_disk)
            self._grow(schedule.size + ENTRY)
        if schedule.plain:
            self.run_plainly(code)
        return schedule

    def expect(self, code: bytes) -> None:
        """Code that will run before long: its plain schedule is begun now, if that is what it will run on."""
        key = (code, self.fork)
        if not (self.tiered and code) or self._probes or self.marks is not None or self._regions is not None:
            return
        if key in self.schedules or self._plain.is_crowded or self._may_be_on_disk(code):
            return
        schedule = self.schedules[key] = self._begun(code)
        self._grow(schedule.size + ENTRY)

    def from_inside(self, code: bytes, pc: int) -> tuple[Schedule, int] | None:
        """For code that has begun to run elsewhere: its plain schedule, and the place of an instruction in it. None
        if it has a better one, which can only be entered where jumps land."""
        if not self.is_ready(code):
            self.expect(code)
        schedule = self.schedules.get((code, self.fork))
        if not isinstance(schedule, PlainSchedule):
            return None
        self.run_plainly(code)
        return schedule, schedule.base + 8 * self._plain.block(schedule, pc)

    def is_ready(self, code: bytes) -> bool:
        return (code, self.fork) in self.schedules

    def _begun(self, code: bytes) -> Schedule:
        schedule = self._plain.schedule(code, self.fork)
        if self._plain.is_crowded:
            self.untidy = True
        return schedule

    def _is_worth_counting(self, key: tuple[bytes, Fork], schedule: Schedule | None) -> bool:
        """Only what has run for so long that it has, or should have, a fused schedule: new code is not prepared so."""
        if schedule is not None:
            return not schedule.plain
        return self.is_worth_fusing(key[0], self._spent.get(key, 0.0))

    def run_plainly(self, code: bytes) -> None:
        """This call runs the code on its plain schedule."""
        if not self.in_use:
            self._since = time.perf_counter()
        self.in_use.add((code, self.fork))

    def _made(self, code: bytes, *, on_disk: bool) -> Schedule:
        fork, keeps = self.fork, on_disk
        if self.marks is not None:
            return build_schedule(code, fork, self.handlers, keep_units=True, marks=self.marks(fork))
        if self._regions is not None:
            return self._regions.schedule(code, fork, self.handlers)
        if self._probes:
            return build_schedule(code, fork, self.handlers, probes=True)
        on_disk = on_disk and self._may_be_on_disk(code)
        worth = not self.tiered or self.is_worth_fusing(code, self._spent.get((code, fork), 0.0))
        hot = on_disk and (worth or len(code) >= LARGE)  # to link regions takes longer than a short run of small code
        if hot and self.heat is not None and (made := self.heat.from_disk((code, fork))) is not None:
            return made
        if worth and self._may_fuse(code):
            self._fused += len(code)
            self.untidy = True
            return self._store.get(code, fork) if keeps else build_schedule(code, fork, self.handlers)
        kept = self._store.kept(code, fork) if on_disk else None
        return kept or self._begun(code)

    def _may_be_on_disk(self, code: bytes) -> bool:
        """A quick look: the digest of unseen code takes longer than running it may pay for."""
        return self._store.may_keep(code) or (self.heat is not None and checksum(code) in region_names())

    def _may_fuse(self, code: bytes) -> bool:
        """Preparing code is work that no gas pays for: there is a budget of it for each call."""
        return self._fused + len(code) <= (FUSED_IN_HASTE if self.has_time_limit() else FUSED_IN_CALL)

    def _forget_idle(self, running: Container[int]) -> None:
        """In the middle of a call: drops the schedules that no frame runs."""
        self._drop()
        self._drop_facts()
        self._held += self.schedules  # of the same code there may be copies, and accounts lead to either
        self.first_frames.clear()
        self.schedules = {key: each for key, each in self.schedules.items() if each.jumps_base in running}
        self.size = sum(each.size + ENTRY for each in self.schedules.values())
        self._spent.clear()
        self.in_use.intersection_update(self.schedules)

    def is_worth_fusing(self, code: bytes, seconds: float) -> bool:
        """Whether code that has run plainly for so long should get a fused schedule."""
        return seconds >= PREPARING * len(code)

    def tally(self) -> None:
        """A call is over: what it ran plainly may now be worth preparing. It is asked for again with the next call.

        Codes share its time equally: which of them took it is not known, and together they cannot win back more.
        """
        seconds = (time.perf_counter() - self._since) / len(self.in_use)
        for key in self.in_use:
            self._spent[key] = spent = self._spent.get(key, 0.0) + seconds
            if self.is_worth_fusing(key[0], spent) and len(key[0]) <= FUSED_MOST:
                self._drop()
                self.dropped += 1
                self.schedules.pop(key, None)
        if self._lent:
            self._drop()
            self._lent = False
        self.in_use.clear()

    def prepared(self, code: bytes, jumps: int, at: int, *, on_disk: bool) -> tuple[int, int, int] | None:
        """For a frame that runs long on a plain schedule: base, jumps and place of a better one, if it is at a
        JUMPDEST."""
        key = (code, self.fork)
        plain = self.schedules.get(key)
        if plain is None or not plain.plain or plain.jumps_base != jumps or not self._may_fuse(code):
            return None
        first, pc, opens = self._plain.origin(at)
        if first != at or not opens or code[pc : pc + 1] != _JUMPDEST:
            return None
        self._retired.append(plain)
        self.untidy = True
        del self.schedules[key]
        self.in_use.discard(key)
        self._spent[key] = PREPARING * len(code)
        better = self.schedule(code, on_disk=on_disk)
        return better.base, better.jumps_base, better.base + 8 * better.jumps[pc]

    def schedule_with(self, code: bytes, jumps: int) -> Schedule:
        """The schedule of this code whose table of jumps is at that address."""
        for retired in self._retired:
            if retired.jumps_base == jumps:
                return retired
        created = self._init_codes.get(code)
        if created is not None and created.jumps_base == jumps:
            return created
        found = self.schedules.get((code, self.fork))  # which is not the one in use while that is counted
        return found if found is not None and found.jumps_base == jumps else self.schedule(code)

    def init_code(self, code: bytes, running: Running) -> Schedule:
        """The schedule of init code, which native code will remember; `running` says where those in use are."""
        schedule = self._init_codes.get(code)
        if schedule is None:
            if self._init_size > INIT_KEPT:
                self._forget_init_codes(running())
            if self._probes or self.marks is not None:
                marks = None if self.marks is None else self.marks(self.fork)
                units = marks is not None
                schedule = build_schedule(
                    code, self.fork, self.handlers, probes=self._probes, marks=marks, keep_units=units
                )
            else:
                schedule = self._begun(code)
            self._init_codes[code] = schedule
            self._init_size += schedule.size + ENTRY
        return schedule

    def _forget_init_codes(self, running: Container[int] = ()) -> None:
        """Drops the schedules of init code, except those that are running."""
        if not self._init_codes:
            return
        self._tables.init_codes.clear()
        self.generation += 1
        self._init_codes = {code: each for code, each in self._init_codes.items() if each.jumps_base in running}
        self._init_size = sum(each.size + ENTRY for each in self._init_codes.values())
        if self._init_size > INIT_MOST:
            raise NativeLimit(f"more than {INIT_MOST >> 20} MiB of schedules of init code running at once")

    def units(self, schedule: Schedule, at: int) -> list[Unit]:
        """The units of a schedule, at least around one of its words: built on demand, to locate a failure."""
        code = schedule.code
        if schedule.plain:
            schedule.units = self._plain.section(code, self.fork, at)
        elif not schedule.units:
            again = build_schedule(
                code,
                self.fork,
                self.handlers,
                keep_units=True,
                probes=self._probes,
                loops=schedule.looped,
                counts=bool(schedule.counters),
            )
            schedule.units, schedule.copies = again.units, again.copies
            self.size += 20 * len(code)
        return schedule.units

    def first_frame(self, code: bytes) -> bytes:
        """The part of a call's first frame that depends on the code."""
        rest = self.first_frames.get(code)
        if rest is None:
            schedule, tables = self.schedule(code), self._tables
            rest = _FIRST_FRAME.pack(
                schedule.entry, tables.stacks.address, tables.memory.address, 0, 0, 0,
                schedule.base, schedule.jumps_base, schedule.code_base, len(code),
            ) + self._first_frame_end  # fmt: skip
            if not schedule.plain:
                self.first_frames[code] = rest
        return rest

    def runs_plainly(self, code: bytes) -> bool:
        return (code, self.fork) in self.in_use

    def frame_rest(
        self, schedule: Schedule, ip: int, depth: int, start: int, marks: tuple[int, int, int], serial: int
    ) -> bytes:
        """Of a frame that Python knows: its fields from `ip` on, its memory beginning where `start` says."""
        tables = self._tables
        return _FRAME_REST.pack(
            ip, tables.stacks.address + depth * STACK_ALIGN,
            tables.memory.address + start, 0, 0, 0,  # memory
            schedule.base, schedule.jumps_base, schedule.code_base, len(schedule.code),
            0, 0, 0, 0, 0, 0, 0,  # return data, output, pc, the running call
            *marks, 1, serial, 0, 0, tables.address, depth,
        )  # fmt: skip

    def facts_of(self, code: bytes) -> CodeFacts:
        """Without a schedule and without a hash, which take longer to make than looking at an account may cost."""
        key = fact_key(code)
        facts = self.facts.get(key)
        if facts is None:
            delegate = delegate_in(code) if rules_of(self.fork).delegation else None
            flags = ACCOUNT_PLAIN if delegate is None else ACCOUNT_DELEGATED
            facts = self.facts[key] = CodeFacts(flags, code_fields(code, delegate), code)
            self._grow(ENTRY + len(code))
        return facts

    def note_hash(self, code: bytes, code_hash: bytes) -> None:
        flags, fields, _ = self.facts_of(code)
        self.facts[fact_key(code)] = CodeFacts(flags | ACCOUNT_HASHED, code_hash[::-1] + fields[WORD:], code)

    def places(self, code: bytes, running: Running, forget: Callable[[], None]) -> bytes:
        """Where code and schedule are, for code that is about to run. `forget` is called if schedules were dropped."""
        if self.size > KEPT and (code, self.fork) not in self.schedules:
            self._forget_idle(running())
            forget()
        schedule = self.schedule(code)
        places = _PLACES.pack(schedule.code_base, len(code), schedule.base, schedule.jumps_base, schedule.entry)
        if schedule.plain:
            self._lent = True
        else:
            flags, fields, _ = self.facts_of(code)
            self.facts[fact_key(code)] = CodeFacts(flags, fields[:WORD] + places + fields[WORD + len(places) :], code)
        return places


def fact_key(code: bytes) -> bytes | int:
    """To hash large code takes longer than a look at its account may cost; small code is often that of many."""
    return code if len(code) < LARGE else id(code)


def code_fields(code: bytes, delegate: bytes | None = None) -> bytes:
    """An account's fields for its code, without hash and schedule; with the account it delegates to (EIP-7702)."""
    target = _ZERO if delegate is None else delegate[::-1].ljust(WORD, b"\0")
    return _ACCOUNT_CODE.pack(_ZERO, address_of(code), len(code), 0, 0, 0, target)
