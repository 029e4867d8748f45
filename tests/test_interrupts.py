"""Ctrl-C anywhere leaves the state as before the call or as after it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fusevm
from conftest import WHOLE, first
from fusevm import EVM, Hooks, Result, Status
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.native.host import (
    choice,
    code_cache,
    code_records,
    hot_code,
    init_code,
    recorder,
    retired,
    schedule_maker,
    tier_policy,
    warm_tables,
)
from fusevm.native.host import engine as host
from fusevm.native.host.code_records import _FIRST_FRAME
from fusevm.native.host.compiler import Asked
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tier_policy import Answer
from fusevm.native.host.tiers import engine, engines
from fusevm.native.host.views import view_at
from fusevm.native.layout import Account
from fusevm.native.region.build import compile_regions
from fusevm.native.region.choice import every_block
from fusevm.native.region.compiled import Compiled
from programs import HERE, NOBODY, OTHER, call, deployer, push

SOURCE = str(Path(fusevm.__file__).parent)
MAKER, HEIR, SENDER, COUNTER = (bytes.fromhex(each * 20) for each in ("3a", "4e", "5e", "7c"))
IDENTITY = (4).to_bytes(20, "big")
INIT = deployer(assemble("PUSH1 1 PUSH1 2 SSTORE STOP"))
STORES = "PUSH1 7 PUSH1 1 SSTORE PUSH1 8 PUSH1 2 TSTORE PUSH1 9 PUSH0 PUSH0 LOG1 "
CODE = {
    # pays a new account and a precompile, creates, and calls what reverts, what halts and what destroys itself
    HERE: f"{STORES} {call(NOBODY, value=1)} POP {call(IDENTITY, value=1)} POP {call(OTHER, value=2)} POP"
    f" {call(MAKER, value=3)} POP {call(HEIR, value=1)} POP PUSH1 3 SLOAD PUSH1 1 ADD PUSH1 3 SSTORE",
    OTHER: f"{STORES} {call(NOBODY, value=1)} POP PUSH0 PUSH0 REVERT",
    MAKER: f"PUSH32 0x{INIT.ljust(32, bytes(1)).hex()} PUSH0 MSTORE PUSH1 {len(INIT)} PUSH0 PUSH1 1 CREATE POP"
    f" {STORES} PUSH1 0 PUSH1 0 PUSH1 0 CREATE POP",
    HEIR: f"PUSH1 1 PUSH1 1 SSTORE {push(SENDER)} SELFDESTRUCT",
    # storage and a log alone: the straight path of a call, on tables that are kept
    COUNTER: f"{STORES} PUSH1 3 SLOAD PUSH1 1 ADD PUSH1 3 SSTORE {push(SENDER)} BALANCE PUSH1 4 SSTORE",
}


ROOT = Path(__file__).resolve().parent.parent
# Between two interrupts; 1 for every line.
LINES = int(os.environ.get("FUSEVM_INTERRUPT_LINES", "101" if WHOLE else "211"))
FIRST_LINE = random.randrange(1, min(LINES, 40) + 1)  # the shortest deed has more lines


@cache
def code_of(address: bytes, fork: str) -> bytes:
    code = CODE[address]
    if fork_named(fork) < Fork.CANCUN:
        code = code.replace("PUSH0", "PUSH1 0").replace("PUSH1 8 PUSH1 2 TSTORE", "")
    return assemble(code)


def machine(tier: str, fork: str) -> EVM:
    evm = EVM(fork, tier)
    for address in CODE:
        evm.set_code(address, code_of(address, fork))
        evm.set_balance(address, 100)
        evm.set_storage(address, 1, 3)
    evm.set_balance(SENDER, 10**18)
    return evm


def in_snapshots(evm: EVM) -> None:
    with evm.snapshot():
        evm.call(HERE, caller=SENDER, value=1)
        with evm.snapshot():
            evm.set_balance(NOBODY, 77)
            evm.call(MAKER)
        evm.set_storage(OTHER, 5, 5)


def with_hooks(evm: EVM) -> None:
    evm.hooks = Hooks(on_call=lambda message: None, on_storage=lambda access: None)
    evm.call(HERE, caller=SENDER, value=1)


def several_messages(evm: EVM) -> None:
    with evm.transaction(SENDER) as tx:
        tx.call(HERE, value=1)
        tx.call(COUNTER)
        tx.deploy(INIT, value=5)


def after_a_copy(evm: EVM) -> None:
    evm.copy().call(HERE, caller=SENDER, value=1)
    evm.call(HERE, caller=SENDER, value=1)


def handed_over(evm: EVM) -> Result:
    """A call that the reference tier begins and native code ends, if that is the tier's way."""
    tiered = engine(tiered=True)  # may be interrupted as well
    steps, choice.NEW_STEPS = choice.NEW_STEPS, 60
    try:
        tiered.choice.stats.clear()
        tiered.codes._spent.clear()  # so that it is not prepared for better,
        tiered.codes._may_be_on_disk = lambda code: False  # type: ignore[method-assign]  # nor was before
        return evm.call(HERE, caller=SENDER, value=1)
    finally:
        choice.NEW_STEPS = steps
        vars(tiered.codes).pop("_may_be_on_disk", None)


