"""Recording a machine: what is recorded when, beside hooks and copies, and within which limits."""

from __future__ import annotations

import copy
import pickle
import weakref

import pytest

from fusevm import EVM, BadValue, EngineLimit, Hooks, TimeLimit
from fusevm.evm.limits import CALL_DEPTH_LIMIT
from fusevm.native.host.exact import PART
from fusevm.native.host.tiers import engine
from fusevm.tracing.recording import Keccak, LogEvent, RecordedFrame, StorageRead, StorageWrite
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, machine
from recordedcalls import BRANCHING, IDENTITY, TIERS, only, recorded


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_calls_deployments_simulations_and_transactions_are_recorded_in_order(tier: str) -> None:
    evm = machine({HERE: "PUSH1 1 PUSH0 SSTORE"})
    evm.tier = tier
    with evm.record() as recording:
        evm.call(HERE)
        made = evm.deploy(deployer(b"\x00"), caller=CALLER).address
        evm.simulate(HERE)
        evm.transact(CALLER, HERE, gas=100_000)
    assert [frame.kind.value for frame in recording.frames] == ["CALL", "CREATE", "CALL", "CALL"]
    assert recording.frames[1].created == made
    assert recording.frames[3].gas == 79_000
    evm.call(HERE)
    assert len(recording.frames) == 4


def test_a_recording_can_be_read_while_it_fills(tier: str) -> None:
    evm = machine({HERE: BRANCHING})
    evm.tier = tier
    with evm.record(coverage=True) as recording:
        for count in range(1, 4):
            evm.call(HERE)
            assert len(recording.frames) == count
            (covered,) = recording.coverage.values()
            assert covered.hits[0] == count


def test_calls_of_one_recording_do_not_mix(tier: str) -> None:
    evm = machine(
        {HERE: "PUSH0 CALLDATALOAD SLOAD PUSH0 MSTORE PUSH0 CALLDATALOAD PUSH1 32 PUSH0 LOG1 PUSH1 8 SLOAD POP"}
    )
    evm.tier = tier
    keys = (9, 0, 0, 9, 8, 0)
    for key in keys:
        evm.set_storage(HERE, key, key + 1)
    with evm.record(storage=True) as recording:
        for key in keys:
            evm.call(HERE, key.to_bytes(32, "big"))
    assert [frame.events for frame in recording.frames] == [
        [
            StorageRead(HERE, key, key + 1),
            LogEvent(HERE, (key,), (key + 1).to_bytes(32, "big")),
            StorageRead(HERE, 8, 9),
        ]
        for key in keys
    ]


def test_calls_on_several_tiers_are_recorded_in_order() -> None:
    evm = machine({HERE: "PUSH1 3"})
    with evm.record(coverage=True) as recording:
        for number, tier in enumerate(("native", "auto", "native", "reference", "native", "auto", "auto")):
            evm.tier = tier
            evm.call(HERE, gas=1_000 + number)
    assert [frame.gas for frame in recording.frames] == list(range(1_000, 1_007))
    (covered,) = recording.coverage.values()
    assert covered.hits == {0: 7, 2: 7}


def test_hooks_are_told_while_a_call_is_recorded(tier: str) -> None:
    seen: list[str] = []
    evm = machine({HERE: "PUSH1 1 PUSH0 SSTORE"}, hooks=Hooks(on_opcode=lambda step: seen.append(step.name)))
    evm.tier = tier
    with evm.record(storage=True) as recording:
        evm.call(HERE)
    assert seen == ["PUSH1", "PUSH0", "SSTORE", "STOP"]
    assert only(recording).events == [StorageWrite(HERE, 0, 1, 0)]


def test_results_are_the_same_with_a_recording(tier: str) -> None:
    program = "PUSH1 1 PUSH0 SSTORE PUSH1 7 PUSH0 PUSH0 LOG1" + call(OTHER) + "PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    plain, watched = (machine({HERE: program, OTHER: "PUSH0 SLOAD"}) for _ in range(2))
    plain.tier = watched.tier = tier
    with watched.record(storage=True, coverage=True, gas=True):
        for _ in range(3):
            assert watched.call(HERE, gas=100_000) == plain.call(HERE, gas=100_000)
    assert watched.call(HERE, gas=100_000) == plain.call(HERE, gas=100_000)
    assert watched.state_root == plain.state_root


