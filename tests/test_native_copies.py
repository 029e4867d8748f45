"""Copies into memory on the native tier: what lies past the end of the source is zeros, and every word is paid for."""

from __future__ import annotations

import random

import pytest

from fusevm.evm.assembly import assemble
from nativeprograms import Case, agreed, agreed_at_every_gas

DATA = bytes(range(1, 71))
FILLED = " ".join(f"PUSH0 NOT PUSH1 {offset} MSTORE" for offset in range(0, 128, 32))
SHOWN = "PUSH1 0x80 PUSH0 RETURN"
EDGES = [0, 1, 31, 32, 33, 69, 70, 71, 96]


def expected(source: bytes, to: int, start: int, size: int) -> bytes:
    memory = bytearray(b"\xff" * 128)
    memory[to : to + size] = source[start : start + size].ljust(size, b"\0")
    return bytes(memory)[:128]


@pytest.mark.parametrize("start", [*EDGES, 1 << 64, (1 << 256) - 1])
def test_calldata_is_copied_with_zeros_past_its_end(start: int) -> None:
    for size in EDGES:
        seen = agreed(Case(f"{FILLED} PUSH1 {size} PUSH {start} PUSH1 7 CALLDATACOPY {SHOWN}", data=DATA))
        assert seen.output == expected(DATA, 7, start, size)


@pytest.mark.parametrize("start", EDGES)
def test_code_is_copied_with_zeros_past_its_end(start: int) -> None:
    for size in EDGES:
        program = f"{FILLED} PUSH1 {size} PUSH1 {start} PUSH1 7 CODECOPY {SHOWN}"
        assert agreed(program).output == expected(assemble(program), 7, start, size)


@pytest.mark.parametrize("opcode", ["CALLDATACOPY", "CODECOPY", "MCOPY"])
def test_a_copy_costs_its_words_at_every_gas_limit(opcode: str) -> None:
    for size in (0, 1, 32, 33, 70):
        agreed_at_every_gas(Case(f"PUSH1 {size} PUSH1 9 PUSH1 40 {opcode} MSIZE PUSH0 MSTORE {SHOWN}", data=DATA))


@pytest.mark.parametrize("seed", range(20))
def test_random_copies_over_each_other_agree(seed: int) -> None:
    rng = random.Random(seed)
    copies = [
        f"PUSH1 {rng.randrange(100)} PUSH1 {rng.randrange(100)} PUSH1 {rng.randrange(100)} "
        + rng.choice(["CALLDATACOPY", "CODECOPY", "MCOPY"])
        for _ in range(12)
    ]
    agreed(Case(f"{FILLED} {' '.join(copies)} PUSH1 0xc8 PUSH0 RETURN", data=DATA[: rng.randrange(71)]))
