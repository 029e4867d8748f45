"""No valid transaction ends in EngineLimit: programs that ask for more of something than they seem to pay for."""

from __future__ import annotations

import gc
from typing import NamedTuple

import pytest

from conftest import WHOLE
from fusevm import EVM, Result
from fusevm.chain.environment import Message
from fusevm.evm.assembly import assemble
from fusevm.evm.halts import ExceptionalHalt
from fusevm.reference.frame import Frame
from programs import HERE, OTHER, push

SENDER = bytes.fromhex("5e" * 20)
FLOOD = "PUSH0 loop: JUMPDEST {deed} PUSH1 1 ADD PUSH1 @loop JUMP"
OLD_FLOOD = FLOOD.replace("PUSH0", "PUSH1 0")
BY_TWENTIES = "PUSH0 loop: JUMPDEST " + "{deed} PUSH1 1 ADD " * 20 + "PUSH1 @loop JUMP"


class Hunger(NamedTuple):
    """A contract that takes until its gas is used up."""

    code: str | bytes
    gas: int
    fork: str = "osaka"
    others: str | bytes = b""  # the code of OTHER


def starved(deed: str, *, gas: int) -> str:
    """Calls OTHER again and again with a new argument and too little gas."""
    given = f"PUSH0 PUSH0 PUSH1 32 PUSH0 {push(OTHER)} PUSH2 {gas}"
    return f"PUSH0 loop: JUMPDEST DUP1 PUSH0 MSTORE {given} {deed} POP PUSH1 1 ADD PUSH1 @loop JUMP"


def nested_creations(size: int) -> str:
    """Init code that pads itself to a size and creates itself."""
    return f"CODESIZE PUSH1 0 PUSH1 0 CODECOPY PUSH3 {size} PUSH1 0 PUSH1 0 CREATE POP STOP"


def by_turns(size: int) -> str:
    """Creates from the same large init code again and again, with another first byte after the last instruction."""
    init = assemble("PUSH1 9 JUMP")
    return (
        f"PUSH4 0x{init.hex()}00 PUSH1 224 SHL PUSH1 0 MSTORE PUSH1 1 loop: JUMPDEST DUP1 PUSH1 32 MSTORE "
        f"PUSH3 {size} PUSH1 0 PUSH1 0 CREATE POP PUSH1 1 ADD PUSH1 @loop JUMP"
    )


