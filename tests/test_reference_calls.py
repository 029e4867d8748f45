"""The reference interpreter on calls and creations: contexts, gas handed down, limits, what failure leaves behind."""

from __future__ import annotations

import sys

import pytest

from fusevm import EVM, HaltReason, Hooks, Status
from fusevm.chain.state import DELEGATION_PREFIX
from fusevm.evm.keccak import keccak256
from fusevm.reference import apart
from programs import (
    CALLER,
    HERE,
    NOBODY,
    OTHER,
    RETURN_TOP,
    call,
    gas_of,
    machine,
    push,
    run,
)

KINDS = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
PUSHES = {"CALL": 6 * 3 + 2, "CALLCODE": 6 * 3 + 2, "DELEGATECALL": 5 * 3 + 2, "STATICCALL": 5 * 3 + 2}  # and GAS


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def seen_by_callee(question: str, kind: str, fork: str = "osaka") -> int:
    """What a callee answers; it is called by HERE, which CALLER called with a value of 12."""
    program = f"{call(OTHER, kind=kind, value=5, out=32)} PUSH1 32 PUSH1 0 RETURN"
    return number(run(program, fork, value=12, others={OTHER: question + RETURN_TOP}).check().output)


# -- contexts ---------------------------------------------------------------------------------------------------------

CONTEXTS = {
    #                kind: own address, caller, value, origin
    "CALL": (OTHER, HERE, 5, CALLER),
    "CALLCODE": (HERE, HERE, 5, CALLER),
    "DELEGATECALL": (HERE, CALLER, 12, CALLER),
    "STATICCALL": (OTHER, HERE, 0, CALLER),
}


@pytest.mark.parametrize("kind", KINDS)
def test_who_a_callee_thinks_it_is(kind: str) -> None:
    address, caller, value, origin = CONTEXTS[kind]
    assert seen_by_callee("ADDRESS", kind) == number(address)
    assert seen_by_callee("CALLER", kind) == number(caller)
    assert seen_by_callee("CALLVALUE", kind) == value
    assert seen_by_callee("ORIGIN", kind) == number(origin)


@pytest.mark.parametrize(("kind", "owner"), [("CALL", OTHER), ("CALLCODE", HERE), ("DELEGATECALL", HERE)])
def test_whose_storage_a_callee_writes(kind: str, owner: bytes) -> None:
    evm = machine({HERE: call(OTHER, kind=kind), OTHER: "PUSH1 1 PUSH1 0 SSTORE"})
    evm.call(HERE).check()
    assert [evm.get_storage(each, 0) for each in (HERE, OTHER)] == [int(each == owner) for each in (HERE, OTHER)]


@pytest.mark.parametrize(("kind", "moved"), [("CALL", 5), ("CALLCODE", 0), ("DELEGATECALL", 0), ("STATICCALL", 0)])
def test_only_call_moves_value_away(kind: str, moved: int) -> None:
    evm = machine({HERE: call(OTHER, kind=kind, value=5), OTHER: "STOP"})
    evm.call(HERE, caller=CALLER, value=12).check()
    assert (evm.get_balance(HERE), evm.get_balance(OTHER)) == (12 - moved, moved)


def test_codesize_is_that_of_the_code_that_runs() -> None:
    assert seen_by_callee("CODESIZE", "DELEGATECALL") == 9


def test_calldata_is_taken_from_memory_and_the_answer_put_there() -> None:
    echo = "CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY CALLDATASIZE PUSH1 0 RETURN"
    program = (
        f"PUSH4 0x01020304 PUSH1 0 MSTORE PUSH1 2 PUSH1 0 PUSH1 4 PUSH1 28 PUSH1 0 {push(OTHER)} GAS CALL "
        "PUSH1 32 PUSH1 0 RETURN"
    )
    output = run(program, others={OTHER: echo}).check().output
    assert output == b"\x01\x02" + bytes(26) + b"\x01\x02\x03\x04"  # only as much as there was room for


