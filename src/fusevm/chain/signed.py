"""Transactions as the wire has them: types 0 to 4, strict RLP both ways, signing, hash and sender.

A type is a row of `LAYOUTS`. What is wrong with an encoding is refused with the reason Ethereum's tests give it.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeGuard

from fusevm.chain.fields import (
    ACCESS_LIST,
    ADDRESS,
    BYTES,
    HASHES,
    RECIPIENT,
    UINT8,
    UINT64,
    UINT256,
    BadField,
    Fault,
    Field,
    FieldKind,
    as_list,
    read_fields,
    write_fields,
)
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.rlp import (
    Item,
    MalformedRLP,
    NotMinimal,
    Trailing,
    Truncated,
    decode,
    encode,
    header_size,
    list_of,
    natural,
    number_size,
)
from fusevm.chain.transaction import Authorization, Transaction
from fusevm.evm.forks import Fork, Rules
from fusevm.evm.keccak import keccak256
from fusevm.evm.secp256k1 import ORDER, recover_address
from fusevm.evm.secp256k1 import sign as sign_hash
from fusevm.values import AccessList

R = RejectReason

_AUTHORIZATION = (
    Field("chain_id", UINT256),
    Field("address", ADDRESS),
    Field("nonce", UINT64),
    Field("y_parity", UINT8),
    Field("r", UINT256),
    Field("s", UINT256),
)


def _authorizations(item: Item, name: str) -> tuple[Authorization, ...]:
    try:
        return tuple(Authorization(*read_fields(_AUTHORIZATION, each, "")) for each in as_list(item, ""))
    except BadField as error:
        raise BadField(f"{name}.{error.name}", error.fault, error.detail) from None


def _authorization_items(listed: tuple[Authorization, ...]) -> Item:
    return [write_fields(_AUTHORIZATION, each) for each in listed]


NONCE, GAS_LIMIT, TO = Field("nonce", UINT64), Field("gas_limit", UINT64), Field("to", RECIPIENT)
CHAIN_ID, GAS_PRICE, VALUE, DATA = (
    Field("chain_id", UINT64),
    Field("gas_price", UINT256),
    Field("value", UINT256),
    Field("data", BYTES),
)
FEES = (Field("max_priority_fee", UINT256), Field("max_fee", UINT256))
ACCESS = Field("access_list", ACCESS_LIST)
MARKET = (CHAIN_ID, NONCE, *FEES, GAS_LIMIT, TO, VALUE, DATA, ACCESS)

LAYOUTS: dict[int, tuple[Field, ...]] = {
    0: (NONCE, GAS_PRICE, GAS_LIMIT, TO, VALUE, DATA),
    1: (CHAIN_ID, NONCE, GAS_PRICE, GAS_LIMIT, TO, VALUE, DATA, ACCESS),  # EIP-2930
    2: MARKET,  # EIP-1559
    3: (*MARKET, Field("max_blob_fee", UINT256), Field("blob_hashes", HASHES)),  # EIP-4844
    4: (*MARKET, Field("authorizations", FieldKind(_authorizations, _authorization_items))),  # EIP-7702
}
SIGNATURE = (Field("y_parity", UINT8), Field("r", UINT256), Field("s", UINT256))
LEGACY_SIGNATURE = (Field("v", UINT256), *SIGNATURE[1:])
_WHOLE = {kind: (*layout, *(SIGNATURE if kind else LEGACY_SIGNATURE)) for kind, layout in LAYOUTS.items()}


@dataclass(frozen=True)
class SignedTransaction:
    """A transaction with its signature. `chain_id` is None where a legacy one was signed for any chain (EIP-155)."""

    type: int
    nonce: int
    gas_limit: int
    to: bytes | None
    value: int
    data: bytes
    y_parity: int
    r: int
    s: int
    chain_id: int | None = None
    gas_price: int | None = None
    max_priority_fee: int | None = None
    max_fee: int | None = None
    access_list: AccessList | None = None
    max_blob_fee: int = 0
    blob_hashes: tuple[bytes, ...] | None = None
    authorizations: tuple[Authorization, ...] | None = None

    @property
    def v(self) -> int:
        """A legacy signature's third value: the parity, and the chain where one is meant."""
        return self.y_parity + (27 if self.chain_id is None else 35 + 2 * self.chain_id)

    @property
    def fee_cap(self) -> int:
        """The most it would pay for a unit of gas."""
        return (self.max_fee if self.max_fee is not None else self.gas_price) or 0

    @cached_property
    def item(self) -> Item:
        """Its form in a block: a list if it is legacy, else its encoding."""
        if self.type == 0:
            return write_fields(_WHOLE[0], self)
        return self.encoded

    @cached_property
    def encoded(self) -> bytes:
        """Its encoding (EIP-2718): what is hashed, sent, and kept in the transactions trie."""
        if self.type == 0:
            return encode(self.item)
        return bytes((self.type,)) + encode(write_fields(_WHOLE[self.type], self))

    @cached_property
    def hash(self) -> bytes:
        return keccak256(self.encoded)

    @cached_property
    def signing_hash(self) -> bytes:
        """What the sender's key has signed."""
        if self.type and "encoded" in self.__dict__:  # the same list, without the signature at its end
            body = self.encoded[1 + header_size(self.encoded[1]) :]
            tail = number_size(self.y_parity) + number_size(self.r) + number_size(self.s)
            return keccak256(self.encoded[:1] + list_of(body[: len(body) - tail]))
        fields = write_fields(LAYOUTS[self.type], self)
        if self.type:
            return keccak256(bytes((self.type,)) + encode(fields))
        if self.chain_id is not None:
            fields += [natural(self.chain_id), b"", b""]
        return keccak256(encode(fields))

    @cached_property
    def sender(self) -> bytes:
        """Whose key has signed. Raises Rejected where no key can have."""
        if self.y_parity > 1 or not 0 < self.r < ORDER or not 0 < self.s < ORDER:
            raise Rejected(R.INVALID_SIGNATURE_VRS)
        found = recover_address(self.signing_hash, self.r, self.s, self.y_parity)
        if found is None:
            raise Rejected(R.EC_RECOVERY_FAIL)
        return found

    def check_signature(self, chain_id: int | None, rules: Rules) -> None:
        """Raises Rejected for a signature that is not one on this chain (None: any), at this fork (EIP-2, EIP-155)."""
        if self.type == 0 and self.chain_id is not None and rules.fork < Fork.SPURIOUS_DRAGON:
            raise Rejected(R.INVALID_SIGNATURE_VRS, f"v is {self.v}; chains are told apart since Spurious Dragon")
        if chain_id is not None and self.chain_id not in (None, chain_id):
            raise Rejected(R.INVALID_CHAINID, f"{self.chain_id}, not {chain_id}")
        if rules.fork >= Fork.HOMESTEAD and self.s > ORDER // 2:
            raise Rejected(R.INVALID_SIGNATURE_VRS, "s is over half the curve's order")

    def transaction(self) -> Transaction:
        """The fields of the transaction, and its sender."""
        return Transaction(
            sender=self.sender,
            to=self.to,
            data=self.data,
            value=self.value,
            gas_limit=self.gas_limit,
            nonce=self.nonce,
            gas_price=self.gas_price,
            max_fee=self.max_fee,
            max_priority_fee=self.max_priority_fee,
            access_list=self.access_list,
            blob_hashes=self.blob_hashes,
            max_blob_fee=self.max_blob_fee,
            authorizations=self.authorizations,
        )


