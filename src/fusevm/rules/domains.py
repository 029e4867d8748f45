"""The z3 domains that proofs of rules run in. Each reads the same word meanings and differs in what it asks of z3.

`Circuits` is exact and can refute. The others are for what circuits are too big for: `Products` writes a shift by a
known count as a multiplication, `Laws` knows of division only what Euclid says of it, `Numbers` has no bits
for integers. What they prove holds; what they cannot prove is merely not proved.
"""

from __future__ import annotations

from typing import Any

import z3

from fusevm.evm.words import Algebra
from fusevm.rules.z3_words import BitVectors


class Unsupported(Exception):
    """The domain cannot express this operation."""


class Circuits(BitVectors):
    """Bit-vectors as they are."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.laws: list[Any] = []  # facts about what the domain made up
        self.least: dict[int, int] = {}  # known lower bounds of words, by id

    def solver(self) -> Any:
        return z3.SolverFor("QF_BV")

    def word(self, name: str, least: int = 0) -> Any:
        word = z3.BitVec(name, self.bits)
        self.laws.append(z3.UGE(word, least))
        self.least[word.get_id()] = least
        return word

    def truth(self, name: str) -> Any:
        """A word that is zero or one, and looks it."""
        return z3.ZeroExt(self.bits - 1, z3.BitVec(name, 1))

    def ult(self, x: Any, y: Any) -> Any:
        """Decided here if possible: z3's simplifier does not use the known bounds of a word."""
        if z3.is_bv_value(y) and y.as_long() <= self.least.get(x.get_id(), 0):
            return z3.BoolVal(False)
        return super().ult(x, y)

    def power(self, x: Any, n: Any) -> Any:
        """From the lowest bit of n up: where x is known, so is every square."""
        result, square = self.const(1), x
        for bit in range(self.bits):
            result = z3.If(z3.Extract(bit, bit, n) == 1, result * square, result)
            square = z3.simplify(square * square) if z3.is_bv_value(square) else square * square
        return result


class Products(Circuits):
    """x << n is x * 2^n where n is a number, so that it meets other products."""

    def shl(self, x: Any, n: Any) -> Any:
        count = z3.simplify(n)
        return x * self.const(1 << count.as_long()) if z3.is_bv_value(count) else x << n


class Laws(Circuits):
    """Division as any function that keeps Euclid's laws: its circuit is what makes z3 slow."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.divisions: list[tuple[Any, Any, Any]] = []

    def solver(self) -> Any:
        """Functions become fresh words with their congruences, so that plain SAT can do the rest."""
        steps = ("simplify", "propagate-values", "solve-eqs", "ackermannize_bv", "simplify", "bit-blast", "sat")
        return z3.Then(*steps).solver()

    def udiv(self, x: Any, y: Any) -> Any:
        return self._divide(x, y)[0]

    def urem(self, x: Any, y: Any) -> Any:
        return self._divide(x, y)[1]

    def addmod(self, x: Any, y: Any, m: Any) -> Any:
        wide_x, wide_y, wide_m = (z3.ZeroExt(1, each) for each in (x, y, m))
        return z3.Extract(self.bits - 1, 0, self.urem(wide_x + wide_y, wide_m))

    def mulmod(self, x: Any, y: Any, m: Any) -> Any:
        wide_x, wide_y, wide_m = (z3.ZeroExt(self.bits, each) for each in (x, y, m))
        return z3.Extract(self.bits - 1, 0, self.urem(wide_x * wide_y, wide_m))

    def _divide(self, x: Any, y: Any) -> tuple[Any, Any]:
        sort = x.sort()
        quotient = z3.Function(f"div{sort.size()}", sort, sort, sort)(x, y)
        remainder = z3.Function(f"mod{sort.size()}", sort, sort, sort)(x, y)
        self.laws += division_laws(x, y, quotient, remainder)
        for other_x, other_y, other in self.divisions:
            if other_x.sort() == sort:
                self.laws += monotony(x, y, quotient, other_x, other_y, other)
                self.laws += monotony(other_x, other_y, other, x, y, quotient)
        self.divisions.append((x, y, quotient))
        return quotient, remainder


def division_laws(x: Any, y: Any, quotient: Any, remainder: Any) -> list[Any]:
    """What follows from x = quotient * y + remainder, remainder < y, for y not zero."""
    one = z3.BitVecVal(1, x.size())
    laws = [
        z3.ULT(remainder, y),
        z3.ULE(remainder, x),
        z3.ULE(quotient, x),
        z3.Implies(z3.ULT(x, y), z3.And(quotient == 0, remainder == x)),
        z3.Implies(z3.ULE(y, x), z3.ULE(one, quotient)),
        z3.Implies(z3.And(z3.ULE(y, x), z3.ULT(x - y, y)), z3.And(quotient == 1, remainder == x - y)),
        z3.Implies(y == 1, z3.And(quotient == x, remainder == 0)),
    ]
    return [z3.Implies(y != 0, law) for law in laws]


def monotony(x: Any, y: Any, quotient: Any, wider_x: Any, narrower_y: Any, greater: Any) -> list[Any]:
    """More divided by less is not less."""
    return [z3.Implies(z3.And(z3.ULE(x, wider_x), z3.ULE(narrower_y, y), narrower_y != 0), z3.ULE(quotient, greater))]


class IntegerTerm:
    """An integer of z3's, with the operators that the word meanings use."""

    __slots__ = ("algebra", "it")

    def __init__(self, algebra: IntegerDomain, it: Any) -> None:
        self.algebra = algebra
        self.it = it

    def __add__(self, other: IntegerTerm) -> IntegerTerm:
        return IntegerTerm(self.algebra, self.it + other.it)

    def __sub__(self, other: IntegerTerm) -> IntegerTerm:
        return IntegerTerm(self.algebra, self.it - other.it)

    def __mul__(self, other: IntegerTerm) -> IntegerTerm:
        return IntegerTerm(self.algebra, self.it * other.it)

    def __and__(self, other: IntegerTerm) -> IntegerTerm:
        """Wrapping, or the conjunction of two truths: the only ones integers can say."""
        if other is self.algebra.max:
            return self.algebra.urem(self, self.algebra.modulus)
        if self.algebra.is_truth(self) and self.algebra.is_truth(other):
            return IntegerTerm(self.algebra, self.it * other.it)
        raise Unsupported("&")