DEEDS: dict[str, Callable[[EVM], Any]] = {
    "call": lambda evm: evm.call(HERE, caller=SENDER, value=1),
    "call that is handed over": handed_over,
    "call that halts": lambda evm: evm.call(HERE, gas=60_000),
    "plain call": lambda evm: evm.call(COUNTER, caller=SENDER),
    "plain simulation": lambda evm: (evm.simulate(COUNTER, caller=SENDER), evm.simulate(HERE, caller=SENDER)),
    "transaction": lambda evm: evm.transact(SENDER, HERE, value=1, gas=1_000_000),
    "creating transaction": lambda evm: evm.transact(SENDER, None, INIT, gas=1_000_000),
    "deployment": lambda evm: evm.deploy(INIT, caller=SENDER, value=5),
    "simulation": lambda evm: evm.simulate(HERE, caller=SENDER, value=1),
    "snapshots": in_snapshots,
    "several messages": several_messages,
    "copy": after_a_copy,
    "estimate": lambda evm: evm.estimate_gas(HERE, caller=SENDER, value=1),
    "hooks": with_hooks,
    "settings": lambda evm: (evm.set_balance(NOBODY, 5), evm.set_storage(HERE, 9, 9), evm.set_code(NOBODY, b"\x00")),
}
PARTS = {"settings"}  # several changes, each of which may be the last


def fingerprint(evm: EVM) -> Any:
    accounts = {
        address: (each.nonce, each.balance, each.code, dict(each.storage))
        for address, each in evm.state.items()
        if not each.empty or each.storage
    }
    return accounts, evm.state.open_marks


def answer(results: Any) -> list[tuple[Status, int, int, bytes]]:
    """What a deed was told, as far as it was told anything."""
    each = results if isinstance(results, tuple) else (results,)
    return [(one.status, one.gas_used, one.gas_refunded, one.output) for one in each if isinstance(one, Result)]


class Interrupt:
    """Raises KeyboardInterrupt at one line of the package's sources, or of some of them."""

    def __init__(self, line: int, files: str | tuple[str, ...] = SOURCE) -> None:
        self.left, self.files = line, files

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def interrupted(deed: Callable[[EVM], Any], evm: EVM, line: int) -> bool:
    """Whether the deed was interrupted; it is not if it has fewer lines."""
    interrupt = Interrupt(line)
    sys.settrace(interrupt)
    try:
        deed(evm)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    assert interrupt.left > 0, f"line {line}: the interrupt was lost"
    return False


def test_a_call_that_is_handed_over_is() -> None:
    trials = engine(tiered=True).choice
    frames, undone = trials.handed_over, trials.undone
    handed_over(machine("auto", "osaka"))
    assert trials.handed_over > frames
    assert trials.undone == undone