_DEFAULTS: dict[str, Any] = {
    each.name: each.default for each in fields(SignedTransaction) if each.default is not MISSING
}

# -- signing


def sign(tx: Transaction, secret: bytes, chain_id: int | None) -> SignedTransaction:
    """The transaction signed with a 32-byte key; `tx.sender` is not looked at, `tx.nonce` must be given."""
    if tx.nonce is None:
        raise ValueError("sign: the transaction has no nonce; give the sender's")
    unsigned = SignedTransaction(
        tx.type,
        tx.nonce,
        tx.gas_limit,
        tx.to,
        tx.value,
        tx.data,
        *(0, 0, 0),
        chain_id=chain_id,
        gas_price=(tx.gas_price or 0) if tx.type < 2 else None,
        max_priority_fee=(tx.max_priority_fee or 0) if tx.type >= 2 else None,
        max_fee=(tx.max_fee or 0) if tx.type >= 2 else None,
        access_list=(tx.access_list or ()) if tx.type else None,
        max_blob_fee=tx.max_blob_fee if tx.type == 3 else 0,
        blob_hashes=tx.blob_hashes if tx.type == 3 else None,
        authorizations=tx.authorizations,
    )
    if unsigned.type and chain_id is None:
        raise ValueError(f"sign: a transaction of type {unsigned.type} names its chain; give chain_id")
    y_parity, r, s = sign_hash(unsigned.signing_hash, secret)
    return replace(unsigned, y_parity=y_parity, r=r, s=s)


