"""The LLVM domain of the word meanings: the same definitions, as native code emitted into a builder."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from fusevm.evm.words import INTEGERS, Algebra
from fusevm.native import division

I1 = ir.IntType(1)
I64 = ir.IntType(64)
I256 = ir.IntType(256)
ALL_ONES = (1 << 256) - 1


class V:
    """A word: an LLVM value, or a number known while translating, which folds in Python."""

    __slots__ = ("_value", "known", "words")

    def __init__(self, words: LlvmWords, value: Any, known: int | None = None) -> None:
        self.words = words
        self._value = value
        self.known = value.constant if isinstance(value, ir.Constant) else known

    @property
    def value(self) -> Any:
        """The LLVM value."""
        return ir.Constant(I256, self.known) if self._value is None else self._value

    def __add__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known + other.known & ALL_ONES)
        return self.words.emit("add", self, other)

    def __sub__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known - other.known & ALL_ONES)
        return self.words.emit("sub", self, other)

    def __mul__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known * other.known & ALL_ONES)
        return self.words.emit("mul", self, other)

    def __and__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known & other.known)
        if other.known == ALL_ONES:  # how meanings wrap; machine words wrap by themselves
            return self
        return self.words.emit("and_", self, other)

    def __or__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known | other.known)
        return self.words.emit("or_", self, other)

    def __xor__(self, other: V) -> V:
        if self.known is not None and other.known is not None:
            return self.words.const(self.known ^ other.known)
        return self.words.emit("xor", self, other)


class LlvmWords(Algebra):
    """Words as `V`, truths as LLVM's i1, or as Python's bool where known while translating."""

    bits = 256
    bytes = 32

    def __init__(self, builder: ir.IRBuilder, module: ir.Module) -> None:
        self.builder = builder
        self.module = module
        self.max = self.const(ALL_ONES)
        self.sign = self.const(1 << 255)

    def const(self, value: int) -> V:
        return V(self, None, value)

    def emit(self, instruction: str, x: V, y: V) -> V:
        return V(self, getattr(self.builder, instruction)(x.value, y.value))

    def _call(self, function: Any, *operands: V) -> V:
        numbers = [operand.known for operand in operands]
        if None not in numbers:
            return self.const(getattr(INTEGERS, function.name)(*numbers))
        return V(self, self.builder.call(self._defined(function), [operand.value for operand in operands]))

    def _defined(self, function: Any) -> ir.Function:
        return function.define(self.module)

    def ite(self, condition: Any, then: V, other: V) -> V:
        if isinstance(condition, bool):
            return then if condition else other
        return V(self, self.builder.select(condition, then.value, other.value))

    def flag(self, condition: Any) -> V:
        if isinstance(condition, bool):
            return self.const(int(condition))
        return V(self, self.builder.zext(condition, I256))

    def eq(self, x: V, y: V) -> Any:
        if x.known is not None and y.known is not None:
            return x.known == y.known
        return self.builder.icmp_unsigned("==", x.value, y.value)

    def ult(self, x: V, y: V) -> Any:
        if x.known is not None and y.known is not None:
            return x.known < y.known
        return self.builder.icmp_unsigned("<", x.value, y.value)

    def udiv(self, x: V, y: V) -> V:
        if self._has_known_reciprocal(x, y):
            limb = ir.Constant(I64, y.known)
            return V(self, self.builder.call(self._defined(division.udiv_known), [x.value, limb]))
        return self._call(division.udiv, x, y)

    def urem(self, x: V, y: V) -> V:
        if self._has_known_reciprocal(x, y):
            return x - self.udiv(x, y) * y
        return self._call(division.urem, x, y)

    def _has_known_reciprocal(self, x: V, y: V) -> bool:
        return not division.FAST_DIVIDER and x.known is None and y.known is not None and y.known >> 64 == 0

    def addmod(self, x: V, y: V, m: V) -> V:
        return self._call(division.addmod, x, y, m)

    def mulmod(self, x: V, y: V, m: V) -> V:
        return self._call(division.mulmod, x, y, m)

    def power(self, x: V, n: V) -> V:
        return self._call(division.power, x, n)

    def shl(self, x: V, n: V) -> V:
        if x.known is not None and n.known is not None:
            return self.const(INTEGERS.shl(x.known, n.known))
        return self.emit("shl", x, n)

    def shr(self, x: V, n: V) -> V:
        if x.known is not None and n.known is not None:
            return self.const(INTEGERS.shr(x.known, n.known))
        return self.emit("lshr", x, n)

    def sar(self, x: V, n: V) -> V:
        if x.known is not None and n.known is not None:
            return self.const(INTEGERS.sar(x.known, n.known))
        return self.emit("ashr", x, n)

    def nonzero(self, x: V) -> V:
        """Written so that LLVM does not see a maximum in it, which it makes poor code of."""
        return x | self.flag(self.eq(x, self.const(0)))

    def leading_zeros(self, x: V) -> V:
        if x.known is not None:
            return self.const(INTEGERS.leading_zeros(x.known))
        return V(self, self.builder.ctlz(x.value, ir.Constant(I1, 1)))
