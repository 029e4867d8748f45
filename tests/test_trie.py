"""RLP and Merkle-Patricia roots: published vectors, and py-trie and rlp on anything else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm.chain.addresses import Address, create2_address, create_address
from fusevm.chain.rlp import encode, natural
from fusevm.chain.state import EMPTY_CODE_HASH, Account, Log, State, logs_hash
from fusevm.chain.trie import EMPTY_ROOT, storage_root, trie_root
from fusevm.evm.keccak import keccak256

# -- RLP --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "encoded"),
    [
        (b"", "80"),
        (b"\x00", "00"),
        (b"\x7f", "7f"),
        (b"\x80", "8180"),
        (b"dog", "83646f67"),
        (b"x" * 55, "b7" + "78" * 55),
        (b"x" * 56, "b838" + "78" * 56),
        (b"x" * 256, "b90100" + "78" * 256),
        ([], "c0"),
        ([b"cat", b"dog"], "c88363617483646f67"),
        ([[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"),  # the set-theoretical three
        ([b"x" * 55], "f838b7" + "78" * 55),
        ((b"a", (b"b",)), "c361c162"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_rlp_of(item: Any, encoded: str) -> None:
    assert encode(item).hex() == encoded


@pytest.mark.parametrize(
    ("number", "data"), [(0, ""), (1, "01"), (0x7F, "7f"), (0x100, "0100"), ((1 << 256) - 1, "ff" * 32)]
)
def test_a_natural_number_is_its_shortest_bytes(number: int, data: str) -> None:
    assert natural(number).hex() == data


ITEMS = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5), max_leaves=20)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ITEMS)
def test_rlp_is_that_of_the_rlp_library(item: Any) -> None:
    rlp = pytest.importorskip("rlp")
    assert encode(item) == rlp.encode(item)
    assert rlp.decode(encode(item)) == item


# -- tries ------------------------------------------------------------------------------------------------------------

# From Ethereum's own trie tests (trieanyorder): plain keys, and the root where keys are hashed first.
PUBLISHED = {
    "one item": (
        {b"A": b"a" * 50},
        "d23786fb4a010da3ce639d66d5e904a11dbc02746d1ce25029e53290cabf28ab",
        "e9e2935138352776cad724d31c9fa5266a5c593bb97726dd2a908fe6d53284df",
    ),
    "dogs": (
        {b"doe": b"reindeer", b"dog": b"puppy", b"dogglesworth": b"cat"},
        "8aad789dff2f538bca5d8ea56e8abe10f4c7ba3a5dea95fea4cd6e7c3a1168d3",
        "d4cd937e4a4368d7931a9cf51686b7e10abb3dce38a39000fd7902a092b64585",
    ),
    "puppy": (
        {b"do": b"verb", b"horse": b"stallion", b"doge": b"coin", b"dog": b"puppy"},
        "5991bb8c6514148a29db676a14ac506cd2cd5775ace63c30a4fe457715e9ac84",
        "29b235a58c3c25ab83010c327d5932bcf05324b7d6b1185e650798034783ca9d",
    ),
    "small values": (
        {b"be": b"e", b"dog": b"puppy", b"bed": b"d"},
        "3f67c7a47520f79faa29255d2d3c084a7a6df0453116ed7232ff10277a8be68b",
        "826a4f9f9054a3e980e54b20da992c24fa20467f1ca635115ef4917be66e746f",
    ),
    "foo": (
        {b"foo": b"bar", b"food": b"bass"},
        "17beaa1648bafa633cda809c90c04af50fc8aed3cb40d16efbddee6fdf63c4c3",
        "1385f23a33021025d9e87cca5c66c00de06178807b96a9acc92b7d651ccde842",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_roots(name: str) -> None:
    entries, plain, hashed = PUBLISHED[name]
    assert trie_root(entries).hex() == plain
    assert trie_root((keccak256(key), value) for key, value in entries.items()).hex() == hashed


def test_the_root_of_nothing_is_the_hash_of_the_empty_string_encoded() -> None:
    assert trie_root({}) == storage_root({}) == EMPTY_ROOT == keccak256(encode(b""))


def test_the_order_of_entries_does_not_matter() -> None:
    entries, plain, _ = PUBLISHED["puppy"]
    assert trie_root(reversed(entries.items())).hex() == plain


# Few byte values make long shared prefixes, keys inside keys, full branches and nodes shorter than a hash.
DENSE_KEYS = st.lists(st.sampled_from((0x00, 0x01, 0x10, 0x11, 0xFF)), min_size=1, max_size=4).map(bytes)
KEYS = st.one_of(DENSE_KEYS, st.binary(min_size=32, max_size=32))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.dictionaries(KEYS, st.binary(min_size=1, max_size=40), max_size=40))
def test_roots_are_those_of_py_trie(entries: dict[bytes, bytes]) -> None:
    trie = pytest.importorskip("trie").HexaryTrie({})
    for key, value in entries.items():
        trie[key] = value
    assert trie_root(entries) == trie.root_hash


# -- what is made of them ---------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.dictionaries(st.integers(0, 2**256 - 1), st.integers(1, 2**256 - 1), max_size=12))
def test_a_storage_root_hashes_the_keys_and_encodes_the_values(storage: dict[int, int]) -> None:
    trie, rlp = pytest.importorskip("trie").HexaryTrie({}), pytest.importorskip("rlp")
    for key, value in storage.items():
        trie[keccak256(key.to_bytes(32, "big"))] = rlp.encode(value)
    assert storage_root(storage) == trie.root_hash


def test_a_state_root_commits_to_nonce_balance_storage_and_code() -> None:
    trie, rlp = pytest.importorskip("trie").HexaryTrie({}), pytest.importorskip("rlp")
    state = State()
    state.accounts[b"\x11" * 20] = Account(nonce=3, balance=10**18)
    state.accounts[b"\x22" * 20] = Account(code=b"\x60\x00", storage={1: 2, 2**255: 3})
    trie[keccak256(b"\x11" * 20)] = rlp.encode([3, 10**18, EMPTY_ROOT, keccak256(b"")])
    trie[keccak256(b"\x22" * 20)] = rlp.encode([0, 0, storage_root({1: 2, 2**255: 3}), keccak256(b"\x60\x00")])
    assert state.root() == trie.root_hash


def test_an_empty_account_that_exists_changes_the_root() -> None:
    state = State()
    assert state.root() == EMPTY_ROOT
    state.ensure(b"\x11" * 20)
    assert state.root() != EMPTY_ROOT


def test_the_hash_of_no_code_is_that_of_no_bytes() -> None:
    assert keccak256(b"") == Account().code_hash() == EMPTY_CODE_HASH


def test_the_logs_hash_is_that_of_the_encoded_list() -> None:
    assert logs_hash([]) == keccak256(b"\xc0")
    rlp = pytest.importorskip("rlp")
    log = Log(b"\x11" * 20, (1, 2**256 - 1), b"data")
    listed = [[b"\x11" * 20, [bytes(31) + b"\x01", b"\xff" * 32], b"data"]]
    assert logs_hash([log]) == keccak256(rlp.encode(listed))


@pytest.mark.parametrize(  # the examples of EIP-55
    "text",
    [
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77",
        "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_an_address_is_written_with_its_checksum(text: str) -> None:
    address = Address(text.lower())
    assert str(address) == repr(address) == f"{address}" == text
    assert address == bytes.fromhex(text[2:])
    assert hash(address) == hash(bytes(address))
    assert type(pickle.loads(pickle.dumps(address))) is Address


@pytest.mark.parametrize(
    ("nonce", "address"),
    [
        (0, "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"),
        (1, "343c43a37d37dff08ae8c4a11544c718abb4fcf8"),
        (2, "f778b86fa74e846c4f0a1fbd1335fe81c00a0c91"),
        (3, "fffd933a0bc612844eaf0c6fe3e5b8e9b6c1d19c"),
    ],
)
def test_create_addresses_follow_from_creator_and_nonce(nonce: int, address: str) -> None:
    creator = bytes.fromhex("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")
    assert create_address(creator, nonce).hex() == address


@pytest.mark.parametrize(  # the examples of EIP-1014
    ("creator", "salt", "initcode", "address"),
    [
        ("00" * 20, 0, "00", "4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38"),
        ("deadbeef" + "00" * 16, 0, "00", "b928f69bb1d91cd65274e3c79d8986362984fda3"),
        ("00" * 20, 0, "deadbeef", "70f2b2914a2a4b783faefb75f459a580616fcb5e"),
        ("00" * 16 + "deadbeef", 0xCAFEBABE, "deadbeef", "60f3f640a8508fc6a86d45df051962668e1e8ac7"),
        ("00" * 20, 0, "", "e33c0c7f7df4809055c3eba6c09cfe4baf1bd9e0"),
    ],
)
def test_create2_addresses_follow_from_creator_salt_and_code(
    creator: str, salt: int, initcode: str, address: str
) -> None:
    assert create2_address(bytes.fromhex(creator), salt, bytes.fromhex(initcode)).hex() == address
