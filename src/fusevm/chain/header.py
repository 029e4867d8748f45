"""Block headers of every fork: which fields there are is data, and RLP is read strictly and written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusevm.chain.fields import (
    ADDRESS,
    BLOOM,
    BYTES,
    HASH,
    SEAL,
    UINT64,
    UINT256,
    BadField,
    Fault,
    Field,
    as_list,
    read_fields,
    write_fields,
)
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.rlp import Item, encode, list_of
from fusevm.chain.trie import EMPTY_ROOT
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256

ZERO_HASH, ZERO_SEAL, ZERO_BLOOM = bytes(32), bytes(8), bytes(256)
NO_OMMERS = bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")  # keccak(rlp([]))
NO_REQUESTS = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")  # sha256(b"")
MAX_GAS = (1 << 63) - 1

# The fields that each fork has added, in the order of the encoding.
ADDED: dict[Fork, tuple[Field, ...]] = {
    Fork.FRONTIER: (
        Field("parent_hash", HASH),
        Field("ommers_hash", HASH),
        Field("coinbase", ADDRESS),
        Field("state_root", HASH),
        Field("transactions_root", HASH),
        Field("receipts_root", HASH),
        Field("bloom", BLOOM),
        Field("difficulty", UINT256),
        Field("number", UINT64),
        Field("gas_limit", UINT64),
        Field("gas_used", UINT64),
        Field("timestamp", UINT64),
        Field("extra_data", BYTES),
        Field("prev_randao", HASH),  # the mix hash of proof of work, until EIP-4399
        Field("nonce", SEAL),
    ),
    Fork.LONDON: (Field("base_fee", UINT256),),
    Fork.SHANGHAI: (Field("withdrawals_root", HASH),),
    Fork.CANCUN: (
        Field("blob_gas_used", UINT64),
        Field("excess_blob_gas", UINT64),
        Field("parent_beacon_root", HASH),
    ),
    Fork.PRAGUE: (Field("requests_hash", HASH),),
}


def layout_of(fork: Fork) -> tuple[Field, ...]:
    return tuple(field for since, fields in ADDED.items() if since <= fork for field in fields)


_BY_LENGTH = {len(layout_of(fork)): layout_of(fork) for fork in ADDED}
# The same, the longest first, with the fields that a header may lack.
_LATER = [
    (layout, [field.name for field in layout[len(ADDED[Fork.FRONTIER]) :]])
    for _, layout in sorted(_BY_LENGTH.items(), reverse=True)
]
# How the fields of a header with so many begin where their size is known; None where it is not.
_BEGINNINGS = {kind: encode(bytes(size))[:-size] for kind, size in ((HASH, 32), (ADDRESS, 20), (BLOOM, 256), (SEAL, 8))}
_WRITERS = {
    size: [(field.name, _BEGINNINGS.get(field.kind), field.kind.write) for field in layout]
    for size, layout in _BY_LENGTH.items()
}


@dataclass(frozen=True)
class Header:
    """A block's header. What its fork does not have is None."""

    parent_hash: bytes = ZERO_HASH
    ommers_hash: bytes = NO_OMMERS
    coinbase: bytes = bytes(20)
    state_root: bytes = EMPTY_ROOT
    transactions_root: bytes = EMPTY_ROOT
    receipts_root: bytes = EMPTY_ROOT
    bloom: bytes = ZERO_BLOOM
    difficulty: int = 0
    number: int = 0
    gas_limit: int = 0
    gas_used: int = 0
    timestamp: int = 0
    extra_data: bytes = b""
    prev_randao: bytes = ZERO_HASH
    nonce: bytes = ZERO_SEAL
    base_fee: int | None = None
    withdrawals_root: bytes | None = None
    blob_gas_used: int | None = None
    excess_blob_gas: int | None = None
    parent_beacon_root: bytes | None = None
    requests_hash: bytes | None = None

    @cached_property
    def hash(self) -> bytes:
        return keccak256(self.encoded)

    @property
    def encoded(self) -> bytes:
        """As `encode` of its item, in one pass."""
        fields, parts = self.__dict__, list[bytes]()
        for name, beginning, write in _WRITERS[len(self.layout)]:
            if beginning is None:
                parts.append(encode(write(fields[name])))
            else:
                parts.append(beginning)
                parts.append(fields[name])
        return list_of(b"".join(parts))

    @property
    def layout(self) -> tuple[Field, ...]:
        """The fields it has: the longest layout without one that is None."""
        fields = self.__dict__
        for layout, names in _LATER:
            for name in names:
                if fields[name] is None:
                    break
            else:
                return layout
        raise AssertionError("the last layout has no such fields")

    @property
    def item(self) -> Item:
        return write_fields(self.layout, self)

    def having(self, fields: Mapping[str, Any]) -> Header:
        """The same with other values of these fields: `replace`, which takes as long as hashing it does."""
        made = object.__new__(Header)
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("hash", None)
        made.__dict__.update(fields)
        return made

    def check_format(self, fork: Fork) -> None:
        """Raises InvalidBlock where the fields are not those of the fork."""
        if self.layout != layout_of(fork):
            detail = f"{len(self.layout)} header fields, {fork.label} has {len(layout_of(fork))}"
            raise InvalidBlock(BlockReason.INCORRECT_BLOCK_FORMAT, detail)


BLANK = Header()


def header_from_item(item: Item) -> Header:
    """A header from its decoded RLP. Raises InvalidBlock for what is not one at any fork."""
    try:
        layout = _BY_LENGTH.get(len(as_list(item, "header")))
        if layout is None:
            detail = f"{len(item)} header fields; there are {', '.join(map(str, _BY_LENGTH))}, by fork"
            raise InvalidBlock(BlockReason.INCORRECT_BLOCK_FORMAT, detail)
        values: list[Any] = read_fields(layout, item, "header")
    except BadField as error:
        raise InvalidBlock(field_reason(error), str(error)) from None
    header = Header(**{field.name: value for field, value in zip(layout, values, strict=True)})
    if header.gas_limit > MAX_GAS:
        raise InvalidBlock(BlockReason.GASLIMIT_TOO_BIG, str(header.gas_limit))
    return header


def field_reason(error: BadField) -> BlockReason:
    """Why a block with such a field is refused."""
    if error.fault is Fault.OVERFLOW:
        return BlockReason.RLP_INVALID_FIELD_OVERFLOW_64
    if error.name.endswith(("coinbase", "address")) and error.fault in (Fault.TOO_SHORT, Fault.TOO_LONG):
        return BlockReason.RLP_INVALID_ADDRESS
    return BlockReason.RLP_STRUCTURES_ENCODING
