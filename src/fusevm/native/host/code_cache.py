"""What is known of code that ran before: its schedule, and what frames and accounts with that code have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fusevm.chain.state import EMPTY_CODE_HASH, delegate_in
from fusevm.evm.bytecode import JUMPDEST
from fusevm.evm.forks import LATEST, Fork, rules_of
from fusevm.native.host.compiler import Asked, compiler, discard, kept, region_names
from fusevm.native.host.plain import PlainSchedule, PlainScheduler
from fusevm.native.host.regions import patched
from fusevm.native.host.schedule_cache import LARGE, ScheduleStore, checksum
from fusevm.native.host.settings import Setting
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.tier_policy import Answer, Key, Kind, Pieces, TierPolicy
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
from fusevm.native.region.compiled import LARGEST, Compiled
from fusevm.native.switches import is_on
from fusevm.schedule.build import Handlers, Marks, Schedule, Unit, address_of, build_schedule
from fusevm.schedule.sections import TELLING

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

# Schedules, those with regions, and what is known of their codes.
Prepared = tuple[dict[Key, Schedule], dict[Key, Schedule], TierPolicy | None]
Running = Callable[[], Container[int]]  # says where the tables of jumps of frames are


class CodeRecord(NamedTuple):
    """What an account's native copy says of its code."""

    flags: int
    fields: bytes  # from `code_hash` on
    code: bytes  # held, since the fields say where it is


