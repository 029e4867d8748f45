"""What is recorded of calls: frames and their events, the same on every tier."""

from __future__ import annotations

import pytest

from fusevm import HaltReason, Status
from fusevm.chain.addresses import create_address
from fusevm.chain.authorization import DELEGATION_PREFIX
from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from fusevm.evm.limits import CALL_DEPTH_LIMIT, MAX_NONCE
from fusevm.tracing.recording import (
    Event,
    FrameKind,
    Keccak,
    LogEvent,
    RecordedFrame,
    Refusal,
    StorageRead,
    StorageWrite,
)
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, machine, push, store_initcode
from recordedcalls import IDENTITY, TIERS, only, recorded


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- frames -----------------------------------------------------------------------------------------------------------


def test_a_call_from_outside_is_a_frame_with_what_it_was_given_and_what_came_of_it(tier: str) -> None:
    frame = only(recorded(tier, "PUSH1 7 PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN", value=5, data=b"ab"))
    assert frame == RecordedFrame(
        FrameKind.CALL, CALLER, HERE, HERE, 5, 1_000_000, b"ab", 0, gas_used=18, output=(7).to_bytes(32, "big")
    )


def test_a_call_inside_is_an_event_with_the_place_it_was_called_from(tier: str) -> None:
    frame = only(recorded(tier, "PUSH0 POP" + call(OTHER, gas="PUSH2 1000"), {OTHER: "PUSH1 1 PUSH1 2"}))
    (inner,) = frame.events
    assert isinstance(inner, RecordedFrame)
    assert (inner.kind, inner.caller, inner.address, inner.depth, inner.pc) == (FrameKind.CALL, HERE, OTHER, 1, 48)
    assert (inner.gas, inner.gas_used, inner.status, inner.undone) == (1_000, 6, Status.SUCCESS, False)


@pytest.mark.parametrize(
    ("kind", "caller", "address", "value", "static"),
    [
        ("CALL", HERE, OTHER, 0, False),
        ("CALLCODE", HERE, HERE, 0, False),
        ("DELEGATECALL", CALLER, HERE, 3, False),
        ("STATICCALL", HERE, OTHER, 0, True),
    ],
)
def test_kinds_of_calls_differ_in_caller_address_and_value(
    tier: str, kind: str, caller: bytes, address: bytes, value: int, static: bool
) -> None:
    (inner,) = only(recorded(tier, call(OTHER, kind=kind), {OTHER: "PUSH0"}, value=3)).calls
    assert (inner.kind.value, inner.caller, inner.address, inner.code_address) == (kind, caller, address, OTHER)
    assert (inner.value, inner.static) == (value, static)


def test_a_frame_that_reverts_is_kept_with_its_output_and_all_below_it_is_marked_undone(tier: str) -> None:
    reverting = call(NOBODY) + "PUSH1 9 PUSH1 0 MSTORE8 PUSH1 1 PUSH1 0 REVERT"
    outer = only(recorded(tier, call(OTHER), {OTHER: reverting}))
    (inner,) = outer.calls
    assert (inner.status, inner.output, inner.failure, inner.undone) == (Status.REVERT, b"\x09", None, True)
    assert inner.failed_at == len(assemble(reverting)) - 1
    assert [each.undone for each in inner.calls] == [True]
    assert not outer.undone


@pytest.mark.parametrize(
    ("program", "reason", "at"),
    [
        ("PUSH1 1 INVALID", HaltReason.INVALID_OPCODE, 2),
        ("PUSH1 1 ADD", HaltReason.STACK_UNDERFLOW, 2),
        ("PUSH0 " * 1025, HaltReason.STACK_OVERFLOW, 1024),
        ("PUSH0 PUSH1 9 JUMP", HaltReason.INVALID_JUMP, 3),
        ("PUSH1 1 PUSH1 9 JUMPI", HaltReason.INVALID_JUMP, 4),
        ("PUSH0 PUSH0 PUSH1 200 PUSH1 200 EXP POP PUSH3 100000 MLOAD", HaltReason.OUT_OF_GAS, 12),
        ("PUSH1 1 PUSH0 PUSH0 RETURNDATACOPY", HaltReason.RETURNDATA_OUT_OF_BOUNDS, 4),
        ("DATA 0x0c", HaltReason.INVALID_OPCODE, 0),
    ],
)
def test_a_frame_that_halts_takes_its_gas_and_tells_why_and_where(
    tier: str, program: str, reason: HaltReason, at: int
) -> None:
    (inner,) = only(recorded(tier, call(OTHER, gas="PUSH2 3000"), {OTHER: program})).calls
    assert (inner.status, inner.failure, inner.failed_at) == (Status.HALT, reason, at)
    assert inner.gas_used == inner.gas == 3_000
    assert inner.undone


