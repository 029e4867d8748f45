"""Merkle-Patricia tries over hashed keys that change a little at a time.

A trie is never changed: `changed` gives another that shares all nodes except those on paths to changes, so copies
and snapshots cost nothing. Branches are as in the Yellow Paper, with the extension above them as their path. Where few
entries are left they are packed in a bucket, whose part of the trie is rebuilt whenever one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from fusevm.chain.rlp import encode, list_of
from fusevm.chain.trie import EMPTY_ROOT, NOTHING, packed_path, path_of, reference, reference_to
from fusevm.evm.keccak import keccak256

KEY = 32  # bytes
MOST = 32  # entries of a bucket; when more come, it is split
FEW = 8  # changes of a bucket that are made one by one; keys that are hashed so
FEWEST = 16  # entries of a branch; when fewer are left, they are packed
_LOW = bytes(byte & 15 for byte in range(256))
_HIGH = bytes(byte >> 4 for byte in range(256))


class PackedEntries(NamedTuple):
    """Entries sorted by key: 32 bytes of key each, the size of each value, the values one after the other."""

    keys: bytes
    sizes: bytes
    values: bytes

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        end = 0
        for at, size in enumerate(self.sizes):
            start, end = end, end + size
            yield self.keys[KEY * at : KEY * (at + 1)], self.values[start:end]


class Bucket:
    """A few entries that share their first nibbles."""

    __slots__ = ("depth", "packed", "ref", "size")

    def __init__(self, packed: PackedEntries, depth: int) -> None:
        self.packed = packed
        self.depth = depth
        self.size = len(packed.sizes)
        self.ref: bytes | None = None


class Branch:
    """Nibbles that all entries below share from the depth on, and a child for each nibble that follows."""

    __slots__ = ("children", "depth", "path", "ref", "size")

    def __init__(self, children: list[Node | None], depth: int, path: str) -> None:
        self.children = children
        self.depth = depth
        self.path = path
        self.size: int = sum(child.size for child in children if child is not None)
        self.ref: bytes | None = None

    def body(self) -> bytes:
        """The branch alone, without the extension above it."""
        parts = [NOTHING if child is None else child.ref or _ref(child) for child in self.children]
        parts.append(NOTHING)
        return list_of(b"".join(parts))


Node: TypeAlias = Bucket | Branch
Change: TypeAlias = tuple[str, bytes | None]  # the key in hex; None where the entry goes


class NativeTries(NamedTuple):
    """What native code does in the place of the functions here."""

    trie_of: Callable[[Iterable[tuple[bytes, bytes]]], Trie]
    hashes: Callable[[bytes, int], bytes]  # of pieces of a size


MANY = 1000  # keys; for fewer it does not pay to load native code
_native: list[NativeTries] = []  # at most one
_loader: list[Callable[[], None]] = []  # at most one, and not twice


def load_for_many(load: Callable[[], None]) -> None:
    """Calls this, which may call `use_native`, before many keys are hashed in Python."""
    _loader[:] = [load]


def use_native(functions: NativeTries) -> None:
    """From now on these are asked: native code is loaded, and quicker."""
    _native[:] = [functions]


def is_native() -> bool:
    return bool(_native)


class Trie:
    """Keys of 32 bytes, each the hash of something, to values of up to 255 bytes.

    >>> trie = Trie.of([(b"\\x11" * 32, b"one"), (b"\\x22" * 32, b"two")])
    >>> trie.changed({b"\\x22" * 32: None}).root == Trie.of([(b"\\x11" * 32, b"one")]).root
    True
    """

    __slots__ = ("_node", "_twin")

    def __init__(self, node: Node | None = None) -> None:
        self._node = node
        self._twin: Trie | None = None  # the same by native code, once that is loaded and this is to change

    @staticmethod
    def of(entries: Iterable[tuple[bytes, bytes]]) -> Trie:
        return _native[0].trie_of(entries) if _native else Trie(_built(_pack(entries), 0))

    def __len__(self) -> int:
        return 0 if self._node is None else self._node.size

    def changed(self, changes: Mapping[bytes, bytes | None]) -> Trie:
        """With these values, and without the keys that have None."""
        if _native:
            if self._twin is None:
                self._twin = _native[0].trie_of(_entries(self._node))
            return self._twin.changed(changes)
        return Trie(_changed(self._node, 0, sorted((key.hex(), value) for key, value in changes.items())))

    @property
    def root(self) -> bytes:
        """Computed where it is not known yet: that is, along the changes."""
        node = self._node
        if node is None:
            return EMPTY_ROOT
        ref = _ref(node)
        return ref[1:] if len(ref) == KEY + 1 else keccak256(ref)

    def proof(self, key: bytes) -> list[bytes]:
        """Nodes from the root to the key, or to where it would be; those shorter than a hash are in their parents."""
        node, nibbles, nodes = self._node, key.hex(), list[bytes]()
        while isinstance(node, Branch):
            body, at = node.body(), node.depth + len(node.path)
            if node.path:
                nodes.append(extension(node.path, body))
                if nibbles[node.depth : at] != node.path:
                    return roots_and_hashed(nodes)
            nodes.append(body)
            node = node.children[int(nibbles[at], 16)]
        if node is not None:
            entries = [(each.hex(), value) for each, value in node.packed.entries()]
            nodes += path_of(entries, node.depth, nibbles)
        return roots_and_hashed(nodes)


def roots_and_hashed(nodes: list[bytes]) -> list[bytes]:
    return [node for at, node in enumerate(nodes) if at == 0 or len(node) >= KEY]


# -- building ---------------------------------------------------------------------------------------------------------


def hashed_keys(pieces: list[bytes], size: int) -> list[bytes]:
    """The hash of each piece; all are of one size."""
    if not _native and _loader and len(pieces) >= MANY:
        _loader.pop()()
    if not _native or len(pieces) <= FEW:  # the hashes of some are remembered
        return [keccak256(piece) for piece in pieces]
    digests = _native[0].hashes(b"".join(pieces), size)
    return [digests[at : at + KEY] for at in range(0, len(digests), KEY)]


def _pack(entries: Iterable[tuple[bytes, bytes]]) -> PackedEntries:
    """In any order. Sorted as key and value in one: a third quicker than as pairs."""
    joined = sorted([key + value for key, value in entries])
    values = [each[KEY:] for each in joined]
    return PackedEntries(b"".join([each[:KEY] for each in joined]), bytes(map(len, values)), b"".join(values))


def _built(packed: PackedEntries, depth: int) -> Node | None:
    """The node of entries that share this many nibbles."""
    if not packed.sizes:
        return None
    if len(packed.sizes) <= MOST:
        return Bucket(packed, depth)
    first, last = packed.keys[:KEY].hex(), packed.keys[-KEY:].hex()
    at = depth
    while first[at] == last[at]:
        at += 1
    return Branch([_built(part, at + 1) for part in _parts(packed, at)], depth, first[depth:at])


def _parts(packed: PackedEntries, at: int) -> Iterator[PackedEntries]:
    """The entries by their nibble at a place; those before it are the same for all."""
    nibbles = packed.keys[at >> 1 :: KEY].translate(_LOW if at & 1 else _HIGH)
    end = used = 0
    for nibble in range(16):
        start, end = end, end + nibbles.count(nibble)
        sizes = packed.sizes[start:end]
        taken = sum(sizes)
        yield PackedEntries(packed.keys[KEY * start : KEY * end], sizes, packed.values[used : used + taken])
        used += taken


# -- changing ---------------------------------------------------------------------------------------------------------


def _changed(node: Node | None, depth: int, changes: list[Change]) -> Node | None:
    """The node with these changes, all of keys that lead to it."""
    if not changes:
        return node
    if node is None:
        return _built(_pack((bytes.fromhex(key), value) for key, value in changes if value is not None), depth)
    if isinstance(node, Bucket):
        return _bucket_changed(node, changes)
    at = depth + len(node.path)
    leaving = [key for key, value in changes if value is not None and key[depth:at] != node.path]
    if leaving:
        return _changed(_parted(node, leaving), depth, changes)
    children, start = list(node.children), 0
    reaching = [change for change in changes if change[0][depth:at] == node.path]
    for end in range(1, len(reaching) + 1):
        if end == len(reaching) or reaching[end][0][at] != reaching[start][0][at]:
            nibble = int(reaching[start][0][at], 16)
            children[nibble] = _changed(children[nibble], at + 1, reaching[start:end])
            start = end
    if all(new is old for new, old in zip(children, node.children, strict=True)):
        return node
    return _tidied(Branch(children, depth, node.path))


def _bucket_changed(bucket: Bucket, changes: list[Change]) -> Node | None:
    if len(changes) <= FEW:
        packed = bucket.packed
        for key, value in changes:
            packed = _with(packed, bytes.fromhex(key), value)
        return bucket if packed == bucket.packed else _built(packed, bucket.depth)
    entries = dict(bucket.packed.entries())
    for key, value in changes:
        if value is None:
            entries.pop(bytes.fromhex(key), None)
        else:
            entries[bytes.fromhex(key)] = value
    packed = _pack(entries.items())
    return bucket if packed == bucket.packed else _built(packed, bucket.depth)


def _with(packed: PackedEntries, key: bytes, value: bytes | None) -> PackedEntries:
    """With one more entry, or another in its place; with None without it."""
    keys, sizes, values = packed
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) >> 1
        if keys[KEY * middle : KEY * (middle + 1)] < key:
            low = middle + 1
        else:
            high = middle
    there = keys[KEY * low : KEY * (low + 1)] == key
    if value is None and not there:
        return packed
    end, start = low + there, sum(sizes[:low])
    after = start + sizes[low] if there else start
    new = (b"", b"", b"") if value is None else (key, bytes((len(value),)), value)
    return PackedEntries(
        keys[: KEY * low] + new[0] + keys[KEY * end :],
        sizes[:low] + new[1] + sizes[end:],
        values[:start] + new[2] + values[after:],
    )


def _parted(node: Branch, leaving: list[str]) -> Branch:
    """A branch above this one, where the first of these keys leaves its path."""
    path, depth = node.path, node.depth
    at = 0
    while all(key[depth + at] == path[at] for key in leaving):
        at += 1
    children: list[Node | None] = [None] * 16
    children[int(path[at], 16)] = Branch(node.children, depth + at + 1, path[at + 1 :])
    return Branch(children, depth, path[:at])


def _tidied(node: Branch) -> Node | None:
    """As it would have been built: packed if few are left, and not a branch if there is one child."""
    if node.size <= FEWEST:
        return _built(_pack(_entries(node)), node.depth)
    left = [(nibble, child) for nibble, child in enumerate(node.children) if child is not None]
    if len(left) > 1:
        return node
    nibble, child = left[0]
    if isinstance(child, Bucket):
        return Bucket(child.packed, node.depth)
    return Branch(child.children, node.depth, f"{node.path}{nibble:x}{child.path}")


def _entries(node: Node | None) -> Iterator[tuple[bytes, bytes]]:
    if isinstance(node, Branch):
        for child in node.children:
            yield from _entries(child)
    elif node is not None:
        yield from node.packed.entries()


# -- hashing ----------------------------------------------------------------------------------------------------------


def _ref(node: Node) -> bytes:
    """The reference to the node in its parent."""
    if node.ref is None:
        if isinstance(node, Bucket):
            node.ref = reference([(key.hex(), value) for key, value in node.packed.entries()], node.depth)
        else:
            body = node.body()
            node.ref = reference_to(extension(node.path, body) if node.path else body)
    return node.ref


def leaf(path: str, value: bytes) -> bytes:
    return list_of(encode(packed_path(path, leaf=True)) + encode(value))


def extension(path: str, body: bytes) -> bytes:
    return list_of(encode(packed_path(path, leaf=False)) + reference_to(body))
