"""Precompiled contracts that native code calls itself: hashes, prices, sizes, limits, and who else may be there."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fusevm import EVM, Fork, HaltReason
from fusevm.chain.outcome import TimeLimit
from fusevm.evm.assembly import assemble
from fusevm.evm.precompiles import TABLE, hashes
from fusevm.evm.secp256k1 import sign
from fusevm.native.emit.crypto import functions
from fusevm.native.host import callbacks, precompiles
from fusevm.native.host.precompiles import DIRECT
from fusevm.native.runtime.precompiles import MAX_RIPEMD160, MAX_SHA256
from recordedcalls import TIERS as RECORDED
from recordedcalls import only, recorded
from test_extensions import C, calls, reversing
from test_precompiles import words

BY_ADDRESS = {contract.address: contract for contract in TABLE}
TIERS = ("native", "native-unfused", "native-tiered", "auto", "regions", "lockstep", "lockstep-regions", "reference")
NATIVE = ("native", "native-unfused", "native-tiered")
RNG = random.Random(160)
PARITY, R, S = sign(words(99), words(7))
SIGNED = words(99, 27 + PARITY, R, S)


# -- the hashes


def hashed(name: str, data: bytes) -> bytes:
    out = ctypes.create_string_buffer(b"\xee" * 40, 40)
    assert functions("hashes")[name](data, len(data), out) == 32
    assert out.raw[32:] == b"\xee" * 8
    return out.raw[:32]


SIZES = [*range(301), 511, 512, 513, 1_000, 4_096, 65_535, 100_001, 1 << 20]


@pytest.mark.parametrize("kind", ["zeros", "ones", "random"])
def test_native_hashes_are_those_of_the_libraries_for_every_size(kind: str) -> None:
    for size in SIZES:
        data = {"zeros": bytes(size), "ones": b"\xff" * size, "random": RNG.randbytes(size)}[kind]
        assert hashed("sha256", data) == hashlib.sha256(data).digest(), size
        assert hashed("ripemd160", data) == hashes.ripemd160(data, Fork.OSAKA), size


def test_native_hashes_of_the_texts_that_their_authors_chose() -> None:
    assert hashed("sha256", b"abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    for text, digest in {
        b"": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
        b"a": "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe",
        b"abc": "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc",
        b"message digest": "5d0689ef49d2fae572b881b123a85ffa21595f36",
        b"a" * 1_000_000: "52783243c1697bdbe16d37f97f68f08325dc1528",
    }.items():
        assert hashed("ripemd160", text).hex() == "00" * 12 + digest


# -- through calls


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The addresses of the contracts that Python runs for native code."""
    found: list[int] = []
    run = callbacks.run_precompile

    def counted(contract: Any, *arguments: Any) -> bytes:
        found.append(contract.address)
        return run(contract, *arguments)

    monkeypatch.setattr(callbacks, "run_precompile", counted)
    return found