HUNGRY = {
    "transient slots": Hunger(BY_TWENTIES.format(deed="DUP1 DUP1 TSTORE"), 120_000_000),
    "transient slots only read": Hunger(BY_TWENTIES.format(deed="DUP1 TLOAD POP"), 120_000_000),
    "transient slots set to zero": Hunger(BY_TWENTIES.format(deed="PUSH0 DUP2 TSTORE"), 60_000_000),
    "one transient slot": Hunger(BY_TWENTIES.format(deed="DUP1 PUSH0 TSTORE"), 120_000_000),
    "one slot": Hunger(BY_TWENTIES.format(deed="DUP1 PUSH0 SSTORE"), 120_000_000),
    "accounts in starved frames": Hunger(starved("STATICCALL", gas=105), 1 << 24, others="PUSH0 CALLDATALOAD BALANCE"),
    "accounts called in starved frames": Hunger(
        starved("STATICCALL", gas=130), 1 << 24, others="PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 CALLDATALOAD PUSH0 STATICCALL"
    ),
    "accounts destroyed in starved frames": Hunger(
        starved("CALLCODE", gas=5200).replace(push(OTHER), f"PUSH0 {push(OTHER)}"),
        1 << 24,
        others="PUSH0 CALLDATALOAD SELFDESTRUCT",
    ),
    "slots in starved frames": Hunger(starved("STATICCALL", gas=105), 60_000_000, others="PUSH0 CALLDATALOAD SLOAD"),
    "accounts": Hunger(FLOOD.format(deed="DUP1 BALANCE POP"), 180_000_000),
    "accounts before EIP-2929": Hunger(OLD_FLOOD.format(deed="DUP1 BALANCE POP"), 60_000_000, "istanbul"),
    "accounts before EIP-150": Hunger(OLD_FLOOD.format(deed="DUP1 BALANCE POP"), 6_000_000, "frontier"),
    "code of accounts before EIP-150": Hunger(OLD_FLOOD.format(deed="DUP1 EXTCODESIZE POP"), 4_000_000, "homestead"),
    "accounts called before EIP-150": Hunger(
        "PUSH1 0 loop: JUMPDEST PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 DUP6 PUSH1 0 CALLCODE POP"
        " PUSH1 1 ADD PUSH1 @loop JUMP",
        6_000_000,
        "frontier",
    ),
    "slots before EIP-150": Hunger(OLD_FLOOD.format(deed="DUP1 SLOAD POP"), 20_000_000, "frontier"),
    "logs": Hunger(FLOOD.format(deed="PUSH3 0x010000 PUSH0 LOG0"), 120_000_000),
    "empty logs": Hunger(BY_TWENTIES.format(deed="PUSH0 PUSH0 LOG0"), 60_000_000),
    "memory": Hunger("PUSH0 loop: JUMPDEST DUP1 DUP1 MSTORE PUSH3 0x010000 ADD PUSH1 @loop JUMP", 1_000_000_000),
    "memory of many frames": Hunger(
        f"PUSH1 1 PUSH3 0x07ffe0 MSTORE PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 {push(HERE)} GAS CALL STOP", 1_000_000_000
    ),
    "creations": Hunger(FLOOD.format(deed="PUSH0 PUSH0 PUSH0 CREATE POP"), 60_000_000),
    "nested creations": Hunger(nested_creations(0x00C000), 60_000_000),
    "nested creations before EIP-3860": Hunger(nested_creations(0x03D090), 25_000_000, "london"),
    "large init code before EIP-3860": Hunger(by_turns(0x118000), 12_000_000, "london"),
    "new code": Hunger(FLOOD.format(deed="PUSH2 0x6000 PUSH0 MSTORE8 PUSH2 0x6000 PUSH0 PUSH0 CREATE POP"), 60_000_000),
}


SLOW = 12_000_000 if WHOLE else 3_000_000  # gas that the reference tier takes seconds for, at worst


def outcome_of(hunger: Hunger, tier: str, gas: int) -> tuple[object, ...]:
    evm = EVM(hunger.fork, tier)
    for address, code in ((HERE, hunger.code), (OTHER, hunger.others)):
        evm.set_code(address, code if isinstance(code, bytes) else assemble(code))
        evm.set_balance(address, 1 << 100)
    result = evm.call(HERE, gas=gas, caller=SENDER)
    seen = result.status, result.gas_used, result.gas_refunded, result.error, len(result.logs), len(evm.state.accounts)
    assert evm.call(HERE, gas=100, caller=SENDER).gas_used == 100
    return seen


@pytest.mark.parametrize("what", HUNGRY)
def test_every_tier_gives_the_result_of_the_evm(what: str) -> None:
    hunger = HUNGRY[what]
    gas = min(hunger.gas, SLOW)
    assert outcome_of(hunger, "native", gas) == outcome_of(hunger, "auto", gas) == outcome_of(hunger, "reference", gas)
    assert outcome_of(hunger, "native", hunger.gas) == outcome_of(hunger, "auto", hunger.gas)


@pytest.mark.parametrize("tier", ["reference", "native", "auto", "regions"])
@pytest.mark.parametrize("code", ["STOP", "PUSH0 PUSH0 REVERT", "INVALID", "JUMPDEST PUSH0 JUMP", "ADD"])
def test_a_call_that_ends_leaves_nothing_to_the_garbage_collector(tier: str, code: str) -> None:
    """What a call held, its schedule and memory too, would otherwise stay until the collector is run."""
    evm = EVM(tier=tier)
    evm.set_code(OTHER, assemble(code))
    evm.set_code(HERE, assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 {push(OTHER)} PUSH2 999 STATICCALL {code}"))
    gc.freeze()  # what is there now need not be looked at
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(10):
            evm.call(HERE, gas=20_000)
            evm.transact(SENDER, to=HERE, gas=60_000, gas_price=0)
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, Frame | Message | Result | ExceptionalHalt)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
