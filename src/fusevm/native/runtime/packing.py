"""Native code that reads Python's objects of bytes where they are, without Python's lock. In the subset of `lang`.

The caller holds the only reference to a tuple of them, so neither the tuple nor its items change meanwhile.
"""

from __future__ import annotations

from fusevm.native.lang import Struct, copy, exported, load, ptr, store, u64


class BytesObject(Struct):
    """The end of the head of CPython's object; the bytes follow."""

    kind: u64  # address of its type
    size: u64
    hash: u64


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