def test_two_machines_can_be_recorded_in_turns(tier: str) -> None:
    one, other = machine({HERE: "PUSH0 SLOAD"}), machine({HERE: BRANCHING})
    one.tier = other.tier = tier
    with one.record(storage=True) as first, other.record(coverage=True) as second:
        for _ in range(2):
            one.call(HERE)
            other.call(HERE)
    assert [frame.events for frame in first.frames] == [[StorageRead(HERE, 0, 0)]] * 2
    assert [frame.events for frame in second.frames] == [[], []]
    (covered,) = second.coverage.values()
    assert covered.hits[0] == 2
    assert first.coverage == {}


def test_a_machine_is_recorded_by_one_at_a_time() -> None:
    evm = EVM()
    with evm.record(), pytest.raises(BadValue, match="being recorded already"), evm.record():
        pass
    with evm.record():
        pass


def test_events_need_the_frames_they_belong_to() -> None:
    with pytest.raises(BadValue, match="storage: needs calls=True"), EVM().record(calls=False, storage=True):
        pass


def test_a_copy_of_a_machine_is_not_recorded(tier: str) -> None:
    evm = machine({HERE: "PUSH0"})
    evm.tier = tier
    with evm.record() as recording:
        copy.copy(evm).call(HERE)
        pickle.loads(pickle.dumps(evm)).call(HERE)
    assert recording.frames == []


def test_a_recording_prints_as_a_tree() -> None:
    program = call(OTHER, gas="PUSH2 9999") + "PUSH1 7 PUSH0 PUSH0 LOG1" + call(NOBODY)
    recording = recorded("reference", program, {OTHER: "PUSH0 SLOAD PUSH0 PUSH0 REVERT"}, storage=True)
    assert str(recording).splitlines() == [
        f"CALL 0x{HERE.hex()} () → () [8104 gas]",
        f"├─ CALL 0x{OTHER.hex()} () → reverted [2106 gas]",
        "│  └─ SLOAD 0x0 = 0x0",
        "├─ LOG1 (0x7) ()",
        f"└─ CALL 0x{NOBODY.hex()} () → () [0 gas]",
    ]


# -- limits -----------------------------------------------------------------------------------------------------------


def test_deep_recordings_can_be_compared_and_shown(tier: str) -> None:
    one, other = (recorded(tier, call(HERE, kind="DELEGATECALL"), gas=10**12) for _ in range(2))
    assert one.frames == other.frames
    assert len(str(one).splitlines()) == CALL_DEPTH_LIMIT + 2
    assert "1 events" in repr(only(one))


def test_a_call_that_native_tables_cannot_hold_is_recorded_on_the_reference_tier(tier: str) -> None:
    program = "PUSH0 SLOAD POP" + call(OTHER) + "PUSH1 1 PUSH4 40000000 MSTORE PUSH0 PUSH0 LOG0"
    wanted = {"storage": True, "coverage": True, "spent": True}
    found = recorded(tier, program, {OTHER: "PUSH1 3"}, gas=10**10, **wanted)
    expected = recorded("reference", program, {OTHER: "PUSH1 3"}, gas=10**10, **wanted)
    assert only(found).ok
    assert found.frames == expected.frames
    assert (found.coverage, found.gas) == (expected.coverage, expected.gas)


