"""`auto` runs a call where it is quicker: the choice is bounded in work, and nobody can see it but by the clock."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fusevm import EVM, Block, Result
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import EngineLimit, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.host import choice, halting, hot_code
from fusevm.native.host.choice import (
    LONGEST_PAUSE,
    LOOK,
    NEW_SIZE,
    PAUSE,
    SELECTORS,
    TIMED,
    TRIED,
    CallStats,
    TierChoice,
)
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.precompiles import run_precompile
from fusevm.native.host.tiers import engine
from fusevm.reference import brief
from fusevm.reference.brief import execute_briefly
from fusevm.reference.interpreter import execute as execute_reference
from programs import CALLER, HERE, NOBODY, OTHER, call, push

PLENTY = 1 << 40
LOOP = "PUSH3 {times} loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP"


class Clock:
    """Native runs and those on the reference tier take as long as it says."""

    def __init__(self, native: float, reference: float) -> None:
        self.now, self.native, self.reference = 0.0, native, reference
        self.runs: list[str] = []
        self.choice = TierChoice(lambda: self.now)

    def natively(self, message: Message, state: State, context: Context) -> Outcome:
        self.now += self.native
        self.runs.append("native")
        return Outcome(Status.SUCCESS, 0)

    def briefly(self, message: Message, state: State, context: Context, steps: int, runner: Any) -> Outcome | None:
        self.now += min(self.reference, steps * choice.STEP)
        fits = self.reference <= steps * choice.STEP
        self.runs.append("reference" if fits else "in vain")
        return Outcome(Status.SUCCESS, 0) if fits else None

    def call(self, times: int = 1, code: bytes = b"\x5b" * NEW_SIZE + b"\0", data: bytes = b"") -> list[str]:
        """Where so many calls ran."""
        before = len(self.runs)
        for _ in range(times):
            stats = self.choice.stats.get(code, {}).get(data[:4])
            message = Message(CALLER, HERE, code, data)
            self.choice.execute(stats, self.natively, message, State(), Context(LATEST, Block()))
        return self.runs[before:]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    """Makes clocks, of which one at a time can run calls."""
    current: list[Clock] = []

    class Current(Clock):
        def __init__(self, native: float, reference: float) -> None:
            super().__init__(native, reference)
            current[:] = [self]

    monkeypatch.setattr(choice, "execute_briefly", lambda *given: current[0].briefly(*given))
    return Current


# -- what is chosen ---------------------------------------------------------------------------------------------------


def test_the_reference_tier_is_tried_once_and_kept_where_it_is_quicker(clocks: type[Clock]) -> None:
    clock = clocks(native=80e-6, reference=30e-6)
    assert clock.call(TIMED) == ["native"] * TIMED
    assert clock.call(1 + LOOK) == ["reference"] * (1 + LOOK)


def test_a_native_run_now_and_then_finds_out_that_native_code_has_become_quicker(clocks: type[Clock]) -> None:
    clock = clocks(native=80e-6, reference=30e-6)
    clock.call(TIMED + 1 + LOOK)
    assert clock.call(1 + 2 * LOOK) == ["native"] + ["reference"] * 2 * LOOK
    clock.native = 10e-6
    assert clock.call(PAUSE) == ["native"] * PAUSE


def test_native_code_is_kept_where_it_is_quicker(clocks: type[Clock]) -> None:
    clock = clocks(native=10e-6, reference=25e-6)
    clock.call(TIMED + TRIED)
    assert clock.call(PAUSE) == ["native"] * PAUSE


def test_a_call_that_native_code_does_in_no_time_is_not_tried_on_the_reference_tier(clocks: type[Clock]) -> None:
    clock = clocks(native=choice.QUICK / 2, reference=choice.QUICK / 4)
    assert clock.call(1_000) == ["native"] * 1_000


def test_a_single_disturbed_run_decides_nothing(clocks: type[Clock]) -> None:
    clock = clocks(native=10e-6, reference=5e-6)
    clock.call(TIMED)
    clock.reference = 20e-6
    assert clock.call() == ["reference"]
    clock.reference = 5e-6
    assert clock.call(LOOK) == ["reference"] * LOOK


def test_small_code_that_is_new_runs_on_the_reference_tier_until_it_was_worth_preparing(clocks: type[Clock]) -> None:
    clock = clocks(native=80e-6, reference=choice.NEW_STEPS * choice.STEP)
    runs = clock.call(20, code=b"\x5b")
    first = runs.index("native")
    assert runs[:first] == ["reference"] * first
    assert (first - 1) * clock.reference < choice.WORTH_PREPARING <= first * clock.reference + 1e-9


def test_each_selector_has_a_choice_of_its_own(clocks: type[Clock]) -> None:
    clock = clocks(native=80e-6, reference=30e-6)
    clock.call(TIMED + 2, data=b"fail")
    clock.native, clock.reference = 10e-6, 29e-6
    assert clock.call(TIMED, data=b"pass") == ["native"] * TIMED
    clock.call(TRIED, data=b"pass")
    assert clock.call(3, data=b"pass with more") == ["native"] * 3
    assert clock.call(3, data=b"fail") == ["reference"] * 3


# -- what a caller who means ill can do -------------------------------------------------------------------------------


def test_runs_in_vain_become_rare(clocks: type[Clock]) -> None:
    """Brief at first, then long: the loss is one bounded run, then one in 16, in 64, in 256 …"""
    clock = clocks(native=80e-6, reference=30e-6)
    clock.call(TIMED + 2)
    clock.native, clock.reference = 1.0, 60.0
    assert clock.call() == ["in vain", "native"]
    runs = clock.call(10_000)
    assert runs.count("in vain") <= 5
    assert runs.count("native") == 10_000


def test_taking_turns_between_brief_and_long_makes_runs_in_vain_rare_as_well(clocks: type[Clock]) -> None:
    clock = clocks(native=80e-6, reference=30e-6)
    for _ in range(5_000):
        clock.native, clock.reference = 80e-6, 30e-6
        clock.call()
        clock.native, clock.reference = 1.0, 60.0
        clock.call()
    assert clock.runs.count("in vain") <= 10


def test_selectors_that_are_new_each_time_share_one_choice(clocks: type[Clock]) -> None:
    clock = clocks(native=10e-6, reference=25e-6)
    for number in range(2_000):
        clock.call(data=number.to_bytes(4, "big"))
    assert len(clock.choice.stats[b"\x5b" * NEW_SIZE + b"\0"]) <= SELECTORS + 1
    assert clock.runs.count("native") > 1_980


def test_what_is_remembered_is_bounded_by_bytes(clocks: type[Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "KEPT", 100_000)
    clock = clocks(native=10e-6, reference=25e-6)
    for number in range(200):
        clock.call(code=bytes(5_000) + bytes([number]))
        assert sum(map(len, clock.choice.stats)) <= 100_000


def test_pauses_end(clocks: type[Clock]) -> None:
    clock = clocks(native=1.0, reference=60.0)
    clock.call()
    (stats,) = clock.choice.stats[b"\x5b" * NEW_SIZE + b"\0"].values()
    for _ in range(40):
        stats.pause = stats.free = 0
        clock.call(2)
    assert 0 < stats.pause <= LONGEST_PAUSE


# -- a brief run ------------------------------------------------------------------------------------------------------

EFFECTS = (
    f"PUSH1 7 PUSH1 1 SSTORE PUSH1 0 PUSH1 2 SSTORE PUSH1 8 PUSH1 2 TSTORE PUSH0 PUSH0 LOG0 {call(NOBODY, value=1)} POP"
    f" {call(OTHER)} POP PUSH0 PUSH0 PUSH1 3 CREATE POP {push(NOBODY)} BALANCE POP"
)
LONG = {
    "a loop": LOOP.format(times=1_000),
    "code without jumps": "PUSH1 1 POP " * 1_000,
    "calls of oneself": call(HERE),
    "hashes": "PUSH2 0x8000 PUSH0 KECCAK256 POP " * 20,
    "short hashes": "PUSH0 PUSH0 KECCAK256 POP " * 90,
    "memory": "PUSH3 0x100000 MLOAD POP",
    "copies": "PUSH2 0x8000 PUSH0 PUSH0 CALLDATACOPY " * 40,
    "a precompile": "PUSH0 PUSH0 PUSH2 0x0600 PUSH0 PUSH1 8 GAS STATICCALL POP",
    "logs": "PUSH2 0x8000 PUSH0 LOG0 " * 4,
    "powers": f"PUSH32 0x{'ff' * 32} DUP1 EXP POP " * 30,
    "code that is long": call(bytes.fromhex("1a" * 20)),
    "creations": "PUSH2 0x4000 PUSH0 PUSH0 PUSH0 CREATE2 POP " * 8,
}


def machine(program: str, tier: str = "auto", fork: str = "osaka") -> EVM:
    evm = EVM(fork, tier)
    evm.set_code(HERE, assemble(program))
    evm.set_code(OTHER, assemble("CALLER SELFDESTRUCT"))
    evm.set_code(bytes.fromhex("1a" * 20), assemble("PUSH2 24000 JUMP").ljust(24_000, b"\x60") + b"\x5b")
    evm.set_storage(HERE, 2, 9)
    for address in (HERE, OTHER, CALLER):
        evm.set_balance(address, 100)
    return evm


def transaction(evm: EVM) -> tuple[Message, State, Context]:
    state, code = evm.state, evm.get_code(HERE)
    state.begin_transaction()
    return Message(CALLER, HERE, code, gas=PLENTY, code_address=HERE), state, Context(LATEST, evm.block)


@pytest.mark.parametrize("what", LONG)
def test_a_brief_run_that_takes_too_long_leaves_the_state_as_it_was(what: str) -> None:
    evm = machine(f"{EFFECTS} {LONG[what]}")
    message, state, context = transaction(evm)
    before = evm.state_root
    assert execute_briefly(message, state, context, 500, run_precompile) is None
    assert (state.journal, state.refund, state.logs, state.original, state.transient) == ([], 0, [], {}, {})
    for kept in (state.warm_addresses, state.warm_slots, state.created, state.destroyed, state.touched):
        assert not kept
    assert evm.state_root == before


@pytest.mark.parametrize("what", LONG)
def test_a_brief_run_does_no_more_than_its_bound(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much gas there is: memory, instructions, and gas of what is metered are counted."""
    metered: list[int] = []
    spend = brief._spend
    monkeypatch.setattr(brief, "_spend", lambda context, gas: (metered.append(gas), spend(context, gas))[1])
    evm = machine(LONG[what])
    message, state, context = transaction(evm)
    assert execute_briefly(message, state, context, 200, run_precompile) is None
    assert sum(metered[:-1]) <= 200 * brief.GAS_PER_STEP
    assert all(gas <= 100_000 for gas in metered)


