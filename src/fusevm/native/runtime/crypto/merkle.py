"""How nodes of Merkle-Patricia tries are encoded and referred to; many hashes in one call. In the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import bswap, clz, copy, exported, load, native, ptr, store, u8, u64
from fusevm.native.runtime.keccak import keccak256

KEY = 32  # bytes
HASH_HEADER, STRING, LIST = 0xA0, 0x80, 0xC0  # of RLP
HEADROOM = 8  # for the header of a node, written last
NODE = 640  # bytes: a branch of 16 hashes, or a leaf with a value of 255 bytes
CELL = 48  # a reference: its size, and up to 33 bytes


@native
def nibble_at(key: ptr, place: u64) -> u64:
    byte = u64(load(u8, key, place >> 1))
    if (place & 1) != 0:
        return byte & 15
    return byte >> 4


@native
def shared_nibbles(one: ptr, other: ptr) -> u64:
    """How many nibbles two keys begin with alike."""
    at: u64 = 0
    while at < KEY:
        different = load(u64, one, at) ^ load(u64, other, at)
        if different != 0:
            return at * 2 + (clz(bswap(different)) >> 2)
        at += 8
    return at * 2


@native
def write_path(out: ptr, key: ptr, first: u64, last: u64, flag: u64) -> u64:
    """A key's nibbles as a leaf (flag 2) or an extension (flag 0) has them, encoded; how many bytes that takes."""
    size = ((last - first) >> 1) + 1
    header: u64 = 0
    if size != 1:
        store(out, 0, u8(STRING + size))
        header = 1
    mark = flag << 4
    if ((last - first) & 1) != 0:
        mark = (flag + 1) << 4 | nibble_at(key, first)
        first += 1
    store(out, header, u8(mark))
    at = header + 1
    while first < last:
        store(out, at, u8(nibble_at(key, first) << 4 | nibble_at(key, first + 1)))
        first += 2
        at += 1
    return at


@native
def write_value(out: ptr, value: ptr, size: u64) -> u64:
    """Bytes, less than 256, encoded; how many that takes."""
    if size == 1 and load(u8, value, 0) < 0x80:
        store(out, 0, load(u8, value, 0))
        return 1
    header: u64 = 1
    if size > 55:
        store(out, 0, u8(STRING + 56))
        store(out, 1, u8(size))
        header = 2
    else:
        store(out, 0, u8(STRING + size))
    copy(out + header, value, size)
    return header + size


@native
def refer(cell: ptr, body: ptr, size: u64) -> None:
    """The reference to the list that has this body, which is HEADROOM bytes into its buffer."""
    header: u64 = 1
    if size > 255:
        header = 3
        store(body - 3, 0, u8(LIST + 57))
        store(body - 2, 0, u8(size >> 8))
        store(body - 1, 0, u8(size))
    else:
        if size > 55:
            header = 2
            store(body - 2, 0, u8(LIST + 56))
            store(body - 1, 0, u8(size))
        else:
            store(body - 1, 0, u8(LIST + size))
    size += header
    if size < 32:
        store(cell, 0, size)
        copy(cell + 8, body - header, size)
        return
    whole: u64 = 33
    store(cell, 0, whole)
    store(cell, 8, u8(HASH_HEADER))
    keccak256(body - header, size, cell + 9)


@native
def refer_leaf(cell: ptr, body: ptr, key: ptr, place: u64, value: ptr, size: u64) -> None:
    path = write_path(body, key, place, KEY * 2, 2)
    refer(cell, body, path + write_value(body + path, value, size))


@exported
def keccak256_each(data: ptr, size: u64, count: u64, out: ptr) -> None:
    """The hashes of `count` pieces of this size."""
    while count != 0:
        keccak256(data, size, out)
        data += size
        out += 32
        count -= 1
