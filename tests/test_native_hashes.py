"""The table of short inputs and their Keccak-256: right for every input, of use where inputs come again."""

from __future__ import annotations

import random

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tiers import engine
from fusevm.native.runtime.hashes import CREDIT, GAIN, LONGEST, SELDOM, SHORTEST
from programs import HERE

HASH = "CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 KECCAK256 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


@pytest.fixture
def evm() -> EVM:
    machine = EVM(tier="native")
    machine.set_code(HERE, assemble(HASH))
    machine.call(HERE, bytes(SHORTEST))
    engine().tables.hashes.clear()
    engine().tables.shared.hash_credit = CREDIT
    return machine


def hits() -> int:
    return engine().tables.shared.hash_hits


def test_inputs_of_every_size_in_any_order_hash_as_they_must(evm: EVM) -> None:
    rng = random.Random("sizes")
    inputs = [rng.randbytes(size) for size in range(LONGEST + 20) for _ in range(2)]
    before = hits()
    for _ in range(5):
        rng.shuffle(inputs)
        for data in inputs:
            assert evm.call(HERE, data).output == keccak256(data), len(data)
    assert hits() - before > 2 * (LONGEST - SHORTEST + 1) * 3


@pytest.mark.parametrize("size", [SHORTEST, 33, 52, 64, 85, 96, 127, 135, LONGEST])
def test_inputs_that_differ_in_one_bit_are_never_mixed_up(evm: EVM, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same place for all: nothing but the comparison tells them apart."""
    shared = engine().tables.shared
    place = shared.hashes
    base = bytes(random.Random(size).randbytes(size))
    entry = engine().tables.hashes
    evm.call(HERE, base)
    stored = bytes(entry.map)
    at = stored.index(base)
    for bit in range(8 * size):
        other = bytearray(base)
        other[bit // 8] ^= 1 << bit % 8
        entry.map[at : at + size] = bytes(other)  # an entry that is right for another input
        assert evm.call(HERE, base).output == keccak256(base), bit
        entry.map[:] = stored
    assert shared.hashes == place


def test_a_size_is_part_of_the_input(evm: EVM) -> None:
    for size in range(SHORTEST, LONGEST + 1):
        assert evm.call(HERE, bytes(size)).output == keccak256(bytes(size))


def test_where_inputs_do_not_come_again_most_are_not_looked_up(evm: EVM) -> None:
    shared = engine().tables.shared
    for number in range(CREDIT):
        evm.call(HERE, number.to_bytes(40, "big"))
    before = shared.hash_hits + shared.hash_misses
    for number in range(SELDOM * 10):
        assert evm.call(HERE, number.to_bytes(48, "big")).output == keccak256(number.to_bytes(48, "big"))
    assert shared.hash_hits + shared.hash_misses - before == 10
    for _ in range(3 * SELDOM + CREDIT // GAIN):
        evm.call(HERE, b"again and again".ljust(64))
    assert shared.hash_credit == CREDIT


def test_a_hit_among_many_misses_does_not_have_the_next_looked_up_for_long(evm: EVM) -> None:
    """One input comes again every 64 hashes; a table full of others would be looked at and overwritten in between."""
    shared = engine().tables.shared
    for number in range(CREDIT):
        evm.call(HERE, b"miss" * 8 + number.to_bytes(8, "big"))
    shared.hash_skipped = SELDOM - 1
    evm.call(HERE, b"again" * 10)
    shared.hash_skipped = SELDOM - 1
    before = shared.hash_hits
    evm.call(HERE, b"again" * 10)
    assert (shared.hash_hits, shared.hash_credit) == (before + 1, GAIN)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEVM_WITHOUT", "keccak")
    plain = NativeEngine()
    assert plain.tables.shared.hashes == 0