def test_a_state_change_in_a_static_call_halts_it(tier: str) -> None:
    (inner,) = only(recorded(tier, call(OTHER, kind="STATICCALL"), {OTHER: "PUSH1 1 PUSH0 SSTORE"})).calls
    assert (inner.failure, inner.failed_at) == (HaltReason.STATIC_WRITE, 3)


def test_what_happened_before_a_halt_in_the_same_block_is_recorded(tier: str) -> None:
    """Native code knows when a block begins that its stack will underflow."""
    program = "PUSH0 SLOAD POP" + call(NOBODY, gas="PUSH1 50") + "POP POP"
    outer = only(recorded(tier, call(OTHER), {OTHER: program}, storage=True))
    (inner,) = outer.calls
    assert [type(event) for event in inner.events] == [StorageRead, RecordedFrame]
    assert inner.failure is HaltReason.STACK_UNDERFLOW
    assert inner.failed_at == len(assemble(program)) - 1


def test_what_could_be_paid_in_a_block_before_the_gas_ran_out_is_recorded(tier: str) -> None:
    program = "PUSH0 SLOAD POP PUSH1 1 SLOAD POP " + "PUSH0 POP " * 100
    outer = only(recorded(tier, call(OTHER, gas="PUSH2 4300"), {OTHER: program}, storage=True))
    (inner,) = outer.calls
    assert [event for event in inner.events if isinstance(event, StorageRead)] == [
        StorageRead(OTHER, 0, 0),
        StorageRead(OTHER, 1, 0),
    ]
    assert inner.failure is HaltReason.OUT_OF_GAS


def test_a_long_block_that_fails_is_recorded_to_the_instruction_that_fails(tier: str) -> None:
    program = (
        "PUSH1 1 PUSH0 PUSH0 LOG1 " + "PUSH0 POP " * 300 + "PUSH1 2 PUSH0 PUSH0 LOG1 " + "PUSH0 POP " * 300 + "POP"
    )
    (inner,) = only(recorded(tier, call(OTHER), {OTHER: program})).calls
    assert inner.events == [LogEvent(OTHER, (1,), b""), LogEvent(OTHER, (2,), b"")]
    assert (inner.failure, inner.failed_at) == (HaltReason.STACK_UNDERFLOW, len(assemble(program)) - 1)


def test_what_could_be_paid_in_compiled_code_before_the_gas_ran_out_is_recorded(tier: str) -> None:
    """A region pays for blocks, and for memory, before they need it."""
    logs = "PUSH0 PUSH0 PUSH0 PUSH1 3 PUSH1 62 LOG3 PUSH0 PUSH1 96 MSTORE PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 GAS STOP"
    for gas in range(1_500, 1_600, 3):
        found = recorded(tier, call(OTHER, gas=f"PUSH2 {gas}"), {OTHER: logs})
        assert found.frames == recorded("reference", call(OTHER, gas=f"PUSH2 {gas}"), {OTHER: logs}).frames


def test_a_precompile_and_an_account_without_code_are_frames_without_events(tier: str) -> None:
    program = "PUSH1 5 PUSH1 0 MSTORE8 PUSH1 0 PUSH1 0 PUSH1 1 PUSH1 0 PUSH1 0 PUSH1 4 GAS CALL" + call(NOBODY)
    identity, nobody = only(recorded(tier, program)).calls
    assert (identity.address, identity.input, identity.output, identity.gas_used) == (IDENTITY, b"\x05", b"\x05", 18)
    assert (nobody.address, nobody.output, nobody.gas_used, nobody.ok) == (NOBODY, b"", 0, True)


def test_a_precompile_that_fails_is_a_frame_that_halted_nowhere(tier: str) -> None:
    pairing = "PUSH1 0 PUSH1 0 PUSH1 1 PUSH1 0 PUSH1 0 PUSH1 8 PUSH3 100000 CALL"
    starved = "PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 2 PUSH1 10 CALL"
    bad, poor = only(recorded(tier, pairing + " " + starved)).calls
    assert (bad.failure, bad.gas_used, bad.failed_at) == (HaltReason.PRECOMPILE_FAILED, 100_000, None)
    assert (poor.failure, poor.gas_used, poor.failed_at) == (HaltReason.OUT_OF_GAS, 10, None)


def test_a_payment_carries_its_stipend(tier: str) -> None:
    (inner,) = only(recorded(tier, call(NOBODY, gas="PUSH1 7", value=1), value=3)).calls
    assert (inner.value, inner.gas, inner.gas_used) == (1, 2_307, 0)


