"""A call that the reference tier began and native code ends is the same call, wherever in it the change is made."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from fusevm import EVM, Result
from fusevm.chain.outcome import EngineLimit
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.fuzz.differential import differences
from fusevm.lab.fuzz.generator import program
from fusevm.lab.peers.ours import OurTier
from fusevm.native.host import choice, handover
from fusevm.native.host.choice import TierChoice
from fusevm.native.host.tiers import engine
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, push, store_initcode

INNER, MAKER = bytes.fromhex("1a" * 20), bytes.fromhex("3a" * 20)
# Storage, transient storage, warmth, a log, a refund, memory, what a call returned: all that a frame can have.
EFFECTS = (
    "PUSH1 7 PUSH1 1 SSTORE PUSH1 0 PUSH1 2 SSTORE PUSH1 8 PUSH1 2 TSTORE PUSH1 5 PUSH1 9 MSTORE PUSH1 3 PUSH0 LOG0"
    f" {push(NOBODY)} BALANCE POP PUSH1 4 SLOAD POP"
)
TELLS = (
    "PUSH1 2 TLOAD PUSH1 2 SLOAD RETURNDATASIZE MSIZE PUSH1 9 MLOAD ORIGIN "
    + "".join(f"PUSH1 {slot} SSTORE " for slot in range(3, 9))
)  # fmt: skip
KEPT = deployer(assemble("PUSH1 1 PUSH1 2 SSTORE STOP"))
MAKES = f"{store_initcode(KEPT)} PUSH1 {len(KEPT)} PUSH0 PUSH1 1 CREATE"
PROGRAMS = {
    "calls that end well": f"{EFFECTS} {call(OTHER, out=9)} POP {TELLS} {call(OTHER, value=1)} POP {EFFECTS}",
    "a call that reverts": f"{call(INNER)} POP {EFFECTS} {TELLS} {call(INNER, kind='DELEGATECALL')} GAS PUSH1 6 SSTORE",
    "creations": f"{MAKES} {call(MAKER)} POP {EFFECTS} {TELLS}",
    "a revert with output": f"{EFFECTS} {call(OTHER)} POP PUSH1 40 PUSH0 REVERT",
    "a halt": f"{EFFECTS} {call(OTHER)} POP {TELLS} INVALID",
    "a jump to nowhere": f"{EFFECTS} PUSH1 1 PUSH1 9 JUMPI",
    "words that are missing": f"{EFFECTS} PUSH1 1 POP POP",
    "destruction": f"{EFFECTS} {call(MAKER)} POP {push(NOBODY)} SELFDESTRUCT",
    "long init code": "PUSH1 1 PUSH2 0x2000 PUSH0 PUSH0 CREATE POP " * 6 + TELLS,
    "a loop": "PUSH1 9 loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 DUP1 SLOAD ADD DUP2 SSTORE DUP1 PUSH1 @loop JUMPI",
}
OTHERS = {
    OTHER: f"{EFFECTS} PUSH1 77 PUSH0 MSTORE PUSH1 33 PUSH0 RETURN",
    INNER: f"{EFFECTS} {call(OTHER, value=1)} POP {call(MAKER)} POP {TELLS} PUSH1 5 PUSH0 REVERT",
    MAKER: f"{MAKES} DUP1 PUSH1 9 SSTORE EXTCODESIZE PUSH1 8 SSTORE",
}


def machine(text: str, tier: str, fork: str = "osaka") -> EVM:
    evm = EVM(fork, tier)
    for address, code in ((HERE, text), *OTHERS.items()):
        if fork_named(fork) < Fork.CANCUN:
            code = code.replace("PUSH0", "PUSH1 0").replace("TSTORE", "POP POP").replace("TLOAD", "POP PUSH1 0")
        if fork_named(fork) < Fork.BYZANTIUM:
            code = code.replace("REVERT", "POP POP INVALID").replace("RETURNDATASIZE", "PUSH1 0")
        evm.set_code(address, assemble(code))
        evm.set_storage(address, 2, 9)
        evm.set_balance(address, 100)
    evm.set_balance(CALLER, 10**18)
    return evm


@pytest.fixture
def chosen() -> TierChoice:
    """The choice of this thread's engine."""
    return engine(tiered=True).choice


class Handing:
    """Calls that are handed over after so many steps."""

    def __init__(self, chosen: TierChoice, patch: pytest.MonkeyPatch) -> None:
        self.chosen, self._patch = chosen, patch
        self.handed_over = chosen.handed_over

    def after(self, steps: int) -> None:
        self._patch.setattr(choice, "NEW_STEPS", steps)
        self.chosen.stats.clear()
        native = engine(tiered=True)
        native.codes.forget()  # or there are schedules that are entered only at their start
        native.tables.shared.origin = 7  # of a call before

    @property
    def frames(self) -> int:
        return self.chosen.handed_over - self.handed_over


@pytest.fixture
def handing(chosen: TierChoice, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handing]:
    yield Handing(chosen, monkeypatch)
    chosen.stats.clear()


def seen(evm: EVM, result: Result) -> Any:
    return result, list(result.logs), result.failure, evm.state_root


