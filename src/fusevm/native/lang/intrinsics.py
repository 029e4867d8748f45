"""Intrinsics: what the subset can do that Python has no sign for, each with its name here and its translation below."""

from __future__ import annotations

import ast
from functools import reduce

from llvmlite import ir

from fusevm.native.lang.expressions import Expressions
from fusevm.native.lang.types import BOOL, PTR, VOID, Callee, LocalArray, Typed, ir_type

# -- their names: to the type checker functions, to Python nothing that could be run.


def load(kind: type[int], address: int, offset: int = 0) -> int:
    """Memory, as a word of that kind, in the machine's byte order."""
    raise TypeError("only inside @native")


def store(address: int, offset: int, value: int) -> None:
    raise TypeError("only inside @native")


def bswap(value: int) -> int:
    raise TypeError("only inside @native")


def clz(value: int) -> int:
    """Leading zeros; of zero, the width."""
    raise TypeError("only inside @native")


def ctz(value: int) -> int:
    raise TypeError("only inside @native")


def slt(x: int, y: int) -> bool:
    raise TypeError("only inside @native")


def select(condition: bool, x: int, y: int) -> int:
    raise TypeError("only inside @native")


def copy(to: int, source: int, size: int) -> None:
    """memmove: the ranges may overlap."""
    raise TypeError("only inside @native")


def fill(to: int, byte: int, size: int) -> None:
    raise TypeError("only inside @native")


def rotl(value: int, count: int) -> int:
    raise TypeError("only inside @native")


def unlikely(condition: bool) -> bool:
    """The condition, expected to be false."""
    raise TypeError("only inside @native")


class Local(int):
    """What `local` gives, to the type checker: a pointer whose words are indexed."""

    def __getitem__(self, index: int) -> int:
        raise TypeError("only inside @native")

    def __setitem__(self, index: int, value: int) -> None:
        raise TypeError("only inside @native")


def local(kind: type[int], count: int) -> Local:
    """Room for several words, to be indexed; in registers where every index is known while translating."""
    raise TypeError("only inside @native")


def x86_divide(high: int, low: int, divisor: int) -> int:
    """(high·2^64 + low) by a greater divisor than high, else the processor traps: remainder·2^64 + quotient, a u128."""
    raise TypeError("only inside @native")


def x86_add_row(x: int, y: int, start: int) -> int:
    """x · y + start for a u256 or its address, a u64 and a u256, as a u320. Needs BMI2 and ADX.

    Its two chains of carries do not wait for each other.
    """
    raise TypeError("only inside @native")


def x86_add_low_row(x: int, y: int, start: int) -> int:
    """The same for the address of x, as many limbs of it as `start` has, and as many limbs of the result."""
    raise TypeError("only inside @native")


def call_pointer(kind: type[int], function: int, *arguments: int) -> int:
    """Calls a C function by its address."""
    raise TypeError("only inside @native")


