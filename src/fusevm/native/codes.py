"""What is known of code that ran before: its schedule, and what frames and accounts with that code have in common."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, NamedTuple

from fusevm.chain.outcome import EngineLimit
from fusevm.chain.state import EMPTY_CODE_HASH, delegate_in
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.keccak import keccak256
from fusevm.fuse.schedule import Handlers, Schedule, Unit, address_of, build_schedule
from fusevm.native.layout import ACCOUNT_PLAIN, STACK_ALIGN, WORD, Account, Frame
from fusevm.native.plain import MOST, PlainScheduler, plain_units
from fusevm.native.schedules import ScheduleStore
from fusevm.native.tables import Tables
from fusevm.native.views import words

if TYPE_CHECKING:
    from fusevm.native.build import Library

PREPARING = 0.6e-6  # seconds a byte: half of what a fused schedule takes, for it will be the better one from then on
KEPT = 1 << 25  # bytes of code whose schedules are kept, each counted a little longer than it is
INIT_KEPT = 1 << 24  # bytes of init code likewise: half a gigabyte at worst
_ACCOUNT_CODE = struct.Struct(words(Account, "code_hash", "jumps"))
NO_ACCOUNT = bytes(_ACCOUNT_CODE.size)
NO_CODE = EMPTY_CODE_HASH[::-1].ljust(_ACCOUNT_CODE.size, b"\0")
_FRAME_REST = struct.Struct(words(Frame, "ip", "depth"))


class CodeFacts(NamedTuple):
    """What an account's native copy says of its code."""

    flags: int
    fields: bytes  # from `code_hash` on


