"""The root hash of a Merkle-Patricia trie, built once from all its entries (Yellow Paper, appendix D).

`chain/patricia.py` has tries that change; this is what their parts are made by, and what they are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fusevm.chain.rlp import encode, list_of, natural
from fusevm.evm.keccak import keccak256

EMPTY_ROOT = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")

NOTHING, HASH_HEADER = encode(b""), b"\xa0"  # how an empty string is encoded, and how 32 bytes begin

Entries = list[tuple[str, bytes]]  # (key as a string of hex digits, value), sorted by key


def trie_root(entries: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> bytes:
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    ordered = sorted((key.hex(), value) for key, value in pairs)
    if not ordered:
        return EMPTY_ROOT
    return keccak256(_node(ordered, 0))


def storage_root(storage: Mapping[int, int]) -> bytes:
    if not storage:
        return EMPTY_ROOT
    return trie_root((keccak256(key.to_bytes(32, "big")), encode(natural(value))) for key, value in storage.items())


def reference(entries: Entries, depth: int) -> bytes:
    """The reference to the node of these entries in its parent."""
    return reference_to(_node(entries, depth))


def reference_to(node: bytes) -> bytes:
    """The reference to a node in its parent: itself if it is shorter than a hash, else its hash."""
    return node if len(node) < 32 else HASH_HEADER + keccak256(node)


def packed_path(nibbles: str, *, leaf: bool) -> bytes:
    flag = 2 if leaf else 0
    return bytes.fromhex(f"{flag + 1}{nibbles}" if len(nibbles) % 2 else f"{flag}0{nibbles}")


def path_of(entries: Entries, depth: int, key: str) -> list[bytes]:
    """The nodes from the one of these entries to the key's, or to where that would be."""
    if not entries:
        return []
    node, shared = _node(entries, depth), _shared(entries, depth)
    if len(entries) == 1:
        return [node]
    if shared > depth:
        return [node, *(path_of(entries, shared, key) if key.startswith(entries[0][0][:shared]) else [])]
    return [node, *path_of([each for each in entries if each[0][depth] == key[depth]], depth + 1, key)]


def _node(entries: Entries, depth: int) -> bytes:
    """The encoding of the node that these entries share, whose keys are the same up to the depth."""
    first_key, first_value = entries[0]
    if len(entries) == 1:
        return list_of(encode(packed_path(first_key[depth:], leaf=True)) + encode(first_value))
    shared = _shared(entries, depth)
    if shared > depth:
        return list_of(encode(packed_path(first_key[depth:shared], leaf=False)) + reference(entries, shared))
    children = [NOTHING] * 17
    start = 0
    if len(first_key) == depth:  # a key that others go on from
        children[16], start = encode(first_value), 1
    for end in range(start + 1, len(entries) + 1):
        if end == len(entries) or entries[end][0][depth] != entries[start][0][depth]:
            children[int(entries[start][0][depth], 16)] = reference(entries[start:end], depth + 1)
            start = end
    return list_of(b"".join(children))


def _shared(entries: Entries, depth: int) -> int:
    """How many nibbles all the keys begin with alike."""
    first_key, last_key = entries[0][0], entries[-1][0]
    while depth < len(first_key) and first_key[depth] == last_key[depth]:
        depth += 1
    return depth
