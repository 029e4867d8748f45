"""A small typed subset of Python that compiles to LLVM, so that the native runtime can be read like the rest.

A function marked `@native` is never run by Python: its source is parsed and translated. Words are unsigned; literals
take the type of what they meet; nothing is converted silently. There are `if`, `while`, `return`, `break`, `continue`,
assignments, arithmetic, comparisons, `and`/`or`/`not`, structs behind pointers, calls, and the intrinsics listed below.
`for i in range(...)` of numbers known while translating is unrolled, and `i` is such a number in its body.
To a type checker every word is an `int`.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from llvmlite import ir

PTR = ir.PointerType()
BOOL = ir.IntType(1)
VOID = ir.VoidType()


class Word:
    """An unsigned integer type."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.ir = ir.IntType(bits)
        self.size = bits // 8

    def __repr__(self) -> str:
        return f"u{self.bits}"


class Pointer:
    ir = PTR
    size = 8

    def __repr__(self) -> str:
        return "ptr"


if TYPE_CHECKING:
    u1 = int
    u8 = int
    u16 = int
    u32 = int
    u64 = int
    u128 = int
    u192 = int
    u256 = int
    u320 = int
    u512 = int
    ptr = int
else:
    u1, u8, u16, u32, u64 = (Word(bits) for bits in (1, 8, 16, 32, 64))
    u128, u192, u256, u320, u512 = (Word(bits) for bits in (128, 192, 256, 320, 512))
    ptr = Pointer()


if TYPE_CHECKING:
    _Place = int  # to a type checker a pointer is a number too
else:
    _Place = object


class Struct(_Place):
    """A layout in memory: annotated fields one behind another, each aligned to eight bytes."""

    _fields: dict[str, tuple[int, Any]]
    _size: int

    def __init_subclass__(cls) -> None:
        offset = 0
        cls._fields = {}
        scope = vars(inspect.getmodule(cls))
        for name, annotation in cls.__annotations__.items():
            if name.startswith("_"):
                continue
            kind = eval(annotation, scope) if isinstance(annotation, str) else annotation
            cls._fields[name] = (offset, kind)
            size = 8 if isinstance(kind, type) else kind.size
            offset += (size + 7) // 8 * 8
        cls._size = offset

    @classmethod
    def offset(cls, name: str) -> int:
        return cls._fields[name][0]

    @classmethod
    def byte_size(cls) -> int:
        return cls._size


class Table:
    """Constant words in the code's own data, to be indexed at run time."""

    def __init__(self, kind: Any, values: Sequence[int]) -> None:
        self.kind = kind
        self.values = tuple(values)

    def __getitem__(self, index: int) -> int:
        return self.values[index]

    def define(self, module: ir.Module) -> ir.GlobalVariable:
        symbol = f"fusevm_table_{self.kind}_{hashlib.sha256(repr(self.values).encode()).hexdigest()[:16]}"
        found = module.globals.get(symbol)
        if found is not None:
            return found
        kind = ir.ArrayType(self.kind.ir, len(self.values))
        table = ir.GlobalVariable(module, kind, symbol)
        table.initializer = ir.Constant(kind, list(self.values))
        table.linkage, table.global_constant = "internal", True
        return table


class _Array:
    """The kind of a local that holds several words."""

    def __init__(self, kind: Word) -> None:
        self.kind = kind


class Native:
    """A function of the subset; `define` translates it into a module, once."""

    def __init__(
        self, function: Callable[..., Any], *, inline: bool = False, export: bool = False, apart: bool = False
    ) -> None:
        self.name = function.__name__
        self.function = function
        self.inline = inline
        self.export = export
        self.apart = apart

    def signature(self) -> tuple[list[tuple[str, Any]], Any]:
        scope = self.function.__globals__
        kinds = {
            name: eval(text, scope) if isinstance(text, str) else text
            for name, text in self.function.__annotations__.items()
        }
        result = kinds.pop("return", None)
        return list(kinds.items()), result

    @property
    def symbol(self) -> str:
        return f"fusevm_{self.name}"

    def declare(self, module: ir.Module) -> ir.Function:
        """Only its name and type; `define` then leaves the body to whoever links the module."""
        found = module.globals.get(self.symbol)
        if found is not None:
            return found
        parameters, result = self.signature()
        kinds = [_ir(kind) for _, kind in parameters]
        return ir.Function(module, ir.FunctionType(VOID if result is None else _ir(result), kinds), self.symbol)

    def define(self, module: ir.Module) -> ir.Function:
        found = module.globals.get(self.symbol)
        if found is not None:
            return found
        function = self.declare(module)
        parameters, result = self.signature()
        if not self.export:
            function.linkage = "internal"
        if self.inline:
            function.attributes.add("alwaysinline")
        if self.apart:
            function.attributes.add("noinline")
        function.attributes.add("nounwind")
        _Translator(self, function, parameters, result).translate()
        return function