class Codes:
    """Schedules and what follows from them. Native frames and accounts hold addresses into these."""

    def __init__(
        self, tables: Tables, native: Library, store: ScheduleStore, handlers: Handlers, *, probes: bool, tiered: bool
    ) -> None:
        self._tables = tables
        self._native = native
        self._store = store
        self.handlers = handlers
        self._plain = PlainScheduler(native.plain_schedule, handlers)
        self._probes = probes
        self.tiered = tiered  # whether code is run plainly until that has taken as long as preparing it
        self.fork = LATEST
        self.schedules: dict[tuple[bytes, Fork], Schedule] = {}
        self.first_frames: dict[bytes, bytes] = {}  # of the present fork, as the facts
        self.facts: dict[bytes, CodeFacts] = {}
        self.size = 0
        self._init_codes: dict[bytes, Schedule] = {}  # of the present fork; native code remembers where they are
        self._init_size = 0
        self.in_use: set[tuple[bytes, Fork]] = set()  # code that this call runs plainly
        self._spent: dict[tuple[bytes, Fork], float] = {}  # seconds that took
        self._retired: list[Schedule] = []  # frames may still hold addresses into these

    def bind(self, fork: Fork) -> None:
        """Only between calls."""
        if fork != self.fork:
            self._forget_init_codes()
        self.fork = fork
        self.first_frames.clear()
        self.facts.clear()

    def make_room(self) -> None:
        """Only between calls."""
        if self.size > KEPT:
            self._forget()
        if self._retired:
            self._retired = []

    def use(self, store: ScheduleStore, handlers: Handlers) -> None:
        """Other handlers from now on. Only between calls."""
        self._store, self.handlers = store, handlers
        self._plain = PlainScheduler(self._native.plain_schedule, handlers)
        self._forget()

    def _forget(self) -> None:
        self.schedules.clear()
        self.first_frames.clear()
        self.facts.clear()
        self._spent.clear()
        self.size = 0
        self._forget_init_codes()

    def schedule(self, code: bytes, *, on_disk: bool = True) -> Schedule:
        key = (code, self.fork)
        schedule = self.schedules.get(key)
        if schedule is None:
            schedule = self.schedules[key] = self._made(code, on_disk=on_disk)
            self.size += len(code) + 1024
        if schedule.plain:
            self.in_use.add(key)
        return schedule

    def _made(self, code: bytes, *, on_disk: bool) -> Schedule:
        fork = self.fork
        if self.tiered and len(code) <= MOST and self._spent.get((code, fork), 0.0) < PREPARING * len(code):
            kept = self._store.kept(code, fork) if on_disk else None
            return kept or self._plain.schedule(code, fork)
        if self._probes or not on_disk:
            return build_schedule(code, fork, self.handlers, probes=self._probes)
        return self._store.get(code, fork)

    def tally(self, seconds: float) -> None:
        """A call is over that took so long: what it ran plainly may now be worth preparing."""
        for key in self.in_use:
            self._spent[key] = spent = self._spent.get(key, 0.0) + seconds
            if spent >= PREPARING * len(key[0]):
                self.schedules.pop(key, None)
        self.in_use.clear()

    def prepared(self, code: bytes, base: int, at: int, *, on_disk: bool) -> tuple[int, int, int] | None:
        """For a frame that runs long on a plain schedule: base, jumps and place of a better one, if it stands at a
        JUMPDEST."""
        key = (code, self.fork)
        plain = self.schedules.get(key)
        if plain is None or not plain.plain or plain.base != base or at not in plain.jumps:
            return None
        pc = plain.jumps.index(at)
        self._retired.append(self.schedules.pop(key))
        self.in_use.discard(key)
        self._spent[key] = PREPARING * len(code)
        better = self.schedule(code, on_disk=on_disk)
        return better.base, better.jumps_base, better.base + 8 * better.jumps[pc]

    def schedule_at(self, code: bytes, base: int) -> Schedule:
        """The one of this code that stands there."""
        for retired in self._retired:
            if retired.base == base:
                return retired
        return self.schedule(code)

    def init_code(self, code: bytes, running: Callable[[], Container[int]]) -> Schedule:
        """The schedule of init code, which native code will remember; `running` says where those in use are."""
        schedule = self._init_codes.get(code)
        if schedule is None:
            if self._init_size > INIT_KEPT:
                self._forget_init_codes(running())
            if self._probes or len(code) > MOST:
                schedule = build_schedule(code, self.fork, self.handlers, probes=self._probes)
            else:
                schedule = self._plain.schedule(code, self.fork)
            self._init_codes[code] = schedule
            self._init_size += len(code) + 1024
        return schedule

    def _forget_init_codes(self, running: Container[int] = ()) -> None:
        """But for those at these places."""
        if not self._init_codes:
            return
        self._tables.init_codes.clear()
        self._init_codes = {code: each for code, each in self._init_codes.items() if each.base in running}
        self._init_size = sum(len(code) + 1024 for code in self._init_codes)
        if self._init_size > INIT_KEPT:
            raise EngineLimit(f"more than {INIT_KEPT >> 20} MiB of init code running at once")

    def units(self, schedule: Schedule) -> list[Unit]:
        """What stands in a schedule: made on demand, to tell where a frame failed."""
        code = schedule.code
        if not schedule.units and schedule.plain:
            schedule.units = plain_units(code, self.fork, self.handlers.native)
        elif not schedule.units:
            again = build_schedule(code, self.fork, self.handlers, keep_units=True, probes=self._probes)
            schedule.units, schedule.fused_loops = again.units, again.fused_loops
            self.size += 20 * len(code)
        return schedule.units

    def first_frame(self, code: bytes) -> bytes:
        """What goes with the code in a call's first frame."""
        rest = self.first_frames.get(code)
        if rest is None:
            rest = self.frame_rest(code, 0, 0, (0, 0, 0), in_python=0, serial=0)
            if not self.schedule(code).plain:
                self.first_frames[code] = rest
        return rest

    def frame_rest(
        self, code: bytes, depth: int, start: int, marks: tuple[int, int, int], *, in_python: int, serial: int
    ) -> bytes:
        """A frame's fields from `ip` on, its memory beginning where `start` says."""
        schedule, tables = self.schedule(code), self._tables
        return _FRAME_REST.pack(
            schedule.base + 16, tables.stacks.address + depth * STACK_ALIGN,
            tables.memory.address + start, 0, 0,  # memory
            schedule.base, schedule.jumps_base, schedule.code_base, len(code),
            0, 0, 0, 0, 0, 0, 0,  # return data, output, pc, the running call
            *marks, in_python, serial, 0, 0, tables.address, depth,
        )  # fmt: skip

    def facts_of(self, code: bytes) -> CodeFacts:
        facts = self.facts.get(code)
        if facts is None:
            facts = self.facts[code] = self._find_out(code)
        return facts

    def _find_out(self, code: bytes) -> CodeFacts:
        """Without a schedule, which takes longer to build than looking at an account may cost."""
        flags, fields = hidden_code(code)
        return CodeFacts(flags if delegate_in(code) is not None else ACCOUNT_PLAIN, fields)

    def scheduled_facts(self, code: bytes) -> CodeFacts:
        """The facts with a schedule: the code is about to run."""
        schedule = self.schedule(code)
        places = schedule.code_base, len(code), schedule.base, schedule.jumps_base
        code_hash = self.facts_of(code).fields[:WORD]
        facts = CodeFacts(ACCOUNT_PLAIN, _ACCOUNT_CODE.pack(code_hash, *places))
        if not schedule.plain:
            self.facts[code] = facts
        return facts


def hidden_code(code: bytes) -> CodeFacts:
    """Code that native code may not run itself: a delegation's, or what stands where a precompile is."""
    return CodeFacts(0, _ACCOUNT_CODE.pack(keccak256(code)[::-1], address_of(code), len(code), 0, 0))