def test_a_call_without_the_balance_does_not_begin(tier: str) -> None:
    (inner,) = only(recorded(tier, call(OTHER, gas="PUSH2 1000", value=1), {OTHER: "PUSH0"})).calls
    assert (inner.status, inner.failure, inner.gas, inner.gas_used) == (Status.HALT, Refusal.BALANCE, 3_300, 0)
    assert (inner.events, inner.undone, inner.address, inner.value) == ([], True, OTHER, 1)


def test_a_call_too_deep_does_not_begin(tier: str) -> None:
    frames = list(recorded(tier, call(HERE, kind="DELEGATECALL"), gas=10**12).walk())
    assert len(frames) == CALL_DEPTH_LIMIT + 2
    assert frames[-1].failure is Refusal.DEPTH
    assert frames[-1].depth == CALL_DEPTH_LIMIT + 1
    assert frames[-2].failure is None


def test_a_delegation_tells_whose_code_ran(tier: str) -> None:
    frame = only(
        recorded(tier, call(OTHER), {OTHER: DELEGATION_PREFIX + NOBODY, NOBODY: "PUSH1 1 PUSH0 SSTORE"}, storage=True)
    )
    (inner,) = frame.calls
    assert (inner.address, inner.code_address, inner.delegate) == (OTHER, OTHER, NOBODY)
    assert inner.events == [StorageWrite(OTHER, 0, 1, 0)]


# -- creations --------------------------------------------------------------------------------------------------------


def test_a_creation_has_init_code_as_input_and_code_as_output(tier: str) -> None:
    init = deployer(b"\x00\x01")
    program = store_initcode(init) + f" PUSH1 {len(init)} PUSH0 PUSH0 CREATE"
    (made,) = only(recorded(tier, program)).calls
    address = create_address(HERE, 0)
    assert (made.kind, made.caller, made.address, made.created) == (FrameKind.CREATE, HERE, address, address)
    assert (made.input, made.output, made.ok) == (init, b"\x00\x01", True)


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [(b"\xef", HaltReason.CODE_STARTS_WITH_EF), (bytes(24_577), HaltReason.CODE_TOO_LARGE)],
)
def test_a_creation_whose_code_cannot_be_kept_halts_at_its_return(
    tier: str, runtime: bytes, reason: HaltReason
) -> None:
    init = assemble(f"PUSH1 {runtime[0]} PUSH0 MSTORE8 PUSH3 {len(runtime)} PUSH0 RETURN")
    program = store_initcode(init) + f" PUSH1 {len(init)} PUSH0 PUSH0 CREATE"
    (made,) = only(recorded(tier, program, gas=20_000_000)).calls
    assert (made.status, made.failure, made.failed_at) == (Status.HALT, reason, len(init) - 1)
    assert (made.created, made.output, made.gas_used) == (None, b"", made.gas)


def test_a_creation_at_an_address_that_is_taken_takes_the_gas(tier: str) -> None:
    taken = create_address(HERE, 0)
    (made,) = only(recorded(tier, "PUSH0 PUSH0 PUSH0 CREATE", {taken: b"\x00"})).calls
    assert (made.status, made.failure, made.address) == (Status.HALT, HaltReason.ADDRESS_COLLISION, taken)
    assert made.gas_used == made.gas == (1_000_000 - 32_006) - (1_000_000 - 32_006) // 64


def test_a_creation_without_the_balance_or_a_nonce_does_not_begin(tier: str) -> None:
    (poor,) = only(recorded(tier, "PUSH0 PUSH0 PUSH1 9 CREATE")).calls
    assert (poor.failure, poor.gas_used, poor.value, poor.created) == (Refusal.BALANCE, 0, 9, None)
    evm = machine({HERE: "PUSH0 PUSH0 PUSH0 CREATE"})
    evm.tier = tier
    evm.set_nonce(HERE, MAX_NONCE)
    with evm.record() as recording:
        evm.call(HERE)
    assert only(recording).calls[0].failure is Refusal.NONCE


@pytest.mark.parametrize("others", [{}, {create_address(HERE, 0): b"\x00"}], ids=["without balance", "collision"])
def test_a_creation_that_python_does_fails_as_one_that_native_code_does(tier: str, others: dict[bytes, bytes]) -> None:
    """Before EIP-161."""
    program = f"PUSH1 40 PUSH0 MSTORE PUSH1 70 PUSH0 {'PUSH0' if others else 'PUSH1 9'} CREATE".replace(
        "PUSH0", "PUSH1 0"
    )
    found = recorded(tier, program, others, fork="tangerine-whistle", gas=100_000)
    assert found.frames == recorded("reference", program, others, fork="tangerine-whistle", gas=100_000).frames
    (made,) = only(found).calls
    assert made.failure is (HaltReason.ADDRESS_COLLISION if others else Refusal.BALANCE)
    assert made.gas < 68_000