@pytest.mark.parametrize("fork", first(1, ["osaka", "istanbul"]))
@pytest.mark.parametrize("tier", ["reference", "native", "native-tiered", "auto"])
@pytest.mark.parametrize("what", DEEDS)
def test_an_interrupt_at_any_line_leaves_the_state_as_before_or_as_after(what: str, tier: str, fork: str) -> None:
    if what == "hooks" and tier != "reference":
        pytest.skip("hooks run on the reference tier")
    deed, evm = DEEDS[what], machine(tier, fork)
    stages, answers = [fingerprint(evm)], []
    for _ in range(2):
        answers.append(answer(deed(evm)))
        stages.append(fingerprint(evm))
    line, steps = FIRST_LINE, choice.NEW_STEPS
    while interrupted(deed, evm := machine(tier, fork), line):
        assert steps == choice.NEW_STEPS, f"line {line}: the deed changed what other tests see"
        found = fingerprint(evm)
        evm.hooks = None
        again = answer(deed(evm))
        assert not [each for each in engines() if each.busy], f"line {line}: calls go to a spare engine"
        if what not in PARTS:
            assert found in stages[:2], f"line {line}"
            assert again == answers[stages.index(found)], f"line {line}"
            assert fingerprint(evm) == stages[stages.index(found) + 1], f"line {line}"
        line += LINES
    assert line > FIRST_LINE


SIGNALS = int(os.environ.get("FUSEVM_INTERRUPT_SIGNALS", "120" if WHOLE else "40"))
BY_SIGNALS = """
import random, signal, sys, time
sys.path.insert(0, "tests")
from test_interrupts import DEEDS, PARTS, fingerprint, machine

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
rng, tier, fork, count = random.Random(7), sys.argv[1], sys.argv[2], int(sys.argv[3])
names = [name for name in DEEDS if name not in PARTS]
stages = {}
for name in names:
    evm = machine(tier, fork)
    stages[name] = [fingerprint(evm)]
    for _ in range(2):
        DEEDS[name](evm)
        stages[name].append(fingerprint(evm))
sent = 0
while sent < count:
    name = rng.choice(names)
    evm = machine(tier, fork)
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 4e-3 if tier == "reference" else 4e-4))
        DEEDS[name](evm)
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0)  # a signal that another thread was given is heard when this one has waited for the others
    except KeyboardInterrupt:
        sent += 1
    found = fingerprint(evm)
    evm.hooks = None
    DEEDS[name](evm)
    assert found in stages[name][:2], (name, sent)
    assert fingerprint(evm) == stages[name][stages[name].index(found) + 1], (name, sent)
print(sent)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
@pytest.mark.parametrize("tier", ["reference", "native", "native-tiered", "auto"])
def test_real_signals_leave_the_state_as_before_or_as_after(tier: str) -> None:
    arguments = [sys.executable, "-c", BY_SIGNALS, tier, "osaka", str(SIGNALS)]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.stdout.split() == [str(SIGNALS)], done.stderr


class InterruptIn:
    """Raises KeyboardInterrupt at one of the lines of a function."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.left = name, line

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_name != self.name or not frame.f_code.co_filename.startswith(SOURCE):
            return self if event == "call" else None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("fork", ["osaka", "istanbul"])
def test_an_interrupt_while_an_account_gets_its_number_leaves_none_without_an_address(fork: str) -> None:
    """The tables of the call before are good, and stay so."""
    wanted = machine("reference", fork).simulate(HERE, caller=SENDER)
    for line in range(1, 7):
        evm = machine("native", fork)
        evm.simulate(COUNTER, caller=SENDER)
        sys.settrace(InterruptIn("number", line))
        try:
            with suppress(KeyboardInterrupt):
                evm.simulate(HERE, caller=SENDER)
        finally:
            sys.settrace(None)
        evm.simulate(COUNTER, caller=SENDER)
        assert evm.simulate(HERE, caller=SENDER) == wanted, f"line {line}"


# -- schedules that change ------------------------------------------------------------------------------------------