F = TypeVar("F", bound=Callable[..., Any])


def native(function: F) -> F:
    """Marks a function of the subset."""
    return Native(function)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """A function of the subset that is copied into its callers."""
    return Native(function, inline=True)  # type: ignore[return-value]


def outlined(function: F) -> F:
    """A function of the subset that is never copied into its callers: the long way behind a short one.

    Its symbol can be seen from outside, so that another module may declare it instead of defining it again.
    """
    return Native(function, export=True, apart=True)  # type: ignore[return-value]


def exported(function: F) -> F:
    """A function of the subset that Python can call."""
    return Native(function, export=True)  # type: ignore[return-value]


# -- intrinsics: what the subset can do that Python has no sign for. They have no bodies; the translator knows them.


def load(kind: Any, address: int, offset: int = 0) -> int:
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


def local(kind: Any, count: int) -> Any:
    """Room for several words, to be indexed; in registers where every index is known while translating."""
    raise TypeError("only inside @native")


def x86_divide(high: int, low: int, divisor: int) -> int:
    """(high·2^64 + low) by a greater divisor than high, else the processor traps: remainder·2^64 + quotient, a u128."""
    raise TypeError("only inside @native")


def call_pointer(kind: Any, function: int, *arguments: int) -> int:
    """Calls a C function by its address."""
    raise TypeError("only inside @native")


class NativeError(TypeError):
    """A function of the subset that cannot be translated; names the function and the line."""


def _ir(kind: Any) -> Any:
    return PTR if isinstance(kind, type) else kind.ir


def _constant_of(kind: Any, value: int) -> Any:
    """Zero is also the pointer to nothing."""
    return ir.Constant(kind, None) if kind == PTR and value == 0 else ir.Constant(kind, value)