def test_a_short_answer_leaves_the_rest_of_its_room_alone() -> None:
    program = f"{push((1 << 256) - 1)} PUSH1 0 MSTORE {call(OTHER, out=32)} PUSH1 32 PUSH1 0 RETURN"
    output = run(program, others={OTHER: "PUSH1 2 PUSH1 0 RETURN"}).check().output
    assert output == bytes(2) + b"\xff" * 30


def test_a_reverting_callee_still_answers_and_a_halting_one_does_not() -> None:
    program = f"{call(OTHER)} RETURNDATASIZE ADD" + RETURN_TOP
    for end, size in (("PUSH1 7 PUSH1 0 REVERT", 7), ("INVALID", 0), ("PUSH1 7 PUSH1 0 RETURN", 7 + 1)):
        assert number(run(program, others={OTHER: end}).output) == size


# -- gas --------------------------------------------------------------------------------------------------------------


def test_all_but_a_64th_can_be_handed_down() -> None:
    program = f"{call(OTHER, out=32)} PUSH1 32 PUSH1 0 RETURN"
    output = run(program, gas=1_000_000, others={OTHER: "GAS" + RETURN_TOP}).output
    left = 1_000_000 - 20 - 100 - 3 - 2_500  # pushes, the call, a word of memory, a cold address
    assert number(output) == left - left // 64 - 2


def test_asking_for_less_gives_less() -> None:
    program = f"{call(OTHER, gas='PUSH2 5000', out=32)} PUSH1 32 PUSH1 0 RETURN"
    assert number(run(program, others={OTHER: "GAS" + RETURN_TOP}).output) == 4_998


def test_before_eip_150_asking_for_more_than_there_is_was_out_of_gas() -> None:
    program = call(OTHER, gas="PUSH4 0xffffffff")
    failure = run(program, "homestead", others={OTHER: "STOP"}).failure
    assert failure is not None
    assert failure.reason is HaltReason.OUT_OF_GAS
    assert run(program, "tangerine-whistle", others={OTHER: "STOP"}).ok


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_callee_does_not_use_comes_back(kind: str) -> None:
    result = run(call(OTHER, kind=kind), others={OTHER: "PUSH1 1"})
    assert result.gas_used == PUSHES[kind] + 2_600 + 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_halting_callee_loses_just_what_it_was_given(kind: str) -> None:
    result = run(call(OTHER, kind=kind, gas="PUSH2 5000"), others={OTHER: "INVALID"})
    assert result.ok
    assert result.gas_used == PUSHES[kind] + 1 + 2_600 + 5_000


CALL_PRICES = {"frontier": (40, 40), "tangerine-whistle": (700, 700), "berlin": (2_600, 100)}


@pytest.mark.parametrize("fork", CALL_PRICES)
def test_the_price_of_a_first_and_a_second_call(fork: str) -> None:
    first, second = CALL_PRICES[fork]
    once = call(OTHER, gas="PUSH1 0")
    assert run(once, fork, others={OTHER: "STOP"}).gas_used == 21 + first
    assert run(once * 2, fork, others={OTHER: "STOP"}).gas_used == 42 + first + second


def test_a_value_costs_9000_and_hands_down_a_stipend_of_2300() -> None:
    program = f"{call(OTHER, gas='PUSH1 0', value=1, out=32)} PUSH1 32 PUSH1 0 RETURN"
    result = run(program, value=5, others={OTHER: "GAS" + RETURN_TOP})
    assert number(result.output) == 2_298
    callee = 2 + 3 + 6 + 6  # GAS, PUSH1 0, MSTORE with its word, two pushes
    assert result.gas_used == 21 + 100 + 3 + 2_500 + 9_000 - 2_300 + callee + 6


