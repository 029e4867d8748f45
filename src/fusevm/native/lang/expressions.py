"""Expressions of the subset, translated: names, fields, elements, operators, conversions and calls."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FunctionType
from typing import Any

from llvmlite import ir

from fusevm.native.lang.types import (
    BOOL,
    PTR,
    Kind,
    LocalArray,
    NativeFunction,
    Struct,
    Table,
    Target,
    Typed,
    Word,
    constant_of,
    ir_type,
    is_literal,
    struct_in,
)

FORMULAS = "fusevm.evm.gas"  # the module whose functions are read as they are


class NativeError(TypeError):
    """A function of the subset that cannot be translated; names the function and the line."""


class Expressions(ABC):
    """Emits expressions of one function at its builder's position; known values stay Python numbers."""

    def __init__(self, source: NativeFunction, function: ir.Function) -> None:
        self.source = source
        self.function = function
        self.module = function.module
        self.entry = function.append_basic_block("entry")
        self.build = ir.IRBuilder(self.entry)
        self.locals: dict[str, tuple[ir.Value, Target]] = {}  # by name: its slot, and what it points at, if known
        self.unrolled: dict[str, int] = {}  # what `for` counts

    def _fail(self, node: ast.AST, why: str) -> NativeError:
        return NativeError(f"{self.source.name}, line {getattr(node, 'lineno', 0)}: {why}")

    def _declare(self, name: str, value: ir.Value, kind: Target = None) -> None:
        with self.build.goto_block(self.entry):
            if self.entry.instructions:
                self.build.position_at_start(self.entry)
            slot = self.build.alloca(value.type, name=name)
        self.locals[name] = (slot, kind)
        self.build.store(value, slot)

    # -- names, numbers, places

    def _constant(self, node: ast.expr) -> Any:
        """What a name or expression means to Python while translating: a type, a number, a function."""
        return eval(compile(ast.Expression(node), "<native>", "eval"), self.source.function.__globals__, self.unrolled)

    def _typed(self, node: ast.expr) -> Typed:
        if isinstance(node, ast.Name) and node.id in self.locals:
            slot, kind = self.locals[node.id]
            return Typed(self.build.load(slot, typ=slot.allocated_type), kind)
        if isinstance(node, ast.Attribute) and self._is_field(node):
            address, held = self._field(node)
            return Typed(self.build.load(address, typ=ir_type(held), align=8), struct_in(held))
        if isinstance(node, ast.Call):
            return self._call(node)
        method = getattr(self, f"_get_{type(node).__name__.lower()}", None)
        if method is not None:
            return Typed(method(node))
        raise self._fail(node, f"{type(node).__name__} is not in the subset")

    def _value(self, node: ast.expr) -> ir.Value:
        return self._typed(node).value

    def _of_type(self, node: ast.expr, kind: ir.Type) -> ir.Value:
        value = self._value(node)
        if is_literal(value):
            return constant_of(kind, value)
        if value.type != kind:
            raise self._fail(node, f"{value.type} where {kind} is expected: {ast.unparse(node)}")
        return value

    def _get_constant(self, node: ast.Constant) -> ir.Value:
        return node.value

    def _get_name(self, node: ast.Name) -> ir.Value:
        value = self._constant(node)
        if not isinstance(value, int):
            raise self._fail(node, f"{node.id} is not a number")
        return value

    def _get_attribute(self, node: ast.Attribute) -> ir.Value:
        return self._constant(node)

    def _get_subscript(self, node: ast.Subscript) -> ir.Value:
        index = self._value(node.slice)
        if is_literal(index) and not self._is_array(node.value):
            value = self._constant(node.value)
            return ir.Constant(value.kind.ir, value[index]) if isinstance(value, Table) else value[index]
        address, kind = self._element(node)
        return self.build.load(address, typ=ir_type(kind))

    def _is_array(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self.locals.get(node.id, (None, None))[1], LocalArray)

    def _element(self, node: ast.Subscript) -> tuple[ir.Value, Word]:
        """Where a local's or a table's word is, and its kind."""
        base = self._typed(node.value) if self._is_array(node.value) else None
        if base is not None and isinstance(base.kind, LocalArray):
            address, kind = base.value, base.kind.kind
        else:
            table = self._constant(node.value)
            if not isinstance(table, Table):
                raise self._fail(node, f"{ast.unparse(node.value)} is neither local(...) nor a Table")
            address, kind = table.define(self.module), table.kind
        index = self._of_type(node.slice, ir.IntType(64))
        return self.build.gep(address, [index], inbounds=True, source_etype=kind.ir), kind

    # -- operators

    def _get_unaryop(self, node: ast.UnaryOp) -> ir.Value:
        if isinstance(node.op, ast.Not):
            truth = self._truth(node.operand)
            return not truth if isinstance(truth, bool) else self.build.not_(truth)
        value = self._value(node.operand)
        if is_literal(value):
            return -value if isinstance(node.op, ast.USub) else ~int(value)
        return self.build.neg(value) if isinstance(node.op, ast.USub) else self.build.not_(value)

    def _pair(self, left: ast.expr, right: ast.expr, node: ast.AST) -> tuple[ir.Value, ir.Value]:
        x, y = self._value(left), self._value(right)
        if is_literal(x) and not is_literal(y):
            x = constant_of(y.type, x)
        if is_literal(y) and not is_literal(x):
            y = constant_of(x.type, y)
        if not is_literal(x) and x.type != y.type:
            raise self._fail(node, f"{x.type} meets {y.type}: {ast.unparse(node)}")
        return x, y

    def _words(self, left: ast.expr, right: ast.expr, node: ast.AST) -> tuple[ir.Value, ir.Value]:
        """A pair where at least one side says of what type it is."""
        x, y = self._pair(left, right, node)
        if is_literal(x):
            raise self._fail(node, f"{ast.unparse(left)} and {ast.unparse(right)} are both literals: one needs a type")
        return x, y

    def _get_binop(self, node: ast.BinOp) -> ir.Value:
        left = self._typed(node.left)
        if not is_literal(left.value) and left.value.type == PTR:
            offset = self._of_type(node.right, ir.IntType(64))
            if isinstance(node.op, ast.Sub):
                offset = self.build.neg(offset)
            return self.build.gep(left.value, [offset], source_etype=ir.IntType(8))
        x, y = self._pair(node.left, node.right, node) if is_literal(left.value) else self._right(left.value, node)
        if is_literal(x) and is_literal(y):
            return _FOLD[type(node.op)](x, y)
        return getattr(self.build, _BINARY[type(node.op)])(x, y)

    def _right(self, x: ir.Value, node: ast.BinOp) -> tuple[ir.Value, ir.Value]:
        y = self._value(node.right)
        if is_literal(y):
            y = constant_of(x.type, y)
        if x.type != y.type:
            raise self._fail(node, f"{x.type} meets {y.type}: {ast.unparse(node)}")
        return x, y

    def _get_compare(self, node: ast.Compare) -> ir.Value:
        x, y = self._pair(node.left, node.comparators[0], node)
        sign = _COMPARE[type(node.ops[0])]
        if is_literal(x):
            return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]
        return self.build.icmp_unsigned(sign, x, y)

    def _truth(self, node: ast.expr) -> ir.Value:
        value = self._value(node)
        if isinstance(value, int):
            return bool(value)
        return value if value.type == BOOL else self.build.icmp_unsigned("!=", value, ir.Constant(value.type, 0))

    def _bit(self, node: ast.expr) -> ir.Value:
        """The truth as an LLVM value, even if it is known."""
        truth = self._truth(node)
        return constant_of(BOOL, truth) if is_literal(truth) else truth

    def _get_boolop(self, node: ast.BoolOp) -> ir.Value:
        """Short-circuits, as Python does."""
        is_and = isinstance(node.op, ast.And)
        after = self.function.append_basic_block("bool")
        arrivals: list[tuple[ir.Value, ir.Block]] = []
        for part in node.values[:-1]:
            truth = self._bit(part)
            following = self.function.append_basic_block("next")
            arrivals.append((ir.Constant(BOOL, 0 if is_and else 1), self.build.block))
            self.build.cbranch(truth, following, after) if is_and else self.build.cbranch(truth, after, following)
            self.build.position_at_end(following)
        last = self._bit(node.values[-1])
        arrivals.append((last, self.build.block))
        self.build.branch(after)
        self.build.position_at_end(after)
        phi = self.build.phi(BOOL)
        for value, block in arrivals:
            phi.add_incoming(value, block)
        return phi

    def _get_ifexp(self, node: ast.IfExp) -> ir.Value:
        """Both arms are evaluated."""
        x, y = self._words(node.body, node.orelse, node)
        return self.build.select(self._bit(node.test), x, y)

    # -- fields and calls

    def _is_field(self, node: ast.Attribute) -> bool:
        base = node.value
        if isinstance(base, ast.Name):
            return base.id in self.locals
        return isinstance(base, ast.Attribute | ast.Call)

    def _field(self, node: ast.Attribute) -> tuple[ir.Value, Kind]:
        base = self._typed(node.value)
        if not isinstance(base.kind, type) or node.attr not in base.kind._fields:
            raise self._fail(node, f"no field {node.attr!r}: {ast.unparse(node)}")
        offset, kind = base.kind._fields[node.attr]
        return self._offset(base.value, offset), kind

    def _offset(self, address: ir.Value, offset: ir.Value) -> ir.Value:
        if is_literal(offset):
            if offset == 0:
                return address
            offset = ir.Constant(ir.IntType(64), offset)
        return self.build.gep(address, [offset], source_etype=ir.IntType(8))

    def _call(self, node: ast.Call) -> Typed:
        called = self._constant(node.func)
        if isinstance(called, Word):
            return Typed(self._cast(node.args[0], called))
        if isinstance(called, type) and issubclass(called, Struct):
            return Typed(self._value(node.args[0]), called)
        if isinstance(called, NativeFunction):
            function = called.define(self.module)
            parameters, result = called.signature()
            arguments = [
                self._of_type(arg, ir_type(kind)) for arg, (_, kind) in zip(node.args, parameters, strict=True)
            ]
            value = self.build.call(function, arguments)
            return Typed(value, struct_in(result))
        if isinstance(called, FunctionType) and called.__module__ == FORMULAS:
            return self._formula(node, called)
        return self._intrinsic(node, called)

    @abstractmethod
    def _formula(self, node: ast.Call, called: FunctionType) -> Typed:
        """The call of a plain function that Python runs too, translated for the types of its arguments."""

    @abstractmethod
    def _intrinsic(self, node: ast.Call, called: object) -> Typed:
        """The call of what is neither a type nor a function of the subset."""

    def _cast(self, node: ast.expr, kind: Word) -> ir.Value:
        value = self._value(node)
        if isinstance(value, int):
            return ir.Constant(kind.ir, int(value))
        if value.type == PTR:
            return self.build.ptrtoint(value, kind.ir)
        if value.type.width == kind.bits:
            return value
        return self.build.zext(value, kind.ir) if value.type.width < kind.bits else self.build.trunc(value, kind.ir)


_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "udiv",
    ast.Mod: "urem",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "lshr",
}
_FOLD: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
