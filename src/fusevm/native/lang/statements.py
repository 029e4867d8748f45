"""Statements of the subset, translated, and with them whole functions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType

from llvmlite import ir

from fusevm.native.lang.intrinsics import Intrinsics
from fusevm.native.lang.types import (
    Kind,
    NativeFunction,
    Struct,
    Typed,
    Word,
    constant_of,
    ir_type,
    is_literal,
    struct_in,
)


class Translator(Intrinsics):
    """Emits the body of one function."""

    def __init__(
        self, source: NativeFunction, function: ir.Function, parameters: list[tuple[str, Kind]], result: Kind | None
    ) -> None:
        super().__init__(source, function)
        self.result = result
        self.loops: list[tuple[ir.Block, ir.Block]] = []  # where `continue` and `break` lead, the innermost last
        self.tree = ast.parse(textwrap.dedent(inspect.getsource(source.function))).body[0]
        for (name, kind), argument in zip(parameters, function.args, strict=True):
            argument.name = name
            self._declare(name, argument, struct_in(kind))

    def translate(self) -> None:
        assert isinstance(self.tree, ast.FunctionDef)
        self._statements(self.tree.body)
        if not self.build.block.is_terminated:
            if self.result is None:
                self.build.ret_void()
            else:
                self.build.unreachable()

    def _formula(self, node: ast.Call, called: FunctionType) -> Typed:
        arguments = [self._typed(argument) for argument in node.args]
        formula = Formula(called, arguments)
        values = [
            constant_of(ir_type(kind), each.value) if is_literal(each.value) else each.value
            for each, kind in zip(arguments, formula.kinds, strict=True)
        ]
        return Typed(self.build.call(formula.define(self.module), values))

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
        elif self.result is None:
            raise self._fail(node, "a result where none is declared")
        else:
            self.build.ret(self._of_type(node.value, ir_type(self.result)))

    def _do_break(self, node: ast.Break) -> None:
        self.build.branch(self.loops[-1][1])

    def _do_continue(self, node: ast.Continue) -> None:
        self.build.branch(self.loops[-1][0])

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name)
        kind = self._constant(node.annotation)
        assert node.value is not None
        value = self._of_type(node.value, ir_type(kind))
        self._assign_name(node.target.id, Typed(value, struct_in(kind)))

    def _do_assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self.locals:
            value = Typed(self._of_type(node.value, self.locals[target.id][0].allocated_type))
        elif isinstance(target, ast.Attribute):
            address, kind = self._field(target)
            self.build.store(self._of_type(node.value, ir_type(kind)), address, align=8)
            return
        elif isinstance(target, ast.Subscript):
            address, kind = self._element(target)
            self.build.store(self._of_type(node.value, ir_type(kind)), address)
            return
        else:
            value = self._typed(node.value)
            if is_literal(value.value):
                raise self._fail(node, "a literal needs a declared type")
        assert isinstance(target, ast.Name)
        self._assign_name(target.id, value)

    def _assign_name(self, name: str, value: Typed) -> None:
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
        if self._constant(node.iter.func) is not range or not all(is_literal(bound) for bound in bounds):
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


class Formula(NativeFunction):
    """A plain function read for arguments of these types. Annotations tell what has the result's type.

    Numbers known while translating take the type of an argument with the same annotation, 64 bits if there is none.
    """

    def __init__(self, function: FunctionType, arguments: list[Typed]) -> None:
        super().__init__(function)
        names = list(function.__annotations__.items())
        known = {
            kind: Word(argument.value.type.width)
            for (_, kind), argument in zip(names, arguments, strict=False)
            if argument.kind is None and not is_literal(argument.value)
        }
        kinds = {"bool": Word(1), **known}
        self.kinds: list[Kind] = [
            _struct_of(argument) or (kinds.get(kind, Word(64)) if is_literal(argument.value) else known[kind])
            for (_, kind), argument in zip(names, arguments, strict=False)
        ]
        self.result = kinds.get(function.__annotations__["return"], Word(64))

    def signature(self) -> tuple[list[tuple[str, Kind]], Kind | None]:
        names = [name for name in self.function.__annotations__ if name != "return"]
        return list(zip(names, self.kinds, strict=True)), self.result

    @property
    def symbol(self) -> str:
        parts = [kind.__name__ if isinstance(kind, type) else str(kind) for kind in self.kinds]
        return "_".join(["fusevm_gas", self.name, *parts])

    def define(self, module: ir.Module) -> ir.Function:
        found = module.globals.get(self.symbol)
        if found is not None:
            return found
        function = self.declare(module)
        function.linkage = "internal"
        for attribute in ("alwaysinline", "nounwind"):
            function.attributes.add(attribute)
        Translator(self, function, *self.signature()).translate()
        return function


def _struct_of(argument: Typed) -> type[Struct] | None:
    return argument.kind if isinstance(argument.kind, type) else None


def _loaded(target: ast.expr) -> ast.expr:
    """The same place, to read from."""
    twin = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(twin, target)


def _is_unlikely(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "unlikely"