@pytest.mark.parametrize("fork", ["osaka", "istanbul", "tangerine-whistle", "frontier"])
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_call_may_be_handed_over_after_any_instruction(what: str, fork: str, handing: Handing) -> None:
    if what == "destruction" and fork == "frontier":
        pytest.skip("the same as on Tangerine Whistle, but for a price")
    before = machine(PROGRAMS[what], "reference", fork)
    with before.snapshot():
        wanted = seen(before, before.call(HERE, b"abcd", caller=CALLER, value=3, gas=900_000))
    evm, ended = machine(PROGRAMS[what], "auto", fork), 0
    steps = 1
    while ended < 5 and steps < 100_000:
        handing.after(steps)
        frames = handing.frames
        with evm.snapshot():
            assert seen(evm, evm.call(HERE, b"abcd", caller=CALLER, value=3, gas=900_000)) == wanted, steps
        ended = ended + 1 if handing.frames == frames else 0
        steps += 3 + steps // 60
    assert handing.frames > 5
    assert ended == 5


@pytest.mark.parametrize("ending", ["PUSH1 3 PUSH0 RETURN", "PUSH1 0xef PUSH0 MSTORE8 PUSH1 3 PUSH0 RETURN", "INVALID"])
def test_a_deployment_may_be_handed_over(ending: str, handing: Handing) -> None:
    """The code that starts with 0xef is not kept: the halt is at the pc of the RETURN."""
    initcode = assemble(f"{EFFECTS} {call(OTHER)} POP {ending}")
    wanted = machine("", "reference").deploy(initcode, caller=CALLER)
    for steps in range(1, 120, 2):
        handing.after(steps)
        assert machine("", "auto").deploy(initcode, caller=CALLER) == wanted, steps
    assert handing.frames > 5


def test_what_a_caller_undoes_is_undone_on_either_side_of_the_handover(handing: Handing) -> None:
    """The inner frame warms, stores and is handed over; then its caller reverts, and the first frame looks."""
    code = f"{call(INNER)} PUSH1 1 SLOAD GAS {call(INNER, kind='DELEGATECALL')} PUSH1 4 SLOAD GAS PUSH1 1 SSTORE"
    wanted = seen(evm := machine(code, "reference"), evm.call(HERE, caller=CALLER))
    for steps in range(1, 400, 7):
        handing.after(steps)
        evm = machine(code, "auto")
        assert seen(evm, evm.call(HERE, caller=CALLER)) == wanted, steps


def test_several_messages_of_a_transaction_may_be_handed_over(handing: Handing) -> None:
    def run(tier: str) -> Any:
        evm = machine(PROGRAMS["calls that end well"], tier)
        with evm.transaction(CALLER) as tx:
            results = [tx.call(HERE), tx.call(OTHER), tx.call(HERE)]
        return results, evm.state_root

    wanted = run("reference")
    for steps in (1, 5, 20, 50, 90):
        handing.after(steps)
        assert run("auto") == wanted, steps
    assert handing.frames > 5


def test_the_memory_of_callers_counts_after_a_handover(handing: Handing) -> None:
    """Caller and callee have 20,000 bytes each; one of them alone would fit."""
    for limit, fits in ((50_000, True), (30_000, False)):
        for steps in (3, 8, 60):
            handing.after(steps)
            evm = EVM(tier="auto", memory_limit=limit)
            evm.set_code(HERE, assemble(f"PUSH2 20000 MLOAD POP {call(OTHER)} POP"))
            evm.set_code(OTHER, assemble("PUSH1 1 POP PUSH1 1 POP PUSH1 1 POP PUSH2 20000 MLOAD POP"))
            if fits:
                assert evm.call(HERE).ok
            else:
                with pytest.raises(EngineLimit, match="memory: more than"):
                    evm.call(HERE)


def test_a_call_of_many_frames_begins_again_instead(handing: Handing) -> None:
    """Of a frame that calls itself some forty steps are counted."""
    handing.after(60 * handover.DEEPEST)
    undone, evm = handing.chosen.undone, machine(call(HERE), "auto")
    judge = machine(call(HERE), "reference")
    assert seen(evm, evm.call(HERE, gas=300_000)) == seen(judge, judge.call(HERE, gas=300_000))
    assert handing.chosen.undone == undone + 1


def test_a_limit_of_native_tables_after_a_handover_leaves_the_answer(
    handing: Handing, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fusevm.native.host.tables import NativeLimit

    def full(*_: Any, **__: Any) -> None:
        raise NativeLimit("full")

    judge = machine(PROGRAMS["creations"], "reference")
    wanted = seen(judge, judge.call(HERE, caller=CALLER))
    handing.after(20)
    evm, native = machine(PROGRAMS["creations"], "auto"), engine(tiered=True)
    monkeypatch.setattr(native, "leave", full)
    undone = handing.chosen.undone
    assert seen(evm, evm.call(HERE, caller=CALLER)) == wanted
    assert handing.chosen.undone == undone + 1
    assert not native.busy


def test_code_with_a_better_schedule_begins_again_on_that(handing: Handing) -> None:
    evm, codes = machine(PROGRAMS["a loop"], "auto"), engine(tiered=True).codes
    handing.after(20)
    codes.bind(evm.fork)
    codes._spent[evm.get_code(HERE), evm.fork] = 1.0
    codes.schedule(evm.get_code(HERE))
    undone = handing.chosen.undone
    assert evm.call(HERE).ok
    assert handing.chosen.undone == undone + 1


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_may_be_handed_over_anywhere(seed: int, handing: Handing) -> None:
    rng, judge, auto = random.Random(seed), OurTier("reference"), OurTier("auto")
    for number, fork in enumerate(Fork):
        work = program(f"handover.{seed}.{number}", fork).work()
        wanted = judge.run(work)
        for most in (2, 30, 300, 2_000):
            handing.after(rng.randrange(1, most))
            found = auto.run(work)
            assert not list(differences(wanted, found)), (fork, choice.NEW_STEPS)
            assert found.reason == wanted.reason, (fork, choice.NEW_STEPS)
    assert handing.frames > 20
