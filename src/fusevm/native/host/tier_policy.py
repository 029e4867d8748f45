"""Which code is compiled as regions, and when: one policy per engine, with a stated budget.

*Work* is the time that calls take on native code, as the engine reports it. Now and then there is a *window*: for about
`WINDOW` seconds of work, everything that runs is counted section by section, in callees too. The instructions that each
code executed say which share of the work since the last window is its own, and how much of it regions could save. That
is its *heat*. Code whose heat exceeds what compiling it costs is requested, the hottest first.

What windows take is limited: `SHARE` of all work, and `ALLOWANCE` in addition while little has been
done (`budget`). Windows come less often while they bring nothing new.

A code's *profile* is the set of its hot sections. It is requested once; again only when the program has moved to
sections that no request covered, each time after twice as much heat as before, at most `MAX_ROUNDS` times.

Regions that were put in place are on *trial*: gas per second before and after, for calls of the same kind. Unless they
are far better, they are taken out and put back in turns. Regions that turn out to be slower stay out.

Nothing here knows schedules or native code, and the only clock is the one that is given: the bounds are tested without
timing (`tests/test_tier_policy.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from fusevm.evm.forks import Fork
from fusevm.native.region.compiled import HOT, Compiled

FIRST_WINDOW = 0.02  # seconds of work before the first window
WINDOW = 0.002  # seconds of work in a window
CALLS = 16  # calls in a window at the least: a few may not show who else runs …
LONG_WINDOW = 0.01  # … as far as they take no more seconds
MIN_GAP, MAX_GAP = 0.02, 0.5  # seconds of work between two windows: the shortest, and the longest
WIDENS = 1.3  # how much longer the next gap is where a window brought nothing new
SHARE = 0.03  # of all work that may be spent on counting
ALLOWANCE, EARLY = 0.08, 0.1  # seconds in addition, as far as they are no more than that share of the work
SWITCHING = 20e-6  # seconds for each code that ran in a window: its schedule is asked for twice
STEP = 2e-9  # seconds that an instruction takes at most if it does nothing but arithmetic: what regions can save
MIN_HEAT = 0.02  # seconds before a code is compiled
RENT = 0.1e-3  # seconds likewise, per hot instruction: a fraction of the time it takes to compile it
MOVED = 0.1  # of what a code executes in a window: sections outside its profile that are worth another request
MAX_ROUNDS = 8  # requests for one code
MAX_CODES = 1_024  # whose profile is known
MAX_KINDS = 4_096  # of calls whose speed is known
MAX_PIECES = 1_024  # sections of a code in its profile: the hottest

ARM = 0.002  # seconds of work with regions, or without, in a trial
PAIRS = 3  # arms of each
FAR_BETTER = 0.6  # of the time before: nothing needs to be compared
WORSE = 1.05  # of the time without them: regions are taken out, if each pair of arms agrees
LONG_CALL = 0.05  # seconds: calls that are too long to be run without regions for a comparison
MAX_TRIAL = 1.0  # seconds of work; a trial without a result ends then, and its regions stay

Key = tuple[bytes, Fork]
Kind = tuple[bytes, bytes]  # of calls: the outermost code, and the selector
Pieces = Mapping[int, tuple[int, int]]  # by the pc of each section: how often it ran, and its instructions


class Answer(Enum):
    """Why a request brought no regions."""

    NEVER = 0  # there are none of this code
    LATER = 1  # there was no room for it


Ask = Callable[[Key, dict[int, int], float], Answer | None]  # code, counts, heat; None: it will be answered


class CodeStats:
    """What is known of a code that ran in a window."""

    __slots__ = ("asked", "counts", "heat", "is_refused", "profile", "rounds", "size")

    def __init__(self) -> None:
        self.heat = 0.0  # seconds that regions could have saved since the last request
        self.counts: dict[int, int] = {}  # of its hot sections, the last window's at full weight
        self.size = 0  # instructions in them
        self.profile: frozenset[int] = frozenset()  # sections that were hot in any request
        self.asked = False  # whether an answer is awaited
        self.is_refused = False  # it has no regions, or they do not pay
        self.rounds = 0  # requests

    @property
    def price(self) -> float:
        """The heat that is worth a request."""
        return max(MIN_HEAT, RENT * self.size) * (1 << self.rounds)

    @property
    def is_wanted(self) -> bool:
        return not (self.asked or self.is_refused) and self.rounds < MAX_ROUNDS and self.heat >= self.price

    def add(self, pieces: Pieces, seconds: float) -> None:
        """A window counted this; regions could save so much of the work since the last one."""
        total = sum(count * steps for count, steps in pieces.values())
        most = max(count for count, _ in pieces.values())
        hot = {pc for pc, (count, _) in pieces.items() if count >= HOT * most}
        moved = sum(pieces[pc][0] * pieces[pc][1] for pc in hot - self.profile) / total
        if self.rounds and moved < MOVED:
            return
        self.heat += seconds * moved
        known = {pc: count // 2 for pc, count in self.counts.items()}
        for pc in hot:
            known[pc] = known.get(pc, 0) + pieces[pc][0]
        kept = sorted(known, key=known.__getitem__, reverse=True)[:MAX_PIECES]
        self.counts = {pc: known[pc] for pc in kept if known[pc]}
        self.size = sum(pieces[pc][1] for pc in hot)

    def request(self) -> dict[int, int]:
        """The counts to compile by. What was hot in earlier requests stays so."""
        least = int(HOT * max(self.counts.values())) + 1
        return {pc: max(self.counts.get(pc, 0), least) for pc in self.profile} | {
            pc: count if pc not in self.profile else max(count, least) for pc, count in self.counts.items()
        }


class Window:
    """Some calls that are counted."""

    __slots__ = ("calls", "seconds", "seen")

    def __init__(self) -> None:
        self.seconds = 0.0  # of its calls
        self.calls = 0
        self.seen: set[Key] = set()  # codes that are counted

    @property
    def is_over(self) -> bool:
        return self.seconds >= (WINDOW if self.calls >= CALLS else LONG_WINDOW)


class Speed:
    """Seconds and gas of calls of one kind."""

    __slots__ = ("gas", "reports", "seconds")

    def __init__(self) -> None:
        self.seconds = self.gas = 0.0
        self.reports = 0

    def add(self, seconds: float, gas: int, keeps: float = 1.0) -> None:
        self.seconds = self.seconds * keeps + seconds
        self.gas = self.gas * keeps + gas
        self.reports += 1


class Arm:
    """A part of a trial: with regions or without."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.longest = 0.0
        self._warm: set[Kind] = set()  # kinds that were called: the first call of each asks for schedules
        self.speeds: dict[Kind, Speed] = {}

    def add(self, kind: Kind, seconds: float, gas: int) -> None:
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
        if kind not in self._warm:
            self._warm.add(kind)
        elif gas > 0:
            self.speeds.setdefault(kind, Speed()).add(seconds, gas)

    @property
    def is_over(self) -> bool:
        return self.seconds >= ARM and bool(self.speeds)