INNER = assemble("PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH1 20 GT PUSH1 @loop JUMPI PUSH0 SSTORE STOP")
OUTER = assemble(f"PUSH0 loop: JUMPDEST PUSH1 1 ADD {call(OTHER)} POP DUP1 PUSH1 3 GT PUSH1 @loop JUMPI STOP")
CACHE = tuple(str(each.__file__) for each in (code_cache, code_records, hot_code, init_code, retired, schedule_maker))
CHANGING = (*CACHE, str(warm_tables.__file__), str(tier_policy.__file__))
CHANGING_LINES = max(LINES // 14, 1)


class AtOnce:
    """A compiler of regions that has them ready."""

    def __init__(self) -> None:
        self.made = {code: compile_regions(code, LATEST, every_block, 0) for code in (INNER, OUTER)}

    def ask(
        self, asked: Asked, _counts: dict[int, int], _heat: float, done: Callable[[Compiled | Answer], None]
    ) -> None:
        done(self.made[asked.code] or Answer.NEVER)


def gone(native: NativeEngine) -> list[str]:
    """What leads native code to schedules that are not held any more."""
    known, tables, shared = native.codes, native.warm, native.tables.shared
    held = [*known.schedules.values(), *known.hot_code.schedules.values(), *known.init_code.schedules.values()]
    held += [*known.hot_code.counting.values(), *known.retired.schedules]
    bases = {each.base for each in held}
    found = [
        f"first frame of {code.hex()}" for code, rest in known.records.first_frames.items() if _base(rest) not in bases
    ]
    if tables.state is None or known.needs_sweep:  # both mean that the next call looks at all of it first
        return found
    found += [f"target {address.hex()}" for address, each in tables.targets.items() if _base(each.rest) not in bases]
    found += [f"shape {shape}" for shape, (each, *_) in tables.ready.items() if _base(each.rest) not in bases]
    accounts = (view_at(Account, shared.accounts + at * Account.byte_size()) for at in range(shared.account_count))
    return found + [f"account {each.number}" for each in accounts if each.schedule not in {0, *bases}]


def _base(rest: bytes) -> int:
    return int(_FIRST_FRAME.unpack_from(rest)[6])


@pytest.mark.parametrize(("slice_", "preparing"), [(10_000_000, 0.0), (900, 3e-8)])
@pytest.mark.long
def test_an_interrupt_while_schedules_change_leaves_nothing_that_leads_to_those_that_are_gone(
    slice_: int, preparing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain, fused, counting and with regions, between calls or, in short slices, within them."""
    at_once = AtOnce()
    monkeypatch.setattr(hot_code, "compiler", lambda: at_once)
    for name in ("FIRST_WINDOW", "WINDOW", "MIN_GAP", "MAX_GAP", "MIN_HEAT", "RENT", "ARM", "FAR_BETTER"):
        monkeypatch.setattr(tier_policy, name, 0.0)
    monkeypatch.setattr(host, "SLICE", slice_)
    monkeypatch.setattr(host, "SHORT_SLICE", min(slice_, host.SHORT_SLICE))
    monkeypatch.setattr(code_cache, "PREPARING", preparing)
    monkeypatch.setattr(code_cache.CodeCache, "_may_be_on_disk", lambda *_: False)
    native = engine(tiered=True)
    monkeypatch.setattr(native.codes.hot_code, "policy", None)  # put back in the end
    installed, line = 0, FIRST_LINE
    while True:
        native.codes.forget()
        before = native.codes.hot_code.installed
        native.codes.hot_code.policy = native.codes.hot_code.new_policy()
        evm, interrupt = EVM(tier="native-tiered"), Interrupt(line, CHANGING)
        evm.set_code(HERE, OUTER)
        evm.set_code(OTHER, INNER)
        for _ in range(9):
            sys.settrace(interrupt)
            try:
                evm.call(HERE)
                native.codes.hot_code.worked((OUTER, b""), 1.0, 1)
            except KeyboardInterrupt:
                interrupt.left = -1  # no more
            finally:
                sys.settrace(None)
            assert not gone(native), f"line {line}"
        installed += native.codes.hot_code.installed - before
        if interrupt.left > 0:
            break
        line += CHANGING_LINES
    assert installed
    native.codes.forget()


@pytest.mark.long
def test_an_interrupt_while_a_recording_begins_leaves_nothing_that_the_next_one_misses() -> None:
    evm = machine("native-tiered", "osaka")

    def recorded(storage: bool) -> str:
        with evm.record(storage=storage) as recording:
            evm.simulate(HERE, caller=SENDER)
        return str(recording)

    wanted, line = recorded(True), FIRST_LINE
    while True:
        recorded(False)  # other schedules
        interrupt = Interrupt(line, (*CACHE, str(recorder.__file__)))
        sys.settrace(interrupt)
        try:
            with suppress(KeyboardInterrupt):
                recorded(True)
        finally:
            sys.settrace(None)
        if interrupt.left > 0:
            break
        assert recorded(True) == wanted, f"line {line}"
        line += max(LINES // 4, 1)
    assert line > FIRST_LINE
