"""A small typed subset of Python that compiles to LLVM, so that the native runtime can be read like the rest.

A function marked `@native` is never run by Python: its source is parsed and translated. Words are unsigned; literals
take the type of what they meet; nothing is converted silently. There are `if`, `while`, `return`, `break`, `continue`,
assignments, arithmetic, comparisons, `and`/`or`/`not`, structs behind pointers, calls, and the intrinsics of
`intrinsics`. `for i in range(...)` of numbers known while translating is unrolled, and `i` is such a number in
its body. To a type checker every word is an `int`.

Functions of `evm.gas` are called as they are: `Formula` translates them for the types of their arguments.

What a function of the subset needs is imported from here. The translation is in `types`, `expressions`, `intrinsics`
and `statements`, each knowing only those before it; `foreign` says how Python calls what is exported.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

from llvmlite import ir

from fusevm.native.lang.expressions import NativeError
from fusevm.native.lang.intrinsics import (
    bswap,
    call_pointer,
    clz,
    copy,
    ctz,
    fill,
    load,
    local,
    rotl,
    select,
    slt,
    store,
    unlikely,
    x86_add_low_row,
    x86_add_row,
    x86_divide,
)
from fusevm.native.lang.statements import Translator
from fusevm.native.lang.types import (
    PTR,
    Callee,
    NativeFunction,
    Struct,
    Table,
    ptr,
    u1,
    u8,
    u16,
    u32,
    u64,
    u128,
    u192,
    u256,
    u320,
    u512,
)

__all__ = [
    "PTR",
    "Callee",
    "Native",
    "NativeError",
    "Struct",
    "Table",
    "bswap",
    "call_pointer",
    "clz",
    "copy",
    "ctz",
    "exported",
    "fill",
    "inlined",
    "load",
    "local",
    "native",
    "outlined",
    "ptr",
    "rotl",
    "select",
    "slt",
    "specialised",
    "store",
    "u1",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "u192",
    "u256",
    "u320",
    "u512",
    "unlikely",
    "x86_add_low_row",
    "x86_add_row",
    "x86_divide",
]


F = TypeVar("F", bound=Callable[..., int | None])


class Native(NativeFunction):
    """A function of the subset; `define` translates it into a module, once."""

    def __init__(
        self, function: Callable[..., int | None], *, inline: bool = False, export: bool = False, apart: bool = False
    ) -> None:
        super().__init__(function)
        self.inline = inline
        self.export = export
        self.apart = apart

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
        Translator(self, function, parameters, result).translate()
        return function


def native(function: F) -> F:
    """Marks a function of the subset."""
    return Native(function)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """A function of the subset that is copied into its callers."""
    return Native(function, inline=True)  # type: ignore[return-value]


def outlined(function: F) -> F:
    """A function of the subset that is never copied into its callers: the slow path of a short one.

    Its symbol can be seen from outside, so that another module may declare it instead of defining it again.
    """
    return Native(function, export=True, apart=True)  # type: ignore[return-value]


def exported(function: F) -> F:
    """A function of the subset that Python can call."""
    return Native(function, export=True)  # type: ignore[return-value]


def specialised(function: F, name: str, **names: object) -> F:
    """Another instance of a function of the subset, in which these names mean other types, numbers or functions."""
    assert isinstance(function, Native)
    source = function.function
    missing = names.keys() - {*source.__code__.co_names, *source.__annotations__.values()}
    if missing:
        raise NativeError(f"{name}: {function.name} does not use {', '.join(sorted(missing))}")
    twin = FunctionType(source.__code__, source.__globals__ | names, name)
    twin.__annotations__ = source.__annotations__
    return Native(twin, inline=function.inline, export=function.export, apart=function.apart)
