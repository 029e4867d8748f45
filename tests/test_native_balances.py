"""Balances while native code runs: changed on both sides, undone in any order, the same as on the reference tier."""

from __future__ import annotations

import random

import pytest

from fusevm import EVM, Result
from fusevm.chain.addresses import create2_address
from fusevm.evm.assembly import assemble
from programs import CALLER, HERE, NOBODY, OTHER, call, push

NATIVE = ("native", "native-unfused", "lockstep")
CONTRACTS = [bytes.fromhex(f"c0de{number:036x}") for number in range(4)]
FRESH = [bytes.fromhex(f"feed{number:036x}") for number in range(3)]
EMPTY = bytes.fromhex("0e" * 20)  # an account that is there, with nothing in it
PRECOMPILES = [number.to_bytes(20, "big") for number in (1, 2, 3, 4, 5, 6, 9)]


def agreed(codes: dict[bytes, str], fork: str = "osaka", value: int = 0, gas: int = 5_000_000) -> Result:
    """What all tiers say of a call of the first code, and of everybody's balance after it."""
    seen = []
    for tier in ("reference", *NATIVE):
        evm = EVM(fork, tier)
        for number, (address, code) in enumerate(codes.items()):
            evm.set_code(address, assemble(code))
            evm.set_balance(address, 100 * number + 50)
        evm.set_balance(CALLER, 1000)
        evm.state.ensure(EMPTY)
        with evm.snapshot():
            first = evm.call(next(iter(codes)), value=value, caller=CALLER, gas=gas)
            root = evm.state_root
        blank = evm.state_root
        again = evm.call(next(iter(codes)), value=value, caller=CALLER, gas=gas)
        seen.append((first, root, blank, again, evm.state_root, list(first.logs)))
        assert evm.state.ledger is None
    for tier, each in zip(NATIVE, seen[1:], strict=True):
        assert each == seen[0], tier
    return seen[0][0]


def send(to: bytes, value: int, kind: str = "CALL") -> str:
    return call(to, value=value, kind=kind)


SHOW = "PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def test_value_sent_to_code_arrives_and_its_balance_says_so_inside() -> None:
    result = agreed({HERE: f"{call(OTHER, value=7, out=32)} POP PUSH1 32 PUSH0 RETURN", OTHER: f"SELFBALANCE {SHOW}"})
    assert int.from_bytes(result.output, "big") == 150 + 7


def test_a_reverted_callee_has_not_been_paid() -> None:
    result = agreed(
        {HERE: f"{send(OTHER, 7)} {push(OTHER)} BALANCE ADD {SHOW}", OTHER: "PUSH0 PUSH0 REVERT"},
    )
    assert int.from_bytes(result.output, "big") == 150


def test_more_than_there_is_cannot_be_sent_and_the_stipend_comes_back() -> None:
    poor = agreed({HERE: f"{send(OTHER, 51)} {SHOW}", OTHER: "STOP"})
    rich = agreed({HERE: f"{send(OTHER, 50)} {SHOW}", OTHER: "STOP"})
    assert (poor.output[-1], rich.output[-1]) == (0, 1)
    assert poor.gas_used == rich.gas_used


@pytest.mark.parametrize("to", [OTHER, NOBODY, HERE])
@pytest.mark.parametrize("kind", ["CALL", "CALLCODE"])
def test_value_to_others_to_nobody_and_to_oneself(to: bytes, kind: str) -> None:
    ends = "SELFBALANCE PUSH0 MSTORE8 PUSH1 1 PUSH0 RETURN"
    body = f"CALLVALUE PUSH1 @paid JUMPI {send(to, 3, kind)} {push(to)} BALANCE {SHOW} paid: JUMPDEST {ends}"
    agreed({HERE: body, OTHER: ends})


