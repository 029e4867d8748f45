"""SELFDESTRUCT to accounts that are not there, before EIP-161: they are from then on, though they may be empty."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.native.host.engine import NativeEngine
from programs import CALLER, HERE, push

OLD = ["frontier", "homestead", "tangerine whistle"]
TIERS = ("reference", "native", "native-unfused", "native-tiered", "auto", "lockstep")
RICH, POOR, OUTER, PAYER = (bytes.fromhex(each * 20) for each in ("a1", "b2", "c3", "d4"))
HEIRS = [bytes.fromhex(f"feed{number:036x}") for number in range(3)]
EMPTY = bytes.fromhex("0e" * 20)  # is there, with nothing in it
PRECOMPILES = [number.to_bytes(20, "big") for number in (1, 4, 9)]


def told(to: bytes, word: bytes = bytes(20), *, value: int = 0, gas: int = 200_000) -> str:
    """Text that calls an address with a word, and pops whether it succeeded."""
    data = f"{push(word)} PUSH1 0 MSTORE" if word != bytes(20) else ""
    return f"{data} PUSH1 0 PUSH1 0 PUSH1 32 PUSH1 0 PUSH1 {value} {push(to)} PUSH3 {gas} CALL POP "


DESTROYED = "PUSH1 0 CALLDATALOAD SELFDESTRUCT"
# Tells the poor one to destroy itself for an heir, and fails.
IN_VAIN = f"{told(POOR, HEIRS[0])} {told(RICH, HEIRS[1])} {push(HEIRS[0])} BALANCE INVALID"


def machine(codes: dict[bytes, str], fork: str, tier: str) -> EVM:
    evm = EVM(fork, tier)
    for address, code in {RICH: DESTROYED, POOR: DESTROYED, OUTER: IN_VAIN, **codes}.items():
        evm.set_code(address, assemble(code))
    for address in (RICH, PAYER, HERE, CALLER):
        evm.set_balance(address, 50)
    evm.state.ensure(EMPTY)
    return evm


def seen(codes: dict[bytes, str], fork: str, tier: str, gas: int) -> Any:
    evm = machine(codes, fork, tier)
    found: list[Any] = []
    with evm.snapshot():
        found.append(called(evm, gas))
    found.append(sorted(where for where, _ in evm.state.items()))
    return [*found, called(evm, gas), called(evm, gas)]


def called(evm: EVM, gas: int) -> Any:
    result = evm.call(HERE, caller=CALLER, gas=gas)
    accounts = {where: (each.nonce, each.balance, each.code) for where, each in evm.state.items()}
    return result, result.failure, accounts, evm.state_root


def agreed(code: str, fork: str, others: dict[bytes, str] | None = None, gas: int = 3_000_000) -> None:
    wanted = seen({HERE: code, **(others or {})}, fork, "reference", gas)
    for tier in TIERS[1:]:
        assert seen({HERE: code, **(others or {})}, fork, tier, gas) == wanted, tier


LOOK = f"{push(HEIRS[0])} BALANCE {push(HEIRS[0])} EXTCODESIZE ADD PUSH1 3 SSTORE GAS PUSH1 4 SSTORE "
PROGRAMS = {
    "an heir of nothing": told(POOR, HEIRS[0]) + LOOK,
    "an heir of something": told(RICH, HEIRS[0]) + LOOK,
    "one after the other": told(RICH, HEIRS[0]) + told(RICH, HEIRS[1]) + told(POOR, HEIRS[0]) + LOOK,
    "in vain": told(OUTER) + LOOK,
    "in vain, then for good": told(OUTER) + LOOK + told(POOR, HEIRS[0]) + LOOK,
    "for good, then in vain": told(POOR, HEIRS[0]) + told(OUTER) + LOOK,
    "known before": LOOK + told(POOR, HEIRS[0]) + LOOK + told(OUTER) + LOOK,
    "then paid": told(POOR, HEIRS[0]) + told(HEIRS[0], value=1) + LOOK,
    "then called": told(POOR, HEIRS[0]) + told(HEIRS[0]) + LOOK,
    "paid, called and in vain": told(OUTER) + told(HEIRS[0]) + told(OUTER) + told(HEIRS[0], value=1) + LOOK,
    "while Python acts": told(POOR, HEIRS[0]) + told(PRECOMPILES[1], value=1) + told(OUTER) + told(HEIRS[2]) + LOOK,
    "an empty one": told(POOR, EMPTY) + told(RICH, EMPTY) + LOOK,
    "a precompile": "".join(told(POOR, each) for each in PRECOMPILES) + told(RICH, PRECOMPILES[0]) + LOOK,
    "oneself": told(RICH, RICH) + told(POOR, POOR) + LOOK,
    "until gas runs out": f"loop: JUMPDEST {told(POOR, HEIRS[0])} PUSH1 100 GAS SUB PUSH1 0 MSTORE PUSH1 0 PUSH1 0"
    f" PUSH1 32 PUSH1 0 PUSH1 0 {push(POOR)} PUSH2 9000 CALL POP PUSH1 @loop JUMP",
}


@pytest.mark.parametrize("fork", OLD)
@pytest.mark.parametrize("what", PROGRAMS)
def test_all_tiers_agree_on_who_is_there(what: str, fork: str) -> None:
    agreed(PROGRAMS[what], fork, gas=300_000 if "until" in what else 3_000_000)


@pytest.mark.parametrize("fork", OLD)
def test_a_lack_of_gas_at_any_point_leaves_the_same(fork: str) -> None:
    """On Tangerine Whistle an heir costs 25,000."""
    for gas in (300, 5_000, 24_000, 26_000, 45_000, 60_000, 76_000, 90_000):
        agreed(PROGRAMS["one after the other"], fork, gas=gas)


@pytest.mark.parametrize("fork", OLD)
def test_contracts_that_destroy_themselves_at_random_agree(fork: str) -> None:
    rng = random.Random(f"heirs {fork}")
    everybody = [RICH, POOR, OUTER, PAYER, EMPTY, *HEIRS, *PRECOMPILES]
    for _ in range(25):
        codes = {}
        for number, address in enumerate((HERE, OUTER, PAYER)):
            parts = [
                told(
                    rng.choice([RICH, POOR, OUTER, PAYER][number:]), rng.choice(everybody), value=rng.choice((0, 0, 1))
                )
                if rng.random() < 0.6
                else told(rng.choice(everybody), value=rng.choice((0, 1)), gas=40_000)
                if rng.random() < 0.4
                else f"{push(rng.choice(everybody))} BALANCE PUSH1 {rng.randrange(4)} SSTORE "
                for _ in range(rng.randrange(1, 6))
            ]
            codes[address] = "".join(parts) + rng.choice(("STOP", "STOP", "INVALID", f"{push(HEIRS[2])} SELFDESTRUCT"))
        agreed(codes.pop(HERE), fork, codes)


@pytest.mark.parametrize("fork", OLD)
def test_python_is_not_asked_to_do_it(fork: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    sync = NativeEngine._sync

    def noting(self: NativeEngine, frame: Any, view: Any) -> Any:
        asked.append(view.pc)
        return sync(self, frame, view)

    monkeypatch.setattr(NativeEngine, "_sync", noting)
    assert machine({HERE: told(POOR, HEIRS[0]) + told(RICH, HEIRS[1])}, fork, "native").call(HERE).ok
    assert not asked
    assert machine({HERE: told(POOR, PRECOMPILES[0])}, fork, "native").call(HERE).ok
    assert asked
