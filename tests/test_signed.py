"""Transactions as the wire has them: encodings, hashes, senders, and a name for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.rlp import Item, decode, encode
from fusevm.chain.signed import SignedTransaction, decode_transaction, sign, transaction_from_item
from fusevm.chain.transaction import Authorization, Transaction
from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.secp256k1 import ORDER as CURVE_ORDER
from fusevm.evm.secp256k1 import address_of_key

KEY = bytes(31) + b"\x07"
SENDER, TARGET, BLOB = address_of_key(KEY), b"\x22" * 20, b"\x01" + bytes(31)
AUTHORIZATION = Authorization(1, TARGET, 0, 1, 5, 6)
BY_TYPE: dict[int, dict[str, Any]] = {
    0: {"gas_price": 9},
    1: {"gas_price": 9, "access_list": ((TARGET, (1, 2)),)},
    2: {"max_fee": 9, "max_priority_fee": 2},
    3: {"max_fee": 9, "max_priority_fee": 2, "blob_hashes": (BLOB,), "max_blob_fee": 3},
    4: {"max_fee": 9, "max_priority_fee": 2, "authorizations": (AUTHORIZATION,)},
}


def signed(kind: int = 0, chain_id: int | None = 1, **fields: Any) -> SignedTransaction:
    given = {"to": TARGET, "value": 1, "data": b"hello", "gas_limit": 50_000, "nonce": 3, **BY_TYPE[kind], **fields}
    return sign(Transaction(b"", **given), KEY, chain_id)


@pytest.mark.parametrize("kind", BY_TYPE)
def test_every_type_comes_back_from_its_encoding(kind: int) -> None:
    tx = signed(kind)
    assert tx.type == kind
    assert decode_transaction(tx.encoded) == tx
    assert transaction_from_item(tx.item) == tx
    assert decode_transaction(tx.encoded).sender == SENDER
    assert decode_transaction(tx.encoded).encoded == tx.encoded


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(BY_TYPE)),
    st.binary(max_size=300),
    *[st.sampled_from((0, 1, 0x7F, 0x80, 0xFF, 0x100, CURVE_ORDER - 1)) for _ in range(2)],
    st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)),
)
def test_what_was_signed_is_the_same_from_the_encoding_and_from_the_fields(
    kind: int, data: bytes, r: int, s: int, parity: int
) -> None:
    tx = replace(signed(kind, data=data), r=r, s=s, y_parity=parity if kind else parity % 2)
    found = decode_transaction(tx.encoded)
    assert found.signing_hash == replace(tx, chain_id=tx.chain_id).signing_hash
    assert found.encoded == replace(found).encoded


@pytest.mark.parametrize("kind", BY_TYPE)
def test_what_it_asks_for_is_what_was_signed(kind: int) -> None:
    asked = signed(kind).transaction()
    assert (asked.sender, asked.type, asked.nonce, asked.to, asked.value) == (SENDER, kind, 3, TARGET, 1)
    assert all(getattr(asked, name) == value for name, value in BY_TYPE[kind].items())


def test_what_a_type_does_not_have_is_not_signed() -> None:
    tx = signed(2, max_blob_fee=7)
    assert decode_transaction(tx.encoded) == tx


def test_the_example_of_eip_155() -> None:
    tx = Transaction(b"", b"\x35" * 20, b"", 10**18, 21_000, 9, gas_price=20 * 10**9)
    done = sign(tx, b"\x46" * 32, 1)
    assert done.signing_hash.hex() == "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
    assert done.encoded.hex() == (
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080"
        "25a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276"
        "a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    )


def test_a_legacy_signature_for_any_chain_has_v_27_or_28() -> None:
    tx = signed(0, chain_id=None)
    assert tx.v in (27, 28)
    assert decode_transaction(tx.encoded).chain_id is None
    tx.check_signature(1, rules_of(Fork.FRONTIER))


@given(st.binary(min_size=32, max_size=32), st.sampled_from(sorted(BY_TYPE)), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_the_sender_is_whose_key_signed(key: bytes, kind: int, nonce: int) -> None:
    if not 0 < int.from_bytes(key, "big") < CURVE_ORDER:
        return
    tx = sign(Transaction(b"", TARGET, nonce=nonce, **BY_TYPE[kind]), key, 5)
    assert decode_transaction(tx.encoded).sender == address_of_key(key)


def test_hashes_and_senders_are_those_of_the_executable_specification() -> None:
    pytest.importorskip("ethereum.forks.osaka")
    from ethereum.forks.osaka import transactions as spec
    from ethereum_rlp import rlp
    from ethereum_types.numeric import U64

    for kind in BY_TYPE:
        tx = signed(kind)
        read = spec.decode_transaction(tx.encoded) if kind else rlp.decode_to(spec.LegacyTransaction, tx.encoded)
        assert spec.recover_sender(U64(1), read) == SENDER
        assert spec.get_transaction_hash(tx.encoded if kind else read) == tx.hash


# -- signatures on a chain --------------------------------------------------------------------------------------------


def high_s(tx: SignedTransaction) -> SignedTransaction:
    """The other signature of the same key: valid until Homestead (EIP-2)."""
    return replace(tx, s=CURVE_ORDER - tx.s, y_parity=1 - tx.y_parity)


def test_a_high_s_is_good_at_frontier_alone() -> None:
    tx = high_s(signed(0, chain_id=None))
    assert tx.sender == SENDER
    tx.check_signature(1, rules_of(Fork.FRONTIER))
    with pytest.raises(Rejected) as caught:
        tx.check_signature(1, rules_of(Fork.HOMESTEAD))
    assert caught.value.reason is RejectReason.INVALID_SIGNATURE_VRS


def test_a_chain_in_v_is_refused_before_spurious_dragon() -> None:
    signed(0).check_signature(1, rules_of(Fork.SPURIOUS_DRAGON))
    with pytest.raises(Rejected, match="chains are told apart since Spurious Dragon"):
        signed(0).check_signature(1, rules_of(Fork.TANGERINE_WHISTLE))


@pytest.mark.parametrize("kind", BY_TYPE)
def test_a_transaction_for_another_chain_is_refused(kind: int) -> None:
    with pytest.raises(Rejected) as caught:
        signed(kind, chain_id=5).check_signature(1, rules_of(Fork.OSAKA))
    assert caught.value.reason is RejectReason.INVALID_CHAINID


@pytest.mark.parametrize("fields", [{"r": 0}, {"s": 0}, {"r": CURVE_ORDER}, {"s": CURVE_ORDER}, {"y_parity": 2}])
def test_signature_values_out_of_range_are_of_nobody(fields: dict[str, int]) -> None:
    with pytest.raises(Rejected) as caught:
        _ = replace(signed(2), **fields).sender
    assert caught.value.reason is RejectReason.INVALID_SIGNATURE_VRS


def test_a_signature_that_no_key_can_have_made_is_named() -> None:
    with pytest.raises(Rejected) as caught:
        _ = replace(signed(2), r=5).sender  # no point of the curve has 5 as its first coordinate
    assert caught.value.reason is RejectReason.EC_RECOVERY_FAIL


def test_signing_needs_a_nonce_and_typed_ones_a_chain() -> None:
    with pytest.raises(ValueError, match="sign: the transaction has no nonce; give the sender's"):
        sign(Transaction(b"", TARGET), KEY, 1)
    with pytest.raises(ValueError, match="sign: a transaction of type 2 names its chain; give chain_id"):
        sign(Transaction(b"", TARGET, nonce=0, max_fee=1), KEY, None)


# -- what is refused --------------------------------------------------------------------------------------------------

R = RejectReason


def at(kind: int, place: int, value: Item) -> Callable[[], bytes]:
    """A transaction with one field replaced."""

    def make() -> bytes:
        data = signed(kind).encoded
        items = list(decode(data[1:] if kind else data))
        items[place] = value
        return (bytes((kind,)) if kind else b"") + encode(items)

    return make


def raw(data: bytes) -> Callable[[], bytes]:
    return lambda: data


AUTH: list[Item] = [b"\x01", TARGET, b"", b"\x01", b"\x05", b"\x06"]


def auth(place: int, value: Item) -> Callable[[], bytes]:
    return at(4, 9, [[*AUTH[:place], value, *AUTH[place + 1 :]]])


MALFORMED: list[tuple[RejectReason, Callable[[], bytes]]] = [
    (R.TYPE_NOT_SUPPORTED, raw(b"\x05\xc0")),
    (R.TYPE_NOT_SUPPORTED, raw(b"\x00" + signed(0).encoded)),
    (R.RLP_ERROR_EOF, raw(b"")),
    (R.RLP_ERROR_EOF, lambda: signed(0).encoded[:-1]),
    (R.RLP_ERROR_EOF, lambda: signed(2).encoded[:-1]),
    (R.RLP_ERROR_SIZE, lambda: signed(0).encoded + b"\0"),
    (R.RLP_ERROR_SIZE_LEADING_ZEROS, raw(b"\xf8\x01\x80")),
    (R.RLP_INVALID_HEADER, raw(b"\x02\x80")),
    (R.RLP_TOO_FEW_ELEMENTS, raw(encode([b""] * 8))),
    (R.RLP_TOO_MANY_ELEMENTS, raw(encode([b""] * 10))),
    (R.INVALID_CHAINID, at(2, 0, b"\0\1")),
    (R.INVALID_CHAINID, at(2, 0, b"\1" * 9)),
    (R.RLP_LEADING_ZEROS_NONCE, at(0, 0, b"\0\1")),
    (R.RLP_LEADING_ZEROS_NONCE, at(0, 0, b"\0")),
    (R.NONCE_OVERFLOW, at(0, 0, b"\1" * 9)),
    (R.RLP_INVALID_NONCE, at(0, 0, [])),
    (R.RLP_LEADING_ZEROS_GASPRICE, at(0, 1, b"\0\1")),
    (R.GASPRICE_OVERFLOW, at(0, 1, b"\1" * 33)),
    (R.RLP_LEADING_ZEROS_GASLIMIT, at(0, 2, b"\0\1")),
    (R.GASLIMIT_OVERFLOW, at(0, 2, b"\1" * 9)),
    (R.RLP_INVALID_GASLIMIT, at(0, 2, [b"\1"])),
    (R.ADDRESS_TOO_SHORT, at(0, 3, b"\1" * 19)),
    (R.ADDRESS_TOO_LONG, at(0, 3, b"\1" * 21)),
    (R.RLP_INVALID_TO, at(0, 3, [])),
    (R.RLP_LEADING_ZEROS_VALUE, at(0, 4, b"\0\1")),
    (R.VALUE_OVERFLOW, at(0, 4, b"\1" * 33)),
    (R.RLP_INVALID_VALUE, at(0, 4, [])),
    (R.RLP_INVALID_DATA, at(0, 5, [])),
    (R.RLP_LEADING_ZEROS_V, at(0, 6, b"\0\x25")),
    (R.INVALID_SIGNATURE_VRS, at(0, 6, b"")),
    (R.INVALID_SIGNATURE_VRS, at(0, 6, b"\x1a")),
    (R.INVALID_SIGNATURE_VRS, at(0, 6, b"\x1d")),
    (R.INVALID_SIGNATURE_VRS, at(0, 6, b"\x22")),
    (R.INVALID_SIGNATURE_VRS, at(0, 6, b"\1" * 33)),
    (R.RLP_LEADING_ZEROS_R, at(0, 7, b"\0\1")),
    (R.RLP_INVALID_SIGNATURE_R, at(0, 7, b"\1" * 33)),
    (R.RLP_LEADING_ZEROS_S, at(0, 8, b"\0\1")),
    (R.RLP_INVALID_SIGNATURE_S, at(0, 8, [])),
    (R.RLP_LEADING_ZEROS_PRIORITY_FEE, at(2, 2, b"\0\1")),
    (R.PRIORITY_OVERFLOW, at(2, 2, b"\1" * 33)),
    (R.RLP_LEADING_ZEROS_BASEFEE, at(2, 3, b"\0\1")),
    (R.GASPRICE_OVERFLOW, at(2, 3, b"\1" * 33)),
    (R.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_LONG, at(1, 7, [[b"\1" * 21, []]])),
    (R.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_SHORT, at(1, 7, [[b"\1" * 19, []]])),
    (R.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_LONG, at(1, 7, [[b"\1" * 20, [b"\1" * 33]]])),
    (R.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_SHORT, at(1, 7, [[b"\1" * 20, [b"\1"]]])),
    (R.RLP_INVALID_DATA, at(1, 7, [[b"\1" * 20]])),
    (R.RLP_INVALID_DATA, at(1, 7, b"")),
    (R.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH, at(3, 10, [b"\1"])),
    (R.TYPE_3_TX_WITH_FULL_BLOBS, lambda: b"\x03" + encode([decode(signed(3).encoded[1:]), [], [], []])),
    (R.TYPE_3_TX_WITH_FULL_BLOBS, lambda: b"\x03" + encode([decode(signed(3).encoded[1:]), b"\1", [], [], []])),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, at(4, 9, b"")),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, at(4, 9, [AUTH[:5]])),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, auth(0, b"\1" * 33)),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, auth(1, b"")),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, auth(2, b"\1" * 9)),
    (R.TYPE_4_INVALID_AUTHORIZATION_FORMAT, auth(4, b"\0\1")),
    (R.TYPE_4_INVALID_AUTHORITY_SIGNATURE, auth(3, b"\1\1")),
    (R.TYPE_4_INVALID_AUTHORITY_SIGNATURE, auth(4, b"\1" * 33)),
    (R.TYPE_4_INVALID_AUTHORITY_SIGNATURE, auth(5, b"\1" * 33)),
]
SHOWN_ABOVE = {R.INVALID_CHAINID, R.INVALID_SIGNATURE_VRS, R.EC_RECOVERY_FAIL}
SHOWN_HERE = {reason for reason, _ in MALFORMED} | SHOWN_ABOVE


@pytest.mark.parametrize(("reason", "make"), MALFORMED, ids=lambda each: getattr(each, "name", ""))
def test_a_malformed_transaction_is_refused_by_name(reason: RejectReason, make: Callable[[], bytes]) -> None:
    with pytest.raises(Rejected) as caught:
        decode_transaction(make())
    assert caught.value.reason is reason
    assert "\n" not in str(caught.value)


def test_a_legacy_transaction_in_a_block_is_a_list_not_bytes() -> None:
    with pytest.raises(Rejected, match="a legacy transaction stands in a block as a list"):
        transaction_from_item(signed(0).encoded)
