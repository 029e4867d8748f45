"""What a block takes a short way for, against the long one: headers, list roots, accounts, encodings, payments."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest

from fusevm import EVM
from fusevm.chain.accounts import Account
from fusevm.chain.environment import Block, blob_base_fee_of, known_block
from fusevm.chain.header import ADDED, Header, header_from_item, layout_of
from fusevm.chain.receipts import BLOOM_SIZE, bloom_of, union_of
from fusevm.chain.rlp import Item, MalformedRLP, decode, encode, natural
from fusevm.chain.roots import encoded_account, root_of
from fusevm.chain.sealed import list_root
from fusevm.chain.system import requests_hash
from fusevm.chain.trie import trie_root
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256

SIZES = {"coinbase": 20, "bloom": BLOOM_SIZE, "nonce": 8}


def some_header(rng: random.Random, fork: Fork) -> Header:
    given: dict[str, object] = {}
    for field in layout_of(fork):
        kind = {each.name: each.type for each in fields(Header)}[field.name]
        if "int" in str(kind):
            given[field.name] = rng.choice((0, 1, 127, 128, 255, 256, rng.getrandbits(63)))
        else:
            size = rng.randrange(80) if field.name == "extra_data" else SIZES.get(field.name, 32)
            given[field.name] = rng.choice((rng.randbytes(size), bytes(size)))
    return Header(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("fork", ADDED)
def test_a_header_is_encoded_as_its_item_is(fork: Fork) -> None:
    rng = random.Random(fork.label)
    for _ in range(50):
        header = some_header(rng, fork)
        assert header.layout == layout_of(fork)
        assert header.encoded == encode(header.item)
        assert header.hash == keccak256(encode(header.item))
        assert header_from_item(decode(header.encoded)) == header


@pytest.mark.parametrize("fork", ADDED)
def test_a_header_with_other_fields_is_the_one_that_replace_makes(fork: Fork) -> None:
    rng = random.Random(fork.label)
    for _ in range(20):
        header, other = some_header(rng, fork), some_header(rng, fork)
        before = header.hash  # is kept: the other must not have it
        names = rng.sample([field.name for field in layout_of(fork)], 4)
        given = {name: getattr(other, name) for name in names}
        made = header.having(given)
        assert made == replace(header, **given)
        assert made.hash == keccak256(encode(made.item))
        assert header.hash == before


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("size", [1, 2, 31, 32, 55, 56, 300, 70_000])
def test_the_root_of_a_list_is_that_of_its_trie(count: int, size: int) -> None:
    rng = random.Random(size)
    listed = [rng.randbytes(size) for _ in range(count)]
    assert list_root(listed) == trie_root((encode(natural(at)), each) for at, each in enumerate(listed))


@pytest.mark.parametrize("first", [b"\x01", b"\x7f", b"\x80", b""])
def test_the_root_of_one_short_thing_is_that_of_its_trie(first: bytes) -> None:
    assert list_root([first]) == trie_root([(encode(natural(0)), first)])


def test_an_account_is_encoded_as_a_list_of_its_fields() -> None:
    rng = random.Random("accounts")
    for _ in range(300):
        nonce, balance = (rng.getrandbits(rng.choice((0, 1, 7, 8, 20, bits))) for bits in (64, 256))
        account = Account(nonce, balance, rng.choice((b"", b"\x60\x00")), rng.choice(({}, {1: 2})))
        numbers = [natural(nonce), natural(balance)]
        assert encoded_account(account) == encode([*numbers, root_of(account.storage), account.code_hash()])


def test_a_known_block_is_the_block_that_is_checked_field_by_field() -> None:
    def hashes(number: int) -> bytes:
        return bytes(32)

    given = (7, 8, b"\x09" * 20, 10, 11, 12, 13, 14, 15, hashes)
    made, checked = known_block(*given), Block(*given)
    assert made == checked
    assert made.version != checked.version
    assert all(getattr(made, field.name) == getattr(checked, field.name) for field in fields(Block)[:-1])
    before = made.version
    made.base_fee = 12
    assert (made.base_fee, made.version != before) == (12, True)


@pytest.mark.parametrize("excess", [0, 1, 131_072, 10**7, 10**9])
def test_the_price_of_blobs_is_the_block_s(excess: int) -> None:
    evm = EVM("osaka", block=Block(excess_blob_gas=excess, blob_base_fee_fraction=5_007_716))
    evm.set_code("0x" + "c0" * 20, "0x4a5f5260205ff3")  # BLOBBASEFEE
    assert int.from_bytes(evm.call("0x" + "c0" * 20).output, "big") == blob_base_fee_of(excess, 5_007_716)


def test_blooms_of_nothing_and_of_one() -> None:
    assert bloom_of([]) == bytes(BLOOM_SIZE) == union_of([])
    assert union_of([b"\x01" * BLOOM_SIZE]) == b"\x01" * BLOOM_SIZE
    assert requests_hash([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


# -- decoding


def plainly(data: bytes, at: int, end: int) -> tuple[Item, int]:
    """One item by the rules of the Yellow Paper's appendix B, nothing else in mind. Raises ValueError."""
    if at >= end:
        raise ValueError
    first = data[at]
    if first < 0x80:
        return data[at : at + 1], at + 1
    length, at = first - (0xC0 if first >= 0xC0 else 0x80), at + 1
    if length > 55:
        digits, at = data[at : at + length - 55], at + length - 55
        length = int.from_bytes(digits, "big")
        if at > end or length < 56 or not digits[0]:
            raise ValueError
    if at + length > end:
        raise ValueError
    content = data[at : at + length]
    if first < 0xC0:
        if length == 1 and content[0] < 0x80:
            raise ValueError
        return content, at + length
    items: list[Item] = []
    stop = at + length
    while at < stop:
        item, at = plainly(data, at, stop)
        items.append(item)
    return items, stop