@pytest.mark.parametrize(
    ("fork", "value", "target", "price"),
    [
        ("frontier", 0, NOBODY, 25_040),  # to call what is not there is to make it
        ("frontier", 0, OTHER, 40),
        ("spurious-dragon", 0, NOBODY, 700),  # EIP-161: only if value moves
        ("spurious-dragon", 1, NOBODY, 700 + 9_000 + 25_000 - 2_300),
        ("spurious-dragon", 1, OTHER, 700 + 9_000 - 2_300),
        ("osaka", 1, NOBODY, 2_600 + 9_000 + 25_000 - 2_300),
    ],
)
def test_a_call_that_makes_an_account_pays_for_it(fork: str, value: int, target: bytes, price: int) -> None:
    program = call(target, gas="PUSH1 0", value=value)
    assert run(program, fork, value=9, others={OTHER: "STOP"}).gas_used == 21 + price


def test_callcode_never_makes_an_account() -> None:
    program = call(NOBODY, kind="CALLCODE", gas="PUSH1 0", value=1)
    assert run(program, value=9).gas_used == 21 + 2_600 + 9_000 - 2_300


def test_callcode_with_value_is_allowed_in_a_static_frame() -> None:
    evm = machine({HERE: call(OTHER, kind="CALLCODE", value=1) + RETURN_TOP, OTHER: "STOP"})
    evm.set_balance(HERE, 1)
    assert number(evm.call(HERE, static=True).check().output) == 1


# -- calls that cannot begin ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["CALL", "CALLCODE"])
def test_a_value_one_does_not_have_fails_the_call_and_gives_the_gas_back(kind: str) -> None:
    result = run(call(OTHER, kind=kind, gas="PUSH2 5000", value=10) + RETURN_TOP, value=9, others={OTHER: "STOP"})
    assert number(result.output) == 0
    assert result.gas_used == 21 + 2_600 + 9_000 - 2_300 + 3 + 6 + 6


def test_a_call_that_cannot_begin_clears_the_return_data() -> None:
    program = f"{call(OTHER)} POP {call(OTHER, value=10)} POP RETURNDATASIZE" + RETURN_TOP
    assert number(run(program, others={OTHER: "PUSH1 7 PUSH1 0 RETURN"}).output) == 0


def test_calls_nest_1024_deep_without_recursion_in_python() -> None:
    evm = machine({HERE: call(HERE) + RETURN_TOP})
    depths: list[int] = []
    evm.hooks = Hooks(on_call=lambda message: depths.append(message.depth))
    evm.call(HERE, gas=100)  # what is imported when it is first used is there
    depths.clear()
    limit, here = sys.getrecursionlimit(), 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, here = frame.f_back, here + 1
    sys.setrecursionlimit(here + 60)
    try:
        result = evm.call(HERE, gas=10**15)
    finally:
        sys.setrecursionlimit(limit)
    assert depths == list(range(1025))  # the top is depth zero
    assert number(result.output) == 1


def test_beyond_the_limit_a_call_fails_and_its_gas_stays() -> None:
    """The deepest frame sees its own call fail, and so answers zero; all others succeed."""
    evm = machine({HERE: call(HERE, out=32) + "PUSH1 0 MLOAD ADD" + RETURN_TOP})
    assert number(evm.call(HERE, gas=10**15).check().output) == 1_024


def test_beyond_the_limit_a_creation_fails_too() -> None:
    """Every frame adds one for a creation that succeeded, and what its callee counted; the deepest cannot create."""
    create = "PUSH1 0 PUSH1 0 PUSH1 0 CREATE ISZERO ISZERO"
    evm = machine({HERE: f"{create} {call(HERE, out=32)} POP PUSH1 0 MLOAD ADD" + RETURN_TOP})
    assert number(evm.call(HERE, gas=10**16).check().output) == 1_024


# -- precompiles ------------------------------------------------------------------------------------------------------

IDENTITY = (4).to_bytes(20, "big")


