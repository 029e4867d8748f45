"""Nodes of Merkle-Patricia tries from their sorted entries, and many hashes in one call. In the subset of `lang`.

Entries come one after the other. Branches that may still get children are open, on a stack, the deepest on top; each
entry closes those that the next one does not reach. The place of a branch is the nibble after the one it splits at, so
that the place of what has no branch above it is the depth of the whole.
"""

from __future__ import annotations

from fusevm.native.lang import bswap, clz, copy, exported, load, native, ptr, store, u8, u64
from fusevm.native.runtime.keccak import keccak256

KEY = 32  # bytes
HASH_HEADER, STRING, LIST = 0xA0, 0x80, 0xC0  # of RLP
HEADROOM = 8  # for the header of a node, written last
NODE = 640  # bytes: a branch of 16 hashes, or a leaf with a value of 255 bytes
CELL = 48  # a reference: its size, and up to 33 bytes
BRANCH = 16 * CELL + 8  # 16 references, and the branch's place
SCRATCH = NODE + CELL + 65 * BRANCH  # what `merkle_references` works in


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
def open_branch(branch: ptr, place: u64) -> None:
    nothing: u64 = 0
    at: u64 = 0
    while at < 16 * CELL:
        store(branch, at, nothing)
        at += CELL
    store(branch, 16 * CELL, place)


@native
def write_branch(out: ptr, branch: ptr) -> u64:
    """The body of a branch without a value; how many bytes that takes."""
    size: u64 = 0
    at: u64 = 0
    while at < 16 * CELL:
        taken = load(u64, branch, at)
        if taken == 0:
            store(out, size, u8(STRING))
            size += 1
        else:
            copy(out + size, branch + at + 8, taken)
            size += taken
        at += CELL
    store(out, size, u8(STRING))
    return size + 1


@native
def refer_leaf(cell: ptr, body: ptr, key: ptr, place: u64, value: ptr, size: u64) -> None:
    path = write_path(body, key, place, KEY * 2, 2)
    refer(cell, body, path + write_value(body + path, value, size))


@native
def refer_branch(cell: ptr, body: ptr, branch: ptr, key: ptr, above: u64) -> None:
    """The branch, in an extension if nibbles lie between it and the place above."""
    refer(cell, body, write_branch(body, branch))
    place = load(u64, branch, 16 * CELL)
    if place - 1 > above:
        path = write_path(body, key, above, place - 1, 0)
        taken = load(u64, cell)
        copy(body + path, cell + 8, taken)
        refer(cell, body, path + taken)


@native
def cell_in(branches: ptr, height: u64, key: ptr) -> ptr:
    """Where the reference to what the key leads to stands in the branch on top."""
    top = branches + (height - 1) * BRANCH
    return top + nibble_at(key, load(u64, top, 16 * CELL) - 1) * CELL


@native
def place_on_top(branches: ptr, height: u64, least: u64) -> u64:
    """Of the branch on top; the least there can be if there is none."""
    if height == 0:
        return least
    return load(u64, branches + (height - 1) * BRANCH, 16 * CELL)


@native
def merkle_reference(keys: ptr, sizes: ptr, values: ptr, count: u64, depth: u64, scratch: ptr, out: ptr) -> u64:
    """The reference to the node of all these entries, which share `depth` nibbles; how many bytes the values have."""
    body = scratch + HEADROOM
    cell = scratch + NODE
    branches = cell + CELL
    height: u64 = 0
    before = depth
    used: u64 = 0
    index: u64 = 0
    while index < count:
        key = keys + index * KEY
        after = depth
        if index + 1 < count:
            after = shared_nibbles(key, key + KEY) + 1
        place = after
        if before > after:
            place = before
        size = u64(load(u8, sizes, index))
        if place_on_top(branches, height, depth) < place:
            open_branch(branches + height * BRANCH, place)
            height += 1
        refer_leaf(cell, body, key, place, values + used, size)
        if height == 0:
            copy(out, cell, CELL)
        else:
            copy(cell_in(branches, height, key), cell, CELL)
        while height != 0 and place_on_top(branches, height, depth) > after:
            closed = branches + (height - 1) * BRANCH
            height -= 1
            above = after
            if place_on_top(branches, height, depth) > above:
                above = place_on_top(branches, height, depth)
            refer_branch(cell, body, closed, key, above)
            if above == depth:
                copy(out, cell, CELL)
            else:
                if place_on_top(branches, height, depth) < above:
                    open_branch(branches + height * BRANCH, above)
                    height += 1
                copy(cell_in(branches, height, key), cell, CELL)
        used += size
        before = after
        index += 1
    return used


@exported
def merkle_references(
    keys: ptr, sizes: ptr, values: ptr, counts: ptr, depths: ptr, number: u64, scratch: ptr, out: ptr
) -> None:
    """The references to so many nodes, whose entries come one node after the other."""
    while number != 0:
        count = load(u64, counts)
        values += merkle_reference(keys, sizes, values, count, load(u64, depths), scratch, out)
        keys += count * KEY
        sizes += count
        counts += 8
        depths += 8
        out += CELL
        number -= 1


@exported
def keccak256_each(data: ptr, size: u64, count: u64, out: ptr) -> None:
    """The hashes of so many pieces, each of the size."""
    while count != 0:
        keccak256(data, size, out)
        data += size
        out += 32
        count -= 1