def test_more_than_the_buffer_holds_is_recorded(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "PUSH2 600 loop: JUMPDEST PUSH3 20000 PUSH0 PUSH0 LOG1 PUSH3 20000 PUSH0 KECCAK256 POP "
    program += call(IDENTITY) + "POP PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    frame = only(recorded(tier, program, gas=300_000_000, keccak=True))
    assert frame.ok
    assert [type(event) for event in frame.events] == [LogEvent, Keccak, RecordedFrame] * 600
    assert isinstance(frame.events[1], Keccak)
    assert frame.events[1].data == bytes(20_000)


def test_notes_that_nobody_wants_are_not_kept() -> None:
    program = (
        "PUSH1 1 PUSH3 1000000 MSTORE PUSH1 9 loop: JUMPDEST PUSH0 PUSH0 PUSH3 1000000 PUSH0 PUSH0 PUSH1 99 GAS CALL"
    )
    program += " POP PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    evm = machine({HERE: program})
    evm.tier = "native"
    with evm.record(calls=False, coverage=True) as recording:
        evm.call(HERE).check()
        recorder = engine(recorded=True).recorder
        assert recorder is not None
        batch = recorder.buffer.taken()
    assert batch is not None
    assert sum(map(len, batch.chunks)) < 1 << 22
    (covered,) = recording.coverage.values()
    assert covered.hits[10] == 9


def test_a_frame_that_fails_at_once_has_little_prepared_for_it() -> None:
    evm = machine({HERE: call(OTHER, gas="PUSH1 50"), OTHER: "PUSH0 POP " * 10_000 + "POP"})
    evm.tier = "native"
    recorder = engine(recorded=True).recorder
    assert recorder is not None
    before = recorder.written
    with evm.record() as recording:
        evm.call(HERE)
    assert 0 < recorder.written <= before + 2 * PART
    assert only(recording).calls[0].failed_at == 25


def test_a_recording_that_grows_without_bound_ends_the_call(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusevm.tracing.recording.MOST", 1 << 23)
    program = "PUSH1 1 PUSH3 1000000 MSTORE loop: JUMPDEST PUSH0 PUSH0 PUSH3 1000000 PUSH0 PUSH0 PUSH1 99 GAS CALL POP "
    evm = machine({HERE: program + "PUSH1 @loop JUMP"})
    evm.tier = tier
    with evm.record() as recording:
        with pytest.raises(EngineLimit, match="recording: more than 8 MiB of events in one call; record less of it"):
            evm.call(HERE)
        evm.call(NOBODY)
    assert [frame.address for frame in recording.frames] == [NOBODY]


def test_a_call_that_runs_out_of_time_leaves_no_frame(tier: str) -> None:
    evm = machine({HERE: "loop: JUMPDEST PUSH1 @loop JUMP"})
    evm.tier, evm.timeout = tier, 0.05
    with evm.record() as recording:
        with pytest.raises(TimeLimit):
            evm.call(HERE, gas=10**15)
        evm.timeout = None
        evm.call(NOBODY)
    assert [frame.address for frame in recording.frames] == [NOBODY]


def test_a_recording_can_be_pickled_and_copied(tier: str) -> None:
    recording = recorded(tier, "PUSH1 1 PUSH0 SSTORE" + call(OTHER), storage=True, coverage=True, spent=True)
    for twin in (pickle.loads(pickle.dumps(recording)), copy.deepcopy(recording)):
        assert twin.frames == recording.frames
        assert (twin.coverage, twin.gas, twin.codes) == (recording.coverage, recording.gas, recording.codes)


def test_a_recording_is_not_held_by_whoever_recorded(tier: str) -> None:
    recording = recorded(tier, "PUSH1 1 PUSH0 SSTORE" + call(OTHER), coverage=True)
    gone = weakref.ref(recording)
    del recording
    assert gone() is None


def test_a_frame_that_fails_in_a_region_is_recorded_without_a_second_run() -> None:
    program = "JUMPDEST PUSH1 1 PUSH1 7 SSTORE PUSH1 9 PUSH2 0x4000 MSTORE JUMPDEST PUSH1 5 PUSH1 6 SSTORE"
    native = engine(regions=True, recorded=True)
    before, written = native.reruns, native.halting.exact.written
    seen = []
    for tier in ("reference", "regions"):
        evm = machine({HERE: program, OTHER: call(HERE, gas="PUSH2 25000")})
        evm.tier = tier
        with evm.record(storage=False) as recording:
            evm.call(OTHER)
            evm.call(HERE, gas=25_000)
        seen.append([recording.frames, recording.frames[0].calls])
    assert seen[0] == seen[1]
    assert recording.frames[1].failed_at == recording.frames[0].calls[0].failed_at
    assert native.reruns == before
    assert native.halting.exact.written > written
