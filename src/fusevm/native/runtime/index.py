"""Hash index of the native tables of slots and accounts. In the subset of `lang`.

Linear hashing: each entry that is added splits one bucket, so that the index grows with its table, a little at a time.
There is never a pause to rehash, and a small call touches a small index. Entries begin with `Entry`'s two fields.
"""

from __future__ import annotations

from fusevm.native.lang import Struct, fill, inlined, load, native, ptr, store, u32, u64, u128

BUCKETS = 1024  # of an empty index; a power of two
FEW = 64  # entries whose buckets are cleared one by one


class Index(Struct):
    """Buckets are chains of entries."""

    heads: ptr  # u32 per bucket: number of its first entry plus one, 0 where there is none
    buckets: u64  # in use
    half: u64  # the largest power of two that is not above `buckets`
    entries: ptr
    size: u64  # of an entry in bytes


class IndexEntry(Struct):
    hash: u64
    next: u64  # number of the bucket's next entry plus one


@inlined
def folded(x: u64, y: u64) -> u64:
    product = u128(x) * u128(y)
    return u64(product) ^ u64(product >> 64)


@inlined
def bucket_of(index: Index, hashed: u64) -> u64:
    bucket = hashed & (index.half * 2 - 1)
    if bucket >= index.buckets:
        bucket = hashed & (index.half - 1)
    return bucket


@inlined
def first_in(index: Index, hashed: u64) -> u64:
    """The number plus one of the first entry that may have this hash."""
    return u64(load(u32, index.heads, bucket_of(index, hashed) << 2))


@native
def link(index: Index, number: u64, hashed: u64) -> None:
    """Adds the entry of that number, which is also how many there are already."""
    place = bucket_of(index, hashed) << 2
    entry = IndexEntry(index.entries + number * index.size)
    entry.hash = hashed
    entry.next = u64(load(u32, index.heads, place))
    store(index.heads, place, u32(number + 1))
    if number >= index.buckets:
        split(index)


@native
def split(index: Index) -> None:
    """Distributes the entries of the next bucket in turn over it and a new one."""
    fresh = index.buckets
    old = fresh - index.half
    mask = index.half * 2 - 1
    stays: u64 = 0
    goes: u64 = 0
    number = u64(load(u32, index.heads, old << 2))
    while number != 0:
        entry = IndexEntry(index.entries + (number - 1) * index.size)
        following = entry.next
        if (entry.hash & mask) == fresh:
            entry.next = goes
            goes = number
        else:
            entry.next = stays
            stays = number
        number = following
    store(index.heads, old << 2, u32(stays))
    store(index.heads, fresh << 2, u32(goes))
    index.buckets = fresh + 1
    if index.buckets == index.half * 2:
        index.half = index.buckets


@native
def clear(index: Index, count: u64) -> None:
    """Empties an index of so many entries."""
    if count <= FEW:  # so few have never split a bucket
        number: u64 = 0
        while number < count:
            entry = IndexEntry(index.entries + number * index.size)
            store(index.heads, bucket_of(index, entry.hash) << 2, u32(0))
            number += 1
        return
    fill(index.heads, 0, BUCKETS << 2)
    index.buckets = BUCKETS
    index.half = BUCKETS