def _literal(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Typed:
    """An LLVM value and, where it points at a struct, which."""

    __slots__ = ("kind", "value")

    def __init__(self, value: Any, kind: Any = None) -> None:
        self.value = value
        self.kind = kind


class _Translator:
    def __init__(self, source: Native, function: ir.Function, parameters: list[tuple[str, Any]], result: Any) -> None:
        self.source = source
        self.function = function
        self.module = function.module
        self.result = result
        self.entry = function.append_basic_block("entry")
        self.build = ir.IRBuilder(self.entry)
        self.locals: dict[str, tuple[Any, Any]] = {}
        self.loops: list[tuple[Any, Any]] = []
        self.unrolled: dict[str, int] = {}
        self.tree = ast.parse(textwrap.dedent(inspect.getsource(source.function))).body[0]
        for (name, kind), argument in zip(parameters, function.args, strict=True):
            argument.name = name
            self._declare(name, argument, kind if isinstance(kind, type) else None)

    def translate(self) -> None:
        assert isinstance(self.tree, ast.FunctionDef)
        self._statements(self.tree.body)
        if not self.build.block.is_terminated:
            if self.result is None:
                self.build.ret_void()
            else:
                self.build.unreachable()

    def _fail(self, node: ast.AST, why: str) -> NativeError:
        return NativeError(f"{self.source.name}, line {getattr(node, 'lineno', 0)}: {why}")

    def _declare(self, name: str, value: Any, kind: Any = None) -> None:
        with self.build.goto_block(self.entry):
            if self.entry.instructions:
                self.build.position_at_start(self.entry)
            slot = self.build.alloca(value.type, name=name)
        self.locals[name] = (slot, kind)
        self.build.store(value, slot)

    # -- statements

    def _statements(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if self.build.block.is_terminated:
                return
            getattr(self, f"_do_{type(node).__name__.lower()}", self._unknown)(node)

    def _unknown(self, node: ast.AST) -> None:
        raise self._fail(node, f"{type(node).__name__} is not in the subset")

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._value(node.value)

    def _do_return(self, node: ast.Return) -> None:
        if node.value is None:
            self.build.ret_void()
        else:
            self.build.ret(self._of_type(node.value, _ir(self.result)))

    def _do_break(self, node: ast.Break) -> None:
        self.build.branch(self.loops[-1][1])

    def _do_continue(self, node: ast.Continue) -> None:
        self.build.branch(self.loops[-1][0])

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name)
        kind = self._constant(node.annotation)
        assert node.value is not None
        value = self._of_type(node.value, _ir(kind))
        self._assign_name(node.target.id, _Typed(value, kind if isinstance(kind, type) else None))

    def _do_assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self.locals:
            value = _Typed(self._of_type(node.value, self.locals[target.id][0].allocated_type))
        elif isinstance(target, ast.Attribute):
            address, kind = self._field(target)
            self.build.store(self._of_type(node.value, _ir(kind)), address, align=8)
            return
        elif isinstance(target, ast.Subscript):
            address, kind = self._element(target)
            self.build.store(self._of_type(node.value, _ir(kind)), address)
            return
        else:
            value = self._typed(node.value)
            if _literal(value.value):
                raise self._fail(node, "a literal needs a declared type")
        assert isinstance(target, ast.Name)
        self._assign_name(target.id, value)

    def _assign_name(self, name: str, value: _Typed) -> None:
        if name in self.locals:
            self.build.store(value.value, self.locals[name][0])
        else:
            self._declare(name, value.value, value.kind)

    def _do_augassign(self, node: ast.AugAssign) -> None:
        reading = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
        self._do_assign(ast.copy_location(ast.Assign([node.target], reading), node))

    def _do_if(self, node: ast.If) -> None:
        condition = self._truth(node.test)
        if isinstance(condition, bool):  # decided while translating
            self._statements(node.body if condition else node.orelse)
            return
        then, after = self.function.append_basic_block("then"), self.function.append_basic_block("after")
        other = self.function.append_basic_block("else") if node.orelse else after
        branch = self.build.cbranch(condition, then, other)
        if _is_unlikely(node.test):
            branch.set_weights([1, 2000])
        for block, body in ((then, node.body), (other, node.orelse)):
            if block is after:
                continue
            self.build.position_at_end(block)
            self._statements(body)
            if not self.build.block.is_terminated:
                self.build.branch(after)
        self.build.position_at_end(after)

    def _do_while(self, node: ast.While) -> None:
        head, body, after = (self.function.append_basic_block(name) for name in ("while", "body", "after"))
        self.build.branch(head)
        self.build.position_at_end(head)
        condition = self._truth(node.test)
        if isinstance(condition, bool):
            self.build.branch(body if condition else after)
        else:
            self.build.cbranch(condition, body, after)
        self.build.position_at_end(body)
        self.loops.append((head, after))
        self._statements(node.body)
        self.loops.pop()
        if not self.build.block.is_terminated:
            self.build.branch(head)
        self.build.position_at_end(after)

    def _do_for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self._value(argument) for argument in node.iter.args]
        if self._constant(node.iter.func) is not range or not all(_literal(bound) for bound in bounds):
            raise self._fail(node, "`for` runs over a range known while translating")
        after = self.function.append_basic_block("after")
        for index in range(*bounds):
            following = self.function.append_basic_block("for")
            self.unrolled[node.target.id] = index
            self.loops.append((following, after))
            self._statements(node.body)
            self.loops.pop()
            if not self.build.block.is_terminated:
                self.build.branch(following)
            self.build.position_at_end(following)
        self.build.branch(after)
        self.build.position_at_end(after)

    # -- expressions

    def _constant(self, node: ast.expr) -> Any:
        """What a name or expression means to Python while translating: a type, a number, a function."""
        return eval(compile(ast.Expression(node), "<native>", "eval"), self.source.function.__globals__, self.unrolled)

    def _typed(self, node: ast.expr) -> _Typed:
        if isinstance(node, ast.Name) and node.id in self.locals:
            slot, kind = self.locals[node.id]
            return _Typed(self.build.load(slot, typ=slot.allocated_type), kind)
        if isinstance(node, ast.Attribute) and self._is_field(node):
            address, kind = self._field(node)
            value = self.build.load(address, typ=_ir(kind), align=8)
            return _Typed(value, kind if isinstance(kind, type) else None)
        if isinstance(node, ast.Call):
            return self._call(node)
        method = getattr(self, f"_get_{type(node).__name__.lower()}", None)
        if method is not None:
            return _Typed(method(node))
        raise self._fail(node, f"{type(node).__name__} is not in the subset")

    def _value(self, node: ast.expr) -> Any:
        return self._typed(node).value

    def _of_type(self, node: ast.expr, kind: Any) -> Any:
        value = self._value(node)
        if isinstance(value, bool):
            return ir.Constant(kind, int(value))
        if _literal(value):
            return _constant_of(kind, value)
        if value.type != kind:
            raise self._fail(node, f"{value.type} where {kind} is expected: {ast.unparse(node)}")
        return value

    def _get_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _get_name(self, node: ast.Name) -> Any:
        value = self._constant(node)
        if not isinstance(value, int):
            raise self._fail(node, f"{node.id} is no number")
        return value

    def _get_attribute(self, node: ast.Attribute) -> Any:
        return self._constant(node)

    def _get_subscript(self, node: ast.Subscript) -> Any:
        index = self._value(node.slice)
        if _literal(index) and not self._is_array(node.value):
            value = self._constant(node.value)
            return ir.Constant(value.kind.ir, value[index]) if isinstance(value, Table) else value[index]
        address, kind = self._element(node)
        return self.build.load(address, typ=_ir(kind))

    def _is_array(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self.locals.get(node.id, (None, None))[1], _Array)

    def _element(self, node: ast.Subscript) -> tuple[Any, Any]:
        """Where a local's or a table's word is, and its kind."""
        if self._is_array(node.value):
            base = self._typed(node.value)
            address, kind = base.value, base.kind.kind
        else:
            table = self._constant(node.value)
            if not isinstance(table, Table):
                raise self._fail(node, f"{ast.unparse(node.value)} is neither local(...) nor a Table")
            address, kind = table.define(self.module), table.kind
        index = self._of_type(node.slice, ir.IntType(64))
        return self.build.gep(address, [index], inbounds=True, source_etype=kind.ir), kind

    def _get_unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            truth = self._truth(node.operand)
            return not truth if isinstance(truth, bool) else self.build.not_(truth)
        value = self._value(node.operand)
        if _literal(value):
            return -value if isinstance(node.op, ast.USub) else ~value
        return self.build.neg(value) if isinstance(node.op, ast.USub) else self.build.not_(value)

    def _pair(self, left: ast.expr, right: ast.expr, node: ast.AST) -> tuple[Any, Any]:
        x, y = self._value(left), self._value(right)
        if _literal(x) and not _literal(y):
            x = _constant_of(y.type, x)
        if _literal(y) and not _literal(x):
            y = _constant_of(x.type, y)
        if not _literal(x) and x.type != y.type:
            raise self._fail(node, f"{x.type} meets {y.type}: {ast.unparse(node)}")
        return x, y

    def _get_binop(self, node: ast.BinOp) -> Any:
        left = self._typed(node.left)
        if not _literal(left.value) and left.value.type == PTR:
            offset = self._of_type(node.right, ir.IntType(64))
            if isinstance(node.op, ast.Sub):
                offset = self.build.neg(offset)
            return self.build.gep(left.value, [offset], source_etype=ir.IntType(8))
        x, y = self._pair(node.left, node.right, node) if _literal(left.value) else self._right(left.value, node)
        if _literal(x) and _literal(y):
            return _FOLD[type(node.op)](x, y)
        return getattr(self.build, _BINARY[type(node.op)])(x, y)

    def _right(self, x: Any, node: ast.BinOp) -> tuple[Any, Any]:
        y = self._value(node.right)
        if _literal(y):
            y = ir.Constant(x.type, y)
        if x.type != y.type:
            raise self._fail(node, f"{x.type} meets {y.type}: {ast.unparse(node)}")
        return x, y

    def _get_compare(self, node: ast.Compare) -> Any:
        x, y = self._pair(node.left, node.comparators[0], node)
        sign = _COMPARE[type(node.ops[0])]
        if _literal(x):
            return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]
        return self.build.icmp_unsigned(sign, x, y)

    def _truth(self, node: ast.expr) -> Any:
        value = self._value(node)
        if isinstance(value, int):
            return bool(value)
        return value if value.type == BOOL else self.build.icmp_unsigned("!=", value, ir.Constant(value.type, 0))

    def _get_boolop(self, node: ast.BoolOp) -> Any:
        """Short-circuits, as Python does."""
        is_and = isinstance(node.op, ast.And)
        after = self.function.append_basic_block("bool")
        arrivals: list[tuple[Any, Any]] = []
        for part in node.values[:-1]:
            truth = self._truth(part)
            following = self.function.append_basic_block("next")
            arrivals.append((ir.Constant(BOOL, 0 if is_and else 1), self.build.block))
            self.build.cbranch(truth, following, after) if is_and else self.build.cbranch(truth, after, following)
            self.build.position_at_end(following)
        last = self._truth(node.values[-1])
        arrivals.append((last, self.build.block))
        self.build.branch(after)
        self.build.position_at_end(after)
        phi = self.build.phi(BOOL)
        for value, block in arrivals:
            phi.add_incoming(value, block)
        return phi

    def _get_ifexp(self, node: ast.IfExp) -> Any:
        """Both arms are evaluated."""
        x, y = self._pair(node.body, node.orelse, node)
        return self.build.select(self._truth(node.test), x, y)

    # -- fields and calls

    def _is_field(self, node: ast.Attribute) -> bool:
        base = node.value
        if isinstance(base, ast.Name):
            return base.id in self.locals
        return isinstance(base, ast.Attribute | ast.Call)

    def _field(self, node: ast.Attribute) -> tuple[Any, Any]:
        base = self._typed(node.value)
        if base.kind is None or node.attr not in base.kind._fields:
            raise self._fail(node, f"no field {node.attr!r}: {ast.unparse(node)}")
        offset, kind = base.kind._fields[node.attr]
        return self._offset(base.value, offset), kind

    def _offset(self, address: Any, offset: Any) -> Any:
        if _literal(offset):
            if offset == 0:
                return address
            offset = ir.Constant(ir.IntType(64), offset)
        return self.build.gep(address, [offset], source_etype=ir.IntType(8))

    def _call(self, node: ast.Call) -> _Typed:
        called = self._constant(node.func)
        if isinstance(called, Word):
            return _Typed(self._cast(node.args[0], called))
        if isinstance(called, type) and issubclass(called, Struct):
            return _Typed(self._value(node.args[0]), called)
        if isinstance(called, Native):
            function = called.define(self.module)
            parameters, result = called.signature()
            arguments = [self._of_type(arg, _ir(kind)) for arg, (_, kind) in zip(node.args, parameters, strict=True)]
            value = self.build.call(function, arguments)
            return _Typed(value, result if isinstance(result, type) else None)
        if called is local:
            return self._local(*node.args)
        intrinsic = getattr(self, f"_intrinsic_{getattr(called, '__name__', '')}", None)
        if intrinsic is None:
            raise self._fail(node, f"{ast.unparse(node.func)} cannot be called here")
        return _Typed(intrinsic(*node.args))

    def _cast(self, node: ast.expr, kind: Word) -> Any:
        value = self._value(node)
        if isinstance(value, int):
            return ir.Constant(kind.ir, int(value))
        if value.type == PTR:
            return self.build.ptrtoint(value, kind.ir)
        if value.type.width == kind.bits:
            return value
        return self.build.zext(value, kind.ir) if value.type.width < kind.bits else self.build.trunc(value, kind.ir)

    def _local(self, kind: ast.expr, count: ast.expr) -> _Typed:
        word = self._constant(kind)
        with self.build.goto_block(self.entry):
            self.build.position_at_start(self.entry)
            room = self.build.alloca(ir.ArrayType(word.ir, self._value(count)))
        room.type = PTR  # llvmlite would remember the array's type, and refuse to store one word there
        return _Typed(room, _Array(word))

    def _intrinsic_x86_divide(self, high: ast.expr, low: ast.expr, divisor: ast.expr) -> Any:
        i64, i128 = ir.IntType(64), ir.IntType(128)
        signature = ir.FunctionType(ir.LiteralStructType([i64, i64]), [i64] * 3)
        operands = [self._of_type(each, i64) for each in (low, high, divisor)]
        # It may trap, so it must stay behind the test that guards it: "side effect".
        pair = self.build.asm(signature, "divq $4", "={ax},={dx},0,1,r,~{flags}", operands, side_effect=True)
        quotient, remainder = (self.build.zext(self.build.extract_value(pair, index), i128) for index in (0, 1))
        return self.build.or_(self.build.shl(remainder, ir.Constant(i128, 64)), quotient)

    def _intrinsic_load(self, kind: ast.expr, address: ast.expr, offset: ast.expr | None = None) -> Any:
        what = self._constant(kind)
        where = self._offset(self._value(address), 0 if offset is None else self._value(offset))
        return self.build.load(where, typ=_ir(what), align=1)

    def _intrinsic_store(self, address: ast.expr, offset: ast.expr, value: ast.expr) -> Any:
        where = self._offset(self._value(address), self._value(offset))
        return self.build.store(self._value(value), where, align=1)

    def _intrinsic_bswap(self, value: ast.expr) -> Any:
        return self.build.bswap(self._value(value))

    def _intrinsic_clz(self, value: ast.expr) -> Any:
        return self.build.ctlz(self._value(value), ir.Constant(BOOL, 0))

    def _intrinsic_ctz(self, value: ast.expr) -> Any:
        return self.build.cttz(self._value(value), ir.Constant(BOOL, 0))

    def _intrinsic_slt(self, left: ast.expr, right: ast.expr) -> Any:
        return self.build.icmp_signed("<", *self._pair(left, right, left))

    def _intrinsic_select(self, condition: ast.expr, left: ast.expr, right: ast.expr) -> Any:
        x, y = self._pair(left, right, condition)
        return self.build.select(self._truth(condition), x, y)

    def _intrinsic_rotl(self, value: ast.expr, count: ast.expr) -> Any:
        x = self._value(value)
        n = self._of_type(count, x.type)
        return self.build.call(self._declared("llvm.fshl", [x.type]), [x, x, n])

    def _intrinsic_unlikely(self, condition: ast.expr) -> Any:
        return self._truth(condition)

    def _intrinsic_copy(self, to: ast.expr, source: ast.expr, size: ast.expr) -> Any:
        memmove = self.module.declare_intrinsic("llvm.memmove", [PTR, PTR, ir.IntType(64)])
        arguments = [self._value(to), self._value(source), self._of_type(size, ir.IntType(64)), ir.Constant(BOOL, 0)]
        return self.build.call(memmove, arguments)

    def _intrinsic_fill(self, to: ast.expr, byte: ast.expr, size: ast.expr) -> Any:
        memset = self.module.declare_intrinsic("llvm.memset", [PTR, ir.IntType(64)])
        value = self._of_type(byte, ir.IntType(8))
        arguments = [self._value(to), value, self._of_type(size, ir.IntType(64)), ir.Constant(BOOL, 0)]
        return self.build.call(memset, arguments)

    def _intrinsic_call_pointer(self, kind: ast.expr, function: ast.expr, *arguments: ast.expr) -> Any:
        values = [self._value(each) for each in arguments]
        result = self._constant(kind)
        signature = ir.FunctionType(VOID if result is None else _ir(result), [value.type for value in values])
        return self.build.call(Callee(self._value(function), signature), values)

    def _declared(self, name: str, kinds: list[Any]) -> Any:
        symbol = f"{name}.i{kinds[0].width}"
        found = self.module.globals.get(symbol)
        if found is not None:
            return found
        return ir.Function(self.module, ir.FunctionType(kinds[0], [kinds[0]] * 3), symbol)


class Callee:
    """An address to be called as a function of a given type: llvmlite's own pointers carry none."""

    def __init__(self, address: Any, signature: ir.FunctionType) -> None:
        self.address = address
        self.type = PTR
        self.function_type = signature

    def get_reference(self) -> str:
        return str(self.address.get_reference())


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


def _loaded(target: Any) -> Any:
    """The same place, to read from."""
    twin = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(twin, target)


def _is_unlikely(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "unlikely"