PIECES: list[Item] = [b"", b"\x00", b"\x7f", b"\x80", b"\x99" * 2, b"\x99" * 55, b"\x99" * 56, [], [b"\x05"]]


def test_what_is_decoded_and_what_is_refused_is_as_the_rules_have_it() -> None:
    rng = random.Random("rlp")
    refused = 0
    for _ in range(20_000):
        pieces = [rng.choice(PIECES) for _ in range(rng.randrange(6))]
        data = bytearray(encode(pieces))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.choice((0x00, 0x7F, 0x80, 0x81, 0x82, 0xB7, 0xB8, 0xC0, 0xC1, 0xF8))
        if rng.random() < 0.1:
            del data[rng.randrange(len(data)) :]
        try:
            wanted, end = plainly(bytes(data), 0, len(data))
            if end != len(data):
                raise ValueError
        except ValueError:
            refused += 1
            with pytest.raises(MalformedRLP):
                decode(bytes(data))
        else:
            assert decode(bytes(data)) == wanted
    assert 2_000 < refused < 18_000


# -- payments, and fees of nothing


@pytest.mark.parametrize("fork", ["frontier", "tangerine-whistle", "spurious-dragon", "london", "osaka"])
@pytest.mark.parametrize("value", [0, 5])
@pytest.mark.parametrize("to", ["new", "empty", "rich", "self", "ripemd", "coinbase"])
def test_a_payment_does_the_same_on_every_tier(fork: str, value: int, to: str) -> None:
    sender, coinbase = b"\xa1" * 20, b"\xcb" * 20
    targets = {
        "new": b"\x0a" * 20, "empty": b"\x0b" * 20, "rich": b"\x0c" * 20, "self": sender,
        "ripemd": (3).to_bytes(20, "big"), "coinbase": coinbase,
    }  # fmt: skip
    found = []
    for tier in ("reference", "native", "auto"):
        evm = EVM(fork, tier, block=Block(coinbase=coinbase))
        evm.set_balance(sender, 10**18)
        evm.set_balance(targets["rich"], 7)
        evm.state.ensure(targets["empty"])
        for price in (0, 1):
            done = evm.transact(sender, targets[to], value=value, gas=100_000, gas_price=price)
            found.append((tier, price, done.status, done.gas_used, evm.state_root, evm.state.exists(coinbase)))
    for number in (0, 1):
        assert len({each[1:] for each in found[number::2]}) == 1
    early = fork in ("frontier", "tangerine-whistle")
    assert found[0][-1] == (early or (to == "coinbase" and value > 0)), "nothing creates no account since EIP-161"
