"""Tries that change: always the root that all entries have when they are put together at once, and proofs of them."""

from __future__ import annotations

import copy
import ctypes
import gc
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fusevm.chain import patricia
from fusevm.chain.patricia import FEWEST, KEY, MOST, NativeTries, Trie
from fusevm.chain.trie import EMPTY_ROOT, trie_root
from fusevm.evm.keccak import keccak256
from fusevm.native.emit import merkle, tries
from fusevm.native.emit.tries import NativeTrie, trie_of
from fusevm.native.runtime.crypto.patricia import NIBBLES, REFERENCE, REST, WORD

SIZES = (1, 1, 2, 33, 40, 41, 56, 110, 128, 129, 255)  # of values: those of one byte make nodes shorter than a hash


@pytest.fixture(params=["python", "native"], autouse=True)
def hashing(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both kinds of tries, whatever was loaded before."""
    before = list(patricia._native)
    patricia._native[:] = [NativeTries(trie_of, merkle.hashes)] if request.param == "native" else []
    yield request.param
    patricia._native[:] = before


def some_key(rng: random.Random) -> bytes:
    """Many begin alike, for up to 31 bytes: long extensions, and branches with few children."""
    key = bytearray(rng.randbytes(KEY))
    for at in range(rng.choice((0, 0, 1, 2, 5, 31))):
        key[at] = rng.choice((0x00, 0x01, 0x10, 0x11))
    return bytes(key)


def some_value(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice(SIZES))


@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_the_root_is_that_of_all_entries_at_once(seed: int) -> None:
    rng = random.Random(seed)
    entries: dict[bytes, bytes] = {}
    trie = Trie()
    for _ in range(40):
        changes: dict[bytes, bytes | None] = {}
        for _ in range(rng.choice((1, 1, 3, MOST, 120))):
            known = rng.random() < 0.6 and entries
            key = rng.choice(list(entries)) if known else some_key(rng)
            changes[key] = None if rng.random() < (0.7 if known else 0.1) else some_value(rng)
        before = trie, trie_root(entries)
        trie = trie.changed(changes)
        for key, value in changes.items():
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value
        assert trie.root == trie_root(entries)
        assert len(trie) == len(entries)
        assert before[0].root == before[1], "a trie never changes"


@pytest.mark.parametrize("count", [0, 1, 2, FEWEST, MOST, MOST + 1, 500])
def test_a_trie_built_at_once_has_the_root_of_its_entries(count: int) -> None:
    rng = random.Random(count)
    entries = {some_key(rng): some_value(rng) for _ in range(count)}
    assert Trie.of(entries.items()).root == trie_root(entries)


def test_a_trie_that_loses_everything_is_empty() -> None:
    rng = random.Random("all")
    entries = {some_key(rng): some_value(rng) for _ in range(300)}
    trie = Trie.of(entries.items())
    assert trie.changed(dict.fromkeys(entries)).root == EMPTY_ROOT
    for key in list(entries):
        trie = trie.changed({key: None})
        del entries[key]
        assert trie.root == trie_root(entries)


@pytest.mark.parametrize("count", [FEWEST + 2, MOST + 30])
@pytest.mark.parametrize("prefix", [b"", b"\xaa", b"\xaa\xab"])
def test_a_branch_left_with_one_child_is_not_a_branch(count: int, prefix: bytes) -> None:
    """The child is a few entries, or a branch itself; it takes the branch's place, with a longer path."""
    rng = random.Random(count)
    entries = {(prefix + b"\x11\x12" + rng.randbytes(KEY))[:KEY]: some_value(rng) for _ in range(count)}
    others = {
        (prefix + bytes([nibble << 4]) + rng.randbytes(KEY))[:KEY]: b"x" for nibble in range(2, 16) for _ in range(3)
    }
    trie = Trie.of([*entries.items(), *others.items()])
    assert trie.root == trie_root(entries | others)
    assert trie.changed(dict.fromkeys(others)).root == trie_root(entries)
    for key in others:
        trie = trie.changed({key: None})
    assert trie.root == trie_root(entries)
    assert trie.changed(others).root == trie_root(entries | others)


def test_a_change_to_the_same_value_keeps_every_node() -> None:
    rng = random.Random("same")
    entries = {some_key(rng): some_value(rng) for _ in range(300)}
    trie = Trie.of(entries.items())
    key = rng.choice(list(entries))
    assert top_of(trie.changed({key: entries[key]})) == top_of(trie)
    assert top_of(trie.changed({some_key(rng): None})) == top_of(trie)


def top_of(trie: Trie) -> int:
    """Which node is at the top."""
    return trie._top if isinstance(trie, NativeTrie) else id(trie._node)


def test_after_one_change_of_many_entries_few_are_hashed_again(hashing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trie = Trie.of((keccak256(number.to_bytes(4, "big")), b"value") for number in range(20_000))
    assert trie.root != EMPTY_ROOT
    hashed: list[int] = []
    monkeypatch.setattr(
        patricia, "reference", lambda entries, depth: hashed.append(len(entries)) or kept(entries, depth)
    )
    branches = list[bytes]()
    monkeypatch.setattr(patricia, "reference_to", lambda node: branches.append(node) or patricia_reference(node))
    for number in range(50):
        trie = trie.changed({keccak256(number.to_bytes(4, "big")): b"other"})
        if isinstance(trie, NativeTrie):
            assert 0 < len(without_reference(trie._top)) <= 6  # four levels of branches, or five, and the entry
        assert trie.root != EMPTY_ROOT
    if hashing == "python":
        assert 50 <= sum(hashed) <= 50 * MOST
        assert len(branches) <= 50 * 4  # 20,000 entries are four levels of branches


kept, patricia_reference = patricia.reference, patricia.reference_to


# -- native memory ----------------------------------------------------------------------------------------------------


def without_reference(node: int) -> list[int]:
    """The nodes from this one down, as far as their references are still to be computed."""
    place, size = (int.from_bytes(ctypes.string_at(node + at, 8), sys.byteorder) for at in (16, REFERENCE))
    if size:
        return []
    children = () if place == NIBBLES else struct.unpack("=16Q", ctypes.string_at(node + REST, 16 * WORD))
    return [node, *(each for child in children if child for each in without_reference(child))]


def free_bytes() -> int:
    """Of the nodes that no trie has; nodes that come later are counted as if they had been there."""
    memory = tries._memory()
    left = struct.unpack_from("=3Q", memory.arena, 4 * WORD)
    free = sum(count * size for count, size in zip(left, tries._SIZES, strict=True))
    return free - sum(len(part) for part in memory._parts)


@pytest.mark.long
def test_memory_of_tries_that_are_gone_is_used_again() -> None:
    """Whatever they shared, and in whatever order they go."""
    rng = random.Random("memory")
    gc.collect()
    before = free_bytes()
    alive: list[Trie] = [trie_of([])]
    entries = [(some_key(rng), some_value(rng)) for _ in range(400)]
    for _ in range(300):
        changes = {
            key: value if rng.random() < 0.7 else None for key, value in rng.sample(entries, rng.choice((1, 40)))
        }
        alive.append(rng.choice(alive).changed(changes))
        if rng.random() < 0.5:
            assert len(alive.pop(rng.randrange(len(alive)))) <= 400
            alive = alive or [trie_of([])]
    assert free_bytes() < before
    del alive
    gc.collect()
    assert free_bytes() == before


@pytest.mark.long
def test_changes_that_had_to_wait_for_memory_leave_nothing_behind() -> None:
    rng = random.Random("growing")
    gc.collect()
    before, parts = free_bytes(), tries._memory()._parts
    alive, many = [trie_of([])], len(parts) + 3
    while len(parts) < many:
        alive.append(alive[-1].changed({some_key(rng): some_value(rng)}))
    del alive
    gc.collect()
    assert free_bytes() == before


def test_a_copy_of_a_trie_is_the_trie() -> None:
    """It never changes; two that refer to its nodes as one would give them back twice."""
    trie = trie_of([(b"\x11" * 32, b"one"), (b"\x22" * 32, b"two")])
    assert copy.copy(trie) is trie
    assert copy.deepcopy([trie]) == [trie]


def test_native_tries_of_threads_do_not_disturb_each_other() -> None:
    def work(seed: int) -> bool:
        rng = random.Random(seed)
        entries: dict[bytes, bytes] = {}
        trie = trie_of([])
        for _ in range(300):
            key, value = some_key(rng), some_value(rng)
            entries[key] = value
            trie = trie.changed({key: value})
        return trie.root == trie_root(entries)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_trie_from_before_native_code_was_there_changes_by_it() -> None:
    loaded, patricia._native[:] = list(patricia._native), []
    entries = {bytes([number]) * KEY: b"value" for number in range(50)}
    plain = Trie.of(entries.items())
    patricia._native[:] = loaded or [NativeTries(trie_of, merkle.hashes)]
    for _ in range(2):  # the second time what was brought over is there
        changed = plain.changed({bytes(KEY): b"another", bytes([7]) * KEY: None})
        assert isinstance(changed, NativeTrie)
        wanted = {key: value for key, value in entries.items() if key != bytes([7]) * KEY} | {bytes(KEY): b"another"}
        assert changed.root == trie_root(wanted)
    assert plain.root == trie_root(entries)


# -- proofs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 17, MOST, 400])
def test_proofs_are_accepted_by_py_trie(count: int) -> None:
    """Of keys that are there, and of keys that are not."""
    hexary, rlp = pytest.importorskip("trie").HexaryTrie, pytest.importorskip("rlp")
    rng = random.Random(count)
    entries = {some_key(rng): some_value(rng) for _ in range(count)}
    trie = Trie.of(entries.items())
    for key in [*rng.sample(list(entries), min(count, 40)), *(some_key(rng) for _ in range(40))]:
        proof = trie.proof(key)
        assert keccak256(proof[0]) == trie.root
        assert all(len(node) >= 32 for node in proof[1:])
        found = hexary.get_from_proof(trie.root, key, [rlp.decode(node) for node in proof])
        assert found == entries.get(key, b"")


def test_a_proof_in_the_empty_trie_is_empty() -> None:
    assert Trie().proof(bytes(KEY)) == []


LARGE = """
import sys
from fusevm import EVM
from fusevm.chain import patricia
evm = EVM(tier="reference")
evm.set_storage(bytes(20), 1, 1)
evm.state_root
assert not patricia.is_native() and "llvmlite" not in sys.modules, "a small state needs nothing"
for key in range(2 * patricia.MANY):
    evm.set_storage(bytes(20), key, 1)
if sys.argv[1:]:
    sys.modules["llvmlite"] = None  # cannot be imported
print(evm.state_root.hex(), patricia.is_native())
"""


def test_a_large_state_is_hashed_by_native_code_before_any_call_has_run_and_by_python_where_there_is_none() -> None:
    def printed(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", LARGE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()

    (native, loaded), (plain, none) = printed(), printed("without")
    assert native == plain
    assert (loaded, none) == ("True", "False")
