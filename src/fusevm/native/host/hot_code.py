"""Between the policy of tiers, the compiler of regions and the code cache: requests, answers, windows of counting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fusevm.native.host.code_records import ENTRY
from fusevm.native.host.compiler import Asked, compiler, discard, kept, region_names
from fusevm.native.host.plain import PlainSchedule
from fusevm.native.host.regions import patched
from fusevm.native.host.schedule_cache import LARGE, checksum
from fusevm.native.host.schedule_maker import ScheduleMaker
from fusevm.native.host.tier_policy import Answer, Key, Kind, Pieces, TierPolicy
from fusevm.native.region.compiled import LARGEST, Compiled
from fusevm.schedule.build import Schedule
from fusevm.schedule.sections import TELLING

if TYPE_CHECKING:
    from fusevm.native.host.code_cache import CodeCache


class HotCode:
    """Schedules with regions, and schedules that count for the policy, of one cache."""

    def __init__(self, cache: CodeCache, maker: ScheduleMaker, *, adaptive: bool) -> None:
        self._cache = cache
        self._maker = maker
        self._adaptive = adaptive
        self.policy = self.new_policy() if adaptive else None
        self.schedules: dict[Key, Schedule] = {}  # with regions
        self.counting: dict[Key, PlainSchedule] = {}  # begun once, used in windows
        self.counts_all = False  # whether all code is counted, whatever it costs
        self.installed = 0  # schedules with regions that were put in place

    # -- what the engine asks and reports

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
            self._cache.change_schedules()
            for key in policy.rejected:
                discard(self._asked(key))
            policy.rejected.clear()

    def counted(self, key: Key) -> Pieces:
        """What of a code has run since this was asked last, or since counting began."""
        counter = self.counting.get(key)  # none if all code was forgotten meanwhile
        return {} if counter is None else self._maker.plain.counted(counter)

    # -- which schedule

    def schedule(self, key: Key, present: Schedule | None, *, on_disk: bool) -> Schedule | None:
        """What code runs on instead of its plain or fused schedule `present`; None: on that."""
        if self.counts_all:
            return self.counting.get(key) or self._begin_counting(key)
        policy = self.policy
        if policy is None:
            return None
        if policy.window is not None and (counter := self._counter(key, present)) is not None:
            policy.counts(key)
            return counter
        found = self.schedules.get(key)
        if found is None and present is None and on_disk:
            found = self._from_disk(key)
        return None if found is None or policy.is_off(key) else found

    def may_be_on_disk(self, code: bytes) -> bool:
        return self.policy is not None and checksum(code) in region_names()

    def _counter(self, key: Key, present: Schedule | None) -> PlainSchedule | None:
        """The schedule that counts, if the code has run for so long that it has, or should have, a fused one."""
        counter = self.counting.get(key)
        if counter is not None:
            return counter
        if len(key[0]) > LARGEST or self._maker.plain.is_crowded:
            return None
        worth = self._cache.is_worth_fusing_now(key) if present is None else not present.plain
        return self._begin_counting(key) if worth or key in self.schedules else None

    def _begin_counting(self, key: Key) -> PlainSchedule:
        made = self.counting[key] = self._maker.plain.schedule(self._cache.intern(key[0]), key[1], counts=True)
        self._cache.grow(made.size + ENTRY)
        return made

    # -- regions

    def new_policy(self) -> TierPolicy:
        made: TierPolicy

        def ask(key: Key, counts: dict[int, int], heat: float) -> Answer | None:
            return compiler().ask(self._asked(key), counts, heat, partial(self._answered, made, key))

        made = TierPolicy(ask)
        return made

    def _asked(self, key: Key) -> Asked:
        return Asked(*key, self._maker.noted - TELLING)

    def _answered(self, policy: TierPolicy, key: Key, answer: Compiled | Answer) -> None:
        """Called by the thread that waits for the compiler."""
        policy.finished.append((key, answer))
        self._cache.needs_sweep = True

    @property
    def has_answers(self) -> bool:
        return self.policy is not None and bool(self.policy.finished)

    def install(self) -> bool:
        """Puts what has been compiled in place; whether there was anything."""
        policy = self.policy
        if policy is None or not policy.finished:
            return False
        new = []
        while policy.finished:
            key, answer = policy.finished[0]
            made = self._with_regions(key, answer) if isinstance(answer, Compiled) else None
            if made is not None:
                before = self.schedules.get(key)
                if before is not None:
                    self._cache.retired.retire([before])
                self.schedules[key] = made
                new.append(key)
            policy.take_finished()  # last: interrupted before, it is put in place again
        policy.installed(new)
        return bool(new)

    def _with_regions(self, key: Key, compiled: Compiled) -> Schedule | None:
        made = patched(self._cache.fused_of(key), compiled)
        if made is not None:
            self.installed += 1
            self._cache.size += made.size + len(compiled.code)
        return made

    def _from_disk(self, key: Key) -> Schedule | None:
        """The schedule with regions that were made before, in this process or another."""
        policy, code = self.policy, key[0]
        if policy is None or policy.is_off(key) or checksum(code) not in region_names():
            return None
        if len(code) < LARGE and not self._cache.is_worth_fusing_now(key):
            return None  # to link them takes longer than a short run
        found = kept(self._asked(key))
        made = None if found is None else self._with_regions(key, found)
        if made is not None and found is not None:
            self.schedules[key] = made
            policy.known(key, found.profile)
        return made

    # -- forgetting

    def forget(self) -> None:
        self.schedules, self.counting = {}, {}
        if self.policy is not None:
            self.policy.forget()

    def begin_recording(self, policy: TierPolicy | None) -> None:
        """Other opcodes are noted from now on: with the policy of the last such recording, or a new one."""
        wanted = self._adaptive and self._maker.marks is None
        self.policy = (policy or self.new_policy()) if wanted else None