# -- decoding


def decode_transaction(data: bytes) -> SignedTransaction:
    """A transaction from its encoding. Raises Rejected, with the reason, for what is not one."""
    if not data:
        raise Rejected(R.RLP_ERROR_EOF, "no bytes")
    if data[0] >= 0xC0:
        return transaction_from_item(_decoded(data))
    if data[0] not in LAYOUTS or data[0] == 0:
        raise Rejected(R.TYPE_NOT_SUPPORTED, f"type {data[0]}")
    return _typed(data[0], data)


def transaction_from_item(item: Item) -> SignedTransaction:
    """A transaction from its form in a block."""
    if isinstance(item, bytes):
        if item and item[0] >= 0xC0:
            raise Rejected(R.RLP_INVALID_HEADER, "a legacy transaction stands in a block as a list")
        return decode_transaction(item)
    fields = _read(_WHOLE[0], item)
    v = fields.pop("v")
    if v in (27, 28):
        return _made(0, fields, y_parity=v - 27)
    if v < 35:
        raise Rejected(R.INVALID_SIGNATURE_VRS, f"v is {v}")
    return _made(0, fields, chain_id=(v - 35) // 2, y_parity=(v - 35) % 2)


def _made(kind: int, fields: dict[str, Any], **others: Any) -> SignedTransaction:
    """As its class makes it, which sets every field of a frozen one by a call."""
    signed = object.__new__(SignedTransaction)
    signed.__dict__.update(_DEFAULTS, type=kind, **others)
    signed.__dict__.update(fields)
    return signed


def sent_by(signed: SignedTransaction, sender: bytes) -> SignedTransaction:
    """The same transaction of a sender that is known, or that its signature does not tell."""
    made = object.__new__(SignedTransaction)
    made.__dict__.update(signed.__dict__, sender=sender)
    return made


def _typed(kind: int, data: bytes) -> SignedTransaction:
    item = _decoded(data[1:])
    if kind == 3 and _is_wrapped(item):
        raise Rejected(R.TYPE_3_TX_WITH_FULL_BLOBS)
    return _made(kind, _read(_WHOLE[kind], item), encoded=data)  # strict: encoding it again gives the same bytes


def network_parts(data: bytes) -> list[Item] | None:
    """A blob transaction's own fields, and what the network sends with them (EIP-4844, EIP-7594); None of any other."""
    if data[:1] != b"\x03":
        return None
    try:
        parts = decode(data[1:])
    except MalformedRLP:  # decoding the transaction reports it
        return None
    return parts if _is_wrapped(parts) else None


def _is_wrapped(item: Item) -> TypeGuard[list[Item]]:
    return not isinstance(item, bytes) and len(item) in (4, 5) and not isinstance(item[0], bytes)


def _decoded(data: bytes) -> Item:
    try:
        return decode(data)
    except MalformedRLP as error:
        reason = next((why for kind, why in _MALFORMED.items() if isinstance(error, kind)), R.RLP_INVALID_HEADER)
        raise Rejected(reason, str(error)) from None


def _read(layout: tuple[Field, ...], item: Item) -> dict[str, Any]:
    try:
        values = read_fields(layout, item, "transaction")
    except BadField as error:
        raise Rejected(_reason(error), str(error)) from None
    return {field.name: value for field, value in zip(layout, values, strict=True)}


_MALFORMED: dict[type[MalformedRLP], RejectReason] = {
    Truncated: R.RLP_ERROR_EOF,
    NotMinimal: R.RLP_ERROR_SIZE_LEADING_ZEROS,
    Trailing: R.RLP_ERROR_SIZE,
}

# (how a field's name begins, how it ends, what is wrong; None for anything) → the reason. The first that fits counts.
_REASONS: tuple[tuple[str, str, Fault | None, RejectReason], ...] = (
    ("transaction", "", Fault.TOO_FEW, R.RLP_TOO_FEW_ELEMENTS),
    ("transaction", "", Fault.TOO_MANY, R.RLP_TOO_MANY_ELEMENTS),
    ("transaction", "", None, R.RLP_INVALID_HEADER),
    ("chain_id", "", None, R.INVALID_CHAINID),
    ("nonce", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_NONCE),
    ("nonce", "", Fault.OVERFLOW, R.NONCE_OVERFLOW),
    ("nonce", "", None, R.RLP_INVALID_NONCE),
    ("gas_limit", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_GASLIMIT),
    ("gas_limit", "", Fault.OVERFLOW, R.GASLIMIT_OVERFLOW),
    ("gas_limit", "", None, R.RLP_INVALID_GASLIMIT),
    ("gas_price", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_GASPRICE),
    ("gas_price", "", Fault.OVERFLOW, R.GASPRICE_OVERFLOW),
    ("max_fee", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_BASEFEE),
    ("max_fee", "", Fault.OVERFLOW, R.GASPRICE_OVERFLOW),
    ("max_priority_fee", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_PRIORITY_FEE),
    ("max_priority_fee", "", Fault.OVERFLOW, R.PRIORITY_OVERFLOW),
    ("value", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_VALUE),
    ("value", "", Fault.OVERFLOW, R.VALUE_OVERFLOW),
    ("value", "", None, R.RLP_INVALID_VALUE),
    ("to", "", Fault.TOO_SHORT, R.ADDRESS_TOO_SHORT),
    ("to", "", Fault.TOO_LONG, R.ADDRESS_TOO_LONG),
    ("to", "", None, R.RLP_INVALID_TO),
    ("access_list", ".address", Fault.TOO_LONG, R.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_LONG),
    ("access_list", ".address", Fault.TOO_SHORT, R.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_SHORT),
    ("access_list", ".key", Fault.TOO_LONG, R.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_LONG),
    ("access_list", ".key", Fault.TOO_SHORT, R.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_SHORT),
    ("blob_hashes", "", None, R.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH),
    ("authorizations", ".y_parity", Fault.OVERFLOW, R.TYPE_4_INVALID_AUTHORITY_SIGNATURE),
    ("authorizations", ".r", Fault.OVERFLOW, R.TYPE_4_INVALID_AUTHORITY_SIGNATURE),
    ("authorizations", ".s", Fault.OVERFLOW, R.TYPE_4_INVALID_AUTHORITY_SIGNATURE),
    ("authorizations", "", None, R.TYPE_4_INVALID_AUTHORIZATION_FORMAT),
    ("v", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_V),
    ("v", "", None, R.INVALID_SIGNATURE_VRS),
    ("y_parity", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_V),
    ("y_parity", "", None, R.INVALID_SIGNATURE_VRS),
    ("r", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_R),
    ("r", "", None, R.RLP_INVALID_SIGNATURE_R),
    ("s", "", Fault.LEADING_ZEROS, R.RLP_LEADING_ZEROS_S),
    ("s", "", None, R.RLP_INVALID_SIGNATURE_S),
    ("", "", None, R.RLP_INVALID_DATA),
)


def _reason(error: BadField) -> RejectReason:
    for start, end, fault, reason in _REASONS:
        head = error.name.partition(".")[0].partition("[")[0]
        if (not start or head == start) and error.name.endswith(end) and fault in (None, error.fault):
            return reason
    raise AssertionError("the last row fits everything")