def test_a_selfdestruct_is_a_frame_that_moves_the_balance(tier: str) -> None:
    (inner,) = only(recorded(tier, call(OTHER, value=4), {OTHER: push(NOBODY) + " SELFDESTRUCT"}, value=9)).calls
    (end,) = inner.calls
    assert (end.kind, end.caller, end.address, end.value) == (FrameKind.SELFDESTRUCT, OTHER, NOBODY, 4)
    assert (end.depth, end.pc, end.gas_used) == (2, 33, 0)


# -- events -----------------------------------------------------------------------------------------------------------


def test_events_stand_in_the_order_in_which_they_happened(tier: str) -> None:
    program = (
        "PUSH1 1 PUSH0 SSTORE PUSH1 7 PUSH0 PUSH0 LOG1 PUSH0 SLOAD POP PUSH1 2 PUSH1 3 TSTORE PUSH1 3 TLOAD POP"
        + call(OTHER)
        + "PUSH1 1 PUSH1 31 KECCAK256 POP PUSH1 9 PUSH0 SSTORE PUSH1 1 PUSH1 31 LOG0"
    )
    frame = only(recorded(tier, program, {OTHER: "PUSH0 PUSH0 LOG0"}, storage=True, keccak=True))
    first, *others = frame.events
    assert first == StorageWrite(HERE, 0, 1, 0)
    assert others[:4] == [
        LogEvent(HERE, (7,), b""),
        StorageRead(HERE, 0, 1),
        StorageWrite(HERE, 3, 2, 0, transient=True),
        StorageRead(HERE, 3, 2, transient=True),
    ]
    assert isinstance(others[4], RecordedFrame)
    assert others[4].events == [LogEvent(OTHER, (), b"")]
    assert others[5:] == [
        Keccak(b"\0", keccak256(b"\0")),
        StorageWrite(HERE, 0, 9, 1),
        LogEvent(HERE, (), b"\0"),
    ]


WIDTHS = (0, 1, 2**64, 2**128 - 1, 2**128, 2**129 - 1, 2**200, 2**256 - 1)


@pytest.mark.parametrize("one", WIDTHS)
def test_keys_and_values_of_any_width_are_recorded(tier: str, one: int) -> None:
    program, expected = "", list[Event]()
    kept: dict[str, dict[int, int]] = {"S": {}, "T": {}}
    for key, value in ((5, one), (one, 7), (5, one), (9, 3), (one, one), (5, 2**128), (5, one)):
        for kind, slots in kept.items():
            program += f"{push(value)} {push(key)} {kind}STORE {push(key)} {kind}LOAD POP {push(5)} {kind}LOAD POP "
            previous, slots[key] = slots.get(key, 0), value
            expected.append(StorageWrite(HERE, key, value, previous, kind == "T"))
            expected += [StorageRead(HERE, each, slots[each], kind == "T") for each in (key, 5)]
    assert only(recorded(tier, program, storage=True)).events == expected


def test_logs_of_a_frame_that_failed_are_kept(tier: str) -> None:
    program = call(OTHER) + "PUSH1 2 PUSH0 PUSH0 LOG1"
    frame = only(recorded(tier, program, {OTHER: "PUSH1 1 PUSH0 PUSH0 LOG1 PUSH0 PUSH0 REVERT"}))
    inner, log = frame.events
    assert isinstance(inner, RecordedFrame)
    assert inner.events == [LogEvent(OTHER, (1,), b"")]
    assert log == LogEvent(HERE, (2,), b"")


def test_only_what_is_asked_for_is_recorded(tier: str) -> None:
    program = "PUSH1 1 PUSH0 SSTORE PUSH0 PUSH0 LOG0 PUSH0 PUSH0 KECCAK256" + call(OTHER)
    assert [type(event) for event in only(recorded(tier, program)).events] == [LogEvent, RecordedFrame]
    assert [type(event) for event in only(recorded(tier, program, logs=False)).events] == [RecordedFrame]
    kinds = [type(event) for event in only(recorded(tier, program, logs=False, keccak=True)).events]
    assert kinds == [Keccak, RecordedFrame]
    nothing = recorded(tier, program, calls=False)
    assert (nothing.frames, nothing.coverage, nothing.gas) == ([], {}, {})
