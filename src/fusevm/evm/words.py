"""The meaning of every pure word operation, written once over an abstract word.

A meaning is a function of an algebra `w` and operands in stack order (the top first). The same text is read as Python
integers (reference tier, constant folding), as z3 bit-vectors (proofs) and, with the native tiers, as LLVM values.

The algebra is total because meanings guard *operands*, never results: a divisor is replaced by one before dividing
where it may be zero, a shift count by zero where it may reach the width, so that no domain is ever asked for something
it leaves undefined. Everything is parametric in the width (a power of two, at least eight bits), so that proofs can run
narrow. Words are unsigned; `+ - * & | ^` are the domain's own and `& w.max` wraps, which is the identity for
bit-vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Word = Any  # int, z3.BitVecRef, an LLVM value: whatever the algebra's domain holds
Truth = Any  # bool, z3.BoolRef, an LLVM i1


class Algebra:
    """What a domain must offer. The methods with a body may be overridden by something equal and faster."""

    bits: int
    bytes: int
    max: Word  # all ones
    sign: Word  # only the top bit

    def const(self, value: int) -> Word:
        raise NotImplementedError

    def ite(self, condition: Truth, then: Word, other: Word) -> Word:
        raise NotImplementedError

    def eq(self, x: Word, y: Word) -> Truth:
        raise NotImplementedError

    def ult(self, x: Word, y: Word) -> Truth:
        raise NotImplementedError

    def udiv(self, x: Word, y: Word) -> Word:
        """x / y, where y is not zero."""
        raise NotImplementedError

    def urem(self, x: Word, y: Word) -> Word:
        """x mod y, where y is not zero."""
        raise NotImplementedError

    def sdiv(self, x: Word, y: Word) -> Word:
        """x / y of signed words, towards zero, where y is not zero."""
        quotient = self.udiv(_magnitude(self, x), _magnitude(self, y))
        return self.ite(_is_negative(self, x ^ y), _negate(self, quotient), quotient)

    def addmod(self, x: Word, y: Word, m: Word) -> Word:
        """(x + y) mod m without wrapping, where m is not zero."""
        raise NotImplementedError

    def mulmod(self, x: Word, y: Word, m: Word) -> Word:
        """(x * y) mod m without wrapping, where m is not zero."""
        raise NotImplementedError

    def shl(self, x: Word, n: Word) -> Word:
        """x << n, where n is less than the width."""
        raise NotImplementedError

    def shr(self, x: Word, n: Word) -> Word:
        """x >> n without sign, where n is less than the width."""
        raise NotImplementedError

    def flag(self, condition: Truth) -> Word:
        return self.ite(condition, self.const(1), self.const(0))

    def nonzero(self, x: Word) -> Word:
        """x, or one where x is zero: something to divide by."""
        return self.ite(self.eq(x, self.const(0)), self.const(1), x)

    def sar(self, x: Word, n: Word) -> Word:
        """x >> n, filled with the sign, where n is less than the width."""
        signs = self.ite(self.eq(x & self.sign, self.sign), self.max, self.const(0))
        return self.shr(x ^ signs, n) ^ signs

    def extend(self, x: Word, k: Word) -> Word:
        """x with bit 8k + 7 copied into all higher bits, where k is less than the number of bytes."""
        unused = self.const(self.bits - 8) - self.shl(k, self.const(3))
        return self.sar(self.shl(x, unused), unused)

    def octet(self, x: Word, k: Word) -> Word:
        """The byte of x above its lowest k, where k is less than the number of bytes."""
        return self.shr(x, self.shl(k, self.const(3))) & self.const(0xFF)

    def power(self, x: Word, n: Word) -> Word:
        """x to the n, by squaring: one step a bit of n."""
        one = self.const(1)
        result = one
        for bit in reversed(range(self.bits)):
            result = (result * result) & self.max
            taken = self.eq(self.shr(n, self.const(bit)) & one, one)
            result = self.ite(taken, (result * x) & self.max, result)
        return result

    def leading_zeros(self, x: Word) -> Word:
        """How many of the highest bits are zero, by halving; x is not zero."""
        count, half = self.const(0), self.bits // 2
        while half:
            empty = self.eq(self.shr(x, self.const(self.bits - half)), self.const(0))
            count = self.ite(empty, count + self.const(half), count)
            x = self.ite(empty, self.shl(x, self.const(half)), x)
            half //= 2
        return count


# -- the meanings -------------------------------------------------------------------------------------------------


def add(w: Algebra, x: Word, y: Word) -> Word:
    return (x + y) & w.max


def mul(w: Algebra, x: Word, y: Word) -> Word:
    return (x * y) & w.max


def sub(w: Algebra, x: Word, y: Word) -> Word:
    return (x - y) & w.max


def div(w: Algebra, x: Word, y: Word) -> Word:
    return w.ite(w.eq(y, w.const(0)), w.const(0), w.udiv(x, w.nonzero(y)))


def mod(w: Algebra, x: Word, y: Word) -> Word:
    return w.ite(w.eq(y, w.const(0)), w.const(0), w.urem(x, w.nonzero(y)))


def _is_negative(w: Algebra, x: Word) -> Truth:
    return w.eq(x & w.sign, w.sign)


def _negate(w: Algebra, x: Word) -> Word:
    return (w.const(0) - x) & w.max


def _magnitude(w: Algebra, x: Word) -> Word:
    return w.ite(_is_negative(w, x), _negate(w, x), x)


def sdiv(w: Algebra, x: Word, y: Word) -> Word:
    """Truncates towards zero. The most negative word divided by -1 is itself: its magnitude is its own bit pattern."""
    return w.ite(w.eq(y, w.const(0)), w.const(0), w.sdiv(x, w.nonzero(y)))


def smod(w: Algebra, x: Word, y: Word) -> Word:
    """The sign of the result is the sign of the dividend."""
    remainder = mod(w, _magnitude(w, x), _magnitude(w, y))
    return w.ite(_is_negative(w, x), _negate(w, remainder), remainder)


def addmod(w: Algebra, x: Word, y: Word, m: Word) -> Word:
    return w.ite(w.eq(m, w.const(0)), w.const(0), w.addmod(x, y, w.nonzero(m)))


def mulmod(w: Algebra, x: Word, y: Word, m: Word) -> Word:
    return w.ite(w.eq(m, w.const(0)), w.const(0), w.mulmod(x, y, w.nonzero(m)))


def exp(w: Algebra, x: Word, n: Word) -> Word:
    return w.power(x, n)


def signextend(w: Algebra, k: Word, x: Word) -> Word:
    """Bit 8k+7 is copied into all higher bits; k of the last byte and beyond changes nothing."""
    last = w.const(w.bytes - 1)
    return w.extend(x, w.ite(w.ult(k, last), k, last))


def lt(w: Algebra, x: Word, y: Word) -> Word:
    return w.flag(w.ult(x, y))


def gt(w: Algebra, x: Word, y: Word) -> Word:
    return w.flag(w.ult(y, x))


def slt(w: Algebra, x: Word, y: Word) -> Word:
    return w.flag(w.ult(x ^ w.sign, y ^ w.sign))


def sgt(w: Algebra, x: Word, y: Word) -> Word:
    return w.flag(w.ult(y ^ w.sign, x ^ w.sign))


def eq(w: Algebra, x: Word, y: Word) -> Word:
    return w.flag(w.eq(x, y))


def iszero(w: Algebra, x: Word) -> Word:
    return w.flag(w.eq(x, w.const(0)))


def and_(w: Algebra, x: Word, y: Word) -> Word:
    return x & y


def or_(w: Algebra, x: Word, y: Word) -> Word:
    return x | y


def xor(w: Algebra, x: Word, y: Word) -> Word:
    return x ^ y


def not_(w: Algebra, x: Word) -> Word:
    return x ^ w.max


def byte(w: Algebra, i: Word, x: Word) -> Word:
    """The i-th byte from the left; zero past the end."""
    inside = w.ult(i, w.const(w.bytes))
    return w.ite(inside, w.octet(x, w.const(w.bytes - 1) - w.ite(inside, i, w.const(0))), w.const(0))


def shl(w: Algebra, n: Word, x: Word) -> Word:
    inside = w.ult(n, w.const(w.bits))
    return w.ite(inside, w.shl(x, w.ite(inside, n, w.const(0))), w.const(0))


def shr(w: Algebra, n: Word, x: Word) -> Word:
    inside = w.ult(n, w.const(w.bits))
    return w.ite(inside, w.shr(x, w.ite(inside, n, w.const(0))), w.const(0))


def sar(w: Algebra, n: Word, x: Word) -> Word:
    """Shifting out everything leaves the sign, as shifting by width - 1 does."""
    return w.sar(x, w.ite(w.ult(n, w.const(w.bits)), n, w.const(w.bits - 1)))


def clz(w: Algebra, x: Word) -> Word:
    return w.ite(w.eq(x, w.const(0)), w.const(w.bits), w.leading_zeros(w.nonzero(x)))


MEANINGS: dict[str, Callable[..., Word]] = {
    "ADD": add, "MUL": mul, "SUB": sub, "DIV": div, "SDIV": sdiv, "MOD": mod, "SMOD": smod,
    "ADDMOD": addmod, "MULMOD": mulmod, "EXP": exp, "SIGNEXTEND": signextend,
    "LT": lt, "GT": gt, "SLT": slt, "SGT": sgt, "EQ": eq, "ISZERO": iszero,
    "AND": and_, "OR": or_, "XOR": xor, "NOT": not_, "BYTE": byte,
    "SHL": shl, "SHR": shr, "SAR": sar, "CLZ": clz,
}  # fmt: skip


def meanings_in(algebra: Algebra) -> dict[str, Callable[..., Word]]:
    """Opcode name to its meaning in that domain."""
    return {name: partial(meaning, algebra) for name, meaning in MEANINGS.items()}


# -- Python integers ----------------------------------------------------------------------------------------------


class Integers(Algebra):
    """Words as Python integers from 0 to 2^bits - 1, truths as bools."""

    def __init__(self, bits: int = 256) -> None:
        self.bits = bits
        self.bytes = bits // 8
        self.max = (1 << bits) - 1
        self.sign = 1 << (bits - 1)

    def const(self, value: int) -> int:
        return value

    def ite(self, condition: bool, then: int, other: int) -> int:
        return then if condition else other

    def flag(self, condition: bool) -> int:
        return 1 if condition else 0

    def eq(self, x: int, y: int) -> bool:
        return x == y

    def ult(self, x: int, y: int) -> bool:
        return x < y

    def udiv(self, x: int, y: int) -> int:
        return x // y

    def urem(self, x: int, y: int) -> int:
        return x % y

    def addmod(self, x: int, y: int, m: int) -> int:
        return (x + y) % m

    def mulmod(self, x: int, y: int, m: int) -> int:
        return (x * y) % m

    def shl(self, x: int, n: int) -> int:
        return (x << n) & int(self.max)

    def shr(self, x: int, n: int) -> int:
        return x >> n

    def power(self, x: int, n: int) -> int:
        return pow(x, n, 1 << self.bits)

    def leading_zeros(self, x: int) -> int:
        return self.bits - x.bit_length()


INTEGERS = Integers()
INTEGER_MEANINGS: dict[str, Callable[..., int]] = meanings_in(INTEGERS)
