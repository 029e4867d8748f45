"""The LLVM domain of the word meanings: the same definitions, as native code emitted into a builder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

from llvmlite import ir

from fusevm.evm.words import INTEGERS, Algebra
from fusevm.native.lang import Native, Table
from fusevm.native.layout import Modulus
from fusevm.native.runtime import division, moduli

I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
I256 = ir.IntType(256)
Truth: TypeAlias = bool | ir.Value  # known while translating, or LLVM's i1
ALL_ONES = (1 << 256) - 1


class V:
    """A word: an LLVM value, or a number known while translating, which folds in Python."""

    __slots__ = ("_value", "known", "words")

    def __init__(self, words: LlvmWords, value: ir.Value, known: int | None = None) -> None:
        self.words = words
        self._value = value
        self.known = value.constant if isinstance(value, ir.Constant) else known

    @property
    def value(self) -> ir.Value:
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


def _kept(m: int) -> Table:
    """What a `Modulus` keeps, for a literal."""
    shift = 256 - m.bit_length()
    divisor = m << shift
    negated = (1 << 256) - divisor
    return Modulus.constant({
        "modulus": m,
        "divisor": divisor,
        "negated": negated,
        "reciprocal": ((1 << 512) - 1) // divisor - (1 << 256),
        "limb": ((1 << 192) - 1) // (divisor >> 128) - (1 << 64),
        "complement": negated if negated >> 64 == 0 else 0,
        "shift": shift,
        "uses": moduli.PROVEN,
    })  # fmt: skip


class LlvmWords(Algebra):
    """Words as `V`, truths as LLVM's i1, or as Python's bool where known while translating."""

    bits = 256
    bytes = 32

    def __init__(self, builder: ir.IRBuilder, module: ir.Module, frame: ir.Value | None = None) -> None:
        """With a frame, what its engine remembers of moduli is of use."""
        self.builder = builder
        self._frame = frame
        self.module = module
        self.max = self.const(ALL_ONES)
        self.sign = self.const(1 << 255)

    def const(self, value: int) -> V:
        return V(self, None, value)

    def emit(self, instruction: str, x: V, y: V) -> V:
        return V(self, getattr(self.builder, instruction)(x.value, y.value))

    def _call(self, function: Callable[..., int], *operands: V) -> V:
        numbers = [operand.known for operand in operands]
        assert isinstance(function, Native)
        if None not in numbers:
            return self.const(getattr(INTEGERS, function.name)(*numbers))
        return V(self, self.builder.call(self._defined(function), [operand.value for operand in operands]))

    def _defined(self, function: Callable[..., int]) -> ir.Function:
        assert isinstance(function, Native)
        return function.define(self.module)

    def ite(self, condition: Truth, then: V, other: V) -> V:
        if isinstance(condition, bool):
            return then if condition else other
        return V(self, self.builder.select(condition, then.value, other.value))

    def flag(self, condition: Truth) -> V:
        if isinstance(condition, bool):
            return self.const(int(condition))
        return V(self, self.builder.zext(condition, I256))

    def eq(self, x: V, y: V) -> Truth:
        if x.known is not None and y.known is not None:
            return x.known == y.known
        return self.builder.icmp_unsigned("==", x.value, y.value)

    def ult(self, x: V, y: V) -> Truth:
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

    def sdiv(self, x: V, y: V) -> V:
        return super().sdiv(x, y) if y.known is not None else self._call(division.sdiv, x, y)

    def _has_known_reciprocal(self, x: V, y: V) -> bool:
        return not division.FAST_DIVIDER and x.known is None and y.known is not None and y.known >> 64 == 0

    def addmod(self, x: V, y: V, m: V) -> V:
        return self._call(division.addmod, x, y, m)

    def mulmod(self, x: V, y: V, m: V) -> V:
        if m.known is not None and m.known >> 192 and (x.known is None or y.known is None):
            return V(self, self.builder.call(self._multiplier(m.known), [x.value, y.value]))
        if self._frame is not None and None in (x.known, y.known, m.known):
            operands = [self._frame, x.value, y.value, m.value]
            return V(self, self.builder.call(self._defined(moduli.mulmod_again), operands))
        return self._call(division.mulmod, x, y, m)

    def _multiplier(self, m: int) -> ir.Function:
        """Of words modulo a literal of four limbs: one function for all places of a module, its reciprocal within."""
        name = f"mulmod_{m:x}"
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(I256, [I256, I256]), name)
            function.linkage = "internal"
            function.attributes.add("noinline")
            function.attributes.add("nounwind")
            build = ir.IRBuilder(function.append_basic_block())
            known = _kept(m).define(self.module)
            build.ret(build.call(self._defined(moduli.mulmod_known), [*function.args, ir.Constant(I256, m), known]))
        return function

    def power(self, x: V, n: V) -> V:
        return self._call(division.power, x, n)

    def shl(self, x: V, n: V) -> V:
        if n.known is not None:
            return self.emit("shl", x, n) if x.known is None else self.const(INTEGERS.shl(x.known, n.known))
        zero = ir.Constant(I64, 0)
        limbs, count = self._moved(self._limbs(x)[::-1], n, zero)
        return self._joined([self._funnel("fshl", *pair, count) for pair in pairwise([*limbs, zero])][::-1])

    def shr(self, x: V, n: V) -> V:
        if n.known is not None:
            return self.emit("lshr", x, n) if x.known is None else self.const(INTEGERS.shr(x.known, n.known))
        return self._shifted_down(x, n, ir.Constant(I64, 0))

    def sar(self, x: V, n: V) -> V:
        if n.known is not None:
            return self.emit("ashr", x, n) if x.known is None else self.const(INTEGERS.sar(x.known, n.known))
        return self._shifted_down(x, n, self.builder.ashr(self._limbs(x)[-1], ir.Constant(I64, 63)))

    def extend(self, x: V, k: V) -> V:
        """Only the limb that holds the sign is changed; those above it become the sign."""
        if x.known is not None and k.known is not None:
            return self.const(INTEGERS.extend(x.known, k.known))
        build, limbs = self.builder, self._limbs(x)
        number, unused = self._place(k, 7)
        own = build.shl(self._chosen(limbs, number), unused)
        signs = build.ashr(own, ir.Constant(I64, 63))
        own = build.ashr(own, unused)
        found = []
        for at, limb in enumerate(limbs):
            here = build.icmp_unsigned("==", number, ir.Constant(I64, at))
            below = build.icmp_unsigned("<", number, ir.Constant(I64, at))
            found.append(self._either(here, own, self._either(below, signs, limb)))
        return self._joined(found)

    def octet(self, x: V, k: V) -> V:
        if x.known is not None and k.known is not None:
            return self.const(INTEGERS.octet(x.known, k.known))
        number, below = self._place(k, 0)
        limb = self.builder.lshr(self._chosen(self._limbs(x), number), below)
        return V(self, self.builder.zext(self.builder.and_(limb, ir.Constant(I64, 0xFF)), I256))

    def nonzero(self, x: V) -> V:
        """Written so that LLVM does not see a maximum in it, which it makes poor code of."""
        return x | self.flag(self.eq(x, self.const(0)))

    def leading_zeros(self, x: V) -> V:
        if x.known is not None:
            return self.const(INTEGERS.leading_zeros(x.known))
        return V(self, self.builder.ctlz(x.value, ir.Constant(I1, 1)))

    # -- words as limbs of 64 bits, the lowest first: LLVM shifts wide words through memory

    def _limbs(self, x: V) -> list[ir.Value]:
        build = self.builder
        return [build.trunc(build.lshr(x.value, ir.Constant(I256, 64 * at)), I64) for at in range(4)]

    def _joined(self, limbs: list[ir.Value]) -> V:
        build = self.builder
        word = build.zext(limbs[0], I256)
        for at, limb in enumerate(limbs[1:], 1):
            word = build.or_(word, build.shl(build.zext(limb, I256), ir.Constant(I256, 64 * at)))
        return V(self, word)

    def _shifted_down(self, x: V, n: V, fill: ir.Value) -> V:
        limbs, count = self._moved(self._limbs(x), n, fill)
        return self._joined([self._funnel("fshr", high, low, count) for low, high in pairwise([*limbs, fill])])

    def _moved(self, limbs: list[ir.Value], n: V, fill: ir.Value) -> tuple[list[ir.Value], ir.Value]:
        """The limbs shifted towards the first by whole limbs, and how many bits are still to go."""
        build, count = self.builder, self.builder.trunc(n.value, I64)
        for distance in (2, 1):
            bit = build.and_(count, ir.Constant(I64, 64 * distance))
            far = build.icmp_unsigned("!=", bit, ir.Constant(I64, 0))
            ahead = [*limbs[distance:], *[fill] * distance]
            limbs = [self._either(far, *pair) for pair in zip(ahead, limbs, strict=True)]
        return limbs, build.and_(count, ir.Constant(I64, 63))

    def _funnel(self, name: str, high: ir.Value, low: ir.Value, count: ir.Value) -> ir.Value:
        """Two limbs shifted as one."""
        function = self.module.declare_intrinsic(f"llvm.{name}", [I64], ir.FunctionType(I64, [I64] * 3))
        return self.builder.call(function, [high, low, count])

    def _place(self, k: V, flipped: int) -> tuple[ir.Value, ir.Value]:
        """Which limb holds byte k, and at which bit of it; counted from the limb's top if flipped by 7."""
        build, number = self.builder, self.builder.trunc(k.value, I64)
        within = build.and_(build.xor(number, ir.Constant(I64, flipped)), ir.Constant(I64, 7))
        return build.lshr(number, ir.Constant(I64, 3)), build.shl(within, ir.Constant(I64, 3))

    def _chosen(self, limbs: list[ir.Value], number: ir.Value) -> ir.Value:
        chosen = limbs[0]
        for at, limb in enumerate(limbs[1:], 1):
            chosen = self._either(self.builder.icmp_unsigned("==", number, ir.Constant(I64, at)), limb, chosen)
        return chosen

    def _either(self, condition: ir.Value, then: ir.Value, other: ir.Value) -> ir.Value:
        """A choice between limbs. Counts are mostly literals, so that it is better foretold than waited for."""
        chosen = self.builder.select(condition, then, other)
        if isinstance(chosen, ir.Instruction):
            weights = [ir.MetaDataString(self.module, "branch_weights"), ir.Constant(I32, 1), ir.Constant(I32, 2000)]
            chosen.set_metadata("prof", self.module.add_metadata(weights))
        return chosen