class CodeCache:
    """Schedules and what follows from them. Native frames and accounts hold addresses into these."""

    def __init__(self, tables: Tables, native: Library, setting: Setting, regions: Regions | None) -> None:
        self._tables = tables
        self._native = native
        self._use(native.handlers if setting.fused else native.handlers.only(frozenset()))
        self._probes = setting.compared
        self._all_regions = self._regions = regions  # where they are wanted at once
        self.marks: Callable[[Fork], Marks] | None = None  # where all that runs is counted
        self.installed = 0  # schedules with regions that were put in place
        self._recorded: dict[frozenset[str], Prepared] = {}  # by the opcodes that are noted
        self._noted: frozenset[str] = frozenset()  # opcodes that are recorded
        self.tiered = setting.tiered  # whether code is run plainly until that has taken as long as preparing it
        self.is_adaptive = setting.tiered and not setting.compared and is_on("regions")
        self.policy = self._new_policy() if self.is_adaptive else None
        self.fork = LATEST
        self.schedules: dict[Key, Schedule] = {}
        self.hot: dict[Key, Schedule] = {}  # with regions
        self.counting: dict[Key, PlainSchedule] = {}  # begun once, used in windows
        self.counts_all = False  # whether all code is counted, whatever it costs
        self._codes: dict[bytes, bytes] = {}  # of equal code one object, to which schedules and accounts lead
        self.first_frames: dict[bytes, bytes] = {}  # of the present fork, as the facts
        self.facts: dict[bytes | int, CodeRecord] = {}  # by code, or by its identity where it is large
        self._placed: dict[bytes | int, CodeRecord] = {}  # likewise, of code whose schedule has been asked for
        self.size = 0
        self._init_codes: dict[bytes, Schedule] = {}  # of the present fork; native code remembers where they are
        self._init_size = 0
        self.in_use: set[Key] = set()  # code that this call runs plainly
        self._spent: dict[Key, float] = {}  # seconds that took
        self._pinned: list[object] = []  # schedules and code that native code may lead to, until the next call
        self.dropped = 0  # moves on whenever code is held no more that kept accounts may lead to: EXTCODECOPY reads it
        self._fused = 0  # bytes of code fused in this call
        self.plain_exported = False  # whether native accounts have addresses of plain schedules
        self._since = 0.0  # when the first code of this call began to run plainly
        self.generation = 0  # moves on whenever addresses of schedules that native code has may be good no more
        self.has_time_limit: Callable[[], bool] = lambda: False
        self.needs_sweep = False  # whether there is something to do before the next call
        blank = _FRAME_REST.pack(*[0] * 24, tables.address, 0)
        self._first_frame_end = blank[_FIRST_FRAME.size :]  # what first frames have in common

    def _use(self, handlers: Handlers) -> None:
        self.handlers = handlers
        self._store = ScheduleStore(self._native, handlers)
        self._plain = PlainScheduler(self._native, handlers, self._tables)

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
            self.needs_sweep = True

    def _drop(self) -> None:
        self.generation += 1
        self.needs_sweep = True

    def _drop_facts(self) -> None:
        """Accounts that are described already lead to the code of these."""
        self.dropped += 1
        self._pinned += (self.facts, self._codes)
        self.facts, self._placed, self._codes = {}, {}, {}

    def sweep(self) -> None:
        """Only between calls, where it is `needs_sweep`; which it stays until nothing leads to what is dropped here."""
        if self.size > KEPT or self._plain.is_crowded:
            self.forget()
        if self.policy is not None and self._install(self.policy):
            self._change_schedules()
        if self._pinned:  # nothing may lead to them any more, even if what replaced them was interrupted
            self._change_schedules()
        self._pinned, self._fused = [], 0
        if not self.tiered:  # what ran plainly for the last call's sake
            for key in self.in_use:
                if len(key[0]) <= FUSED_MOST:
                    self.generation += 1
                    self.schedules.pop(key, None)
            self.in_use.clear()

    def swept(self) -> None:
        """Room was made, and nothing leads any more to what was dropped."""
        self.needs_sweep = self.policy is not None and bool(self.policy.finished)  # sent while this was done

    # -- which code is hot

    def _new_policy(self) -> TierPolicy:
        made: TierPolicy

        def ask(key: Key, counts: dict[int, int], heat: float) -> Answer | None:
            return compiler().ask(self._asked(key), counts, heat, partial(self._answered, made, key))

        made = TierPolicy(ask)
        return made

    def _asked(self, key: Key) -> Asked:
        return Asked(*key, self._noted - TELLING)

    def _answered(self, policy: TierPolicy, key: Key, answer: Compiled | Answer) -> None:
        """Called by the thread that waits for the compiler."""
        policy.finished.append((key, answer))
        self.needs_sweep = True

    @property
    def has_regions(self) -> bool:
        """Whether some are compiled before code runs."""
        return self._regions is not None

    @property
    def is_watched(self) -> bool:
        """Whether the time of every call is asked for."""
        return self.policy is not None and self.policy.is_watching

    @property
    def is_counting(self) -> bool:
        return self.policy is not None and self.policy.window is not None

    def worked(self, kind: Kind | None, seconds: float, gas: int = 0, noted: float = 0.0, earlier: float = 0.0) -> None:
        """Reports calls, or a part of one (`TierPolicy.worked`). Other schedules may be in use from then on."""
        policy = self.policy
        if policy is not None and policy.worked(kind, seconds, gas, noted, earlier):
            policy.change(self.counted)
            self._change_schedules()
            for key in policy.rejected:
                discard(self._asked(key))
            policy.rejected.clear()

    def _install(self, policy: TierPolicy) -> bool:
        """Puts what has been compiled in place; whether there was anything."""
        if not policy.finished:
            return False
        new = []
        while policy.finished:
            key, answer = policy.finished[0]
            made = self._with_regions(key, answer) if isinstance(answer, Compiled) else None
            if made is not None:
                before = self.hot.get(key)
                if before is not None:
                    self._pinned.append(before)
                self.hot[key] = made
                new.append(key)
            policy.take_finished()  # last: interrupted before, it is put in place again
        policy.installed(new)
        return bool(new)

    def _with_regions(self, key: Key, compiled: Compiled) -> Schedule | None:
        fused = self.schedules.get(key)
        if fused is None or fused.plain:
            fused = self._store.get(self._one(key[0]), key[1])
        made = patched(fused, compiled)
        if made is not None:
            self.installed += 1
            self.size += made.size + len(compiled.code)
        return made

    def _from_disk(self, key: Key) -> Schedule | None:
        """The schedule with regions that were made before, in this process or another."""
        policy, code = self.policy, key[0]
        if policy is None or policy.is_off(key) or checksum(code) not in region_names():
            return None
        if len(code) < LARGE and not self._is_worth_fusing_now(key):  # to link them takes longer than a short run
            return None
        found = kept(self._asked(key))
        made = None if found is None else self._with_regions(key, found)
        if made is not None and policy is not None and found is not None:
            self.hot[key] = made
            policy.known(key, found.profile)
        return made

    def _counter(self, key: Key, schedule: Schedule | None) -> PlainSchedule | None:
        """The schedule that counts, if the code has run for so long that it has, or should have, a fused one."""
        counter = self.counting.get(key)
        if counter is not None:
            return counter
        if len(key[0]) > LARGEST or self._plain.is_crowded:
            return None
        is_known = key in self.hot or (self._is_worth_fusing_now(key) if schedule is None else not schedule.plain)
        return self._begin_counting(key) if is_known else None

    def _begin_counting(self, key: Key) -> PlainSchedule:
        made = self.counting[key] = self._plain.schedule(self._one(key[0]), key[1], counts=True)
        self._grow(made.size + ENTRY)
        return made

    def counted(self, key: Key) -> Pieces:
        """What of a code has run since this was asked last, or since counting began."""
        counter = self.counting.get(key)  # none if all code was forgotten meanwhile
        return {} if counter is None else self._plain.counted(counter)

    def hotter(self, code: bytes, jumps: int, at: int, seconds: float) -> tuple[int, int, int] | None:
        """For a frame that runs long: base, jumps and place of the schedule to continue with, if there is one and
        it is at a place where it can switch. It has run for `seconds` since the last request."""
        policy = self.policy
        if policy is None:
            return None
        if self._install(policy):
            self._change_schedules()
        self.worked(None, seconds)
        present = self.schedule_with(code, jumps)
        better = self.schedule(code)
        if better is present or present.plain or better.plain:
            return None
        pc = self._landing(present, at)
        if pc is None:  # tried again later
            return None
        return self._entered(better, pc)

    def _entered(self, schedule: Schedule, pc: int) -> tuple[int, int, int]:
        """For a frame that goes on in a schedule at a JUMPDEST: base, jumps and place."""
        at = self._plain.block(schedule, pc) if isinstance(schedule, PlainSchedule) else schedule.jumps[pc]
        return schedule.base, schedule.jumps_base, schedule.base + 8 * at

    def _landing(self, schedule: Schedule, at: int) -> int | None:
        """The JUMPDEST that a word of a schedule belongs to, if it is the first of its block."""
        if isinstance(schedule, PlainSchedule):
            first, pc, opens = self._plain.origin(at)
            return pc if first == at and opens and schedule.code[pc : pc + 1] == _JUMPDEST else None
        if schedule.twin and at >= schedule.twin:
            at -= schedule.twin
        try:
            return schedule.jumps.index(at)
        except ValueError:
            return None

    def _change_schedules(self) -> None:
        """Other schedules are in use from now on; running frames keep theirs."""
        self.first_frames.clear()
        self._placed = {}
        self._native.forget_schedules(self._tables.address)
        self._drop()

    def record(self, handlers: Handlers, marks: Callable[[Fork], Marks] | None, noted: frozenset[str]) -> None:
        """Schedules for a recording from now on: with handlers that note these opcodes, and marks where they count.

        Without marks there are regions, which leave those opcodes to the schedule; and schedules and what is known of
        hot code are kept for the next recording of the same kind.
        """
        if self.marks is None and self._noted:
            left = {key: each for key, each in self.schedules.items() if not each.plain}
            self._recorded[self._noted] = left, self.hot, self.policy
        self.policy = None  # it knows of what is kept
        self.forget()  # first: plain schedules lead to what their scheduler holds
        self.marks, self._noted = marks, noted
        self._use(handlers)
        self._regions = self._all_regions if marks is None and noted <= TELLING else None
        self.policy = self._new_policy() if self.is_adaptive and marks is None else None
        if marks is None and noted in self._recorded:
            self.schedules, self.hot, self.policy = self._recorded.pop(noted)
            for each in (*self.schedules.values(), *self.hot.values()):
                self._codes[each.code] = each.code
                self._grow(each.size + ENTRY)

    def forget(self) -> None:
        """All code, as if none had run. Only between calls."""
        self._drop()
        self.first_frames.clear()
        self._drop_facts()
        self.schedules, self.hot, self.counting = {}, {}, {}
        if self.policy is not None:
            self.policy.forget()
        self._spent.clear()
        self.size = 0
        self._forget_init_codes()
        self._plain.forget()

    def _one(self, code: bytes) -> bytes:
        """The object for this code that schedules are made of. It is held until all code is forgotten, since native
        accounts lead to it."""
        return self._codes.setdefault(code, code)

    def schedule(self, code: bytes, *, on_disk: bool = True) -> Schedule:
        key, policy = (code, self.fork), self.policy
        schedule = self.schedules.get(key)
        if self.counts_all:
            return self.counting.get(key) or self._begin_counting(key)
        if policy is not None:
            if policy.window is not None and (counter := self._counter(key, schedule)) is not None:
                policy.counts(key)
                return counter
            hot = self.hot.get(key)
            if hot is None and schedule is None and on_disk:
                hot = self._from_disk(key)
            if hot is not None and not policy.is_off(key):
                return hot
        if schedule is None:
            schedule = self.schedules[key] = self._made(self._one(code), on_disk=on_disk)
            self._grow(schedule.size + ENTRY)
        if schedule.plain:
            self.run_plainly(code)
        return schedule

    def expect(self, code: bytes) -> None:
        """Code that will run before long: its plain schedule is begun now, if that is what it will run on."""
        key = (code, self.fork)
        if not (self.tiered and code) or self._probes or self.marks is not None or self._regions is not None:
            return
        if self.is_ready(code) or self._plain.is_crowded or self._may_be_on_disk(code):
            return
        schedule = self.schedules[key] = self._begun(self._one(code))
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
        key = code, self.fork
        return key in self.schedules or key in self.hot

    def _begun(self, code: bytes) -> Schedule:
        schedule = self._plain.schedule(code, self.fork)
        if self._plain.is_crowded:
            self.needs_sweep = True
        return schedule

    def _is_worth_fusing_now(self, key: Key) -> bool:
        return not self.tiered or self.is_worth_fusing(key[0], self._spent.get(key, 0.0))

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
            return self._regions.schedule(code, fork, self.handlers, probes=self._probes)
        if self._probes:
            return build_schedule(code, fork, self.handlers, probes=True)
        on_disk = on_disk and self._may_be_on_disk(code)
        worth = self._is_worth_fusing_now((code, fork))
        if worth and self._may_fuse(code):
            self._fused += len(code)
            self.needs_sweep = True
            return self._store.get(code, fork) if keeps else build_schedule(code, fork, self.handlers)
        kept = self._store.kept(code, fork) if on_disk else None
        return kept or self._begun(code)

    def _may_be_on_disk(self, code: bytes) -> bool:
        """A quick look: the digest of unseen code takes longer than running it may pay for."""
        return self._store.may_keep(code) or (self.policy is not None and checksum(code) in region_names())

    def _may_fuse(self, code: bytes) -> bool:
        """Preparing code is work that no gas pays for: there is a budget of it for each call."""
        return self._fused + len(code) <= (FUSED_IN_HASTE if self.has_time_limit() else FUSED_IN_CALL)

    def _forget_idle(self, running: Container[int]) -> None:
        """In the middle of a call: drops the schedules that no frame runs."""
        self._drop()
        self._drop_facts()
        self.first_frames.clear()
        self.schedules = {key: each for key, each in self.schedules.items() if each.jumps_base in running}
        self.hot = {key: each for key, each in self.hot.items() if each.jumps_base in running}
        self.counting = {key: each for key, each in self.counting.items() if each.jumps_base in running}
        left = (*self.schedules.values(), *self.hot.values(), *self.counting.values())
        self._codes = {each.code: each.code for each in left}
        self.size = sum(each.size + ENTRY for each in left)
        self._spent.clear()
        self.in_use.intersection_update(self.schedules)

    def is_worth_fusing(self, code: bytes, seconds: float) -> bool:
        """Whether code that has run plainly for so long should get a fused schedule."""
        return seconds >= PREPARING * len(code)

    def tally(self) -> None:
        """A call is over: what it ran plainly may now be worth preparing. It is asked for again with the next call.

        CodeCache share its time equally: which of them took it is not known, and together they cannot win back more.
        """
        seconds = (time.perf_counter() - self._since) / len(self.in_use)
        for key in self.in_use:
            self._spent[key] = spent = self._spent.get(key, 0.0) + seconds
            if self.is_worth_fusing(key[0], spent) and len(key[0]) <= FUSED_MOST:
                self._drop()
                self.schedules.pop(key, None)
        if self.plain_exported:
            self._drop()
            self.plain_exported = False
        self.in_use.clear()

    def prepared(self, code: bytes, jumps: int, at: int, *, on_disk: bool) -> tuple[int, int, int] | None:
        """For a frame that runs long on a plain schedule: base, jumps and place of a better one, if it is at a
        JUMPDEST."""
        key = (code, self.fork)
        plain = self.schedules.get(key)
        if plain is None or not plain.plain or plain.jumps_base != jumps or not self._may_fuse(code):
            return None
        pc = self._landing(plain, at)
        if pc is None:
            return None
        self._pinned.append(plain)
        self.needs_sweep = True
        del self.schedules[key]
        self.in_use.discard(key)
        self._spent[key] = PREPARING * len(code)
        return self._entered(self.schedule(code, on_disk=on_disk), pc)

    def schedule_with(self, code: bytes, jumps: int) -> Schedule:
        """The schedule of this code whose table of jumps is at that address."""
        for pinned in self._pinned:
            if isinstance(pinned, Schedule) and pinned.jumps_base == jumps:
                return pinned
        created = self._init_codes.get(code)
        if created is not None and created.jumps_base == jumps:
            return created
        key = code, self.fork
        for found in (self.schedules.get(key), self.hot.get(key), self.counting.get(key)):
            if found is not None and found.jumps_base == jumps:
                return found
        return self.schedule(code)

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
        if isinstance(schedule, PlainSchedule):
            schedule.units = self._plain.section(schedule, self.fork, at)
        elif not schedule.units:
            again = build_schedule(code, self.fork, self.handlers, keep_units=True, probes=self._probes)
            schedule.units = again.units
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

    def record_of(self, code: bytes) -> CodeRecord:
        """Without a schedule and without a hash, which take longer to make than looking at an account may cost."""
        key = code_key(code)
        facts = self._placed.get(key) or self.facts.get(key)
        if facts is None:
            delegate = delegate_in(code) if rules_of(self.fork).delegation else None
            flags = ACCOUNT_PLAIN if delegate is None else ACCOUNT_DELEGATED
            facts = self.facts[key] = CodeRecord(flags, code_fields(code, delegate), code)
            self._grow(ENTRY + len(code))
        return facts

    def note_hash(self, code: bytes, code_hash: bytes) -> None:
        flags, fields, _ = self.record_of(code)
        key = code_key(code)
        for facts in (self.facts, self._placed):
            if key in facts:
                flags, fields, held = facts[key]
                facts[key] = CodeRecord(flags | ACCOUNT_HASHED, code_hash[::-1] + fields[WORD:], held)

    def places(self, code: bytes, running: Running, forget: Callable[[], None]) -> bytes:
        """Where code and schedule are, for code that is about to run. `forget` is called if schedules were dropped."""
        if self.size > KEPT and not self.is_ready(code):
            self._forget_idle(running())
            forget()
        schedule = self.schedule(code)
        places = _PLACES.pack(schedule.code_base, len(code), schedule.base, schedule.jumps_base, schedule.entry)
        if schedule.plain:
            self.plain_exported = True
        else:
            flags, fields, _ = self.record_of(code)
            fields = fields[:WORD] + places + fields[WORD + len(places) :]
            self._placed[code_key(code)] = CodeRecord(flags, fields, schedule.code)
        return places


def code_key(code: bytes) -> bytes | int:
    """To hash large code takes longer than a look at its account may cost; small code is often that of many."""
    return code if len(code) < LARGE else id(code)


def code_fields(code: bytes, delegate: bytes | None = None) -> bytes:
    """An account's fields for its code, without hash and schedule; with the account it delegates to (EIP-7702)."""
    target = _ZERO if delegate is None else delegate[::-1].ljust(WORD, b"\0")
    return _ACCOUNT_CODE.pack(_ZERO, address_of(code), len(code), 0, 0, 0, target)
