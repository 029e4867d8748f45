"""Native code that reads Python's objects of bytes where they are. In the subset of `lang`.

Objects of a tuple are read without Python's lock: the caller holds the only reference to it, so neither the tuple nor
its items change meanwhile. A list may be changed by others, so Python's lock is held while it is read.
"""

from __future__ import annotations

from fusevm.native.lang import Struct, copy, exported, load, ptr, store, u64, unlikely


class BytesObject(Struct):
    """The end of the head of CPython's object; the bytes follow."""

    kind: u64  # address of its type
    size: u64
    hash: u64


class ListObject(Struct):
    """The same part of a list."""

    kind: u64
    size: u64
    items: ptr
    room: u64


HEAD = BytesObject.byte_size()
OTHERS = (1 << 64) - 1


@exported
def measure_each(items: ptr, count: u64, head: u64, kind: u64, sizes: ptr) -> u64:
    """Writes the size of each of so many objects, whose heads have so many bytes before ours; the sum of them, or
    `OTHERS` where not all are of that type."""
    total: u64 = 0
    number: u64 = 0
    while number < count:
        each = BytesObject(load(ptr, items, number << 3) + head)
        if each.kind != kind:
            return OTHERS
        store(sizes, number << 3, each.size)
        total += each.size
        number += 1
    return total


@exported
def join_each(items: ptr, count: u64, head: u64, sizes: ptr, data: ptr) -> u64:
    """Copies what was measured, one after another; whether all are of the size of the first."""
    first = load(u64, sizes, 0)
    alike: u64 = 1
    number: u64 = 0
    while number < count:
        size = load(u64, sizes, number << 3)
        copy(data, load(ptr, items, number << 3) + head + HEAD, size)
        data = data + size
        if size != first:
            alike = 0
        number += 1
    return alike


@exported
def join_alike(calls: ListObject, first: u64, count: u64, head: u64, kind: u64, size: u64, data: ptr) -> u64:
    """Copies so many items of a list, one after another, as long as they are of that type and size; how many were.

    Python's lock is held. An item's count of references is not changed, so its memory is read once and not written.
    """
    number: u64 = 0
    if first + count <= calls.size:
        items = calls.items + (first << 3)
        while number < count:
            each = load(ptr, items, number << 3) + head
            found = BytesObject(each)
            if unlikely(found.kind != kind or found.size != size):
                return number
            copy(data, each + HEAD, size)
            data = data + size
            number += 1
    return number
