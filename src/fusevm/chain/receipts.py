"""Receipts as blocks commit to them, and the blooms of their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fusevm.chain.rlp import Item, encode, natural
from fusevm.chain.state import Log
from fusevm.evm.keccak import keccak256

BLOOM_SIZE = 256
NO_LOGS = bytes(BLOOM_SIZE)  # their bloom


@dataclass(frozen=True)
class BlockReceipt:
    """What became of a transaction of a block."""

    type: int
    succeeded: bool
    cumulative_gas: int  # of the block, this transaction's included
    logs: Sequence[Log]
    post_state: bytes | None = None  # the state root after it, until Byzantium has the status instead (EIP-658)
    # what is known beside it, and not committed to
    gas_used: int = field(default=0, compare=False)
    gas_price: int = field(default=0, compare=False)
    created: bytes | None = field(default=None, compare=False)
    output: bytes = field(default=b"", compare=False)

    @cached_property
    def bloom(self) -> bytes:
        return bloom_of(self.logs)

    @cached_property
    def encoded(self) -> bytes:
        status = natural(self.succeeded) if self.post_state is None else self.post_state
        body = encode([status, natural(self.cumulative_gas), self.bloom, [_log_item(log) for log in self.logs]])
        return bytes((self.type,)) + body if self.type else body


def _log_item(log: Log) -> Item:
    return [log.address, [topic.to_bytes(32, "big") for topic in log.topics], log.data]


def bloom_of(logs: Sequence[Log]) -> bytes:
    """2,048 bits; each address and topic sets three."""
    if not logs:
        return NO_LOGS
    bits = 0
    for log in logs:
        for entry in (log.address, *(topic.to_bytes(32, "big") for topic in log.topics)):
            bits |= bloom_bits(entry)
    return bits.to_bytes(BLOOM_SIZE, "big")


def bloom_bits(entry: bytes) -> int:
    """The three bits of an address or a topic."""
    bits, digest = 0, keccak256(entry)
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & 0x7FF)
    return bits


def union_of(blooms: Sequence[bytes]) -> bytes:
    if len(blooms) == 1:
        return blooms[0]
    bits = 0
    for bloom in blooms:
        bits |= int.from_bytes(bloom, "big")
    return bits.to_bytes(BLOOM_SIZE, "big")