INPUTS = {
    1: [
        SIGNED,
        SIGNED[:127],
        SIGNED + b"\1" * 40,
        SIGNED + bytes(1 << 17),
        b"",
        words(1, 29, R, S),
        words(1, 27, 5, 1),
    ],
    2: [b"", b"abc", *(RNG.randbytes(MAX_SHA256 + more) for more in (-1, 0, 1)), RNG.randbytes(5_000)],
    3: [b"", b"abc", RNG.randbytes(5_000), *(RNG.randbytes(MAX_RIPEMD160 + more) for more in (-1, 0, 1))],
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("address", INPUTS)
def test_every_tier_answers_and_charges_alike(tier: str, address: int) -> None:
    evm, judge = EVM(tier=tier), EVM(tier="reference")
    for machine in (evm, judge):
        machine.set_code(C, calls(address.to_bytes(20, "big"), kind="STATICCALL"))
    for data in INPUTS[address]:
        expected = BY_ADDRESS[address].run(data, Fork.OSAKA)
        for _ in range(2):  # native code has it from the second call on
            result, judged = evm.call(C, data), judge.call(C, data)
            assert result.output == words(1) + expected == judged.output
            assert result.gas_used == judged.gas_used
        assert evm.call(address, data).output == expected


@pytest.mark.parametrize("tier", NATIVE)
@pytest.mark.parametrize("address", INPUTS)
def test_python_is_asked_once_and_then_for_long_inputs_alone(tier: str, address: int, asked: list[int]) -> None:
    evm = EVM(tier=tier)
    evm.set_code(C, calls(address.to_bytes(20, "big")))
    evm.call(C, b"abc")
    assert set(asked) <= {address}
    asked.clear()
    for data in INPUTS[address]:
        evm.call(C, data)
    long = {1: 0, 2: 2, 3: 1}[address]
    assert asked == [address] * long
    EVM(tier=tier, fork="frontier").call(C, b"")
    other = EVM(tier=tier, fork="berlin")  # another machine knows it from the start
    other.set_code(C, assemble(f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 {address} GAS STATICCALL"))
    assert other.call(C).ok
    assert asked == [address] * long


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("address", INPUTS)
@pytest.mark.parametrize("size", [0, 1, 32, 33, 64])
def test_one_unit_of_gas_too_little_is_a_failure_that_takes_all(tier: str, address: int, size: int) -> None:
    price = BY_ADDRESS[address].gas(bytes(size), Fork.OSAKA)
    used = []
    for given in (price, price - 1, 0, price, 10 * price):
        evm, judge = EVM(tier=tier), EVM(tier="reference")
        for machine in (evm, judge):
            machine.set_code(C, calls(address.to_bytes(20, "big"), f"PUSH4 {given:#010x}", "STATICCALL"))
        result, judged = evm.call(C, bytes(size)), judge.call(C, bytes(size))
        assert result.output == judged.output
        assert result.gas_used == judged.gas_used
        assert result.output[31] == (given >= price)
        used.append(result.gas_used)
    assert used[0] == used[3] == used[4] or address != 1


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("address", INPUTS)
@pytest.mark.parametrize("room", [0, 5, 32, 40])
def test_output_is_cut_to_the_room_there_is_and_nothing_is_written_past_it(tier: str, address: int, room: int) -> None:
    """The output goes to where the input begins."""
    program = (
        "PUSH1 128 PUSH0 PUSH0 CALLDATACOPY PUSH0 NOT PUSH1 128 MSTORE "
        f"PUSH1 {room} PUSH0 PUSH1 128 PUSH0 PUSH1 {address} GAS STATICCALL PUSH1 160 MSTORE "
        "RETURNDATASIZE PUSH1 192 MSTORE PUSH1 224 PUSH0 RETURN"
    )
    evm = EVM(tier=tier)
    evm.set_code(C, assemble(program))
    expected = BY_ADDRESS[address].run(SIGNED, Fork.OSAKA)[:room]
    for _ in range(2):
        output = evm.call(C, SIGNED).output
        assert output == expected + SIGNED[len(expected) :] + b"\xff" * 32 + words(1, 32)


@pytest.mark.parametrize("tier", RECORDED)
@pytest.mark.parametrize("address", INPUTS)
def test_recorded_calls_are_the_same_frames(tier: str, address: int) -> None:
    several = "".join(
        f"PUSH1 32 PUSH0 PUSH1 {size} PUSH0 PUSH0 PUSH1 {address} {gas} CALL POP "
        for size in (0, 33, 128)
        for gas in ("GAS", "PUSH1 7", "PUSH2 600", "PUSH2 3000")
    )
    program = "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY " + several * 2
    frame, judged = (only(recorded(each, program, data=SIGNED)) for each in (tier, "reference"))
    assert frame == judged
    assert {each.failure for each in frame.calls} == {None, HaltReason.OUT_OF_GAS}


# -- who else may be at the address


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("address", INPUTS)
def test_a_user_s_contract_in_its_place_is_asked_and_makes_way_again(tier: str, address: int) -> None:
    evm = EVM(tier=tier)
    evm.set_code(C, calls(address.to_bytes(20, "big")))
    before = [evm.call(C, SIGNED).output for _ in range(3)][-1]
    evm.precompiles[address] = reversing
    for _ in range(3):
        assert evm.call(C, SIGNED).output == words(1) + SIGNED[::-1]
    del evm.precompiles[address]
    assert evm.call(C, SIGNED).output == before


@pytest.mark.parametrize("tier", TIERS)
def test_contracts_that_change_places_answer_where_they_are(tier: str) -> None:
    evm = EVM(tier=tier)
    for address in INPUTS:
        evm.set_code(bytes([address]) * 20, calls(address.to_bytes(20, "big"), kind="STATICCALL"))
        evm.call(bytes([address]) * 20, SIGNED)
    moved = {1: {"movePrecompileToAddress": b"\x99" * 20}, 3: {"movePrecompileToAddress": b"\x98" * 20}}
    with evm.overridden(moved):
        assert evm.call(b"\1" * 20, SIGNED).output == words(1)  # nobody is there
        assert evm.call(b"\2" * 20, SIGNED).output == words(1) + hashlib.sha256(SIGNED).digest()
        assert evm.call(b"\3" * 20, SIGNED).output == words(1)
        assert evm.call(b"\x98" * 20, SIGNED).output == hashes.ripemd160(SIGNED, Fork.OSAKA)
    assert evm.call(b"\3" * 20, SIGNED).output == words(1) + hashes.ripemd160(SIGNED, Fork.OSAKA)


# -- time

LIMIT = 0.3
MARGIN = 0.5  # generous: the machine may do other work; alone it takes some milliseconds


@pytest.mark.parametrize("caller", [bytes(20), b"\xca" * 20])
def test_a_time_limit_is_kept_whoever_calls(caller: bytes) -> None:
    """On the straight path, after the first slice."""
    evm = EVM(tier="native", timeout=0.2)
    evm.set_code(C, assemble("JUMPDEST PUSH0 JUMP"))
    with pytest.raises(TimeLimit):
        evm.call(C, caller=caller, gas=1 << 45)


@pytest.mark.parametrize("tier", ["native", "auto"])
@pytest.mark.parametrize(("address", "size"), [(1, 128), (2, 0), (2, MAX_SHA256), (3, 0), (3, MAX_RIPEMD160)])
def test_a_time_limit_is_kept_in_a_loop_that_never_asks_python(tier: str, address: int, size: int) -> None:
    evm = EVM(tier=tier)
    call = f"PUSH0 PUSH0 CALLDATASIZE PUSH0 PUSH1 {address} GAS STATICCALL POP "
    evm.set_code(C, assemble(f"CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY JUMPDEST {call * 8} PUSH1 4 JUMP"))
    data = SIGNED[:size].ljust(size, b"\1")
    evm.call(C, data, gas=10_000_000)
    limited = evm.copy()
    limited.timeout = LIMIT
    started = time.monotonic()
    with contextlib.suppress(TimeLimit):
        limited.call(C, data, gas=1 << 62)
        raise AssertionError("it must not end by itself")
    assert time.monotonic() - started < LIMIT + MARGIN


def test_with_a_time_limit_native_code_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompiles, "_prepared", set())
    monkeypatch.setattr(precompiles, "is_ready", lambda family: False)
    monkeypatch.setattr(precompiles, "prepare", lambda family, pause: pytest.fail("it waits"))
    for address in DIRECT:
        evm = EVM(tier="native", timeout=5.0)
        evm.set_code(C, calls(address.to_bytes(20, "big")))
        for _ in range(2):
            assert evm.call(C, SIGNED).output == words(1) + BY_ADDRESS[address].run(SIGNED, Fork.OSAKA)
