"""A user's own precompiles, opcodes and console: alike on every tier, exact in gas."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fusevm import EVM, BadValue, Fork, HaltReason, Hooks, PrecompileFailure
from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from fusevm.machine.console import CONSOLE, readable
from realcontracts import encoded, tail

C, HERE = b"\xc0" * 20, b"\x77" * 20
ALICE = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
TIERS = ("reference", "native", "native-unfused", "auto", "lockstep")


def calls(to: bytes, gas: str = "GAS", kind: str = "CALL") -> bytes:
    """Calls with its own call data, and returns success and what came back."""
    value = "PUSH0" if kind == "CALL" else ""
    return assemble(
        "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY PUSH0 PUSH0 CALLDATASIZE PUSH0 "
        f"{value} PUSH20 0x{to.hex()} {gas} {kind} "
        "PUSH0 MSTORE RETURNDATASIZE PUSH0 PUSH1 32 RETURNDATACOPY RETURNDATASIZE PUSH1 32 ADD PUSH0 RETURN"
    )


def machine(tier: str, to: bytes = HERE, gas: str = "GAS", kind: str = "CALL") -> EVM:
    evm = EVM(tier=tier)
    evm.set_code(C, calls(to, gas, kind))
    return evm


def reversing(data: bytes, gas: int) -> tuple[bytes, int]:
    return data[::-1], 10 + len(data)


# -- precompiles


@pytest.mark.parametrize("tier", TIERS)
def test_a_precompile_of_one_s_own_answers_and_is_paid(tier: str) -> None:
    evm = machine(tier)
    evm.precompiles[HERE] = reversing
    assert evm.call(HERE, b"abc").output == b"cba"
    assert evm.call(HERE, b"abc").gas_used == 13
    for _ in range(3):
        result = evm.call(C, b"abc")
        assert result.output == encoded(1) + b"cba"
    free = machine(tier)
    free.precompiles[HERE] = lambda data, gas: data[::-1]
    assert free.call(C, b"abc").gas_used == result.gas_used - 13


@pytest.mark.parametrize("tier", TIERS)
def test_it_is_warm_as_a_precompile_is(tier: str) -> None:
    plain, own = machine(tier), machine(tier)
    own.precompiles[HERE] = lambda data, gas: b""
    for _ in range(3):
        assert plain.call(C).gas_used - own.call(C).gas_used == 2_500


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("failing", ["asks for too much", "raises"])
def test_one_that_fails_costs_all_the_gas_it_was_given(tier: str, failing: str) -> None:
    def fail(data: bytes, gas: int) -> tuple[bytes, int]:
        if failing == "raises":
            raise PrecompileFailure("no")
        return b"", gas + 1

    evm = machine(tier, gas="PUSH2 0x1000")
    evm.precompiles[HERE] = lambda data, gas: (b"", gas)
    spent = evm.call(C).gas_used
    evm.precompiles[HERE] = fail
    result = evm.call(C)
    assert (result.output, result.gas_used) == (encoded(0), spent)
    outside = evm.call(HERE, gas=500)
    assert (outside.ok, outside.gas_used) == (False, 500)
    assert outside.failure is not None
    assert outside.failure.reason in (HaltReason.PRECOMPILE_FAILED, HaltReason.OUT_OF_GAS)


@pytest.mark.parametrize("tier", TIERS)
def test_an_error_of_the_function_itself_is_raised_and_the_call_has_not_happened(tier: str) -> None:
    evm = machine(tier)
    evm.set_code(C, assemble("PUSH1 1 PUSH0 SSTORE") + calls(HERE))
    evm.precompiles[HERE] = lambda data, gas: {}[data]  # type: ignore[index]
    with pytest.raises(KeyError):
        evm.call(C)
    assert evm.get_storage(C, 0) == 0
    evm.precompiles[HERE] = lambda data, gas: 5  # type: ignore[assignment,return-value]
    with pytest.raises(BadValue, match=f"precompile 0x{HERE.hex()}: output: expected bytes"):
        evm.call(C)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("number", [2, 4, 5, 9])
def test_one_of_the_fork_s_can_be_replaced_and_comes_back(tier: str, number: int) -> None:
    address = number.to_bytes(20, "big")
    evm = machine(tier, address)
    before = evm.call(C, b"abc").output
    evm.precompiles[number] = reversing
    assert evm.call(C, b"abc").output == encoded(1) + b"cba"
    assert evm.call(number, b"abc").output == b"cba"
    del evm.precompiles[number]
    assert evm.call(C, b"abc").output == before
    assert len(evm.precompiles) == 0


@pytest.mark.parametrize("tier", TIERS)
def test_machines_with_other_precompiles_do_not_mix(tier: str) -> None:
    one, two, none = machine(tier), machine(tier), machine(tier)
    one.precompiles[HERE] = lambda data, gas: b"one"
    two.precompiles[HERE] = lambda data, gas: b"two"
    for _ in range(3):
        assert [each.call(C).output[32:] for each in (one, none, two)] == [b"one", b"", b"two"]


def test_precompiles_stay_when_the_fork_changes_and_in_copies() -> None:
    evm = machine("auto")
    evm.precompiles[HERE] = reversing
    evm.fork = Fork.CANCUN
    for twin in (evm, evm.copy(), pickle.loads(pickle.dumps(evm))):
        assert twin.call(C, b"abc").output == encoded(1) + b"cba"
    twin = evm.copy()
    twin.precompiles[HERE] = lambda data, gas: b"!"
    assert evm.call(C, b"abc").output == encoded(1) + b"cba"


def test_what_is_not_a_function_is_refused() -> None:
    evm = EVM()
    with pytest.raises(BadValue, match="expected a function"):
        evm.precompiles[HERE] = 5  # type: ignore[assignment]
    with pytest.raises(BadValue, match="expected a function"):
        evm.opcodes["ADD"] = None  # type: ignore[assignment]
    with pytest.raises(BadValue, match="console"):
        evm.console = 5  # type: ignore[assignment]
    for wrong in (256, -1, "NOTHING", 1.5, True):
        with pytest.raises(BadValue, match="opcode"):
            evm.opcodes[wrong] = lambda frame: None  # type: ignore[index]


# -- opcodes


def minus(frame: Any) -> None:
    frame.stack.append(frame.stack.pop() - frame.stack.pop())


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_an_opcode_can_be_replaced(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_code(C, assemble("PUSH1 3 PUSH1 5 ADD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
    before = evm.call(C)
    evm.opcodes["ADD"] = minus
    for twin in (evm, evm.copy(), pickle.loads(pickle.dumps(evm))):
        result = twin.call(C)
        assert (int.from_bytes(result.output, "big"), result.gas_used) == (2, before.gas_used)
    seen: list[str] = []
    evm.hooks = Hooks(on_opcode=lambda step: seen.append(step.name))
    assert int.from_bytes(evm.call(C).output, "big") == 2
    assert "ADD" in seen
    evm.hooks = None
    del evm.opcodes[1]
    assert evm.call(C) == before


def test_a_new_opcode_may_charge_and_halt() -> None:
    evm = EVM()
    evm.set_code(C, bytes.fromhex("0c00"))
    assert not evm.call(C).ok
    evm.opcodes[0x0C] = lambda frame: frame.charge(77)
    assert evm.call(C).gas_used == 77
    short = evm.call(C, gas=76)
    assert (short.ok, short.gas_used) == (False, 76)


# -- the console


def logging(signature: str, *words: int | bytes) -> bytes:
    return keccak256(signature.encode())[:4] + encoded(*words)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (logging("log()"), ""),
        (logging("log(uint256)", 7), "7"),
        (logging("log(uint)", 7), "7"),
        (logging("log(int256)", -7), "-7"),
        (logging("log(int)", -7), "-7"),
        (logging("log(bool)", 1), "true"),
        (logging("log(string)", 32, tail(b"hello")), "hello"),
        (logging("log(bytes)", 32, tail(b"hi")), "0x6869"),
        (logging("log(bytes4)", b"abcd".ljust(32, b"\0")), "0x61626364"),
        (logging("log(address)", int(ALICE, 16)), ALICE),
        (logging("log(string,uint256)", 64, 5, tail(b"has")), "has 5"),
        (logging("log(string,uint256)", 64, 5, tail(b"has %d of 100%%")), "has 5 of 100%"),
        (logging("log(string,string,bool)", 96, 160, 0, tail(b"%s is"), tail(b"it")), "it is false"),
        (logging("log(uint256,uint256,uint256,uint256)", 1, 2, 3, 4), "1 2 3 4"),
        (logging("log(string)", 1 << 255), "0x" + logging("log(string)", 1 << 255).hex()),
        (b"\x01\x02", "0x0102"),
    ],
)  # fmt: skip
def test_lines_read_as_console_log_writes_them(data: bytes, line: str) -> None:
    assert readable(data) == line


@pytest.mark.parametrize("tier", TIERS[:-1])  # in lockstep both tiers are heard
def test_the_console_is_heard_and_costs_what_it_costs_unheard(tier: str) -> None:
    unheard, heard = machine(tier, CONSOLE, kind="STATICCALL"), machine(tier, CONSOLE, kind="STATICCALL")
    lines: list[str] = []
    heard.console = lines.append
    lists = [[evm.call(C, logging("log(uint256)", number)) for number in range(4)] for evm in (heard, unheard)]
    assert lists[0] == lists[1]
    assert lines == ["0", "1", "2", "3"]
    heard.console = None
    heard.call(C, logging("log(uint256)", 5))
    assert len(lines) == 4


@pytest.mark.parametrize("tier", TIERS[:-1])  # in lockstep both tiers are heard
def test_what_a_reverted_call_wrote_is_heard(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_code(C, calls(CONSOLE)[:-1] + bytes.fromhex("fd"))
    lines: list[str] = []
    evm.console = lines.append
    for _ in range(3):
        assert not evm.call(C, logging("log(bool)", 1)).ok
    assert lines == ["true"] * 3