def test_a_precompile_is_called_like_a_contract() -> None:
    program = f"PUSH1 7 PUSH1 0 MSTORE PUSH1 32 PUSH1 32 PUSH1 32 PUSH1 0 {push(IDENTITY)} GAS STATICCALL"
    result = run(f"{program} PUSH1 32 MLOAD" + RETURN_TOP)
    assert number(result.output) == 7


def test_a_precompile_is_warm_and_costs_its_own_gas() -> None:
    assert gas_of(call(IDENTITY)) == 20 + 100 + 15


def test_a_precompile_given_too_little_gas_fails_and_takes_it() -> None:
    result = run(call(IDENTITY, gas="PUSH1 14") + RETURN_TOP)
    assert (number(result.output), result.gas_used) == (0, 21 + 100 + 14 + 3 + 6 + 6)


def test_a_failing_precompile_called_from_outside_says_so() -> None:
    result = machine({}).call((8).to_bytes(20, "big"), b"\x01")
    assert result.failure is not None
    assert result.failure.reason is HaltReason.PRECOMPILE_FAILED
    assert result.failure.detail.startswith("bn254_pairing: ")


def test_code_delegated_to_a_precompile_is_empty() -> None:
    evm = machine({HERE: DELEGATION_PREFIX + IDENTITY})
    result = evm.call(HERE, b"data")
    assert (result.status, result.output, result.gas_used) == (Status.SUCCESS, b"", 0)


# -- delegation -------------------------------------------------------------------------------------------------------


def test_a_delegated_account_runs_the_others_code_as_its_own() -> None:
    evm = machine({HERE: DELEGATION_PREFIX + OTHER, OTHER: "ADDRESS" + RETURN_TOP})
    assert number(evm.call(HERE).output) == number(HERE)


def test_a_delegation_is_followed_once() -> None:
    evm = machine({HERE: DELEGATION_PREFIX + OTHER, OTHER: DELEGATION_PREFIX + NOBODY, NOBODY: "STOP"})
    failure = evm.call(HERE).failure
    assert failure is not None
    assert (failure.reason, failure.pc) == (HaltReason.INVALID_OPCODE, 0)  # the byte 0xef itself


@pytest.mark.parametrize("kind", KINDS)
def test_calling_a_delegated_account_pays_for_both_addresses(kind: str) -> None:
    result = run(call(OTHER, kind=kind) * 2, others={OTHER: DELEGATION_PREFIX + NOBODY, NOBODY: "STOP"})
    assert result.gas_used == 2 * PUSHES[kind] + 2 * 2_600 + 2 * 100


def test_looking_at_a_delegated_account_sees_the_delegation_itself() -> None:
    code = DELEGATION_PREFIX + NOBODY
    for question, expected in (("EXTCODESIZE", 23), ("EXTCODEHASH", number(keccak256(code)))):
        result = run(f"{push(OTHER)} {question}" + RETURN_TOP, others={OTHER: code, NOBODY: "STOP"})
        assert number(result.output) == expected


def test_before_prague_a_delegation_is_just_bad_code() -> None:
    evm = machine({HERE: DELEGATION_PREFIX + OTHER, OTHER: "STOP"}, "cancun")
    assert evm.call(HERE).status is Status.HALT


SIZED = b"".join(size.to_bytes(32, "big") for size in (1, 1, 40)) + b"\5\3" + b"\x11" * 40


@pytest.mark.parametrize("data", [b"", SIZED, SIZED[:-1], SIZED[:64] + (1_025).to_bytes(32, "big")])
def test_a_precompile_that_takes_long_answers_the_same_from_a_process_of_its_own(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    modexp = (5).to_bytes(20, "big")
    here = EVM(tier="reference", timeout=60).call(modexp, data)
    monkeypatch.setattr(apart, "LONG", -1)
    assert EVM(tier="reference", timeout=60).call(modexp, data) == here
