"""MULMOD by moduli that come again and again, or never, means what integers mean."""

from __future__ import annotations

import random

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.native.host.tiers import engine
from fusevm.native.host.views import view_at
from fusevm.native.layout import Modulus
from fusevm.native.runtime.moduli import ENTRIES, ENTRY_SIZE, PROVEN
from programs import HERE

TOP = 1 << 256
PRIMES = [2**256 - 2**32 - 977, 2**256 - 2**224 + 2**192 + 2**96 - 1, 2**255 - 19, 2**130 - 5, 2**192 - 237]
EDGES = [0, 1, 2, 3, 2**64 - 1, 2**64, 2**128 - 1, 2**128, 2**128 + 1, 2**192, 2**255, 2**255 + 1, TOP - 1, TOP - 2]
BELOW_A_POWER = [
    TOP - 2**64 + 1,
    TOP - 2**64,
    TOP - 2**64 - 1,
    2**255 - 2**63 + 1,
    2**255 - 2**63,
    2**193 - 2,
    2**193 - 3,
]
# mem[96:] = the product of the first two words of data modulo the third
CODE = "PUSH1 64 CALLDATALOAD PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD MULMOD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


@pytest.fixture(params=["native", "native-unfused"])
def evm(request: pytest.FixtureRequest) -> EVM:
    machine = EVM(tier=request.param)
    machine.set_code(HERE, assemble(CODE))
    return machine


def check(evm: EVM, x: int, y: int, m: int) -> None:
    data = b"".join(each.to_bytes(32, "big") for each in (x, y, m))
    expected = x * y % m if m else 0
    assert int.from_bytes(evm.call(HERE, data).output, "big") == expected, (hex(x), hex(y), hex(m))


def a_word(rng: random.Random, below: int = TOP) -> int:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(EDGES) % below
    if kind == 1:
        return (below - 1 - rng.getrandbits(rng.randrange(1, 70))) % below
    return rng.getrandbits(rng.randrange(1, 257)) % below


def test_operands_of_every_size_by_moduli_that_come_again(evm: EVM) -> None:
    rng = random.Random("again")
    for _ in range(250):
        m = rng.choice([*PRIMES, *EDGES, *BELOW_A_POWER, a_word(rng), rng.getrandbits(256) | 1 << 255])
        for _ in range(PROVEN + 8):
            check(evm, a_word(rng), a_word(rng), m)
            if m:
                check(evm, a_word(rng, m), a_word(rng, m), m)


def test_factors_of_one_limb_by_moduli_that_come_again(evm: EVM) -> None:
    """Their quotients have one limb, too, and are estimated by the upper halves alone, which are alike at the edge."""
    rng = random.Random("one limb")
    for m in (*PRIMES[:3], TOP - 1, TOP - 2, 2**255, 2**192, 2**192 + 1, 2**193 - 1, rng.getrandbits(256) | 1 << 250):
        for _ in range(PROVEN):
            check(evm, m - 1, m - 1, m)
        for limb in (0, 1, 2, 2**63, 2**64 - 2, 2**64 - 1, 2**64):
            for other in (m - 1, m, m + 1, m - 2**64, m - 2**128, TOP - 1, a_word(rng), a_word(rng, m)):
                check(evm, limb, other % TOP, m)
                check(evm, other % TOP, limb, m)


def test_moduli_of_two_limbs_that_come_again(evm: EVM) -> None:
    rng = random.Random("two limbs")
    for m in (
        2**64,
        2**64 + 1,
        2**65 - 1,
        2**127,
        2**127 + 1,
        2**128 - 1,
        2**128 - 159,
        rng.getrandbits(100) | 1 << 99,
    ):
        for _ in range(PROVEN + 20):
            check(evm, a_word(rng), a_word(rng), m)
            check(evm, a_word(rng, m), TOP - 1 - a_word(rng, m), m)


def test_moduli_in_turn_that_share_a_place_do_not_disturb_each_other(evm: EVM) -> None:
    rng = random.Random("turns")
    moduli = [rng.getrandbits(256) | 1 << 200 for _ in range(8 * ENTRIES)]
    for _ in range(3_000):
        m = rng.choice(moduli[: rng.choice([2, 20, len(moduli)])])
        check(evm, a_word(rng), a_word(rng), m)


def test_a_reciprocal_is_made_only_for_a_modulus_that_has_come_some_times() -> None:
    evm = EVM(tier="native")
    evm.set_code(HERE, assemble(CODE))
    evm.call(HERE)
    table = engine().tables.moduli
    table.clear()
    m = PRIMES[0]

    def entry() -> Modulus:
        found = [view_at(Modulus, table.address + at * ENTRY_SIZE) for at in range(ENTRIES)]
        return next(each for each in found if each.modulus)

    for use in range(1, PROVEN + 3):
        check(evm, m - 1, m - use, m)
        assert (entry().modulus, entry().uses) == (m, min(use, PROVEN) if use > 1 else 1)
        assert bool(entry().reciprocal) == (use >= PROVEN)
    assert entry().reciprocal == (2**512 - 1) // m - TOP
    assert entry().negated == entry().complement == 2**32 + 977
    assert entry().limb == (2**192 - 1) // (m >> 128) - 2**64
