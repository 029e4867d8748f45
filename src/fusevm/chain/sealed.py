"""Blocks as the wire has them: header, transactions, ommers, withdrawals; and the roots that headers commit to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fusevm.chain.fields import ADDRESS, UINT64, BadField, Field, as_list, read_fields, write_fields
from fusevm.chain.header import Header, field_reason, header_from_item
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected
from fusevm.chain.rlp import Item, MalformedRLP, decode, encode, list_of, natural
from fusevm.chain.signed import SignedTransaction, transaction_from_item
from fusevm.chain.trie import EMPTY_ROOT, packed_path, trie_root
from fusevm.evm.keccak import keccak256

GWEI = 10**9


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """EIP-4895: ether that comes from the consensus layer."""

    index: int
    validator: int
    address: bytes
    amount: int  # in gwei


_WITHDRAWAL = (
    Field("index", UINT64),
    Field("validator", UINT64),
    Field("address", ADDRESS),
    Field("amount", UINT64),
)


@dataclass(frozen=True)
class SealedBlock:
    """A block with its header. `withdrawals` is None before Shanghai."""

    header: Header
    transactions: tuple[SignedTransaction, ...] = ()
    ommers: tuple[Header, ...] = ()
    withdrawals: tuple[Withdrawal, ...] | None = None

    @property
    def hash(self) -> bytes:
        return self.header.hash

    @property
    def number(self) -> int:
        return self.header.number

    @cached_property
    def encoded(self) -> bytes:
        ommers = [ommer.item for ommer in self.ommers]
        parts: list[Item] = [self.header.item, [tx.item for tx in self.transactions], ommers]
        if self.withdrawals is not None:
            parts.append([write_fields(_WITHDRAWAL, each) for each in self.withdrawals])
        return encode(parts)


def decode_block(data: bytes) -> SealedBlock:
    """A block from its encoding. Raises InvalidBlock, with the reason, for what is not one."""
    try:
        parts = as_list(decode(data), "block")
        if len(parts) not in (3, 4):
            raise InvalidBlock(BlockReason.RLP_STRUCTURES_ENCODING, f"a block of {len(parts)} parts, not 3 or 4")
        header = header_from_item(parts[0])
        transactions = tuple(map(transaction_from_item, as_list(parts[1], "transactions")))
        ommers = tuple(map(header_from_item, as_list(parts[2], "ommers")))
        withdrawals = withdrawals_from_item(parts[3]) if len(parts) == 4 else None
    except MalformedRLP as error:
        raise InvalidBlock(BlockReason.RLP_STRUCTURES_ENCODING, str(error)) from None
    except BadField as error:
        raise InvalidBlock(field_reason(error), str(error)) from None
    except Rejected as error:
        raise InvalidBlock(error.reason, error.detail) from None
    block = SealedBlock(header, transactions, ommers, withdrawals)
    block.__dict__["encoded"] = data  # strict decoding: encoding it again gives the same bytes
    return block


def withdrawals_from_item(item: Item) -> tuple[Withdrawal, ...]:
    listed = as_list(item, "withdrawals")
    return tuple(Withdrawal(*read_fields(_WITHDRAWAL, each, "withdrawal")) for each in listed)


# -- what headers commit to


_FIRST_LEAF = encode(packed_path(encode(natural(0)).hex(), leaf=True))  # the path of the only entry of a list


def list_root(encodings: Sequence[bytes]) -> bytes:
    """The root of a trie from RLP-encoded places to values."""
    if not encodings:
        return EMPTY_ROOT
    if len(encodings) == 1:  # a development chain's blocks are mostly such
        return keccak256(list_of(_FIRST_LEAF + encode(encodings[0])))
    return trie_root((encode(natural(place)), value) for place, value in enumerate(encodings))


def transactions_root(transactions: Sequence[SignedTransaction]) -> bytes:
    return list_root([tx.encoded for tx in transactions])


def withdrawals_root(withdrawals: Sequence[Withdrawal]) -> bytes:
    return list_root([encode(write_fields(_WITHDRAWAL, each)) for each in withdrawals])


def ommers_hash(ommers: Sequence[Header]) -> bytes:
    return keccak256(encode([ommer.item for ommer in ommers]))
