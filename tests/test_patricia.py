"""Tries that change: always the root that all entries have when they are put together at once, and proofs of them."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fusevm.chain import patricia
from fusevm.chain.patricia import FEWEST, KEY, MOST, NativeTries, Packed, Trie
from fusevm.chain.trie import EMPTY_ROOT, trie_root
from fusevm.evm.keccak import keccak256
from fusevm.native.emit import merkle

SIZES = (1, 1, 2, 33, 56, 110, 255)  # of values: those of one byte make nodes shorter than a hash


@pytest.fixture(params=["python", "native"], autouse=True)
def hashing(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to hash, whatever was loaded before."""
    before = list(patricia._native)
    patricia._native[:] = [NativeTries(merkle.references, merkle.hashes)] if request.param == "native" else []
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
    assert trie.changed({key: entries[key]})._node is trie._node
    assert trie.changed({some_key(rng): None})._node is trie._node


def test_after_one_change_of_many_entries_few_are_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trie = Trie.of((keccak256(number.to_bytes(4, "big")), b"value") for number in range(20_000))
    assert trie.root != EMPTY_ROOT
    hashed: list[int] = []

    def counting(packed: Packed, counts: list[int], depths: list[int]) -> list[bytes]:
        hashed.append(sum(counts))
        return merkle.references(packed, counts, depths)

    patricia._native[:] = [NativeTries(counting, merkle.hashes)]
    branches = list[bytes]()
    monkeypatch.setattr(patricia, "reference_to", lambda node: branches.append(node) or patricia_reference(node))
    for number in range(50):
        trie = trie.changed({keccak256(number.to_bytes(4, "big")): b"other"})
        assert trie.root != EMPTY_ROOT
    assert sum(hashed) <= 50 * MOST
    assert len(branches) <= 50 * 4  # 20,000 entries are four levels of branches


patricia_reference = patricia.reference_to


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
