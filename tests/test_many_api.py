"""`simulate_many` and `call_many`: how calls are written, what a `Batch` has, and calls that do not fit the loop."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections import deque
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from fusevm import DEFAULT_CALLER, EVM, Batch, Call, CallFailed, Hooks, Status
from fusevm.batch import Threads
from fusevm.evm.forks import Fork
from fusevm.machine import batch as batches
from fusevm.machine.batches import WINDOW
from fusevm.native.host import engine as machinery
from fusevm.native.host import many
from fusevm.values import BadValue
from test_many import CALLER, CONTRACTS, HERE, NATIVE, OTHER, RETURN_WORD, TIERS, Scene, machine, word

DOUBLE = f"PUSH1 0 CALLDATALOAD DUP1 ADD {RETURN_WORD}"
COUNT = f"PUSH1 0 SLOAD PUSH1 1 ADD DUP1 PUSH1 0 SSTORE {RETURN_WORD}"


def same_as_single(evm: EVM, calls: list[bytes], **given: Any) -> Batch:
    """The batch, once it is known to hold what the calls answer by themselves."""
    found = evm.simulate_many(calls, HERE, **given)
    assert list(found) == [evm.simulate(HERE, data, **given) for data in calls]
    return found


# -- how calls are written


@pytest.mark.parametrize("tier", TIERS)
def test_calls_are_written_as_data_pairs_dicts_or_call_objects(tier: str) -> None:
    evm = machine(tier, here=DOUBLE, other=f"CALLER {RETURN_WORD}")
    calls = [word(2), "0x" + word(3).hex(), (OTHER, b""), {"to": OTHER, "caller": CALLER}, Call(data=word(4))]
    nobody, named = int.from_bytes(DEFAULT_CALLER, "big"), int.from_bytes(CALLER, "big")
    assert evm.simulate_many(calls, to=HERE).words() == [4, 6, nobody, named, 8]


@pytest.mark.parametrize("tier", TIERS)
def test_the_rows_of_a_matrix_of_bytes_are_the_data_of_calls(tier: str) -> None:
    rows = b"".join(word(number) for number in range(10))
    matrix = memoryview(rows).cast("B", (10, 32))
    assert machine(tier, here=DOUBLE).simulate_many(matrix, to=HERE).words() == [2 * n for n in range(10)]


def test_a_generator_of_more_calls_than_one_window_is_run_to_its_end() -> None:
    found = machine("native", here=DOUBLE).simulate_many((word(n) for n in range(WINDOW + 10)), to=HERE)
    assert len(found) == WINDOW + 10
    assert found.words()[WINDOW + 9] == 2 * (WINDOW + 9)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([b"", "0x0"], "call 1: data: an odd number of hex digits (1)"),
        ([b"", {"too": 1}], "call 1: 'too' is not a field of a call; known: block, caller, data, gas, storage, to"),
        ([b"", 5], "call 1: data: expected bytes or hex text, got int"),
        ([(HERE, b"", 1)], "call 0: expected a target and data, got 3 things"),
        ([Call(block={"height": 1})], "call 0: block: 'height' is not a field; known: "),
        ([Call(storage={HERE: 5})], "call 0: storage: expected slots by address, such as {address: {0: 5}}"),  # type: ignore[dict-item]
        (b"\0", "calls: expected a list of calls, got one bytes"),
        (7, "calls: expected a list of calls, got int"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_read_is_named(calls: Any, message: str) -> None:
    with pytest.raises(BadValue) as caught:
        EVM(tier="reference").simulate_many(calls, to=HERE)
    assert str(caught.value).startswith(message)


def test_a_call_without_a_target_is_named() -> None:
    with pytest.raises(BadValue, match="call 2: no target; give it, or one for all as to="):
        EVM().simulate_many([(HERE, b""), (HERE, b""), b""])


def test_a_call_after_the_first_window_is_named_by_its_number_of_all() -> None:
    with pytest.raises(BadValue, match=f"call {WINDOW + 1}: data"):
        machine("native", here=DOUBLE).simulate_many([b""] * (WINDOW + 1) + ["0x0"], to=HERE)


# -- what a batch has


@pytest.mark.parametrize("numpy", [True, False])
def test_columns_have_what_results_have(numpy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if numpy:
        pytest.importorskip("numpy")
    else:
        monkeypatch.setattr(batches, "_numpy", lambda: None)
    log = "PUSH1 7 PUSH1 0 PUSH1 0 LOG1"
    revert = "PUSH1 0 CALLDATALOAD PUSH2 @on JUMPI PUSH1 0 PUSH1 0 REVERT on: JUMPDEST"
    evm = machine("native", here=f"{log} {revert} {DOUBLE}", other="INVALID")
    found = evm.simulate_many([word(1), word(0), (OTHER, b""), word(9)], to=HERE)
    results = list(found)
    assert list(found.status) == [0, 1, 2, 0]
    assert [each.status for each in results] == [Status.SUCCESS, Status.REVERT, Status.HALT, Status.SUCCESS]
    assert list(found.gas_used) == [each.gas_used for each in results]
    assert list(found.gas_refunded) == [each.gas_refunded for each in results]
    assert found.outputs == [each.output for each in results]
    assert [list(each) for each in found.logs] == [list(each.logs) for each in results]
    assert found.words() == [2, None, None, 18]
    assert [each for each in found.floats() if each == each] == [2.0, 18.0]
    assert repr(found) == "<Batch of 4 calls: 2 ok, 1 reverted, 1 halted>"


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("seed", range(6))
def test_slots_are_read_after_each_call(seed: int, tier: str, keep: bool) -> None:
    scene = Scene(seed, Fork.OSAKA)
    calls = scene.calls(40, special=0.3, slots=not keep)
    slots = [(address, key) for address in CONTRACTS[:3] for key in (0, 1, 2)]
    evm, judge = scene.machine(tier), scene.machine("reference")
    found = (evm.call_many if keep else evm.simulate_many)(calls, errors="keep", reads=slots)
    for number, call in enumerate(calls):
        with nullcontext() if keep else judge.snapshot():
            alone = judge.call_many([call], errors="keep") if keep else one_kept(judge, call)
            assert bool(alone.errors) == (number in found.errors)
            if not alone.errors:
                assert found[number] == alone[0]
                assert [found.reads(n)[number] for n in range(9)] == [judge.get_storage(*slot) for slot in slots]


def one_kept(evm: EVM, call: Call) -> Batch:
    """One call, of which the slots that are its own are seen, and stay."""
    for address, slots in call.storage.items():
        for key, value in slots.items():
            evm.set_storage(address, key, value)
    return evm.call_many([replace(call, storage={})], errors="keep")


def test_reads_are_part_of_a_batch_in_pieces_too() -> None:
    evm = machine("native", here=f"PUSH1 0 CALLDATALOAD PUSH1 0 SSTORE {DOUBLE}")
    with Threads(evm, 2) as pool:
        found = pool.simulate_many([word(n) for n in range(3_000)], to=HERE, reads=[(HERE, 1), (HERE, 0)])
    assert found.reads(1) == list(range(3_000))
    assert pickle.loads(pickle.dumps(found)).reads() == [0] * 3_000
    with pytest.raises(IndexError, match="slot 2: 2 were asked for by reads="):
        found.reads(2)


@pytest.mark.parametrize("given", [5, [HERE], [(HERE, 1, 2)]])
def test_reads_that_cannot_be_read_are_refused(given: Any) -> None:
    with pytest.raises(BadValue, match="reads: expected pairs of an address and a slot"):
        machine("native", here=DOUBLE).simulate_many([b""], to=HERE, reads=given)


def test_a_batch_is_a_sequence_of_results_that_can_be_joined_and_pickled() -> None:
    evm = machine("native", here=f"PUSH1 7 PUSH1 0 PUSH1 0 LOG1 {DOUBLE}", other="INVALID")
    first = evm.simulate_many([word(1), (OTHER, b"")], to=HERE)
    second = evm.simulate_many([(OTHER, b""), word(3)], to=HERE)
    whole = Batch.joined([first, second])
    assert list(whole) == [*first, *second]
    assert whole[-1] == second[1]
    assert whole[1:3] == [first[1], second[0]]
    assert pickle.loads(pickle.dumps(whole)) == whole
    with pytest.raises(IndexError, match="call 4: there are 4"):
        whole[4]


@pytest.mark.parametrize("tier", TIERS)
def test_a_call_that_ends_in_an_exception_is_named(tier: str) -> None:
    evm = machine(tier, here=DOUBLE)
    calls = [word(1), Call(data=word(2), value=1, caller=bytes(20)), word(3)]
    with pytest.raises(CallFailed) as caught:
        evm.simulate_many(calls, to=HERE)
    assert caught.value.number == 1
    assert str(caught.value) == f"call 1: value: caller 0x{'00' * 20} has 0 wei, not 1"
    found = evm.simulate_many(calls, to=HERE, errors="keep")
    assert found.words() == [2, None, 6]
    assert list(found.status) == [0, 3, 0]
    assert list(found.errors) == [1]
    with pytest.raises(CallFailed):
        found[1]


def test_only_two_ways_to_treat_exceptions_are_known() -> None:
    with pytest.raises(BadValue, match="errors: expected 'raise' or 'keep', got 'ignore'"):
        EVM().simulate_many([], errors="ignore")


# -- calls that do not fit the loop


@pytest.mark.parametrize("tier", NATIVE)
def test_outputs_that_do_not_fit_the_room_for_them_are_whole(tier: str) -> None:
    evm = machine(tier, here="PUSH1 0 CALLDATALOAD DUP1 PUSH1 1 SWAP1 SUB NOT POP PUSH1 0 RETURN")
    sizes = [5, many.OUTPUT_ROOM - 32, 40, many.OUTPUT_ROOM + 64, 1, 0]
    found = same_as_single(evm, [word(size) for size in sizes], gas=500_000_000)
    assert [len(output) for output in found.outputs] == sizes


@pytest.mark.parametrize("tier", NATIVE)
def test_logs_that_do_not_fit_the_room_for_them_are_whole(tier: str) -> None:
    evm = machine(tier, here="PUSH1 0 CALLDATALOAD PUSH1 0 LOG0")
    sizes = [5, 900_000, 900_000, 900_000, 900_000, 900_000, 3]
    same_as_single(evm, [word(size) for size in sizes], gas=50_000_000)


@pytest.mark.parametrize("tier", NATIVE)
def test_changes_that_do_not_fit_the_room_for_them_are_kept(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call writes as many slots as its data says, from the slot on that is its second word."""
    monkeypatch.setattr(machinery, "SLICE", 1 << 40)  # else a slice of gas ends before there are as many
    loop = "JUMPDEST DUP1 ISZERO PUSH2 @end JUMPI DUP1 PUSH1 32 CALLDATALOAD ADD PUSH1 1 SWAP1 SSTORE PUSH1 1 SWAP1 SUB"
    code = f"PUSH1 0 CALLDATALOAD again: {loop} PUSH2 @again JUMP end: JUMPDEST STOP"
    many_, single = machine(tier, here=code), machine(tier, here=code)
    calls = [word(size) + word(start) for size, start in ((3, 0), (8_000, 10), (8_500, 9_000), (5, 20_000), (900, 5))]
    calls = calls + calls
    found = many_.call_many(calls, to=HERE, gas=1_000_000_000)
    assert list(found) == [single.call(HERE, data, gas=1_000_000_000) for data in calls]
    assert many_.state_root == single.state_root