def test_sending_value_in_a_static_call_halts() -> None:
    result = agreed({HERE: f"{call(OTHER, kind='STATICCALL')} {SHOW}", OTHER: f"{send(HERE, 1)} STOP"})
    assert result.output[-1] == 0
    for value in (0, 1):
        agreed({HERE: f"{call(OTHER, kind='STATICCALL')} {SHOW}", OTHER: f"{send(HERE, value, 'CALLCODE')} STOP"})


def test_python_pays_first_then_native_code_and_both_are_undone_together() -> None:
    """The creation is Python's, the call native: their order must not matter to the revert."""
    create, pay = "PUSH0 PUSH0 PUSH1 5 CREATE POP", f"{send(HERE, 2)} POP"
    for parts in ((create, pay), (pay, create), (create, pay, create), (pay, create, pay)):
        inner = f"{' '.join(parts)} PUSH0 PUSH0 REVERT"
        body = f"CALLVALUE PUSH1 @paid JUMPI {send(OTHER, 9)} POP SELFBALANCE {SHOW} paid: JUMPDEST STOP"
        assert agreed({HERE: body, OTHER: inner}).output[-1] == 50
        agreed({HERE: body, OTHER: inner.replace("REVERT", "RETURN")})


def test_an_account_brought_to_life_in_vain_costs_as_much_to_bring_to_life_again() -> None:
    twice = f"{call(OTHER)} POP {send(EMPTY, 1)} POP {send(EMPTY, 1)} POP GAS {SHOW}"
    for ending in ("REVERT", "RETURN"):
        agreed({HERE: twice, OTHER: f"{send(EMPTY, 5)} PUSH0 PUSH0 {ending}"})


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("fork", ["osaka", "byzantium", "homestead"])
def test_precompiles_called_with_value_and_without_at_every_amount_of_gas(number: int, fork: str) -> None:
    address = number.to_bytes(20, "big")
    for value in (0, 1):
        for gas in (10, 17, 18, 60, 80, 120, 600, 3_000, 100_000):
            arguments = f"PUSH1 64 PUSH1 0 PUSH1 33 PUSH1 7 PUSH1 {value} {push(address)} PUSH3 {gas}"
            agreed(
                {
                    HERE: f"PUSH4 0x01020304 PUSH1 3 MSTORE {arguments} CALL PUSH1 96 MSTORE "
                    "GAS PUSH1 128 MSTORE PUSH1 160 PUSH1 0 RETURN"
                },
                fork,
            )