class IntegerDomain(Algebra):
    """Words as integers from 0 to 2^bits - 1; division by Euclid's equation, with quotient and remainder made up."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.bytes = bits // 8
        self.laws: list[Any] = []
        self.least: dict[int, int] = {}
        self.truths: set[int] = set()
        self.modulus = self.const(1 << bits)
        self.max = self.const((1 << bits) - 1)
        self.sign = self.const(1 << (bits - 1))

    def solver(self) -> Any:
        return z3.SolverFor("QF_NIA")

    def word(self, name: str, least: int = 0) -> IntegerTerm:
        it = z3.Int(name)
        self.laws += [it >= least, it < 1 << self.bits]
        self.least[it.get_id()] = least
        return IntegerTerm(self, it)

    def truth(self, name: str) -> IntegerTerm:
        return self.flag(z3.Bool(name))

    def const(self, value: int) -> IntegerTerm:
        return IntegerTerm(self, z3.IntVal(value))

    def is_truth(self, number: IntegerTerm) -> bool:
        return number.it.get_id() in self.truths

    def flag(self, condition: Any) -> IntegerTerm:
        number = self.ite(condition, self.const(1), self.const(0))
        self.truths.add(number.it.get_id())
        return number

    def ite(self, condition: Any, then: IntegerTerm, other: IntegerTerm) -> IntegerTerm:
        return IntegerTerm(self, z3.If(condition, then.it, other.it))

    def eq(self, x: IntegerTerm, y: IntegerTerm) -> Any:
        return x.it == y.it

    def ult(self, x: IntegerTerm, y: IntegerTerm) -> Any:
        if z3.is_int_value(y.it) and y.it.as_long() <= self.least.get(x.it.get_id(), 0):
            return z3.BoolVal(False)
        return x.it < y.it

    def divide(self, x: IntegerTerm, y: IntegerTerm) -> tuple[IntegerTerm, IntegerTerm]:
        quotient, remainder = z3.FreshInt("q"), z3.FreshInt("r")
        self.laws += [x.it == quotient * y.it + remainder, remainder >= 0, remainder < y.it]
        return IntegerTerm(self, quotient), IntegerTerm(self, remainder)

    def udiv(self, x: IntegerTerm, y: IntegerTerm) -> IntegerTerm:
        return self.divide(x, y)[0]

    def urem(self, x: IntegerTerm, y: IntegerTerm) -> IntegerTerm:
        return self.divide(x, y)[1]

    def addmod(self, x: IntegerTerm, y: IntegerTerm, m: IntegerTerm) -> IntegerTerm:
        return self.urem(x + y, m)

    def mulmod(self, x: IntegerTerm, y: IntegerTerm, m: IntegerTerm) -> IntegerTerm:
        return self.urem(x * y, m)

    def shl(self, x: IntegerTerm, n: IntegerTerm) -> IntegerTerm:
        return self.urem(x * self._power_of_two(n), self.modulus)

    def shr(self, x: IntegerTerm, n: IntegerTerm) -> IntegerTerm:
        return self.udiv(x, self._power_of_two(n))

    def _power_of_two(self, n: IntegerTerm) -> IntegerTerm:
        count = z3.simplify(n.it)
        if not z3.is_int_value(count):
            raise Unsupported("a shift by an unknown count")
        return self.const(1 << count.as_long())
