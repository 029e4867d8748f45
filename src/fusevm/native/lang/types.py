"""What values of the subset are to LLVM: words, pointers, structs behind pointers, tables, functions."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar, TypeGuard

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
    """An address; where it leads is not known."""

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
    """A layout in memory: annotated fields one after another, each aligned to eight bytes.

    After them come the fields of a dataclass that is a base, as numbers of 64 bits, and those `words` of 256 that are
    not declared.
    """

    _fields: ClassVar[dict[str, tuple[int, Kind]]]
    _size: ClassVar[int]

    def __init_subclass__(cls, words: Iterable[str] = ()) -> None:
        offset = 0
        cls._fields = {}
        scope = vars(inspect.getmodule(cls))
        for name, annotation in cls.__annotations__.items():
            if name.startswith("_"):
                continue
            kind = eval(annotation, scope) if isinstance(annotation, str) else annotation
            cls._fields[name] = (offset, kind)
            offset += (size_of(kind) + 7) // 8 * 8
        for base in filter(is_dataclass, cls.__bases__):  # its fields too, as numbers
            for field in fields(base):
                if field.name in cls._fields:
                    raise TypeError(f"{cls.__name__} declares {field.name} more than once")
                cls._fields[field.name] = (offset, Word(64))
                offset += 8
        for name in words:
            if name not in cls._fields:
                cls._fields[name] = (offset, Word(256))
                offset += 32
            elif size_of(cls._fields[name][1]) != 32:
                raise TypeError(f"{cls.__name__} declares {name} more than once")
        cls._size = offset

    @classmethod
    def offset(cls, name: str) -> int:
        return cls._fields[name][0]

    @classmethod
    def byte_size(cls) -> int:
        return cls._size

    @classmethod
    def constant(cls, values: Mapping[str, int]) -> Table:
        """One that has these values, in the code's own data."""
        words = [(values[name], (size_of(kind) + 7) // 8) for name, (_, kind) in cls._fields.items()]
        return Table(u64, [word >> 64 * limb & (1 << 64) - 1 for word, limbs in words for limb in range(limbs)])

    @classmethod
    def names(cls, *kinds: object) -> tuple[str, ...]:
        """Of its fields, or of those of these kinds, in their order."""
        return tuple(name for name, (_, kind) in cls._fields.items() if not kinds or any(kind is k for k in kinds))


Kind = Word | Pointer | type[Struct]  # of a parameter, a field or a value; a struct means a pointer to it


class Table:
    """Constant words in the code's own data, to be indexed at run time."""

    def __init__(self, kind: type[int], values: Sequence[int]) -> None:
        self.kind: Word = kind  # type: ignore[assignment]  # to a type checker a Word is the type `int`
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


class LocalArray:
    """What a local of several words points at."""

    def __init__(self, kind: Word) -> None:
        self.kind = kind


def size_of(kind: Kind) -> int:
    """Bytes in memory."""
    return Pointer.size if isinstance(kind, type) else kind.size


def ir_type(kind: Kind) -> ir.Type:
    return PTR if isinstance(kind, type) else kind.ir


def struct_in(kind: Kind | None) -> type[Struct] | None:
    """The struct that values of a kind point at."""
    return kind if isinstance(kind, type) else None


def constant_of(kind: ir.Type, value: int) -> ir.Constant:
    """Zero is also the pointer to nothing."""
    return ir.Constant(kind, None) if kind == PTR and value == 0 else ir.Constant(kind, int(value))


def is_literal(value: object) -> TypeGuard[int]:
    """Known while translating, a number or a truth, and as yet of no type."""
    return isinstance(value, int)


Target = type[Struct] | LocalArray | None  # what a value points at, if that is known


class Typed:
    """An LLVM value, or a literal; and what it points at, if known: a struct, or the words of a local."""

    __slots__ = ("kind", "value")

    def __init__(self, value: ir.Value, kind: Target = None) -> None:
        self.value = value
        self.kind = kind


class NativeFunction(ABC):
    """A function of the subset as its callers see it."""

    def __init__(self, function: Callable[..., int | None]) -> None:
        assert isinstance(function, FunctionType)
        self.name = function.__name__
        self.function = function

    def signature(self) -> tuple[list[tuple[str, Kind]], Kind | None]:
        """The parameters by name, and the result; None where there is none."""
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
        """Only its name and type; `define` then leaves the body to the module it is linked with."""
        found = module.globals.get(self.symbol)
        if found is not None:
            return found
        parameters, result = self.signature()
        kinds = [ir_type(kind) for _, kind in parameters]
        return ir.Function(module, ir.FunctionType(VOID if result is None else ir_type(result), kinds), self.symbol)

    @abstractmethod
    def define(self, module: ir.Module) -> ir.Function:
        """The function with its body, in that module once."""


class Callee:
    """An address to be called as a function of a given type: llvmlite's own pointers carry none."""

    def __init__(self, address: ir.Value, signature: ir.FunctionType) -> None:
        self.address = address
        self.type = PTR
        self.function_type = signature

    def get_reference(self) -> str:
        return str(self.address.get_reference())
