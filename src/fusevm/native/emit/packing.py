"""Data of many calls joined by native code, as `chain/packed.py` asks for it."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable
from typing import Any

from fusevm.chain.packed import Data, Joined, Place, use_native
from fusevm.native.runtime.packing import HEAD, OTHERS, ListObject
from fusevm.schedule.build import CONTENT

Function = Callable[..., int]
MAX_ALIKE = 1 << 25  # bytes: others do not wait longer for Python's lock than some milliseconds
_BEFORE = CONTENT - HEAD  # bytes of an object before the head that native code reads
_BYTES = id(bytes)
# A new bytes object may be written to until it is shared, as C extensions do.
_new_bytes: Callable[[None, int], Any] = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)


class Joiner:
    """With the functions of `native/runtime/packing.py`."""

    def __init__(self, measure: Function, join: Function, join_alike: Function) -> None:
        self._measure, self._join, self._join_alike = measure, join, join_alike

    def join(self, pieces: tuple[Any, ...]) -> Joined | None:
        """None if not all of them are bytes. The tuple must not be shared. Threads that run Python do not wait."""
        count, items = len(pieces), id(pieces) + tuple.__basicsize__
        sizes = array("Q", bytes(8 * count))
        sizes_at = sizes.buffer_info()[0]
        total = self._measure(items, count, _BEFORE, _BYTES, sizes_at)
        if total == OTHERS:
            return None
        data: bytes = _new_bytes(None, total)
        alike = self._join(items, count, _BEFORE, sizes_at, id(data) + CONTENT)
        return data, sizes[0] if alike else sizes

    def join_alike(self, calls: list[Any], first: int, count: int, place: Place | None) -> Joined | None:
        """Some items of a list, in memory that `place` gives; None if not all of them are bytes of one size."""
        example = calls[first]
        if type(example) is not bytes or not 0 < len(example) * count <= MAX_ALIKE:
            return None
        size = len(example)
        found: Data | None = None if place is None else place(size * count)
        if found is None:
            found = _new_bytes(None, size * count)
        to = id(found) + CONTENT if type(found) is bytes else ctypes.addressof(ctypes.c_char.from_buffer(found))
        joined = self._join_alike(id(calls) + _BEFORE, first, count, _BEFORE, _BYTES, size, to)
        return (found, size) if joined == count else None


def install(measure: Function, join: Function, join_alike: Function) -> None:
    """Has calls joined by native code from now on, where Python's objects are as it expects them."""
    joiner, example = Joiner(measure, join, join_alike), (b"where", b"are", b"these bytes?")
    alike = [b"unlike", *map(bytes, [b"some", b"more"])]
    if (
        _is_laid_out(example)
        and _is_list_laid_out(alike)
        and joiner.join(example) == (b"".join(example), array("Q", map(len, example)))
        and joiner.join_alike(alike, 1, 2, None) == (b"somemore", 4)
    ):
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


def _is_list_laid_out(example: list[bytes]) -> bool:
    """Whether a list ends with where its items are and how many there is room for, and has one lock for all."""
    if list.__basicsize__ != _BEFORE + ListObject.byte_size() or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    kind, size, items, room = (ctypes.c_uint64 * 4).from_address(id(example) + _BEFORE)
    if (kind, size) != (id(list), len(example)) or not size <= room < 1 << 16:
        return False
    return list((ctypes.c_uint64 * size).from_address(items)) == [id(each) for each in example]
