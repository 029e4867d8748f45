"""The word meanings: by hand-picked values, against a second formulation from the Yellow Paper, domain by domain."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import chosen
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS, MEANINGS, Algebra, Integers, meanings_in

WIDTHS = (8, 16, 64, 256)
MAX = (1 << 256) - 1
MIN = 1 << 255  # the most negative word


def minus(x: int) -> int:
    """The word of a negative number."""
    return (1 << 256) - x


# -- the second formulation: signed Python integers and lists of bits, as the Yellow Paper writes them -----------------


class Paper:
    """Yellow Paper, appendix H.2, at any width: `self.modulus` is 2^bits, `signed` reads two's complement."""

    def __init__(self, bits: int) -> None:
        self.bits, self.modulus = bits, 1 << bits

    def signed(self, x: int) -> int:
        return x - self.modulus if x >= self.modulus // 2 else x

    def word(self, x: int) -> int:
        return x % self.modulus

    def bit(self, x: int, index: int) -> int:
        return x // (1 << index) % 2

    def sdiv(self, x: int, y: int) -> int:
        a, b = self.signed(x), self.signed(y)
        if b == 0:
            return 0
        quotient = abs(a) // abs(b)
        return self.word(quotient if (a < 0) == (b < 0) else -quotient)

    def smod(self, x: int, y: int) -> int:
        a, b = self.signed(x), self.signed(y)
        if b == 0:
            return 0
        return self.word(abs(a) % abs(b) * (-1 if a < 0 else 1))

    def exp(self, x: int, n: int) -> int:
        """A product over the bits of the exponent, from the lowest."""
        result, factor = 1, x
        for index in range(n.bit_length()):
            if self.bit(n, index):
                result = self.word(result * factor)
            factor = self.word(factor * factor)
        return result

    def signextend(self, k: int, x: int) -> int:
        """Bit i of the result is bit min(i, 8k + 7) of x."""
        top = 8 * k + 7
        return sum(self.bit(x, min(i, top)) * 2**i for i in range(self.bits))

    def byte(self, i: int, x: int) -> int:
        return x.to_bytes(self.bits // 8, "big")[i] if i < self.bits // 8 else 0

    def shl(self, n: int, x: int) -> int:
        return self.word(x * 2**n) if n < self.bits else 0

    def shr(self, n: int, x: int) -> int:
        return x // 2**n if n < self.bits else 0

    def sar(self, n: int, x: int) -> int:
        return self.word(self.signed(x) // 2 ** min(n, self.bits))

    def clz(self, x: int) -> int:
        digits = f"{x:0{self.bits}b}"
        return digits.index("1") if "1" in digits else self.bits

    def meanings(self) -> dict[str, Callable[..., int]]:
        return {
            "ADD": lambda x, y: self.word(x + y),
            "MUL": lambda x, y: self.word(x * y),
            "SUB": lambda x, y: self.word(x - y),
            "DIV": lambda x, y: x // y if y else 0,
            "SDIV": self.sdiv,
            "MOD": lambda x, y: x % y if y else 0,
            "SMOD": self.smod,
            "ADDMOD": lambda x, y, m: (x + y) % m if m else 0,
            "MULMOD": lambda x, y, m: (x * y) % m if m else 0,
            "EXP": self.exp,
            "SIGNEXTEND": self.signextend,
            "LT": lambda x, y: int(x < y),
            "GT": lambda x, y: int(x > y),
            "SLT": lambda x, y: int(self.signed(x) < self.signed(y)),
            "SGT": lambda x, y: int(self.signed(x) > self.signed(y)),
            "EQ": lambda x, y: int(x == y),
            "ISZERO": lambda x: int(x == 0),
            "AND": lambda x, y: sum(min(self.bit(x, i), self.bit(y, i)) * 2**i for i in range(self.bits)),
            "OR": lambda x, y: sum(max(self.bit(x, i), self.bit(y, i)) * 2**i for i in range(self.bits)),
            "XOR": lambda x, y: sum((self.bit(x, i) + self.bit(y, i)) % 2 * 2**i for i in range(self.bits)),
            "NOT": lambda x: self.modulus - 1 - x,
            "BYTE": self.byte,
            "SHL": self.shl,
            "SHR": self.shr,
            "SAR": self.sar,
            "CLZ": self.clz,
        }


def edges(bits: int) -> list[int]:
    """Zero, one, both ends of both number lines, what shifts and byte indices turn on, and byte boundaries."""
    top = 1 << (bits - 1)
    near = [0, 1, 2, 3, 7, 8, bits // 8 - 1, bits // 8, bits - 1, bits, bits + 1, 0x7F, 0x80, 0xFF]
    middle = 1 << (bits // 2)
    far = [top - 1, top, top + 1, 2 * top - 2, 2 * top - 1, (2 * top - 1) // 3, middle, middle - 1]
    return sorted({each for each in near + far if 0 <= each < 2 * top})


def words(bits: int) -> st.SearchStrategy[int]:
    """Any word, with edges, powers of two and their neighbours drawn often."""
    powers = st.builds(
        lambda n, d: (2**n + d) % 2**bits, st.integers(min_value=0, max_value=bits - 1), st.sampled_from((-1, 0, 1))
    )
    small, large = st.integers(0, 2 * bits - 1), st.integers(0, 2**bits - 1)
    return st.one_of(st.sampled_from(edges(bits)), powers, small.map(lambda x: x % 2**bits), large)


def arity(name: str) -> int:
    return BY_NAME[name].pops


# -- coverage ---------------------------------------------------------------------------------------------------------


def test_every_arithmetic_comparison_and_bitwise_opcode_has_exactly_one_meaning() -> None:
    assert set(MEANINGS) == {name for name, op in BY_NAME.items() if op.byte < 0x20 and op.name != "STOP"}
    assert set(INTEGER_MEANINGS) == set(MEANINGS) == set(Paper(256).meanings())


# -- hand-picked values -----------------------------------------------------------------------------------------------

BY_HAND = [
    # operands in stack order: the top first
    ("ADD", (MAX, 1), 0),
    ("ADD", (MAX, MAX), MAX - 1),
    ("SUB", (0, 1), MAX),
    ("SUB", (3, 5), minus(2)),
    ("MUL", (MIN, 2), 0),
    ("MUL", (MAX, MAX), 1),  # -1 * -1
    ("DIV", (7, 2), 3),
    ("DIV", (7, 0), 0),
    ("DIV", (MAX, MAX), 1),
    ("SDIV", (minus(7), 2), minus(3)),  # towards zero, not down
    ("SDIV", (7, minus(2)), minus(3)),
    ("SDIV", (minus(7), minus(2)), 3),
    ("SDIV", (MIN, minus(1)), MIN),  # the one overflow of division
    ("SDIV", (MIN, 1), MIN),
    ("SDIV", (minus(1), 0), 0),
    ("MOD", (7, 0), 0),
    ("MOD", (MAX, 10), 5),
    ("SMOD", (minus(8), 3), minus(2)),  # the sign of the dividend
    ("SMOD", (8, minus(3)), 2),
    ("SMOD", (minus(8), minus(3)), minus(2)),
    ("SMOD", (MIN, minus(1)), 0),
    ("SMOD", (minus(8), 0), 0),
    ("ADDMOD", (MAX, MAX, MAX), 0),
    ("ADDMOD", (MAX, 2, 3), 2),  # the sum does not wrap: (2^256 + 1) mod 3
    ("ADDMOD", (4, 1, 0), 0),
    ("MULMOD", (MAX, MAX, 12), 9),  # nor does the product: 3^2 mod 12
    ("MULMOD", (MAX, MAX, MAX - 1), 1),
    ("MULMOD", (5, 6, 0), 0),
    ("EXP", (0, 0), 1),
    ("EXP", (0, MAX), 0),
    ("EXP", (2, 255), MIN),
    ("EXP", (2, 256), 0),
    ("EXP", (minus(1), MAX), minus(1)),
    ("EXP", (3, 2), 9),  # the base is on top
    ("SIGNEXTEND", (0, 0x7F), 0x7F),
    ("SIGNEXTEND", (0, 0x80), minus(0x80)),
    ("SIGNEXTEND", (0, 0x1234), 0x34),  # what is above the sign is dropped
    ("SIGNEXTEND", (1, 0xFF8000), minus(0x8000)),
    ("SIGNEXTEND", (30, 1 << 247), MAX - (1 << 247) + 1),
    ("SIGNEXTEND", (31, MIN), MIN),
    ("SIGNEXTEND", (32, 0x80), 0x80),
    ("SIGNEXTEND", (MAX, 0x80), 0x80),
    ("LT", (0, MAX), 1),
    ("GT", (MAX, 0), 1),
    ("LT", (5, 5), 0),
    ("SLT", (MAX, 0), 1),  # -1 < 0
    ("SLT", (MIN, MIN - 1), 1),
    ("SLT", (0, MIN), 0),
    ("SGT", (0, MAX), 1),
    ("SGT", (MIN - 1, MIN), 1),
    ("EQ", (MAX, MAX), 1),
    ("EQ", (0, MIN), 0),
    ("ISZERO", (0,), 1),
    ("ISZERO", (MIN,), 0),
    ("NOT", (0,), MAX),
    ("AND", (MAX - 1, 0xFF), 0xFE),
    ("OR", (MIN, 1), MIN + 1),
    ("XOR", (MAX, 1), MAX - 1),
    ("BYTE", (0, 0xAB << 248), 0xAB),  # byte zero is the highest
    ("BYTE", (31, 0xAB), 0xAB),
    ("BYTE", (32, MAX), 0),
    ("BYTE", (MAX, MAX), 0),
    ("SHL", (1, MIN + 1), 2),
    ("SHL", (255, 1), MIN),
    ("SHL", (256, 1), 0),
    ("SHL", (MAX, MAX), 0),
    ("SHR", (255, MIN), 1),
    ("SHR", (256, MAX), 0),
    ("SHR", (1 << 255, MAX), 0),
    ("SAR", (1, minus(3)), minus(2)),  # down, not towards zero
    ("SAR", (255, MIN), MAX),
    ("SAR", (256, MIN), MAX),
    ("SAR", (MAX, MAX), MAX),
    ("SAR", (256, MIN - 1), 0),
    ("SAR", (254, MIN - 1), 1),
    ("CLZ", (0,), 256),
    ("CLZ", (1,), 255),
    ("CLZ", (MIN,), 0),
    ("CLZ", (MIN - 1,), 1),
]


@pytest.mark.parametrize(("name", "operands", "result"), BY_HAND, ids=lambda each: str(each)[:24])
def test_by_hand(name: str, operands: tuple[int, ...], result: int) -> None:
    assert INTEGER_MEANINGS[name](*operands) == result
    assert Paper(256).meanings()[name](*operands) == result


# -- integers against the paper ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 256])
@pytest.mark.parametrize("name", [name for name in MEANINGS if arity(name) < 3])
def test_integers_agree_with_the_paper_on_all_pairs_of_edges(name: str, bits: int) -> None:
    meaning, paper = meanings_in(Integers(bits))[name], Paper(bits).meanings()[name]
    for operands in product(edges(bits), repeat=arity(name)):
        assert meaning(*operands) == paper(*operands), operands


@pytest.mark.parametrize("name", ["ADDMOD", "MULMOD"])
def test_modular_operations_agree_with_the_paper_on_all_triples_of_edges(name: str) -> None:
    meaning, paper = INTEGER_MEANINGS[name], Paper(256).meanings()[name]
    for operands in product(edges(256), repeat=3):
        assert meaning(*operands) == paper(*operands), operands


@pytest.mark.parametrize("name", ["SDIV", "SMOD", "SIGNEXTEND", "BYTE", "SAR"])
def test_the_intricate_ones_agree_with_the_paper_on_every_pair_of_bytes(name: str) -> None:
    meaning, paper = meanings_in(Integers(8))[name], Paper(8).meanings()[name]
    assert all(meaning(x, y) == paper(x, y) for x in range(256) for y in range(256))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(WIDTHS), st.sampled_from(sorted(MEANINGS)))
def test_integers_agree_with_the_paper_on_any_words(data: st.DataObject, bits: int, name: str) -> None:
    operands = [data.draw(words(bits)) for _ in range(arity(name))]
    result = meanings_in(Integers(bits))[name](*operands)
    assert result == Paper(bits).meanings()[name](*operands)
    assert 0 <= result < 1 << bits


# -- the algebra ------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(WIDTHS))
def test_the_algebras_own_power_is_the_faster_one_of_integers(data: st.DataObject, bits: int) -> None:
    w, x, n = Integers(bits), data.draw(words(bits)), data.draw(words(bits))
    assert Algebra.power(w, x, n) == w.power(x, n)


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_algebras_own_leading_zeros_is_the_faster_one_of_integers(bits: int) -> None:
    w = Integers(bits)
    for index in range(bits):
        for x in (1 << index, (2 << index) - 1, (1 << index) + (1 << index) // 3):
            assert Algebra.leading_zeros(w, x) == w.leading_zeros(x) == bits - 1 - index


def test_meanings_never_ask_a_domain_for_what_it_leaves_undefined() -> None:
    class Guarded(Integers):
        def udiv(self, x: int, y: int) -> int:
            assert y, "division by zero"
            return super().udiv(x, y)

        def urem(self, x: int, y: int) -> int:
            assert y, "remainder by zero"
            return super().urem(x, y)

        def addmod(self, x: int, y: int, m: int) -> int:
            assert m, "modulus zero"
            return super().addmod(x, y, m)

        def mulmod(self, x: int, y: int, m: int) -> int:
            assert m, "modulus zero"
            return super().mulmod(x, y, m)

        def shl(self, x: int, n: int) -> int:
            assert 0 <= n < self.bits, "shift by the width or more"
            return super().shl(x, n)

        def shr(self, x: int, n: int) -> int:
            assert 0 <= n < self.bits, "shift by the width or more"
            return super().shr(x, n)

        def leading_zeros(self, x: int) -> int:
            assert x, "leading zeros of zero"
            return super().leading_zeros(x)

    for bits in (8, 256):
        guarded = meanings_in(Guarded(bits))
        few = [0, 1, bits - 1, bits, (1 << bits) - 1]
        for name, meaning in guarded.items():
            for operands in product(few, repeat=arity(name)):
                meaning(*operands)


# -- z3 ---------------------------------------------------------------------------------------------------------------


def bit_vectors(bits: int) -> Any:
    pytest.importorskip("z3", reason="the z3 domain needs z3-solver")
    from fusevm.rules.z3_words import BitVectors

    return BitVectors(bits)


def evaluated(term: Any) -> int:
    import z3

    value = z3.simplify(term)
    assert z3.is_bv_value(value), f"{value} is not a value"
    return int(value.as_long())


@pytest.mark.parametrize("bits", chosen((8, 256), [8, 16, 256]))
@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_the_z3_domain_evaluates_to_what_the_integers_say(name: str, bits: int) -> None:
    w = bit_vectors(bits)
    in_z3, in_integers = meanings_in(w)[name], meanings_in(Integers(bits))[name]
    # z3 takes its time over triples and powers: a fixed stride through them meets every edge in every place.
    stride = 29 if arity(name) == 3 else 7 if name == "EXP" else 1
    for operands in list(product(edges(bits), repeat=arity(name)))[::stride]:
        assert evaluated(in_z3(*map(w.const, operands))) == in_integers(*operands), operands


def _own_signextend(x: Any, k: int) -> Any:
    import z3

    return z3.SignExt(x.size() - 8 * (k + 1), z3.Extract(8 * k + 7, 0, x))


@pytest.mark.parametrize(
    ("name", "bits", "own"),
    [
        ("SDIV", 8, lambda z, x, y: z.If(y == 0, y, x / y)),
        ("SMOD", 8, lambda z, x, y: z.If(y == 0, y, z.SRem(x, y))),
        ("DIV", 8, lambda z, x, y: z.If(y == 0, y, z.UDiv(x, y))),
        ("SLT", 256, lambda z, x, y: z.If(x < y, z.BitVecVal(1, 256), z.BitVecVal(0, 256))),
        ("SGT", 256, lambda z, x, y: z.If(x > y, z.BitVecVal(1, 256), z.BitVecVal(0, 256))),
        ("SHL", 64, lambda z, n, x: x << n),
        ("SHR", 64, lambda z, n, x: z.LShR(x, n)),
        ("SAR", 64, lambda z, n, x: x >> n),
        ("NOT", 256, lambda z, x: ~x),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_z3_proves_the_meaning_equal_to_its_own_operator(name: str, bits: int, own: Callable[..., Any]) -> None:
    w = bit_vectors(bits)
    import z3

    operands = [z3.BitVec(letter, bits) for letter in "xyz"[: arity(name)]]
    assert _proved(meanings_in(w)[name](*operands) == own(z3, *operands))


@pytest.mark.parametrize("k", [0, 1, 15, 30])
def test_z3_proves_signextend_at_each_width_of_byte(k: int) -> None:
    w = bit_vectors(256)
    import z3

    x = z3.BitVec("x", 256)
    assert _proved(meanings_in(w)["SIGNEXTEND"](w.const(k), x) == _own_signextend(x, k))


def _proved(claim: Any) -> bool:
    import z3

    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(z3.Not(claim))
    return bool(solver.check() == z3.unsat)