class Intrinsics(Expressions):
    """Expressions, and the calls of intrinsics among them."""

    def _intrinsic(self, node: ast.Call, called: object) -> Typed:
        translation = getattr(self, f"_intrinsic_{getattr(called, '__name__', '')}", None)
        if translation is None:
            raise self._fail(node, f"{ast.unparse(node.func)} cannot be called here")
        made = translation(*node.args)
        return made if isinstance(made, Typed) else Typed(made)

    def _intrinsic_local(self, kind: ast.expr, count: ast.expr) -> Typed:
        word = self._constant(kind)
        with self.build.goto_block(self.entry):
            self.build.position_at_start(self.entry)
            room = self.build.alloca(ir.ArrayType(word.ir, self._value(count)))
        room.type = PTR  # llvmlite would remember the array's type, and refuse to store one word there
        return Typed(room, LocalArray(word))

    def _intrinsic_x86_divide(self, high: ast.expr, low: ast.expr, divisor: ast.expr) -> ir.Value:
        i64, i128 = ir.IntType(64), ir.IntType(128)
        signature = ir.FunctionType(ir.LiteralStructType([i64, i64]), [i64] * 3)
        operands = [self._of_type(each, i64) for each in (low, high, divisor)]
        # It may trap, so it must stay after the test that guards it: "side effect".
        pair = self.build.asm(signature, "divq $4", "={ax},={dx},0,1,r,~{flags}", operands, side_effect=True)
        quotient, remainder = (self.build.zext(self.build.extract_value(pair, index), i128) for index in (0, 1))
        return self.build.or_(self.build.shl(remainder, ir.Constant(i128, 64)), quotient)

    def _intrinsic_x86_add_row(self, x: ast.expr, y: ast.expr, start: ast.expr) -> ir.Value:
        return self._row(x, y, start, wraps=False)

    def _intrinsic_x86_add_low_row(self, x: ast.expr, y: ast.expr, start: ast.expr) -> ir.Value:
        return self._row(x, y, start, wraps=True)

    def _row(self, x: ast.expr, y: ast.expr, start: ast.expr, *, wraps: bool) -> ir.Value:
        i64, factor, added = ir.IntType(64), self._value(x), self._value(start)
        count = added.type.width // 64
        factors = [factor] if factor.type == PTR else [self._limb(factor, place) for place in range(count)]
        operands = [*factors, self._of_type(y, i64), *(self._limb(added, place) for place in range(count))]
        # The row, then the halves of a product, then x; y is in the register that MULX reads.
        length = count if wraps else count + 1
        low, high, first = length, length + 1, length + 2
        limbs = [f"{8 * at}(${first})" if factor.type == PTR else f"${first + at}" for at in range(count)]
        zero = low if wraps else count  # a new limb at the top; or else, only for there being no carries, anything
        text = [f"xorl ${{{zero}:k}}, ${{{zero}:k}}"]
        for at, limb in enumerate(limbs):  # lower halves along the carry flag, upper ones along the overflow flag
            text += [f"mulxq {limb}, ${low}, ${high}", f"adcxq ${low}, ${at}"]
            if at + 1 < length:
                text.append(f"adoxq ${high}, ${at + 1}")
        if not wraps:
            text.append(f"adcq $$0, ${count}")
        places = ["=&r"] * first + ["r"] * len(factors) + ["{dx}"] + [str(at) for at in range(count)] + ["~{flags}"]
        places += ["~{memory}"] * (factor.type == PTR)  # which is read, so that stores before stay before
        signature = ir.FunctionType(ir.LiteralStructType([i64] * first), [each.type for each in operands])
        row = self.build.asm(signature, "\n".join(text), ",".join(places), operands, side_effect=False)
        kind = ir.IntType(64 * length)
        found = [self.build.zext(self.build.extract_value(row, at), kind) for at in range(length)]
        return reduce(self.build.or_, (self.build.shl(limb, kind(64 * at)) for at, limb in enumerate(found)))

    def _limb(self, word: ir.Value, place: int) -> ir.Value:
        return self.build.trunc(self.build.lshr(word, ir.Constant(word.type, 64 * place)), ir.IntType(64))

    def _intrinsic_load(self, kind: ast.expr, address: ast.expr, offset: ast.expr | None = None) -> ir.Value:
        what = self._constant(kind)
        where = self._offset(self._value(address), 0 if offset is None else self._value(offset))
        return self.build.load(where, typ=ir_type(what), align=1)

    def _intrinsic_store(self, address: ast.expr, offset: ast.expr, value: ast.expr) -> ir.Value:
        where = self._offset(self._value(address), self._value(offset))
        return self.build.store(self._value(value), where, align=1)

    def _intrinsic_bswap(self, value: ast.expr) -> ir.Value:
        return self.build.bswap(self._value(value))

    def _intrinsic_clz(self, value: ast.expr) -> ir.Value:
        return self.build.ctlz(self._value(value), ir.Constant(BOOL, 0))

    def _intrinsic_ctz(self, value: ast.expr) -> ir.Value:
        return self.build.cttz(self._value(value), ir.Constant(BOOL, 0))

    def _intrinsic_slt(self, left: ast.expr, right: ast.expr) -> ir.Value:
        return self.build.icmp_signed("<", *self._words(left, right, left))

    def _intrinsic_select(self, condition: ast.expr, left: ast.expr, right: ast.expr) -> ir.Value:
        x, y = self._words(left, right, condition)
        return self.build.select(self._bit(condition), x, y)

    def _intrinsic_rotl(self, value: ast.expr, count: ast.expr) -> ir.Value:
        x = self._value(value)
        n = self._of_type(count, x.type)
        return self.build.call(self._declared("llvm.fshl", [x.type]), [x, x, n])

    def _intrinsic_unlikely(self, condition: ast.expr) -> ir.Value:
        return self._truth(condition)

    def _intrinsic_copy(self, to: ast.expr, source: ast.expr, size: ast.expr) -> ir.Value:
        memmove = self.module.declare_intrinsic("llvm.memmove", [PTR, PTR, ir.IntType(64)])
        arguments = [self._value(to), self._value(source), self._of_type(size, ir.IntType(64)), ir.Constant(BOOL, 0)]
        return self.build.call(memmove, arguments)

    def _intrinsic_fill(self, to: ast.expr, byte: ast.expr, size: ast.expr) -> ir.Value:
        memset = self.module.declare_intrinsic("llvm.memset", [PTR, ir.IntType(64)])
        value = self._of_type(byte, ir.IntType(8))
        arguments = [self._value(to), value, self._of_type(size, ir.IntType(64)), ir.Constant(BOOL, 0)]
        return self.build.call(memset, arguments)

    def _intrinsic_call_pointer(self, kind: ast.expr, function: ast.expr, *arguments: ast.expr) -> ir.Value:
        values = [self._value(each) for each in arguments]
        result = self._constant(kind)
        signature = ir.FunctionType(VOID if result is None else ir_type(result), [value.type for value in values])
        return self.build.call(Callee(self._value(function), signature), values)

    def _declared(self, name: str, kinds: list[ir.Type]) -> ir.Value:
        symbol = f"{name}.i{kinds[0].width}"
        found = self.module.globals.get(symbol)
        if found is not None:
            return found
        return ir.Function(self.module, ir.FunctionType(kinds[0], [kinds[0]] * 3), symbol)