class Trial(NamedTuple):
    """Regions that were put in place last, and what is known of their speed."""

    batch: frozenset[Key]
    before: dict[Kind, Speed]
    began: float  # work that was done before
    arms: list[Arm]  # with regions and without, in turns

    @property
    def is_off(self) -> bool:
        return len(self.arms) % 2 == 0


def ratio(speeds: Mapping[Kind, Speed], others: Mapping[Kind, Speed]) -> float | None:
    """The time of calls relative to that at the speed of others; None where no kind of calls is among both."""
    common = [kind for kind in speeds if kind in others and others[kind].gas > 0]
    if not common:
        return None
    expected = sum(speeds[kind].gas * others[kind].seconds / others[kind].gas for kind in common)
    return sum(speeds[kind].seconds for kind in common) / expected if expected else None


class TierPolicy:
    """Of the codes of one engine. Between two calls, or when a long call asks for gas, `change` is due after `worked`
    or `installed` has said so."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.work = 0.0  # seconds, windows included
        self.spent = 0.0  # of these and beyond them, on counting
        self.windows = 0  # that are over
        self.requests = 0  # that were accepted
        self.window: Window | None = None
        self.trial: Trial | None = None
        self.codes: dict[Key, CodeStats] = {}
        self._off: set[Key] = set()  # whose regions were taken out
        self.rejected: list[Key] = []  # since somebody looked
        self._speeds: dict[Kind, Speed] = {}
        self._next, self._gap = FIRST_WINDOW, MIN_GAP
        self._counted = 0.0  # the work that is accounted for
        self._suspects: deque[frozenset[Key]] = deque()  # parts of a batch that did not pay, to be tried by themselves
        self.finished: deque[tuple[Key, Compiled | Answer]] = deque()  # answers, added by another thread

    # -- what the engine reports

    def worked(self, kind: Kind | None, seconds: float, gas: int = 0, noted: float = 0.0, earlier: float = 0.0) -> bool:
        """A call of a kind took so long and used so much gas; `noted` seconds of it were reported before. None: a part
        of a call. Calls before it that were not reported took `earlier` seconds. Returns whether `change` is due."""
        self.work += seconds - noted + earlier
        if self.window is not None:
            self.window.seconds += seconds - noted
            self.window.calls += 1
            self.spent += seconds - noted
            return self.window.is_over
        if self.trial is not None:
            return self._tried(self.trial, kind, seconds, gas)
        if kind is not None and gas > 0:
            speed = self._speeds.get(kind)
            if speed is None:
                if len(self._speeds) >= MAX_KINDS:
                    self._speeds.clear()
                speed = self._speeds[kind] = Speed()
            speed.add(seconds, gas, keeps=0.8)
        return self.work >= self._next and self.is_due

    @property
    def budget(self) -> float:
        """Seconds that may be spent on counting, and are not yet."""
        return SHARE * self.work + min(ALLOWANCE, EARLY * self.work) - self.spent

    @property
    def is_due(self) -> bool:
        """Whether it is time for a window."""
        return self.work >= self._next and self.budget >= WINDOW

    @property
    def is_watching(self) -> bool:
        """Whether every call's time should be reported by itself."""
        return self.window is not None or self.trial is not None

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being counted, compiled, tried or waiting to be put in place."""
        busy = self.is_watching or bool(self.finished)
        return not busy and not any(each.asked or each.is_wanted for each in self.codes.values())

    def counts(self, key: Key) -> None:
        """In a window: this code runs on its counting schedule."""
        assert self.window is not None
        if key not in self.window.seen:
            self.window.seen.add(key)
            self.spent += SWITCHING

    def is_off(self, key: Key) -> bool:
        """Whether the code runs without the regions that it has."""
        return key in self._off or (self.trial is not None and self.trial.is_off and key in self.trial.batch)

    # -- what is due

    def change(self, counted: Callable[[Key], Pieces]) -> None:
        """Begins or ends a window, or an arm of a trial: other schedules are in use from now on."""
        if self.window is not None:
            self._end_window(self.window, {key: counted(key) for key in self.window.seen})
        elif self.trial is not None:
            self._next_arm(self.trial)
        elif self.is_due:
            self.window = Window()

    def _end_window(self, window: Window, found: Mapping[Key, Pieces]) -> None:
        self.window = None
        self.windows += 1
        interval, self._counted = self.work - self._counted, self.work
        steps = {key: sum(count * size for count, size in pieces.values()) for key, pieces in found.items()}
        worth = interval * min(1.0, sum(steps.values()) * STEP / max(window.seconds, 1e-9))
        requests = self.requests
        for key, executed in steps.items():
            if executed:
                self._stats(key).add(found[key], worth * executed / sum(steps.values()))
        self.request()
        news = self.requests > requests or any(each.is_wanted for each in self.codes.values())
        self._gap = MIN_GAP if news else min(MAX_GAP, WIDENS * self._gap)
        self._next = self.work + self._gap

    def _stats(self, key: Key) -> CodeStats:
        found = self.codes.get(key)
        if found is None:
            if len(self.codes) >= MAX_CODES:
                self._drop_coldest()
            found = self.codes[key] = CodeStats()
        return found

    def _drop_coldest(self) -> None:
        """Half of the codes, none of which is being compiled. Those whose regions do not pay are known beyond that."""
        idle = [key for key, each in self.codes.items() if not each.asked]
        idle.sort(key=lambda key: (self.codes[key].is_refused, self.codes[key].heat))
        for key in idle[: MAX_CODES // 2]:
            del self.codes[key]
        self._off.intersection_update(self.codes)

    def request(self) -> None:
        """Asks for what is hot enough, the hottest first, as far as there is room."""
        for key in sorted(self.codes, key=lambda key: self.codes[key].heat, reverse=True):
            each = self.codes[key]
            if not each.is_wanted:
                continue
            counts = each.request()
            each.asked = True  # first: the answer may be there before `_ask` is back
            answer = self._ask(key, counts, each.heat)
            if answer is not None:
                each.asked, each.is_refused = False, answer is Answer.NEVER
                if answer is Answer.LATER:
                    return
                continue
            self.requests += 1
            each.rounds += 1
            each.heat = 0.0
            each.profile |= counts.keys()

    # -- answers, and whether they pay

    def take_finished(self) -> None:
        """The first answer has been dealt with."""
        key, answer = self.finished[0]
        each = self._stats(key)
        if answer is Answer.NEVER:
            each.is_refused = True
        elif answer is Answer.LATER and each.asked:  # as if it had not been requested
            each.rounds = max(0, each.rounds - 1)
            each.heat = max(each.heat, each.price)
        each.asked = False
        self.finished.popleft()

    def known(self, key: Key, profile: Iterable[int]) -> None:
        """Regions of this profile were made before, by another engine or process."""
        each = self._stats(key)
        each.profile |= frozenset(profile)
        each.rounds = max(each.rounds, 1)

    def forget(self) -> None:
        """No regions are in place any more, and no code is known but what is being compiled."""
        self.window = self.trial = None
        self.codes = {key: each for key, each in self.codes.items() if each.asked}
        self._off, self._speeds = set(), {}
        self._suspects.clear()

    def installed(self, keys: Iterable[Key]) -> None:
        """Regions are in place: they are on trial."""
        batch = frozenset(keys)
        if batch:
            before = self._speeds
            if self.trial is not None:  # begins again, with these
                batch, before = batch | self.trial.batch, self.trial.before
            self._off -= batch
            self._speeds = {}
            self.trial = Trial(batch, before, self.work, [Arm()])
        self.request()  # there may be room now

    def _tried(self, trial: Trial, kind: Kind | None, seconds: float, gas: int) -> bool:
        if kind is not None:
            trial.arms[-1].add(kind, seconds, gas)
        return trial.arms[-1].is_over or self.work - trial.began > MAX_TRIAL

    def _next_arm(self, trial: Trial) -> None:
        """An arm is over, or the whole trial."""
        first = trial.arms[0]
        if len(trial.arms) == 1 or self.work - trial.began > MAX_TRIAL:
            change = ratio(first.speeds, trial.before)
            if first.longest > LONG_CALL or self.work - trial.began > MAX_TRIAL:
                self._conclude(trial, pays=change is None or len(trial.arms) > 1 or change < 2 * WORSE - 1)
                return
            if change is not None and change < FAR_BETTER:
                self._conclude(trial, pays=True)
                return
        if len(trial.arms) < 2 * PAIRS:
            trial.arms.append(Arm())
            return
        with_regions, without = trial.arms[::2], trial.arms[1::2]
        changes = [ratio(a.speeds, b.speeds) or 1.0 for a, b in zip(with_regions, without, strict=True)]
        self._conclude(trial, pays=min(changes) < 1.0 or sum(changes) / PAIRS < WORSE)

    def _conclude(self, trial: Trial, *, pays: bool) -> None:
        """Ends a trial. Of several codes that do not pay, each half is tried by itself."""
        self.trial = None
        if not pays and len(trial.batch) == 1:
            self._off |= trial.batch
            self.rejected += trial.batch
            for key in trial.batch:
                self._stats(key).is_refused = True
        elif not pays:
            codes = sorted(trial.batch, key=lambda key: key[0])
            half = frozenset(codes[: len(codes) // 2])
            self._suspects += (half, trial.batch - half)
        if self._suspects:
            self.trial = Trial(self._suspects.popleft(), {}, self.work, [Arm()])
