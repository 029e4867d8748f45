"""The native engine as the library shows it: state written back late but never wrongly, tiers, hooks, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fusevm import EVM, Block, Hooks, WrongThread
from fusevm.chain.environment import Context
from fusevm.chain.outcome import TimeLimit
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.native.host import code_cache
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tiers import engine as this_threads_engine
from fusevm.tiers import TIERS, UnknownTier, executor_for
from nativeprograms import NATIVE, Case, agreed
from programs import CALLER, HERE, NOBODY, OTHER, call, push

ROOT = Path(__file__).resolve().parent.parent
COUNT = "PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"  # counts its calls in slot 1


def machine(tier: str, program: str = COUNT, **settings: object) -> EVM:
    evm = EVM(tier=tier, **settings)  # type: ignore[arg-type]
    evm.set_code(HERE, assemble(program))
    return evm


# -- storage is written back when somebody looks ----------------------------------------------------------------------


@pytest.mark.parametrize("tier", NATIVE)
def test_a_call_leaves_its_storage_pending_until_somebody_looks(tier: str) -> None:
    evm = machine(tier)
    evm.call(HERE)
    assert evm.state.pending is not None
    assert evm.get_storage(HERE, 1) == 1
    assert evm.state.pending is None


LOOKS: dict[str, Callable[[EVM], object]] = {
    "get_storage": lambda evm: evm.get_storage(HERE, 1),
    "the next call": lambda evm: int.from_bytes(evm.call(HERE).output, "big") - 1,
    "a copy": lambda evm: evm.state.copy().storage(HERE, 1),
    "items": lambda evm: dict(evm.state.items())[HERE].storage.get(1),
    "a simulation": lambda evm: int.from_bytes(evm.simulate(HERE).output, "big") - 1,
    "a mark": lambda evm: (evm.state.mark(), evm.state.account(HERE).storage.get(1))[1],
}


@pytest.mark.parametrize("look", LOOKS)
def test_pending_storage_is_seen_by(look: str) -> None:
    evm = machine("native")
    for times in range(1, 4):
        evm.call(HERE)
        assert LOOKS[look](evm) == evm.get_storage(HERE, 1) - (look == "the next call")
        if look != "the next call":
            assert evm.get_storage(HERE, 1) == times


def test_pending_storage_is_in_the_state_root() -> None:
    roots = []
    for tier in ("native", "reference"):
        evm = machine(tier)
        evm.call(HERE)
        roots.append(evm.state_root)
    assert roots[0] == roots[1]


def test_storage_set_by_hand_meets_pending_storage_in_order() -> None:
    evm = machine("native")
    evm.call(HERE)
    evm.set_storage(HERE, 1, 40)
    assert int.from_bytes(evm.call(HERE).output, "big") == 41
    evm.call(HERE)
    assert evm.get_storage(HERE, 1) == 42


@pytest.mark.parametrize("tier", [*NATIVE, "reference"])
def test_snapshots_around_and_inside_each_other_undo_pending_storage(tier: str) -> None:
    evm = machine(tier)
    evm.call(HERE)
    with evm.snapshot():
        evm.call(HERE)
        with evm.snapshot():
            evm.call(HERE)
            evm.call(HERE)
            assert evm.get_storage(HERE, 1) == 4
        assert evm.get_storage(HERE, 1) == 2
        evm.call(HERE)
        with evm.snapshot():
            evm.call(HERE)
        assert int.from_bytes(evm.call(HERE).output, "big") == 4
    assert evm.get_storage(HERE, 1) == 1


@pytest.mark.parametrize("tier", NATIVE)
def test_a_simulation_leaves_nothing(tier: str) -> None:
    evm = machine(
        tier,
        f"{COUNT[: -len(' PUSH0 MSTORE PUSH1 32 PUSH0 RETURN')]} PUSH1 5 PUSH0 PUSH0 LOG1 {call(NOBODY, value=1)} POP",
    )
    evm.set_balance(HERE, 10)
    before = evm.state_root
    result = evm.simulate(HERE)
    assert result.ok
    assert len(result.logs) == 1
    assert evm.state_root == before
    assert not evm.state.journal or evm.state.open_marks == 0


IDENTITY = (4).to_bytes(20, "big")  # a payment to a precompile is Python's business


@pytest.mark.parametrize("tier", NATIVE)
def test_a_snapshot_that_ends_later_in_another_thread_does_not_disturb_a_running_engine(tier: str) -> None:
    """Journal entries of a call that has ended undo nothing in the engine that ran it."""
    mixed = f"{COUNT[: COUNT.index('PUSH0 MSTORE')]} PUSH0 PUSH0 LOG0 {call(IDENTITY, value=1)} POP PUSH1 2 SLOAD"
    evm = machine(tier, mixed)
    evm.set_balance(HERE, 10)
    evm.set_code(OTHER, assemble("PUSH1 3 PUSH1 3 SSTORE PUSH0 PUSH0 LOG0"))
    with evm.snapshot():
        evm.call(HERE)
        stale = list(evm.state.journal)
        other = machine(tier)
        other.call(HERE)
        shared = this_threads_engine(fused=tier == "native").tables.shared
        counts = (shared.log_size, shared.refund, shared.journal_count)
    assert evm.get_storage(HERE, 1) == 0
    assert (shared.log_size, shared.refund, shared.journal_count) == counts
    assert any(getattr(entry[0], "__name__", "") == "_revert" for entry in stale)


# -- errors in the middle ---------------------------------------------------------------------------------------------


class Trouble(Exception):
    pass


@pytest.mark.parametrize("tier", [*NATIVE, "reference"])
@pytest.mark.parametrize("depth", [0, 1])
def test_an_error_of_a_block_hash_provider_leaves_the_state_as_it_was(tier: str, depth: int) -> None:
    def hashes(number: int) -> bytes:
        raise Trouble("no such block")

    asking = "PUSH1 9 PUSH1 1 SSTORE PUSH0 PUSH0 LOG0 PUSH1 3 BLOCKHASH"
    evm = machine(
        tier, asking if not depth else f"PUSH1 8 PUSH1 2 SSTORE {call(OTHER)}", block=Block(number=5, hashes=hashes)
    )
    evm.set_code(OTHER, assemble(asking))
    before = evm.state_root
    for _ in range(2):
        with pytest.raises(Trouble):
            evm.call(HERE)
        assert evm.state_root == before
    evm.block = Block()
    assert evm.call(HERE).ok


@pytest.mark.parametrize("tier", NATIVE)
def test_a_block_that_makes_no_sense_is_an_error_and_no_more(tier: str) -> None:
    for number in (-1, 1 << 256):
        with pytest.raises(ValueError, match="block number"):
            Block(number=number)
    evm, other = machine(tier), EVM("istanbul", tier)
    assert evm.call(HERE).ok
    with pytest.raises(ValueError, match="gas_price"):
        other.call(HERE, gas_price=-1)
    context = Context(Fork.ISTANBUL, Block(), gas_price=-1)  # past all checks
    with pytest.raises(OverflowError):
        this_threads_engine(fused=tier == "native").bind(context)
    assert evm.call(HERE).ok


@pytest.mark.parametrize("tier", NATIVE)
def test_looking_at_an_account_does_not_schedule_its_code(tier: str) -> None:
    evm = machine(tier, f"{push(OTHER)} BALANCE {push(OTHER)} EXTCODEHASH {push(OTHER)} EXTCODESIZE")
    code = assemble("PUSH1 77 POP " * 50)
    evm.set_code(OTHER, code)
    assert evm.call(HERE).ok
    schedules = this_threads_engine(fused=tier == "native").codes.schedules
    assert not any(known == code for known, _ in schedules)
    evm.set_code(HERE, assemble(call(OTHER)))
    assert evm.call(HERE).ok
    assert any(known == code for known, _ in schedules)


@pytest.mark.parametrize("tier", NATIVE)
def test_a_second_machine_on_the_same_state_cannot_run_inside_a_call(tier: str) -> None:
    evm = machine(tier, "NUMBER PUSH1 1 SWAP1 SUB BLOCKHASH")
    other = EVM(tier=tier, state=evm.state)
    evm.block = Block(number=5, hashes=lambda number: other.call(OTHER).output.rjust(32, b"\0"))
    with pytest.raises(RuntimeError, match="running on this state"):
        evm.call(HERE)
    evm.block = Block(number=5)
    assert evm.call(HERE).ok


@pytest.mark.parametrize("tier", NATIVE)
@pytest.mark.parametrize("what", ["call", "transaction", "transact", "simulate_many", "set_balance"])
def test_what_a_second_machine_fails_to_do_inside_a_call_does_not_end_the_call(tier: str, what: str) -> None:
    evm = machine(tier, "PUSH1 7 PUSH1 1 SSTORE NUMBER PUSH1 1 SWAP1 SUB BLOCKHASH PUSH1 2 SSTORE")
    other, refused = EVM(tier=tier, state=evm.state), []
    attempts: dict[str, Callable[[], object]] = {
        "call": lambda: other.call(OTHER, value=0, gas_price=1),
        "transaction": lambda: other.transaction().__enter__(),
        "transact": lambda: other.transact(NOBODY, OTHER, gas=21_000, gas_price=0),
        "simulate_many": lambda: other.simulate_many([b""], OTHER, value=1),
        "set_balance": lambda: other.set_balance(OTHER, -1),
    }

    def asked(number: int) -> int:
        try:
            attempts[what]()
        except (RuntimeError, ValueError) as error:
            refused.append(error)
        return 5

    evm.block = Block(number=5, hashes=asked)
    assert evm.call(HERE).ok
    assert len(refused) == 1
    assert (evm.get_storage(HERE, 1), evm.get_storage(HERE, 2)) == (7, 5)
    evm.block = Block(number=5)
    assert evm.call(HERE).ok
    assert other.call(OTHER).ok


def test_storage_that_is_written_late_is_written_wholly_or_not_at_all() -> None:
    class Torn:
        def __init__(self) -> None:
            self.interrupts = 1

        def apply(self, state: State) -> None:
            for key in range(10):
                state.set_storage(HERE, key, key + 1)
                if key == 5 and self.interrupts:
                    self.interrupts -= 1
                    raise KeyboardInterrupt

    state = State()
    state.pending = Torn()
    with pytest.raises(KeyboardInterrupt):
        state.storage(HERE, 1)
    assert state.pending is not None
    assert [state.storage(HERE, key) for key in range(10)] == list(range(1, 11))


@pytest.mark.parametrize("tier", [*NATIVE, "reference"])
def test_a_timeout_leaves_the_state_as_it_was_with_python_frames_and_logs_about(tier: str) -> None:
    endless = f"PUSH1 9 PUSH1 1 SSTORE PUSH0 PUSH0 LOG0 {call(OTHER, value=1)} POP"
    evm = machine(tier, endless, timeout=0.05)
    evm.set_balance(HERE, 10)
    evm.set_code(OTHER, assemble("PUSH1 9 PUSH1 1 SSTORE PUSH0 PUSH0 LOG0 loop: JUMPDEST PUSH1 @loop JUMP"))
    before = evm.state_root
    with pytest.raises(TimeLimit):
        evm.call(HERE, gas=1 << 63)
    assert evm.state_root == before
    evm.set_code(OTHER, b"")
    result = evm.call(HERE)
    assert result.ok
    assert len(result.logs) == 1
    assert evm.get_storage(HERE, 1) == 9


# -- failures are explained as the reference explains them -------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("POP", "stack underflow at pc 0 (1 words needed, 0 there)"),
        ("NUMBER " * 1025, "stack overflow at pc 1024 (1024 words are there)"),
        ("PUSH1 3 JUMP", "invalid jump at pc 2 (0x3 is not a JUMPDEST)"),
        ("NUMBER NUMBER ADD JUMP", "invalid jump at pc 3 (0x2 is not a JUMPDEST)"),
        ("NUMBER INVALID", "invalid opcode at pc 1 (0xfe)"),
        ("PUSH1 1 PUSH0 PUSH0 RETURNDATACOPY", "return data"),
        ("PUSH4 0xffffffff MLOAD", "out of gas at pc 5"),
    ],
)
def test_a_halt_names_the_reason_and_the_place(program: str, reason: str) -> None:
    assert reason in str(agreed(program, 100_000).error)


@pytest.mark.parametrize(
    "deed", ["PUSH1 1 PUSH1 1 SSTORE", "PUSH1 1 PUSH1 1 TSTORE", "PUSH0 PUSH0 LOG0", "PUSH0 PUSH0 PUSH0 CREATE"]
)
def test_a_write_in_a_static_call_names_what_was_written(deed: str) -> None:
    assert "static" in str(agreed(Case(f"NUMBER POP {deed}", static=True)).error)


def test_a_starved_section_is_explained_with_what_transient_storage_holds() -> None:
    program = (
        "PUSH1 7 PUSH1 200 SHL PUSH0 TSTORE PUSH1 @on JUMP on: JUMPDEST PUSH0 TLOAD MLOAD POP PUSH1 1 POP PUSH1 1 POP"
    )
    for gas in range(220, 245):
        agreed(program, gas)


def test_all_64_bits_of_gas_can_be_given_and_are_counted() -> None:
    for gas in ((1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        assert agreed("GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN", gas).word == gas - 2


@pytest.mark.parametrize("offset", [1 << 36, 1 << 37, (1 << 37) + 32, 1 << 39, 1 << 40, 1 << 42, 1 << 64, 1 << 255])
def test_memory_nobody_can_pay_for_is_out_of_gas_however_much_there_is(offset: int) -> None:
    for gas in (10_000, 20_000_000_000, 1 << 50):
        seen = agreed(f"PUSH32 {offset} MLOAD", gas)
        assert "out of gas" in str(seen.error)


# -- the same engine for many codes and threads ------------------------------------------------------------------------


def test_schedules_of_code_seen_once_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "KEPT", 100_000)
    evm = EVM(tier="native")
    for number in range(300):
        evm.set_code(HERE, assemble(f"PUSH3 {number} PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
        assert int.from_bytes(evm.call(HERE).output, "big") == number
    assert len(this_threads_engine().codes.schedules) <= 100


def test_code_that_changes_between_calls_is_run_as_it_is_now() -> None:
    evm = EVM(tier="native")
    evm.set_code(HERE, assemble(f"{call(OTHER, out=32)} PUSH1 32 PUSH0 RETURN"))
    for number in (1, 2, 1):
        evm.set_code(OTHER, assemble(f"PUSH1 {number} PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
        assert int.from_bytes(evm.call(HERE).output, "big") == number


def test_the_block_and_the_sender_may_change_between_calls() -> None:
    asked = ("NUMBER", "TIMESTAMP", "ORIGIN", "BASEFEE", "PREVRANDAO")
    stores = " ".join(f"{name} PUSH1 {32 * at} MSTORE" for at, name in enumerate(asked))
    program = f"{stores} PUSH1 160 PUSH0 RETURN"
    machines = {tier: machine(tier, program) for tier in (*NATIVE, "reference")}
    for change in ({}, {"number": 7}, {"timestamp": 1 << 40}, {"base_fee": 5}, {"prev_randao": (1 << 256) - 1}):
        answers = set()
        for evm in machines.values():
            for name, value in change.items():
                setattr(evm.block, name, value)
            answers.add(evm.call(HERE, caller=CALLER if "number" in change else NOBODY).output)
        assert len(answers) == 1


def test_two_threads_with_a_machine_each_do_not_meet() -> None:
    answers: dict[int, int] = {}

    def work(number: int) -> None:
        evm = machine("native")
        for _ in range(200 + number):
            evm.call(HERE)
        answers[number] = evm.get_storage(HERE, 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {0: 200, 1: 201, 2: 202}


@pytest.mark.long
def test_engines_of_threads_that_have_ended_are_let_go() -> None:
    def engines() -> int:
        gc.collect()
        return sum(isinstance(each, NativeEngine) for each in gc.get_objects())

    before = engines()
    for _ in range(3):
        thread = threading.Thread(target=lambda: machine("native").call(HERE))
        thread.start()
        thread.join()
    assert engines() <= before


@pytest.mark.parametrize("tier", NATIVE)
def test_the_same_machine_used_by_two_threads_at_once_says_so(tier: str) -> None:
    evm = machine(tier, "loop: JUMPDEST PUSH1 @loop JUMP", timeout=1)
    started, ended = threading.Event(), []

    def run() -> None:
        started.set()
        try:
            evm.call(HERE, gas=1 << 63)
        except TimeLimit:
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    refused = 0
    while not refused and thread.is_alive():
        try:
            evm.call(NOBODY)
        except WrongThread:
            refused += 1
    assert refused
    thread.join()
    assert ended == [True]


# -- tiers ------------------------------------------------------------------------------------------------------------


def test_every_tier_answers_alike() -> None:
    assert {tier: machine(tier).call(HERE).output[-1] for tier in TIERS} == dict.fromkeys(TIERS, 1)


def test_the_default_tier_is_the_native_one_where_it_runs() -> None:
    assert executor_for("auto") is not executor_for("reference")


def test_an_unknown_tier_is_named() -> None:
    with pytest.raises(UnknownTier, match="nativ"):
        EVM(tier="nativ")


@pytest.mark.parametrize("tier", [*NATIVE, "lockstep", "native-tiered", "auto"])
def test_hooks_on_a_native_tier_see_every_instruction(tier: str) -> None:
    names: list[str] = []
    evm = machine(tier, "PUSH1 1 PUSH1 2 ADD POP STOP", hooks=Hooks(on_opcode=lambda step: names.append(step.name)))
    assert evm.call(HERE).ok
    assert names == ["PUSH1", "PUSH1", "ADD", "POP", "STOP"]


BLOCKED = """
import sys, warnings
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "llvmlite":
            raise ImportError("llvmlite is not here")
sys.meta_path.insert(0, Blocker())
warnings.simplefilter("always")
from fusevm import EVM
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    evm = EVM()
    evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")
    print(int.from_bytes(evm.call("0x" + "c0" * 20).output, "big"))
    EVM(); EVM()
    EVM()
print(len(said), said[0].message, said[0].filename)
try:
    EVM(tier="native")
except ImportError as error:
    print("native:", error)
"""


def test_where_llvmlite_cannot_be_imported_the_reference_tier_is_used_with_one_warning() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, cwd=ROOT, env=os.environ)
    lines = done.stdout.splitlines()
    assert lines[0] == "3", done.stderr
    assert lines[1].startswith("1 fusevm: the native tier cannot run here (llvmlite is not here)")
    assert lines[2] == "native: llvmlite is not here"


def test_importing_fusevm_does_not_import_llvmlite() -> None:
    code = "import sys, fusevm; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_state_made_by_one_tier_can_be_used_by_another() -> None:
    state = State()
    for times, tier in enumerate(("native", "reference", "native-unfused", "lockstep", "native"), 1):
        evm = EVM(tier=tier, state=state)
        evm.set_code(HERE, assemble(COUNT))
        assert int.from_bytes(evm.call(HERE).output, "big") == times
