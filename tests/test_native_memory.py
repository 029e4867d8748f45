"""Memory that is zeroed before it is asked for, and slots that are found by a hint: never what was there before."""

from __future__ import annotations

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.native.runtime.storage import HINTS
from nativeprograms import NATIVE, Case, agreed
from programs import HERE, OTHER, call, push, store_initcode

TIERS = (*NATIVE, "regions")
FILL = "PUSH2 2048 loop: JUMPDEST PUSH1 32 SWAP1 SUB PUSH0 NOT DUP2 MSTORE DUP1 PUSH1 @loop JUMPI"  # 2 KB of ones
REST = (  # all of 1 KB, put together at 96
    "PUSH2 1024 loop: JUMPDEST PUSH1 32 SWAP1 SUB DUP1 MLOAD PUSH1 96 MLOAD OR PUSH1 96 MSTORE DUP1 PUSH1 @loop JUMPI"
)
GROWN = "PUSH0 PUSH1 96 MSTORE"  # as much again is zeroed ahead
ANSWER = " PUSH1 96 MLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


@pytest.mark.parametrize("end", ["STOP", "PUSH0 PUSH0 REVERT", "INVALID"])
@pytest.mark.parametrize("kind", ["CALL", "DELEGATECALL", "STATICCALL"])
def test_memory_that_a_callee_wrote_to_is_zero_for_its_caller(kind: str, end: str) -> None:
    program = f"{GROWN} {call(OTHER, kind=kind, gas='PUSH2 0xffff')} POP {REST} {ANSWER}"
    assert agreed(Case(program, {OTHER: f"{FILL} {end}"}), tiers=TIERS).word == 0


def test_memory_that_another_callee_wrote_to_is_zero_for_the_next() -> None:
    third = bytes.fromhex("3bad" * 10)
    program = f"{call(OTHER)} POP {call(third, out=32)} POP PUSH1 32 PUSH0 RETURN"
    assert agreed(Case(program, {OTHER: FILL, third: f"{REST} {ANSWER}"}), tiers=TIERS).word == 0


def test_memory_that_init_code_wrote_to_is_zero_for_its_creator() -> None:
    init = assemble(f"{FILL} STOP")
    create = f"{store_initcode(init)} PUSH1 {len(init)} PUSH0 PUSH0 CREATE POP"
    clear = "PUSH0 PUSH0 MSTORE PUSH0 PUSH1 32 MSTORE"
    assert agreed(Case(f"{GROWN} {create} {clear} {REST} {ANSWER}"), tiers=TIERS).word == 0


def test_memory_that_a_frame_of_pythons_wrote_to_is_zero_for_its_caller() -> None:
    """Before EIP-161 creations are Python's."""
    init = assemble(f"{FILL} STOP".replace("PUSH0", "PUSH1 0"))
    create = f"{store_initcode(init)} PUSH1 {len(init)} PUSH0 PUSH0 CREATE POP"
    clear = "PUSH0 PUSH0 MSTORE PUSH0 PUSH1 32 MSTORE"
    text = f"{GROWN} {create} {clear} {REST} {ANSWER}".replace("PUSH0", "PUSH1 0")
    assert agreed(Case(text, fork="frontier"), tiers=NATIVE).word == 0


def test_memory_that_an_earlier_call_wrote_to_is_zero() -> None:
    fills, looks = Case(FILL), Case(f"{REST} {ANSWER}")
    evm = fills.machine("native")
    fills.call(evm, 1_000_000)
    evm.set_code(HERE, looks.codes[HERE])
    assert looks.call(evm, 1_000_000).output == bytes(32)


KEYS = (0, 1, HINTS, 2 * HINTS, 5 * HINTS, (1 << 200) + HINTS, (1 << 255) + HINTS, 1 << 64, HINTS + 1)


def test_keys_that_share_a_hint_have_values_of_their_own() -> None:
    stores = "".join(f"{push(number + 7)} {push(key)} SSTORE " for number, key in enumerate(KEYS))
    transient = "".join(f"{push(number + 70)} {push(key)} TSTORE " for number, key in enumerate(KEYS))
    loads = "".join(f"{push(key)} {op} PUSH1 5 MUL ADD " for _ in range(3) for key in KEYS for op in ("SLOAD", "TLOAD"))
    call_other = call(OTHER, kind="CALL", out=32) + "POP "
    returned = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    program = f"{stores} {transient} {call_other} PUSH0 {loads} {call_other} {loads} PUSH0 MLOAD ADD {returned}"
    other = "PUSH0 " + "".join(f"{push(key)} SLOAD ADD " for key in KEYS) + returned
    for fork in ("cancun", "osaka"):
        agreed(Case(program, {OTHER: other}, fork=fork), 2_000_000, tiers=TIERS)


def test_a_hint_of_an_earlier_call_does_not_outlive_the_table() -> None:
    """Tables are emptied where the state was changed from outside: slots take other places then."""
    evm = EVM(tier="native")
    evm.set_code(HERE, assemble("PUSH0 CALLDATALOAD SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))
    for turn in range(4):
        for number, key in enumerate(KEYS):
            evm.set_storage(HERE, key, 1000 * turn + number + 1)
        order = KEYS if turn % 2 else KEYS[::-1]
        for key in (*order, *order):
            found = evm.call(HERE, key.to_bytes(32, "big")).output
            assert int.from_bytes(found, "big") == 1000 * turn + KEYS.index(key) + 1
