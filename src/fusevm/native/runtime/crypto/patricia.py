"""Merkle-Patricia tries as nodes in memory that tries share. In the subset of `lang`.

A node is an entry, or a branch with the extension above it. It has a reference count: nodes above it, and tries. One
that only the trie being changed refers to is changed in place; any other is copied first, so a trie that is in use
never changes. Unreferenced nodes go to a free list for their size. References (`merkle.refer`) are computed
when the root is asked for, and kept with the node.
"""

from __future__ import annotations

from fusevm.native.lang import Struct, copy, exported, fill, load, native, ptr, store, u8, u64
from fusevm.native.runtime.crypto.merkle import (
    CELL,
    HEADROOM,
    KEY,
    NODE,
    STRING,
    nibble_at,
    refer,
    refer_leaf,
    shared_nibbles,
    write_path,
)
from fusevm.native.runtime.keccak import keccak256

NIBBLES = 2 * KEY
GONE = (1 << 64) - 1  # the size of a value that is to go
WORD = 8


class TrieNode(Struct):
    """After these come its reference, a key that leads to it, and the value of an entry or the children of a branch."""

    count: u64  # of those that refer to it; of a free node: where the next one is
    above: u64  # nibbles that lead to it
    place: u64  # nibbles that all keys below share; all of them: it is an entry
    size: u64  # of an entry's value


REFERENCE = 4 * WORD  # as `merkle` has it; a size of 0: not computed yet
PATH = REFERENCE + CELL
REST = PATH + KEY
# Nodes come in three sizes, by the maximum size of their value in bytes. A branch has the second.
SMALL, MEDIUM, LARGE = 40, 16 * WORD, 256
RESERVE = NIBBLES + 4  # nodes of each size that one change may take


# The allocator: 0, which means that there is no child; then for each size the first free node, and
# how many are free; then room for a node's encoding.
FREE, LEFT, SCRATCH = WORD, 4 * WORD, 7 * WORD
ARENA = SCRATCH + NODE


@native
def kind_of(size: u64) -> u64:
    """Which of the three sizes an entry with such a value is of."""
    if size <= SMALL:
        return 0
    if size <= MEDIUM:
        return 1
    return 2


@native
def kind_of_node(node: TrieNode) -> u64:
    if node.place != NIBBLES:
        return 1
    return kind_of(node.size)


@native
def left_of(arena: ptr, kind: u64) -> u64:
    """How many nodes of a size are free."""
    return load(u64, arena, LEFT + kind * WORD)


@native
def taken(arena: ptr, kind: u64) -> TrieNode:
    """A free node; its caller is the only one that refers to it."""
    node = TrieNode(load(ptr, arena, FREE + kind * WORD))
    store(arena, FREE + kind * WORD, node.count)
    store(arena, LEFT + kind * WORD, left_of(arena, kind) - 1)
    node.count = 1
    return node


@native
def given_back(arena: ptr, node: TrieNode, kind: u64) -> None:
    node.count = load(u64, arena, FREE + kind * WORD)
    store(arena, FREE + kind * WORD, u64(node))
    store(arena, LEFT + kind * WORD, left_of(arena, kind) + 1)


@native
def child_of(node: TrieNode, nibble: u64) -> TrieNode:
    return TrieNode(load(ptr, node, REST + nibble * WORD))


@native
def put_child(node: TrieNode, nibble: u64, child: TrieNode) -> None:
    store(node, REST + nibble * WORD, u64(child))


@native
def unknown(node: TrieNode, above: u64) -> TrieNode:
    """The node where so many nibbles lead to it, its reference to be computed again."""
    nothing: u64 = 0
    node.above = above
    store(node, REFERENCE, nothing)
    return node


@native
def entry(arena: ptr, above: u64, key: ptr, value: ptr, size: u64) -> TrieNode:
    node = taken(arena, kind_of(size))
    node.place = NIBBLES
    node.size = size
    copy(node + PATH, key, KEY)
    copy(node + REST, value, size)
    return unknown(node, above)


@native
def branch(arena: ptr, above: u64, place: u64, key: ptr) -> TrieNode:
    """Without children yet."""
    node = taken(arena, 1)
    node.place = place
    node.size = 0
    copy(node + PATH, key, KEY)
    fill(node + REST, 0, 16 * WORD)
    return unknown(node, above)


@native
def let_go(arena: ptr, node: TrieNode) -> None:
    """One reference fewer; a node without any is free, and lets go of its children."""
    node.count -= 1
    if node.count != 0:
        return
    if node.place != NIBBLES:
        nibble: u64 = 0
        while nibble < 16:
            child = child_of(node, nibble)
            if u64(child) != 0:
                let_go(arena, child)
            nibble += 1
    given_back(arena, node, kind_of_node(node))


@native
def own(arena: ptr, node: TrieNode) -> TrieNode:
    """The node if nothing else refers to it, else a copy of it that replaces one reference."""
    if node.count == 1:
        return node
    kind = kind_of_node(node)
    twin = taken(arena, kind)
    size = u64(REST) + node.size
    if node.place != NIBBLES:
        size = u64(REST + MEDIUM)
        nibble: u64 = 0
        while nibble < 16:
            child = child_of(node, nibble)
            if u64(child) != 0:
                child.count += 1
            nibble += 1
    copy(twin + WORD, node + WORD, size - WORD)
    node.count -= 1
    return twin


# -- changing