def test_a_brief_run_that_ends_answers_as_the_reference_tier() -> None:
    program = f"{EFFECTS} PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    evm, judge = machine(program), machine(program)
    outcome = execute_briefly(*transaction(evm), 2_000, run_precompile)
    assert outcome == execute_reference(*transaction(judge))
    assert outcome.output[-1] == 5
    assert evm.state_root == judge.state_root


# -- the whole --------------------------------------------------------------------------------------------------------


@pytest.fixture
def chosen() -> TierChoice:
    """The choice of this thread's engine, with nothing known yet."""
    found = engine(tiered=True).choice
    found.stats.clear()
    return found


def in_vain(chosen: TierChoice) -> int:
    """Calls that the reference tier began and did not end."""
    return chosen.undone + chosen.handed_over


def decide(chosen: TierChoice, code: bytes, *, on_reference: bool) -> None:
    """As if the one tier or the other had been found to be quicker."""
    for stats in chosen.stats[code].values():
        stats._runs, stats.native = TIMED, 1.0
        stats.on_reference, stats.until_look, stats.steps = on_reference, LOOK, 2_000
        stats.pause, stats.free = 0 if on_reference else PAUSE, 0


def test_new_code_that_is_brief_runs_on_the_reference_tier(chosen: TierChoice) -> None:
    before = chosen.on_reference
    evm = machine("PUSH1 5 PUSH0 MSTORE INVALID")
    known = engine(tiered=True).codes
    assert evm.call(HERE) == machine("PUSH1 5 PUSH0 MSTORE INVALID", "reference").call(HERE)
    assert chosen.on_reference == before + 1
    assert (evm.get_code(HERE), LATEST) not in known.schedules


