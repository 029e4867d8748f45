"""The policy of `auto`, without timing: random lives of simulated codes, whose bounds are those that its docs state."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm.evm.forks import LATEST
from fusevm.native.host import tier_policy as policy_module
from fusevm.native.host.tier_policy import (
    ALLOWANCE,
    EARLY,
    LONG_WINDOW,
    MAX_CODES,
    MAX_ROUNDS,
    MIN_GAP,
    MIN_HEAT,
    PAIRS,
    SHARE,
    SWITCHING,
    WINDOW,
    Answer,
    Key,
    Kind,
    Pieces,
    TierPolicy,
)
from fusevm.native.region.compiled import Compiled

NATIVE, COUNTED = 1e-9, 2.5e-9  # seconds for an instruction


@dataclass
class Code:
    """A code whose hot loop may move: sections that run in each phase, how often, and how long they are."""

    number: int
    steps: int  # instructions of one run
    gain: float = 0.3  # the time of an instruction in a region, relative to that without
    phases: int = 1
    regions: frozenset[int] = frozenset()  # sections that are compiled
    counted: dict[int, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.number.to_bytes(4, "big"), LATEST

    def sections(self, phase: int) -> dict[int, tuple[int, int]]:
        """By pc: how often it runs, and its instructions."""
        first = 1000 * (phase % self.phases)
        return {first: (1, 5), first + 10: (max(1, self.steps // 20), 20)}


class World:
    """Drives a policy as the engine does. The compiler takes time, has room for so many requests, and refuses some."""

    def __init__(
        self, codes: list[Code], *, room: int = 4, compiling: float = 0.2, refuses: frozenset[int] = frozenset()
    ):
        self.codes = {code.key: code for code in codes}
        self.room, self.compiling, self.refuses = room, compiling, refuses
        self.waiting: list[tuple[float, Key, dict[int, int]]] = []
        self.requests: dict[Key, list[frozenset[int]]] = {}
        self.asked_in_vain = 0
        self.policy = TierPolicy(self._ask)
        self.phase = 0
        self.overshoot = 0.0

    def _ask(self, key: Key, counts: dict[int, int], heat: float) -> Answer | None:
        assert heat >= MIN_HEAT
        assert key not in {asked for _, asked, _ in self.waiting}
        if self.codes[key].number in self.refuses:
            return Answer.NEVER
        if len(self.waiting) >= self.room:
            self.asked_in_vain += 1
            return Answer.LATER
        self.waiting.append((self.policy.work + self.compiling, key, counts))
        self.requests.setdefault(key, []).append(frozenset(counts))
        return None

    def call(self, called: dict[Key, int]) -> None:
        """One call, which runs each of these codes so often."""
        self._install()
        kind: Kind = next(iter(called))[0], b""
        seconds = gas = 0.0
        for key, times in called.items():
            spent = times * self._run(self.codes[key], times)
            seconds, gas = seconds + spent, gas + 3 * times * self.codes[key].steps
        self.overshoot = max(self.overshoot, seconds)
        if self.policy.worked(kind, seconds, int(gas)):
            self.policy.change(self._counted)
        self.check()

    def _run(self, code: Code, times: int) -> float:
        """Seconds of one run."""
        policy, sections = self.policy, code.sections(self.phase)
        if policy.window is not None:
            policy.counts(code.key)
            for pc, (count, _) in sections.items():
                code.counted[pc] = code.counted.get(pc, 0) + times * count
            return COUNTED * code.steps
        off = policy.is_off(code.key)
        return sum(
            count * size * NATIVE * (code.gain if pc in code.regions and not off else 1.0)
            for pc, (count, size) in sections.items()
        )

    def _counted(self, key: Key) -> Pieces:
        code = self.codes[key]
        counted, code.counted = code.counted, {}
        sizes = {pc: size for phase in range(code.phases) for pc, (_, size) in code.sections(phase).items()}
        return {pc: (count, sizes[pc]) for pc, count in counted.items()}

    def _install(self) -> None:
        new, policy = [], self.policy
        for ready, key, counts in list(self.waiting):
            if ready <= policy.work:
                self.waiting.remove((ready, key, counts))
                policy.finished.append((key, Compiled(0, (), b"", tuple(counts))))
                self.codes[key].regions = frozenset(counts)
                new.append(key)
        while policy.finished:
            policy.take_finished()
        if new:
            policy.installed(new)

    def check(self) -> None:
        """The bounds of the policy, at any time."""
        policy = self.policy
        allowed = SHARE * policy.work + min(ALLOWANCE, EARLY * policy.work)
        assert policy.spent <= allowed + LONG_WINDOW + self.overshoot + SWITCHING * len(self.codes)
        assert policy.windows <= policy.work / MIN_GAP + 1
        assert all(each.rounds <= MAX_ROUNDS for each in policy.codes.values())
        assert all(len(asked) <= MAX_ROUNDS for asked in self.requests.values())
        assert len(policy.codes) <= MAX_CODES
        assert self.asked_in_vain <= policy.windows + sum(map(len, self.requests.values())) + 1

    def live(self, calls: list[dict[Key, int]], work: float, rng: Random | None = None) -> None:
        """Calls in turn, or at random, for so many seconds of work."""
        ends, number = self.policy.work + work, 0
        while self.policy.work < ends:
            self.call(calls[number % len(calls)] if rng is None else rng.choice(calls))
            number += 1


codes_of_lives = st.lists(
    st.builds(
        dict, steps=st.sampled_from([50, 50_000, 1_000_000]),
        gain=st.sampled_from([0.05, 0.3, 0.9, 1.0, 1.3, 2.0]), phases=st.integers(1, 3),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(codes_of_lives, st.integers(0, 2**32), st.integers(1, 40), st.floats(0.0, 2.0))
def test_whatever_runs_counting_requests_and_memory_stay_within_their_bounds(
    made: list[dict[str, int]], seed: int, room: int, compiling: float
) -> None:
    rng = Random(seed)
    codes = [Code(number, **each) for number, each in enumerate(made)]  # type: ignore[arg-type]
    busy = Code(len(codes), 300_000)  # so that no call takes next to no time
    refuses = frozenset(rng.sample(range(len(codes)), len(codes) // 4))
    world = World([*codes, busy], room=room, compiling=compiling, refuses=refuses)
    calls = [
        {busy.key: 1} | {code.key: rng.choice((1, 1, 3)) for code in rng.sample(codes, rng.randint(1, len(codes)))}
        for _ in range(rng.randint(1, 8))
    ]
    for _ in range(3):
        world.live(calls, 0.8, rng)
        world.phase += 1


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32), st.booleans())
def test_every_code_that_is_hot_for_long_gets_its_regions(count: int, seed: int, in_one_call: bool) -> None:
    """In callees too, whoever calls them."""
    rng = Random(seed)
    codes = [Code(number, rng.choice((200_000, 1_000_000))) for number in range(count)]
    thin = Code(count, 12)
    calls = [{thin.key: 1, code.key: 1} for code in codes]
    if in_one_call:
        calls = [{key: 1 for call in calls for key in call}]
    world = World([*codes, thin], room=8, compiling=0.02)
    work = 3.0 + 40 * MIN_HEAT * count  # shares differ by five, and windows are samples
    world.live(calls, work, None if in_one_call else rng)
    assert all(code.regions for code in codes)
    assert all(len(asked) == 1 for key, asked in world.requests.items() if key != thin.key)


def test_a_proxy_is_not_charged_with_what_its_target_spends() -> None:
    proxy, target = Code(0, 30), Code(1, 400_000)
    world = World([proxy, target])
    world.live([{proxy.key: 1, target.key: 1}], 3.0)
    assert world.requests.keys() == {target.key}
    assert world.policy.is_settled


def test_windows_become_rare_when_nothing_is_new() -> None:
    world = World([Code(0, 200_000)])
    world.live([{world.codes[next(iter(world.codes))].key: 1}], 2.0)
    before = world.policy.windows
    world.live([{next(iter(world.codes)): 1}], 10.0)
    assert world.policy.windows - before <= 30


@pytest.mark.parametrize("phases", [2, 3])
def test_a_hot_loop_that_moves_is_compiled_again_and_stays_compiled(phases: int) -> None:
    code = Code(0, 200_000, phases=phases)
    world = World([code])
    for phase in range(2 * phases):
        world.phase = phase
        world.live([{code.key: 1}], 3.0)
        assert code.sections(phase).keys() & code.regions
    asked = world.requests[code.key]
    assert len(asked) == phases
    assert asked[0] < asked[-1]


@pytest.mark.parametrize("gain", [1.2, 3.0])
def test_regions_that_do_not_pay_are_taken_out_and_not_asked_for_again(gain: float) -> None:
    code = Code(0, 200_000, gain=gain)
    world = World([code])
    world.live([{code.key: 1}], 6.0)
    assert world.policy.is_off(code.key)
    assert world.policy.rejected == [code.key]
    assert len(world.requests[code.key]) == 1


@pytest.mark.parametrize("gain", [0.05, 0.5, 0.95])
def test_regions_that_pay_stay(gain: float) -> None:
    code = Code(0, 200_000, gain=gain)
    world = World([code])
    world.live([{code.key: 1}], 3.0)
    assert code.regions
    assert not world.policy.is_off(code.key)
    assert world.policy.trial is None


def test_of_several_codes_those_that_do_not_pay_are_found() -> None:
    """They came together, and most of them pay."""
    codes = [Code(number, 200_000, gain=0.9 if number % 4 else 3.0) for number in range(8)]
    world = World(codes, room=8)
    world.live([{code.key: 1 for code in codes}], 8.0)
    assert all(code.regions for code in codes)
    assert {code.number for code in codes if world.policy.is_off(code.key)} == {0, 4}


def test_regions_that_are_far_better_are_never_taken_out_for_a_comparison() -> None:
    code, off = Code(0, 200_000, gain=0.1), 0
    world = World([code])
    while world.policy.work < 2.0:
        world.call({code.key: 1})
        off += bool(code.regions) and world.policy.is_off(code.key)
    assert not off


def test_a_refused_code_is_counted_no_more_often_than_others() -> None:
    code = Code(0, 200_000)
    world = World([code], refuses=frozenset([0]))
    world.live([{code.key: 1}], 10.0)
    assert world.policy.is_settled
    assert world.policy.windows < 40
    assert world.policy.requests == 0


def test_what_found_no_room_is_asked_for_when_there_is_some() -> None:
    codes = [Code(number, 200_000) for number in range(12)]
    world = World(codes, room=1, compiling=0.05)
    world.live([{code.key: 1 for code in codes}], 6.0)
    assert all(code.regions for code in codes)


def test_what_was_put_off_by_the_compiler_is_asked_for_again() -> None:
    code = Code(0, 200_000)
    world = World([code], compiling=1e9)
    world.live([{code.key: 1}], 1.0)
    world.waiting.clear()
    world.policy.finished.append((code.key, Answer.LATER))  # as in a child of os.fork
    world.compiling = 0.0
    world.live([{code.key: 1}], 2.0)
    assert code.regions
    assert world.policy.codes[code.key].rounds == 1


def test_regions_that_were_dropped_with_all_code_are_asked_for_again_within_the_same_budget() -> None:
    code = Code(0, 200_000)
    world = World([code])
    world.live([{code.key: 1}], 1.0)
    spent = world.policy.spent
    world.policy.forget()
    code.regions = frozenset()
    assert world.policy.spent == spent
    world.live([{code.key: 1}], 2.0)
    assert code.regions


def test_what_was_not_reported_before_a_window_is_work_but_not_a_part_of_it() -> None:
    policy = TierPolicy(lambda *_: None)
    policy.worked(None, 0.1)
    policy.change(lambda _: {})
    assert policy.window is not None
    policy.worked((b"", b""), 1e-5, 100, earlier=0.05)
    assert policy.window.seconds == policy.spent == 1e-5
    assert policy.work == pytest.approx(0.15001)


def test_calls_that_do_hardly_anything_are_not_compiled_soon() -> None:
    """What they take is not what regions could save."""
    policy, counted = TierPolicy(lambda *_: pytest.fail("asked")), {0: (1_000, 5)}
    for _ in range(1_000):
        if policy.worked((b"", b""), 1e-3, 100):
            if policy.window is not None:
                policy.counts((b"", LATEST))
            policy.change(lambda _: counted)
    assert policy.windows > 3


def test_a_trial_has_as_many_arms_as_it_should() -> None:
    code = Code(0, 200_000, gain=0.9)
    world = World([code])
    changes = 0
    while not (code.regions and world.policy.trial is None):
        before = world.policy.is_off(code.key)
        world.call({code.key: 1})
        changes += world.policy.is_off(code.key) != before
    assert changes == 2 * PAIRS - 1 + 1  # into each arm without regions, and out of it


def test_the_constants_leave_room_for_a_first_window() -> None:
    first = policy_module.FIRST_WINDOW
    assert SHARE * first + min(ALLOWANCE, EARLY * first) >= WINDOW