@native
def has(node: TrieNode, key: ptr, value: ptr, size: u64) -> u64:
    """Whether the key has this value already, or is not there if it is to go."""
    while u64(node) != 0:
        if shared_nibbles(node + PATH, key) < node.place:
            break
        if node.place == NIBBLES:
            if node.size != size:
                return 0
            at: u64 = 0
            while at < size:
                if load(u8, node + REST, at) != load(u8, value, at):
                    return 0
                at += 1
            return 1
        node = child_of(node, nibble_at(key, node.place))
    if size == GONE:
        return 1
    return 0


@native
def put(arena: ptr, node: TrieNode, above: u64, key: ptr, value: ptr, size: u64) -> TrieNode:
    """The node with another value of the key, which it does not have yet. A reference to the old node goes."""
    if u64(node) == 0:
        return entry(arena, above, key, value, size)
    shared = shared_nibbles(node + PATH, key)
    place = node.place
    if shared < place:  # the key leaves the path: a branch above
        made = branch(arena, above, shared, key)
        other = nibble_at(node + PATH, shared)
        put_child(made, other, unknown(own(arena, node), shared + 1))
        put_child(made, nibble_at(key, shared), entry(arena, shared + 1, key, value, size))
        return made
    if place == NIBBLES:
        let_go(arena, node)
        return entry(arena, above, key, value, size)
    mine = own(arena, node)
    nibble = nibble_at(key, place)
    put_child(mine, nibble, put(arena, child_of(mine, nibble), place + 1, key, value, size))
    return unknown(mine, above)


@native
def without(arena: ptr, node: TrieNode, above: u64, key: ptr) -> TrieNode:
    """The node without a key that it has. A reference to the old node goes."""
    if node.place == NIBBLES:
        let_go(arena, node)
        return TrieNode(load(ptr, arena))
    mine = own(arena, node)
    place = mine.place
    nibble = nibble_at(key, place)
    put_child(mine, nibble, without(arena, child_of(mine, nibble), place + 1, key))
    left: u64 = 0
    last: u64 = 0
    nibble = 0
    while nibble < 16:
        if u64(child_of(mine, nibble)) != 0:
            left += 1
            last = nibble
        nibble += 1
    if left != 1:
        return unknown(mine, above)
    child = unknown(own(arena, child_of(mine, last)), above)  # it takes the branch's place, with a longer path
    given_back(arena, mine, 1)
    return child


@exported
def trie_changed(arena: ptr, root: ptr, keys: ptr, sizes: ptr, values: ptr, first: u64, count: u64) -> u64:
    """Changes entries from the first on, until all are changed or free nodes run short; how many are.

    `root` has a node that the caller refers to, and then the new one, which takes that reference over.
    """
    node = TrieNode(load(ptr, root))
    at: u64 = 0
    while at < count:
        size = load(u64, sizes, at * WORD)
        if at >= first and has(node, keys, values, size) == 0:
            if left_of(arena, 0) < RESERVE or left_of(arena, 1) < RESERVE or left_of(arena, 2) < RESERVE:
                break
            if size == GONE:
                node = without(arena, node, 0, keys)
            else:
                node = put(arena, node, 0, keys, values, size)
        if size != GONE:
            values += size
        keys += KEY
        at += 1
    store(root, 0, u64(node))
    return at


@exported
def trie_hold(node: ptr) -> None:
    """One reference more."""
    TrieNode(node).count += 1


@exported
def trie_let_go(arena: ptr, node: ptr) -> None:
    let_go(arena, TrieNode(node))


@exported
def trie_room(arena: ptr, memory: ptr, kind: u64, bytes_each: u64, count: u64) -> None:
    """Makes free nodes of memory."""
    while count != 0:
        given_back(arena, TrieNode(memory), kind)
        memory += bytes_each
        count -= 1


# -- hashing


@native
def write_children(out: ptr, node: TrieNode) -> u64:
    """The body of a branch, whose children have their references; how many bytes that takes."""
    size: u64 = 0
    nibble: u64 = 0
    while nibble < 16:
        child = child_of(node, nibble)
        if u64(child) == 0:
            store(out, size, u8(STRING))
            size += 1
        else:
            length = load(u64, child, REFERENCE)
            copy(out + size, child + REFERENCE + 8, length)
            size += length
        nibble += 1
    store(out, size, u8(STRING))
    return size + 1


@native
def complete(node: TrieNode, body: ptr) -> None:
    """Computes its reference, and those below that it needs."""
    if load(u64, node, REFERENCE) != 0:
        return
    cell = node + REFERENCE
    if node.place == NIBBLES:
        refer_leaf(cell, body, node + PATH, node.above, node + REST, node.size)
        return
    nibble: u64 = 0
    while nibble < 16:
        child = child_of(node, nibble)
        if u64(child) != 0:
            complete(child, body)
        nibble += 1
    refer(cell, body, write_children(body, node))
    if node.place > node.above:
        path = write_path(body, node + PATH, node.above, node.place, 0)
        length = load(u64, cell)
        copy(body + path, cell + 8, length)
        refer(cell, body, path + length)


@exported
def trie_root(arena: ptr, node: ptr, out: ptr) -> None:
    """The hash of the node at the top, however short it is."""
    complete(TrieNode(node), arena + SCRATCH + HEADROOM)
    cell = node + REFERENCE
    size = load(u64, cell)
    if size == KEY + 1:
        copy(out, cell + 9, KEY)
    else:
        keccak256(cell + 8, size, out)


@exported
def trie_count(node: ptr) -> u64:
    """Entries below."""
    found = TrieNode(node)
    if found.place == NIBBLES:
        return 1
    total: u64 = 0
    nibble: u64 = 0
    while nibble < 16:
        child = child_of(found, nibble)
        if u64(child) != 0:
            total += trie_count(child)
        nibble += 1
    return total
