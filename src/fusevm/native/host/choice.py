"""Which tier `auto` runs a call on: natively, or on the reference tier where that was found to be quicker.

Native code wins by far where there is work to do. But beginning and ending a call, asking for accounts, explaining a
halt and instructions left to Python have their price, and a program of a hundred instructions may be done before it is
paid. So calls are timed: a code's first ones natively, then one on the reference tier, which may do only about as much
work as the native run took time for. The faster tier is kept, and the other is tried again now and then.

A run on the reference tier that exceeds its bound continues natively from there (`handover.py`), or is undone and runs
natively from the start. The pauses between such attempts grow, so whatever a caller does, only a few of a million
calls become slower, each by a millisecond or so. Times decide only where a call runs; all tiers answer alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.state import State
from fusevm.native.host.precompiles import run_precompile
from fusevm.reference.brief import execute_briefly
from fusevm.reference.frame import Frame

STEP = 0.15e-6  # seconds for an instruction of the reference tier, at the least
LEAST_STEPS, MAX_STEPS = 200, 8_000  # on the reference tier: 2 ms
NEW_STEPS = 3_000  # for code that never ran natively: 0.7 ms, of which handing over is a small part
NEW_SIZE = 1 << 11  # bytes of new code that is tried on the reference tier first
WORTH_PREPARING = 0.3e-3  # seconds on the reference tier before such code runs natively
TIMED = 4  # native runs before the reference tier is tried: the first ones prepare the code, and code may run no more
TRIED = 2  # runs on the reference tier before the two are compared
QUICK = 5e-6  # seconds: as long as a call takes on the reference tier before any code runs
PAUSE, LONGEST_PAUSE = 16, 1 << 20  # native runs before the reference tier is tried again: times 4 with each try
LOOK, SELDOM = 8, 1 << 8  # runs on the reference tier before a native one: times 2 with each
UNTIMED = 0.001  # seconds of calls of one kind between two that are timed
SELECTORS = 32  # of one code; further ones share one entry
KEPT = 1 << 23  # bytes, for all statistics and the codes they belong to
ENTRY = 256  # bytes per CallStats

_NEVER = float("inf")


class CallStats:
    """Times of calls of one code with one selector, natively and on the reference tier."""

    __slots__ = (
        "_granted", "_look", "_next_pause", "_runs", "_spent", "_tries", "decides", "free", "native", "on_reference",
        "pause", "reference", "started", "steps", "until_look",
    )  # fmt: skip

    def __init__(self, *, is_new: bool) -> None:
        self.pause = 0  # native runs before anything is decided
        self.on_reference = False  # decided for now
        self.until_look = 0  # runs there before a native one
        self.started = 0.0  # when a native run that is timed began; 0 if it is not
        self.steps = NEW_STEPS if is_new else 0  # for the next run on the reference tier; 0: it is native
        self.native = self.reference = _NEVER  # seconds
        self.free = 0  # native runs that need not be timed: the next one that is stands for them
        self._granted = 0  # those that were free since the last one that was timed, and those that still are
        self.decides = False  # whether the run that is timed says which tier is quicker
        self._runs = 0  # natively, timed
        self._spent = 0.0  # seconds on the reference tier before the first native run
        self._tries = 0  # on the reference tier, that were slower
        self._next_pause, self._look = PAUSE, LOOK

    @property
    def is_natives_turn(self) -> bool:
        return self.is_paused or not self.steps or (self.on_reference and not self.until_look)

    @property
    def is_paused(self) -> bool:
        return bool(self.free or self.pause)

    def ended_natively(self, seconds: float, *, each: bool) -> int:
        """A run that began natively is over. Returns how many it stands for: itself and those that were free before
        it. Some that follow are free, unless each is to be timed."""
        if self.decides:
            self.ran_natively(seconds)
        runs = 1 + self._granted - self.free
        self.free = 0 if each else min(self.pause, int(UNTIMED / max(seconds, 1e-9)))
        self._granted = self.free
        self.pause -= self.free
        return runs

    def time_each(self) -> None:
        """Runs that were free are timed again."""
        self.pause += self.free
        self._granted -= self.free
        self.free = 0

    def tell_alone(self) -> None:
        """The time of a run that was free is reported by itself: the one that is timed next does not stand for it."""
        self._granted -= 1

    def skip(self) -> None:
        """One run of the pause is done."""
        if self.free:
            self.free -= 1
            self.tell_alone()
        else:
            self.pause -= 1

    def ran_natively(self, seconds: float) -> None:
        self._runs += 1
        self.native = min(self.native * 1.1, seconds)  # the last ones count most, and disturbed ones little
        if self._runs < TIMED:
            return
        if self.native < QUICK and not self.on_reference:
            self.stay_native()
            return
        self.steps = min(max(LEAST_STEPS, int(self.native / STEP)), MAX_STEPS)
        if self.on_reference:
            self._look = min(2 * self._look, SELDOM)
            self._decide()

    def ran_on_reference(self, seconds: float) -> None:
        self.reference = min(self.reference * 1.1, seconds)
        if not self._runs:
            self._spent += seconds
            if self._spent >= WORTH_PREPARING:
                self.steps = 0
            return
        self._tries += 1
        if self.reference < self.native or self._tries >= TRIED:
            self._decide()

    def exceeded_its_steps(self) -> None:
        if self._runs:
            self.stay_native()
        else:
            self.steps = 0

    def _decide(self) -> None:
        if self.reference < self.native:
            self.on_reference, self.until_look = True, self._look
        else:
            self.stay_native()

    def stay_native(self) -> None:
        self.on_reference, self._tries = False, 0
        self.reference = _NEVER  # it is timed again when it is tried again
        self.pause, self._next_pause = self._next_pause, min(4 * self._next_pause, LONGEST_PAUSE)


class TierChoice:
    """The statistics of one engine, and the decision for each call."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        go_on: Callable[[Frame, Context], Frame] | None = None,
    ) -> None:
        self._clock = clock
        self._go_on = go_on  # ends a frame natively that the reference tier began
        self.stats: dict[bytes, dict[bytes, CallStats]] = {}  # by code and selector
        self._size = 0
        self.on_reference = 0  # calls that ran there
        self.handed_over = 0  # frames that were started there and ended natively
        self.undone = 0  # calls that were started there and had to be undone

    def execute(
        self, stats: CallStats | None, natively: Executor, message: Message, state: State, context: Context
    ) -> Outcome:
        """Runs a message where its statistics say; without them it is the code's first with this selector."""
        if stats is None:
            stats = self._new_stats(message.code, message.data[:4])
        if stats.is_paused:
            stats.skip()
            return natively(message, state, context)
        clock, looks = self._clock, stats.on_reference and not stats.until_look
        started = clock()
        if stats.steps and not looks:
            handed_over = self.handed_over
            outcome = self._briefly(stats.steps, message, state, context)
            if self.handed_over != handed_over and outcome is not None:
                stats.exceeded_its_steps()
                return outcome
            if outcome is not None:
                self.on_reference += 1
                if stats.on_reference:
                    stats.until_look -= 1
                else:
                    stats.ran_on_reference(clock() - started)
                return outcome
            self.undone += 1
            stats.exceeded_its_steps()
            started = clock()
        outcome = natively(message, state, context)
        stats.ran_natively(clock() - started)
        return outcome

    def _briefly(self, steps: int, message: Message, state: State, context: Context) -> Outcome | None:
        finish = self._go_on
        if finish is None:
            return execute_briefly(message, state, context, steps, run_precompile)

        def go_on(frame: Frame) -> Frame:
            self.handed_over += 1
            return finish(frame, context)

        return execute_briefly(message, state, context, steps, run_precompile, go_on)

    def stats_of(self, code: bytes, selector: bytes) -> CallStats:
        by_selector = self.stats.get(code)
        return (None if by_selector is None else by_selector.get(selector)) or self._new_stats(code, selector)

    def begins_natively(self, stats: CallStats) -> bool:
        """Whether it is this call's turn to run natively. If so it is timed from now on; the next ones may be free."""
        if stats.pause:
            stats.pause -= 1
            stats.decides = False
        elif stats.steps and not stats.is_natives_turn:
            return False
        else:
            stats.decides = True
        stats.started = self._clock()
        return True

    def _new_stats(self, code: bytes, selector: bytes) -> CallStats:
        by_selector = self.stats.get(code)
        if by_selector is None:
            self._make_room(len(code) + 2 * ENTRY)
            self.stats[code] = {selector: (stats := CallStats(is_new=len(code) <= NEW_SIZE))}
            return stats
        if len(by_selector) >= SELECTORS and selector not in by_selector:
            return by_selector.setdefault(_OTHERS, CallStats(is_new=False))
        self._make_room(ENTRY)
        return by_selector.setdefault(selector, CallStats(is_new=False))

    def _make_room(self, size: int) -> None:
        if self._size + size > KEPT:
            self.forget()
        self._size += size

    def forget(self) -> None:
        self.stats, self._size = {}, 0


_OTHERS = b"others"  # longer than a selector
