"""How Python calls a function of the subset: its ctypes prototype, derived from its annotations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Protocol

from fusevm.native.lang.types import NativeFunction, Word

_WORDS = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}


class Prototype(Protocol):
    """A ctypes function type: made from an address, it is the function there."""

    def __call__(self, address: int, /) -> Callable[..., int]: ...


def prototype_of(function: NativeFunction, *, locked: bool = False) -> Prototype:
    """For a pointer Python may give an address, bytes or a ctypes array; as a result it is a number.

    `locked`: no other thread runs Python meanwhile.
    """
    kind_of_function = ctypes.PYFUNCTYPE if locked else ctypes.CFUNCTYPE
    parameters, result = function.signature()
    arguments = [_number(function, kind) if isinstance(kind, Word) else ctypes.c_void_p for _, kind in parameters]
    if result is None:
        return kind_of_function(None, *arguments)
    return kind_of_function(_number(function, result) if isinstance(result, Word) else ctypes.c_uint64, *arguments)


def _number(function: NativeFunction, kind: Word) -> type[ctypes._SimpleCData[int]]:
    if kind.bits not in _WORDS:
        raise TypeError(f"{function.name}: Python cannot pass {kind!r} by value; take a pointer to it")
    return _WORDS[kind.bits]