def test_new_code_that_is_long_costs_one_run_in_vain(chosen: TierChoice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_code, "region_names", set)  # as if it had never run: regions on disk begin from the start
    before = chosen.on_reference, in_vain(chosen)
    evm = machine(LOOP.format(times=70_000))
    for _ in range(5):
        assert evm.call(HERE, gas=10_000_000).ok
    assert chosen.on_reference == before[0]
    assert before[1] < in_vain(chosen) <= before[1] + 2


def test_runs_that_need_no_look_are_part_of_the_pause() -> None:
    choice, stats = TierChoice(), CallStats(is_new=False)
    stats.native = 1e-6
    stats.stay_native()
    pause = stats.pause
    assert choice.begins_natively(stats)
    assert stats.ended_natively(1e-6, each=False) == 1
    assert stats.pause + stats.free == pause - 1 == stats.free
    assert stats.is_natives_turn
    for _ in range(pause - 1):
        assert stats.is_paused
        stats.skip()
    assert not stats.is_paused


def test_a_timed_run_stands_for_the_free_ones_before_it() -> None:
    choice, stats = TierChoice(), CallStats(is_new=False)
    stats.native = 1e-6
    stats.stay_native()
    choice.begins_natively(stats)
    stats.ended_natively(1e-6, each=False)
    stats.free -= 5
    stats.time_each()
    choice.begins_natively(stats)
    assert stats.ended_natively(1e-6, each=True) == 6
    choice.begins_natively(stats)
    assert stats.ended_natively(1e-6, each=True) == 1


