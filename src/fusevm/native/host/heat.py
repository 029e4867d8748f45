"""Which code is hot: what has run for long is counted, block by block, and then compiled in the background.

Time comes first: only code that has already taken longer than all this costs is considered. Then code that is run is
counted for a few calls, on separate schedules, as far as building them costs no more than the time it took; normal
handlers do not count. Compiled regions are put in place between two calls, or while a long one waits
for its next slice of gas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from fusevm.evm.bytecode import JUMPDEST
from fusevm.evm.forks import Fork
from fusevm.native.host.compiler import LARGEST, compiler, kept
from fusevm.native.host.regions import counted, counting_schedule, patched
from fusevm.native.region.compiled import Compiled
from fusevm.schedule.build import Handlers, Schedule, build_schedule

WORTH = (0.04, 1.0, 20.0)  # seconds that code has taken before it is counted for the first time, and again
LONGEST = 1e6  # seconds: more only where nothing is known
ENOUGH = 1 << 19  # sections counted: some milliseconds of a long call
MOST_CALLS = 32  # that are counted
MAKING = 1.2e-6  # seconds per byte, for a schedule that counts
LANDING = 4  # bytes that a JUMPDEST takes as long as, beside its own: it begins a section
SHARE = 0.02  # of everything counted: less is not compiled
MOST_CODES = 4_096  # that are known

Key = tuple[bytes, Fork]


class Heat:
    """Of the codes of one engine."""

    def __init__(self, handlers: Handlers, tell: Callable[[], None]) -> None:
        self._handlers = handlers
        self._tell = tell  # that there is something to do between two calls
        self._seconds: dict[Key, float] = {}
        self._rounds: dict[Key, int] = {}  # how often it was counted, for its own sake or along with others
        self._counts: dict[Key, dict[int, int]] = {}
        self.counting: dict[Key, Schedule] | None = None  # the schedules that count, while they are in use
        self._room = 0.0  # seconds left to make such schedules in
        self._calls = 0
        self._cause: Key | None = None  # the code that counting was begun for
        self._asked: set[Key] = set()  # whose regions are being compiled
        self.finished: deque[tuple[Key, Compiled]] = deque()  # what the compiler sent
        self.installed = 0

    def note(self, key: Key, seconds: float) -> bool:
        """A code was run for so long; whether it is time to count."""
        if self.counting is not None or len(key[0]) > LARGEST or seconds > LONGEST:
            return False
        if len(self._seconds) > MOST_CODES:
            self._seconds.clear()
        if len(self._rounds) > MOST_CODES and not self._asked:
            self._rounds.clear()
            self._counts.clear()
        spent = self._seconds[key] = self._seconds.get(key, 0.0) + seconds
        done = self._rounds.get(key, 0)
        if key in self._asked or done >= len(WORTH) or spent < WORTH[done]:
            return False
        self._room, self._cause = 2 * WORTH[done], key
        return True

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being counted, compiled or waiting to be put in place."""
        return self.counting is None and not self._asked and not self.finished

    def begin(self) -> None:
        self.counting, self._calls = {}, 0

    def count(self, key: Key) -> Schedule | None:
        """A schedule that counts, for code that has none in this round; nothing where no time is left to make it."""
        code = key[0]
        price = MAKING * (len(code) + LANDING * code.count(JUMPDEST))
        if self.counting is None or len(code) > LARGEST or price > self._room:
            return None
        self._room -= price
        found = self.counting[key] = counting_schedule(*key, self._handlers)
        return found

    @property
    def has_counted_enough(self) -> bool:
        assert self.counting is not None
        return sum(sum(counted(each).values()) for each in self.counting.values()) >= ENOUGH

    def next_call(self) -> bool:
        """Between two calls; whether counting is over."""
        self._calls += 1
        return self._calls >= MOST_CALLS or (self._calls > 1 and self.has_counted_enough)

    def end(self) -> None:
        """Asks for regions of what was counted."""
        counting, self.counting = self.counting or {}, None
        found = {key: counted(each) for key, each in counting.items()}
        if self._cause is not None and self._cause not in found:
            self._seconds[self._cause] = 0.0  # it did not run natively, or there was no time left for its schedule
        whole = sum(sum(counts.values()) for counts in found.values())
        for key, counts in found.items():
            if sum(counts.values()) < SHARE * whole:
                continue
            known = self._counts.setdefault(key, {})
            for pc, count in counts.items():
                if count:
                    known[pc] = known.get(pc, 0) + count
            self._rounds[key] = self._rounds.get(key, 0) + 1
            self._asked.add(key)  # first: the answer may be there before `ask` is back
            if not compiler().ask(*key, dict(known), partial(self._done, key)):
                self._asked.discard(key)

    def _done(self, key: Key, compiled: Compiled | None) -> None:
        """Called by the thread that waits for the compiler."""
        if compiled is None:
            self._rounds[key] = len(WORTH)  # no regions: not requested again
            self._asked.discard(key)
            return
        self.finished.append((key, compiled))
        self._tell()

    def take_finished(self) -> tuple[Key, Compiled]:
        key, compiled = self.finished[0]
        self._asked.discard(
            key
        )  # first: interrupted before the next line it is taken again, and after it counted again
        self.finished.popleft()
        return key, compiled

    def from_disk(self, key: Key) -> Schedule | None:
        """The schedule with regions that were made before, in this process or another."""
        found = kept(*key)
        return None if found is None else self.with_regions(key, found)

    def with_regions(self, key: Key, compiled: Compiled) -> Schedule | None:
        self.installed += 1
        self._asked.discard(key)
        self._seconds[key] = 0.0
        self._rounds[key] = max(self._rounds.get(key, 0), 1)
        return patched(build_schedule(*key, self._handlers, loops=False), compiled)
