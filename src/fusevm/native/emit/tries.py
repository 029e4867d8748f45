"""Tries in native memory, as `chain/patricia.py` has them in Python: the same interface, a fraction of the time."""

from __future__ import annotations

import ctypes
import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from fusevm.chain.patricia import KEY, Trie, extension, leaf, roots_and_hashed
from fusevm.chain.rlp import list_of
from fusevm.chain.trie import EMPTY_ROOT, NOTHING
from fusevm.native.emit.crypto import library
from fusevm.native.runtime.crypto import patricia
from fusevm.native.runtime.crypto.patricia import (
    ARENA,
    GONE,
    LARGE,
    LEFT,
    MEDIUM,
    NIBBLES,
    PATH,
    REFERENCE,
    RESERVE,
    REST,
    SMALL,
    WORD,
)

_SIZES = (REST + SMALL, REST + MEDIUM, REST + LARGE)  # of nodes
_FIRST, _MOST = 1 << 15, 1 << 22  # bytes that are had at once: at first, and when there are many
_LEFT = struct.Struct("=3Q")
_HEAD = struct.Struct("=4Q")
_Slot, _Digest = ctypes.c_uint64 * 1, ctypes.c_char * KEY


class _Memory:
    """The nodes of all tries of this process. Calls hold the interpreter's lock, so there is no concurrent access."""

    def __init__(self) -> None:
        loaded = library("merkle")
        self.arena = ctypes.create_string_buffer(ARENA)
        self.changed = loaded.exported(patricia.trie_changed, locked=True)
        self.hold = loaded.exported(patricia.trie_hold, locked=True)
        self.let_go = loaded.exported(patricia.trie_let_go, locked=True)
        self.root = loaded.exported(patricia.trie_root, locked=True)
        self.count = loaded.exported(patricia.trie_count, locked=True)
        self._room = loaded.exported(patricia.trie_room, locked=True)
        self._loaded = loaded  # the functions must not outlive it
        self._parts: list[ctypes.Array[ctypes.c_char]] = []
        self._next = _FIRST

    def grow(self) -> None:
        """More of those nodes that are few."""
        for kind, left in enumerate(_LEFT.unpack_from(self.arena, LEFT)):
            if left < RESERVE:
                count = self._next // _SIZES[kind]
                part = ctypes.create_string_buffer(count * _SIZES[kind])
                self._parts.append(part)
                self._room(self.arena, ctypes.addressof(part), kind, _SIZES[kind], count)
        self._next = min(2 * self._next, _MOST)


@cache
def _memory() -> _Memory:
    return _Memory()


class NativeTrie(Trie):
    """A trie whose nodes are in native memory; it refers to the one at the top."""

    __slots__ = ("_memory", "_top")

    def __init__(self, memory: _Memory, top: int) -> None:
        super().__init__()
        self._memory = memory
        self._top = top  # 0: the trie is empty

    def __del__(self) -> None:
        if self._top and not sys.is_finalizing():
            self._memory.let_go(self._memory.arena, self._top)

    def __copy__(self) -> NativeTrie:
        return self  # which never changes

    def __deepcopy__(self, memo: object) -> NativeTrie:
        return self

    def __len__(self) -> int:
        return self._memory.count(self._top) if self._top else 0

    def changed(self, changes: Mapping[bytes, bytes | None]) -> Trie:
        return self._with(list(changes), list(changes.values()))

    def _with(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> NativeTrie:
        memory, count = self._memory, len(keys)
        top = _Slot(self._top)
        sizes = array("Q", [GONE if value is None else len(value) for value in values]).tobytes()
        given = b"".join(keys), sizes, b"".join([value for value in values if value is not None])
        if self._top:
            memory.hold(self._top)  # this trie keeps it too
        done = memory.changed(memory.arena, top, *given, 0, count)
        while done < count:
            memory.grow()
            done = memory.changed(memory.arena, top, *given, done, count)
        if top[0] == self._top:
            if self._top:
                memory.let_go(memory.arena, self._top)
            return self
        return NativeTrie(memory, top[0])

    @property
    def root(self) -> bytes:
        if not self._top:
            return EMPTY_ROOT
        out = _Digest()
        self._memory.root(self._memory.arena, self._top, out)
        return out.raw

    def proof(self, key: bytes) -> list[bytes]:
        assert self.root  # all references are there now
        node, nibbles, nodes = self._top, key.hex(), list[bytes]()
        while node:
            _, above, place, size = _HEAD.unpack(ctypes.string_at(node, _HEAD.size))
            path = ctypes.string_at(node + PATH, KEY).hex()
            if place == NIBBLES:
                nodes.append(leaf(path[above:], ctypes.string_at(node + REST, size)))
                break
            children = struct.unpack("=16Q", ctypes.string_at(node + REST, 16 * WORD))
            body = list_of(b"".join([*map(_reference, children), NOTHING]))
            if place > above:
                nodes.append(extension(path[above:place], body))
                if nibbles[above:place] != path[above:place]:
                    break
            nodes.append(body)
            node = children[int(nibbles[place], 16)]
        return roots_and_hashed(nodes)


def _reference(node: int) -> bytes:
    """The reference to a child in its parent."""
    if not node:
        return NOTHING
    (size,) = struct.unpack("=Q", ctypes.string_at(node + REFERENCE, WORD))
    return ctypes.string_at(node + REFERENCE + WORD, size)


def trie_of(entries: Iterable[tuple[bytes, bytes]]) -> Trie:
    listed = list(entries)
    return NativeTrie(_memory(), 0)._with([key for key, _ in listed], [value for _, value in listed])