@pytest.mark.parametrize("ending", ["STOP", "INVALID"], ids=["on the direct path", "on the general path"])
def test_the_policy_of_tiers_is_told_of_every_call_once(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that ends on the direct path by the next call that is timed; of others by themselves."""
    stands_for: list[int] = []
    ended_natively, execute = CallStats.ended_natively, NativeEngine.execute

    def ended(stats: CallStats, seconds: float, *, each: bool) -> int:
        stands_for.append(ended_natively(stats, 1e-6, each=each))
        return stands_for[-1]

    def executed(*arguments: Any) -> Outcome:
        stands_for.append(1)
        return execute(*arguments)

    evm = machine(f"PUSH0 CALLDATALOAD PUSH1 @fails JUMPI STOP fails: JUMPDEST {ending}")
    evm.call(HERE)
    stats = engine(tiered=True).choice.stats_of(evm.get_code(HERE), b"\0" * 4)
    stats.steps, stats.pause = 0, 1_000  # native code's turn
    monkeypatch.setattr(CallStats, "ended_natively", ended)
    monkeypatch.setattr(NativeEngine, "execute", executed)
    for number in range(100):
        evm.call(HERE, (number % 3).to_bytes(32, "big"))
    assert stats.free
    stats.time_each()
    evm.call(HERE, bytes(32))
    assert sum(stands_for) == 101


def test_code_trained_by_one_input_and_heavy_by_another_runs_natively(chosen: TierChoice) -> None:
    program = f"CALLDATASIZE PUSH1 @long JUMPI INVALID long: JUMPDEST {EFFECTS} {LOOP.format(times=50_000)}"
    evm, judge = machine(program), machine(program, "reference")
    evm.call(HERE)
    decide(chosen, evm.get_code(HERE), on_reference=True)
    before = in_vain(chosen)
    for data in (b"", b"\1", b"", b"\1", b"\1\2\3\4\5"):
        by_selector = chosen.stats[evm.get_code(HERE)]
        by_selector.setdefault(data[:4], next(iter(by_selector.values())))
        assert evm.call(HERE, data, gas=5_000_000) == judge.call(HERE, data, gas=5_000_000)
        assert evm.state_root == judge.state_root
    assert in_vain(chosen) == before + 1


@pytest.mark.parametrize(
    "ending", ["STOP", "INVALID", "PUSH0 PUSH0 REVERT", "POP", "PUSH0 JUMP", LOOP.format(times=99)]
)
def test_a_machine_answers_alike_wherever_each_of_its_calls_runs(ending: str, chosen: TierChoice) -> None:
    rng = random.Random(ending)
    program = f"{EFFECTS} CALLDATASIZE PUSH1 1 SSTORE {ending}"
    evm, judge = machine(program), machine(program, "reference")
    for number in range(24):
        data, gas = bytes(number % 3), rng.choice([1_000_000, 1_000_000, 60_000, 30_000])
        if number:
            decide(chosen, evm.get_code(HERE), on_reference=rng.random() < 0.5)
        seen: list[tuple[Result, bytes]] = []
        for each in (evm, judge):
            result = each.call(HERE, data, caller=CALLER, gas=gas)
            seen.append((result, each.state_root))
        assert seen[0] == seen[1]
        assert list(seen[0][0].logs) == list(seen[1][0].logs)


def test_the_memory_limit_is_kept_wherever_a_call_runs(chosen: TierChoice) -> None:
    evm = EVM(memory_limit=1 << 15)
    evm.set_code(HERE, assemble("PUSH2 0x7fe0 MLOAD PUSH2 0x8000 CALLDATASIZE MUL MLOAD"))
    assert evm.call(HERE).ok
    for on_reference in (True, False):
        decide(chosen, evm.get_code(HERE), on_reference=on_reference)
        with pytest.raises(EngineLimit, match="memory: more than"):
            evm.call(HERE, b"\1")
        assert evm.call(HERE).ok


def test_an_error_of_a_provider_of_block_hashes_reaches_the_caller_and_leaves_the_state(chosen: TierChoice) -> None:
    def hashes(number: int) -> bytes:
        raise LookupError(f"no block {number}")

    evm = EVM(block=Block(number=9, hashes=hashes))
    evm.set_code(HERE, assemble("PUSH1 1 PUSH1 1 SSTORE PUSH1 8 BLOCKHASH"))
    before = evm.state_root
    for _ in range(TIMED + TRIED + 2):
        with pytest.raises(LookupError, match="no block 8"):
            evm.call(HERE)
        assert evm.state_root == before


@pytest.mark.parametrize("tier", ["native", "native-unfused", "native-tiered"])
@pytest.mark.parametrize(
    "program", ["INVALID", "NUMBER JUMP", "CALLER NUMBER JUMPI", "NUMBER DUP1 JUMPI", "DUP1 NUMBER"]
)
def test_a_halt_is_explained_by_the_one_instruction_that_halts(
    program: str, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[int] = []
    done_again = halting.done_again
    monkeypatch.setattr(
        halting, "done_again", lambda frame, view, *given: (places.append(view.pc), done_again(frame, view, *given))[1]
    )
    code = assemble(f"PUSH1 7 PUSH1 1 SSTORE PUSH1 1 PUSH1 99 MSTORE {program}")
    seen = []
    for each in ("reference", tier):
        evm = EVM(tier=each)
        evm.set_code(HERE, code)
        seen.append([evm.call(HERE, caller=CALLER, gas=gas) for gas in (100_000, 22_120, 50)])
    assert seen[0] == seen[1]
    assert places == [each.failure.pc for each in seen[0]]
