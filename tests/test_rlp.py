"""RLP: what is encoded decodes to the same, and nothing but the canonical form decodes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusevm.chain.rlp import MAX_NESTED, Item, MalformedRLP, NotMinimal, Trailing, Truncated, decode, encode

ITEMS = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5), max_leaves=30)


@given(ITEMS)
def test_decoding_gives_back_what_was_encoded(item: Item) -> None:
    assert decode(encode(item)) == item


@given(st.binary(max_size=120))
def test_what_decodes_has_no_other_encoding(data: bytes) -> None:
    try:
        item = decode(data)
    except MalformedRLP:
        return
    assert encode(item) == data


@given(ITEMS, st.integers(0, 200), st.integers(0, 255))
def test_a_changed_byte_decodes_to_another_item_or_not_at_all(item: Item, place: int, value: int) -> None:
    data = bytearray(encode(item))
    place %= len(data)
    if data[place] == value:
        return
    data[place] = value
    with suppress(MalformedRLP):
        assert decode(bytes(data)) != item


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ("", Truncated, "rlp: no item at byte 0, the input ends"),
        ("83aabb", Truncated, "rlp: 3 bytes announced at byte 0, 2 are there"),
        ("c28101", Truncated, None),
        ("b9", Truncated, "rlp: the length at byte 0 is cut off"),
        ("8101", NotMinimal, "rlp: the byte at 1 is its own encoding"),
        ("b801aa", NotMinimal, "rlp: the length at byte 0 has a shorter encoding"),
        ("b837" + "aa" * 55, NotMinimal, "rlp: the length at byte 0 has a shorter encoding"),
        ("b90038" + "aa" * 56, NotMinimal, "rlp: the length at byte 0 has a shorter encoding"),
        ("f800", NotMinimal, "rlp: the length at byte 0 has a shorter encoding"),
        ("8080", Trailing, "rlp: 1 bytes after the item, which ends at byte 1"),
        ("c080", Trailing, "rlp: 1 bytes after the item, which ends at byte 1"),
    ],
)
def test_what_is_not_canonical_is_refused_with_its_place(
    data: str, kind: type[MalformedRLP], message: str | None
) -> None:
    with pytest.raises(MalformedRLP) as caught:
        decode(bytes.fromhex(data))
    if message is not None:
        assert type(caught.value) is kind
        assert str(caught.value) == message


def test_nesting_is_bounded() -> None:
    item: Item = b""
    for _ in range(MAX_NESTED):
        item = [item]
    assert decode(encode(item)) == item
    with pytest.raises(MalformedRLP, match="nested more than 16 deep"):
        decode(encode([item]))