def random_code(rng: random.Random, number: int) -> str:
    parts = []
    for _ in range(rng.randrange(1, 6)):
        value = rng.choice([0, 0, 1, 5, 40, 200])
        kind = rng.choice(["CALL", "CALL", "CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
        to = rng.choice([*CONTRACTS[number + 1 :] * 3, *CONTRACTS, *FRESH, EMPTY, *PRECOMPILES])
        gas = rng.choice([0, 9_000, 200_000])
        amount = value if kind in ("CALL", "CALLCODE") else 0
        parts.append(
            rng.choice(
                [
                    f"{call(to, value=amount, kind=kind, gas=f'PUSH3 {gas}')} PUSH1 {rng.randrange(4)} SSTORE",
                    f"{call(to, value=amount, kind=kind, gas='PUSH3 200000')} POP",
                    f"{push(to)} BALANCE PUSH1 {rng.randrange(4)} SSTORE",
                    f"SELFBALANCE PUSH0 PUSH0 LOG1 PUSH1 {rng.randrange(4)} POP",
                    f"PUSH4 {rng.choice(['0x00', '0x5f5ffd', '0x33ff', '0xfe'])} PUSH0 MSTORE "
                    f"PUSH1 4 PUSH1 28 PUSH1 {value % 50} CREATE POP",
                ]
            )
        )
    parts.append(
        rng.choice(["STOP", "STOP", "STOP", "PUSH0 PUSH0 REVERT", "INVALID", f"{push(rng.choice(FRESH))} SELFDESTRUCT"])
    )
    return " ".join(parts)


@pytest.mark.parametrize("fork", ["osaka", "cancun", "london", "istanbul", "byzantium", "tangerine whistle"])
def test_contracts_that_pay_create_and_fail_at_random_agree(fork: str) -> None:
    rng = random.Random(f"balances {fork}")
    for _ in range(25):
        codes = {address: random_code(rng, number) for number, address in enumerate(CONTRACTS)}
        if fork in ("byzantium", "tangerine whistle", "istanbul", "london"):
            codes = {address: code.replace("PUSH0", "PUSH1 0") for address, code in codes.items()}
        if fork in ("byzantium", "tangerine whistle"):
            codes = {address: code.replace("SELFBALANCE", "ADDRESS BALANCE") for address, code in codes.items()}
        agreed(codes, fork, value=rng.choice([0, 3]), gas=rng.choice([60_000, 400_000, 3_000_000]))


# -- accounts that a payment creates ----------------------------------------------------------------------------------

LOOK = f"{push(NOBODY)} EXTCODEHASH {push(NOBODY)} BALANCE {push(NOBODY)} EXTCODESIZE"
KEEP = "PUSH1 96 MSTORE PUSH1 64 MSTORE PUSH1 32 MSTORE"  # what LOOK found
PAYMENTS = {
    "it is there after that": f"{call(NOBODY, value=1)} {LOOK} {KEEP}",
    "and was not before": f"{LOOK} {KEEP} {call(NOBODY, value=1)} {LOOK} ADD ADD PUSH0 MSTORE",
    "a second payment creates nothing": f"{call(NOBODY, value=1)} {call(NOBODY, value=1)} {LOOK} {KEEP}",
    "undone, it is not there": f"{call(OTHER, value=2)} {LOOK} {KEEP}",
    "undone, it is created again": f"{call(OTHER, value=2)} {call(NOBODY, value=1)} {LOOK} {KEEP} {call(OTHER)}",
    "seen, undone and seen": f"{LOOK} {KEEP} {call(OTHER, value=2)} {LOOK} ADD ADD PUSH0 MSTORE"
    f" {call(NOBODY, value=1)}",
    "Python knows of it": f"{call(NOBODY, value=1)} {call(bytes(19) + bytes([4]), value=1)} {LOOK} {KEEP}",
    "Python knew of it before it was undone": f"{call(OTHER, value=3)} {LOOK} {KEEP} {call(NOBODY, value=1)}",
}


@pytest.mark.parametrize("fork", ["osaka", "shanghai", "byzantium"])
@pytest.mark.parametrize("inner", [f"{call(NOBODY, value=1)} {LOOK} PUSH0 PUSH0 REVERT",
                                   f"{call(NOBODY, value=1)} {call(bytes(19) + bytes([4]), value=1)} {LOOK} INVALID",
                                   f"{push(NOBODY)} SELFDESTRUCT"])  # fmt: skip
@pytest.mark.parametrize("what", PAYMENTS)
def test_an_account_that_a_payment_creates(what: str, inner: str, fork: str) -> None:
    seen = []
    for tier in ("reference", "native", "native-tiered", "auto"):
        evm = EVM(fork, tier)
        for address, program in ((HERE, f"{PAYMENTS[what]} PUSH1 128 PUSH0 RETURN"), (OTHER, inner)):
            if fork != "osaka":
                program = program.replace("PUSH0", "PUSH1 0")
            if fork == "byzantium":
                program = program.replace("EXTCODEHASH", "BALANCE")
            evm.set_code(address, assemble(program))
            evm.set_balance(address, 100)
        result = evm.call(HERE)
        seen.append((result, evm.state_root))
        with evm.snapshot():
            seen[-1] += (evm.call(HERE), evm.state_root)
        assert evm.state_root == seen[-1][1]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_a_contract_made_where_a_payment_created_an_account_is_undone_with_it() -> None:
    """Python looks in between: each call of new code asks it for a schedule."""
    maker = bytes.fromhex("f1" * 20)
    place = create2_address(maker, 0, b"")
    seen = []
    for tier in ("reference", "native", "native-tiered", "auto"):
        evm = EVM(tier=tier)
        evm.set_balance(maker, 10)
        for number, address in enumerate(CONTRACTS[:2]):
            evm.set_code(address, assemble(f"PUSH1 {number} POP"))
        steps = f"{call(place, value=1)} POP {call(CONTRACTS[0])} POP PUSH0 PUSH0 PUSH0 PUSH0 CREATE2 POP"
        evm.set_code(maker, assemble(f"{steps} {call(CONTRACTS[1])} POP PUSH0 PUSH0 REVERT"))
        evm.set_code(HERE, assemble(f"{call(maker)} POP"))
        seen.append((evm.call(HERE), evm.call(maker), sorted(evm.state.accounts), evm.state_root))
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("fork", ["osaka", "constantinople"])
def test_an_account_described_while_it_was_paid_is_nobody_when_the_payment_is_undone(fork: str) -> None:
    """A creation at its address that fails makes native code ask for it anew, between payment and undoing."""
    maker, init = bytes.fromhex("f1" * 20), bytes.fromhex("fe")
    place = create2_address(maker, 0, init)
    zeros = "PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0"
    pay = f"{zeros} PUSH1 1 {push(place)} PUSH2 50000 CALL POP"
    make = "PUSH1 0xfe PUSH1 0 MSTORE8 PUSH1 0 PUSH1 1 PUSH1 0 PUSH1 0 CREATE2 POP"
    look = f"{push(place)} EXTCODEHASH POP {push(place)} BALANCE POP"
    seen = []
    for tier in ("reference", "native", "native-tiered", "auto"):
        evm = EVM(fork, tier)
        evm.set_balance(maker, 10)
        evm.set_balance(HERE, 10)
        evm.set_code(maker, assemble(f"{pay} {make} {look} PUSH1 0 PUSH1 0 REVERT"))
        again = f"{push(place)} EXTCODEHASH PUSH1 0 MSTORE {pay} {pay} PUSH1 32 PUSH1 0 RETURN"
        evm.set_code(HERE, assemble(f"{zeros} PUSH1 0 {push(maker)} PUSH3 200000 CALL POP {again}"))
        result = evm.call(HERE, gas=1_000_000)
        seen.append((result, evm.state_root))
    assert seen[0][0].output == bytes(32)
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("fork", ["frontier", "homestead", "tangerine whistle"])
def test_a_contract_that_was_undone_and_made_again_is_there_before_eip_161(fork: str) -> None:
    """It has neither nonce nor balance, only code."""
    outer, maker, heir = CONTRACTS[:3]
    pay = f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 1 {push(heir)} PUSH2 5000 CALL POP"
    init = assemble(f"{pay} PUSH1 1 PUSH1 0 RETURN")
    store = "".join(f"PUSH1 {byte} PUSH1 {n} MSTORE8 " for n, byte in enumerate(init))
    make = (
        f"{store} PUSH1 {len(init)} PUSH1 0 PUSH1 1 CREATE POP CALLDATASIZE PUSH2 @bad JUMPI STOP bad: JUMPDEST INVALID"
    )
    twice = "".join(
        f"PUSH1 0 PUSH1 0 PUSH1 {size} PUSH1 0 PUSH1 0 {push(maker)} PUSH3 200000 CALL POP " for size in (1, 0)
    )
    seen = []
    for tier in ("reference", "native", "native-tiered", "auto"):
        evm = EVM(fork, tier)
        evm.set_code(outer, assemble(twice))
        evm.set_code(maker, assemble(make))
        evm.set_balance(maker, 5)
        evm.set_balance(heir, 1)
        seen.append((evm.call(outer, gas=3_000_000), sorted(evm.state.accounts), evm.state_root))
    assert seen[0] == seen[1] == seen[2] == seen[3]