@pytest.mark.parametrize("tier", NATIVE)
def test_calls_that_touch_more_slots_than_tables_should_keep_are_done(tier: str) -> None:
    loop = "JUMPDEST DUP1 ISZERO PUSH2 @end JUMPI DUP1 PUSH1 32 CALLDATALOAD ADD SLOAD POP PUSH1 1 SWAP1 SUB"
    evm = machine(tier, here=f"PUSH1 0 CALLDATALOAD again: {loop} PUSH2 @again JUMP end: JUMPDEST STOP")
    calls = [word(9_000) + word(9_000 * number) for number in range(8)]
    same_as_single(evm, calls, gas=100_000_000)


@pytest.mark.parametrize("tier", NATIVE)
def test_calls_longer_than_a_slice_of_gas_go_on(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machinery, "SLICE", 20_000)
    evm = machine(tier, here="PUSH1 0 CALLDATALOAD l: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH2 @l JUMPI STOP")
    same_as_single(evm, [word(n) for n in (3, 5_000, 7, 2_000, 4, 90_000)], gas=2_000_000)


@pytest.mark.parametrize("keep", [False, True])
def test_calls_that_all_need_python_are_made_one_by_one(keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    crossings = []
    cross = many.ManyCalls._cross
    monkeypatch.setattr(many.ManyCalls, "_cross", lambda *given: (crossings.append(1), cross(*given))[1])
    evm = machine("native", here="INVALID", other=DOUBLE)
    run = evm.call_many if keep else evm.simulate_many
    found = run([b""] * 1_000, to=HERE)
    assert list(found.status) == [2] * 1_000
    assert len(crossings) < 30
    crossings.clear()
    run([word(1)] * 50_000, to=OTHER)
    assert len(crossings) < 30


@pytest.mark.parametrize("tier", NATIVE)
def test_every_caller_is_warm_in_its_own_call_alone(tier: str) -> None:
    """The gas of a look at an address that is the caller of some calls."""
    evm = machine(tier, here=f"GAS PUSH1 0 CALLDATALOAD BALANCE POP GAS SWAP1 SUB {RETURN_WORD}")
    people = [bytes([number]) * 20 for number in range(1, 9)]
    calls = [Call(HERE, word(int.from_bytes(other, "big")), caller=caller) for caller in people for other in people]
    found = evm.simulate_many(calls)
    gas = {True: found.words()[0], False: found.words()[1]}
    assert gas[False] - gas[True] == 2_500  # type: ignore[operator]
    assert found.words() == [gas[caller is other] for caller in people for other in people]


@pytest.mark.parametrize("tier", TIERS)
def test_calls_in_sequence_see_what_those_before_have_changed(tier: str) -> None:
    evm = machine(tier, here=COUNT)
    assert evm.call_many([b""] * 1_000, to=HERE).words() == list(range(1, 1_001))
    assert evm.get_storage(HERE, 0) == 1_000
    assert evm.simulate_many([b""] * 10, to=HERE).words() == [1_001] * 10
    with evm.snapshot():
        evm.call_many([b""] * 10, to=HERE)
    assert evm.get_storage(HERE, 0) == 1_000


@pytest.mark.parametrize("tier", TIERS)
def test_slots_and_fields_of_the_block_are_other_for_one_call_alone(tier: str) -> None:
    evm = machine(tier, here=f"PUSH1 0 SLOAD TIMESTAMP ADD {RETURN_WORD}")
    evm.set_storage(HERE, 0, 5)
    calls = [b"", Call(storage={HERE: {0: 70}}), b"", Call(block={"timestamp": 100}), b"", Call(storage={HERE: {0: 0}})]
    assert evm.simulate_many(calls, to=HERE).words() == [6, 71, 6, 105, 6, 1]
    assert evm.get_storage(HERE, 0) == 5
    assert evm.block.timestamp == 1


def test_slots_of_one_call_are_only_for_calls_that_are_not_kept() -> None:
    evm = machine("native", here=COUNT)
    with pytest.raises(CallFailed, match="call 1: storage: only simulate_many has slots"):
        evm.call_many([b"", Call(storage={HERE: {0: 1}})], to=HERE)
    assert evm.get_storage(HERE, 0) == 1


def test_hooks_see_every_call() -> None:
    seen: list[Any] = []
    evm = machine("native", here=DOUBLE)
    evm.hooks = Hooks(on_call=seen.append)
    assert evm.simulate_many([word(1), word(2)], to=HERE).words() == [2, 4]
    assert len(seen) == 2


def test_a_time_limit_is_of_each_call() -> None:
    evm = machine("native", here=DOUBLE, other="l: JUMPDEST PUSH1 @l JUMP")
    evm.timeout = 0.05
    found = evm.simulate_many([word(1), Call(OTHER, gas=10**12), word(2)], to=HERE, errors="keep")
    assert found.words() == [2, None, 4]
    assert found.errors[1].error == "the time limit is reached"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")
@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c_ends_a_batch_soon_and_the_machine_goes_on(keep: bool) -> None:
    evm = machine("native", here=f"PUSH1 0 SLOAD PUSH1 1 ADD PUSH1 0 SSTORE {DOUBLE}")
    run = evm.call_many if keep else evm.simulate_many
    run([b""] * 10, to=HERE)
    timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run((b"" for _ in iter(int, 1)), to=HERE)  # without end
    assert time.perf_counter() - started < 10
    before = evm.get_storage(HERE, 0)
    assert evm.call_many([b""] * 3, to=HERE).words() == [0, 0, 0]
    assert evm.get_storage(HERE, 0) == before + 3


def test_a_batch_within_a_call_of_a_batch_on_another_tier_does_not_disturb_it() -> None:
    outer = machine("native", here=f"PUSH1 0 CALLDATALOAD BLOCKHASH PUSH1 0 CALLDATALOAD ADD {RETURN_WORD}")
    inner = machine("native-unfused", here=DOUBLE)
    outer.simulate_many([b""], to=HERE)
    inner.simulate_many([b""], to=HERE)
    inside = []

    def ask(number: int) -> bytes:
        inside.append(inner.simulate_many([word(n) for n in range(300)], to=HERE).words())
        return bytes(32)

    outer.block.number, outer.block.hashes = 100, ask
    calls = [word(200)] * 20 + [word(7)] + [word(300)] * 500
    assert outer.simulate_many(calls, to=HERE).words() == [200] * 20 + [7] + [300] * 500
    assert inside == [[2 * n for n in range(300)]]


def test_a_machine_that_runs_already_says_so() -> None:
    evm = machine("native", here="PUSH1 0 BLOCKHASH STOP")
    evm.simulate_many([b""], to=HERE)
    errors = []

    def ask(number: int) -> bytes:
        try:
            evm.simulate_many([b""], to=OTHER)
        except RuntimeError as error:
            errors.append(str(error))
        return bytes(32)

    evm.block.hashes = ask
    evm.simulate_many([b""], to=HERE)
    assert errors
    assert "running already" in errors[0]


def test_memory_of_results_is_used_again_once_nobody_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    spare: deque[Any] = deque(maxlen=3)
    monkeypatch.setattr(many, "_spare", spare)
    monkeypatch.setattr(many, "LARGE", 1)  # all are handed over with their memory
    evm, kept, again = machine("native", here=DOUBLE), [], 0
    for first in range(0, 4_000, 400):
        free = len(spare)
        kept.append((first, evm.simulate_many([word(n) for n in range(first, first + 400)], to=HERE)))
        again += len(spare) < free
        if first % 1_200 == 800:
            column = kept[-2][1]._outputs.parts()[0]
            del kept[-2]
            assert column == b"".join(word(2 * n) for n in range(first - 400, first - 400 + len(column) // 32))
            before = len(spare)
            del column  # the last who has it
            assert len(spare) > before
    assert again == 3
    for first, batch in kept:
        assert batch.words() == [2 * n for n in range(first, first + 400)]
    del kept, batch
    assert len(spare) == 3  # no more are kept
