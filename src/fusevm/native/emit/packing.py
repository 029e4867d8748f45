"""Data of many calls joined by native code, as `chain/packed.py` asks for it: threads that run Python do not wait."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from typing import Any

from fusevm.chain.packed import Joined, use_native
from fusevm.native.runtime.packing import HEAD, OTHERS
from fusevm.schedule.build import CONTENT

Function = Callable[..., int]
_BEFORE = CONTENT - HEAD  # bytes of an object before the head that native code reads
_BYTES = id(bytes)
# A new bytes object may be written to until it is shared, as C extensions do.
_new_bytes: Callable[[None, int], Any] = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)


class Joiner:
    """With the functions of `native/runtime/packing.py`."""

    def __init__(self, measure: Function, join: Function) -> None:
        self._measure, self._join = measure, join

    def __call__(self, pieces: tuple[Any, ...]) -> Joined | None:
        """None if not all of them are bytes. The tuple must not be shared."""
        count, items = len(pieces), id(pieces) + tuple.__basicsize__
        sizes = array("Q", bytes(8 * count))
        sizes_at = sizes.buffer_info()[0]
        total = self._measure(items, count, _BEFORE, _BYTES, sizes_at)
        if total == OTHERS:
            return None
        data: bytes = _new_bytes(None, total)
        alike = self._join(items, count, _BEFORE, sizes_at, id(data) + CONTENT)
        return data, sizes[0] if alike else sizes


def quicken(measure: Function, join: Function) -> None:
    """Has calls joined by native code from now on, where Python's objects are as it expects them."""
    joiner, example = Joiner(measure, join), (b"where", b"are", b"these bytes?")
    if _is_laid_out(example) and joiner(example) == (b"".join(example), array("Q", map(len, example))):
        use_native(joiner)


def _is_laid_out(example: tuple[bytes, ...]) -> bool:
    """Whether a tuple has the addresses of its items at its end, and bytes their type and size before them."""
    for number, each in enumerate(example):
        place = id(example) + tuple.__basicsize__ + 8 * number
        if ctypes.c_uint64.from_address(place).value != id(each):
            return False
        head = [ctypes.c_uint64.from_address(id(each) + _BEFORE + 8 * word).value for word in range(2)]
        if head != [_BYTES, len(each)]:
            return False
    return True
