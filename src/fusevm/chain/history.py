"""Blocks of a chain as they are kept: whole while they are new, then packed, and unpacked when asked for."""

from __future__ import annotations

import marshal
import zlib
from functools import lru_cache
from typing import Any

from fusevm.chain.addresses import Address
from fusevm.chain.diffs import Diff
from fusevm.chain.header import Header
from fusevm.chain.logs import Log
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction, decode_transaction, sent_by

WHOLE = 128  # of the latest blocks are kept as they are
SHORT = 2048  # bytes of a block that are not compressed: to begin takes longer than building a small block should
_PLAIN, _COMPRESSED = b"p", b"c"
UNPACKED = 32  # of the others, those that were asked for last

Receipts = tuple[BlockReceipt, ...]
Contents = tuple[tuple[SignedTransaction, ...], Receipts]


class HistoryNode:
    """A block of the tree, with what importing it has shown."""

    __slots__ = ("_block", "_packed", "_receipts", "_rest", "diff", "header", "requests", "total_difficulty")

    def __init__(
        self,
        block: SealedBlock,
        total_difficulty: int,
        diff: Diff,
        receipts: Receipts,
        requests: tuple[bytes, ...] | None,
    ) -> None:
        self.header: Header = block.header
        self.total_difficulty = total_difficulty
        self.diff = diff
        self.requests = requests
        self._block: SealedBlock | None = block
        self._receipts = receipts
        self._rest = block.ommers, block.withdrawals
        self._packed = b""

    @property
    def hash(self) -> bytes:
        return self.header.hash

    @property
    def number(self) -> int:
        return self.header.number

    @property
    def block(self) -> SealedBlock:
        block = self._block  # read once: another thread may pack it
        return SealedBlock(self.header, _unpacked(self._packed)[0], *self._rest) if block is None else block

    @property
    def receipts(self) -> Receipts:
        receipts = self._receipts
        return _unpacked(self._packed)[1] if self._block is None else receipts

    def senders(self) -> list[bytes]:
        """Whose its transactions are, in order."""
        block = self._block
        if block is not None:
            return [signed.sender for signed in block.transactions]
        return [sender for _, sender in _raw(self._packed)[0]]

    def with_diff(self, diff: Diff) -> HistoryNode:
        """The same block after more was done."""
        return HistoryNode(self.block, self.total_difficulty, diff, self.receipts, self.requests)

    def pack(self) -> None:
        """Packs its transactions and receipts: less memory, slower to read."""
        block = self._block
        if block is not None:
            self._packed = _packed(block.transactions, self._receipts)
            self._block = None
            self._receipts = ()


def _packed(transactions: tuple[SignedTransaction, ...], receipts: Receipts) -> bytes:
    """For this process alone. Senders are kept: to recover them takes long, and of impersonated ones it cannot be."""
    sent = [(signed.encoded, signed.sender) for signed in transactions]
    done = [
        (
            (each.type, each.succeeded, each.cumulative_gas),
            [(bytes(log.address), tuple(log.topics), bytes(log.data)) for log in each.logs],
            (each.post_state, each.gas_used, each.gas_price, each.created and bytes(each.created), each.output),
        )
        for each in receipts
    ]
    raw = marshal.dumps((sent, done))
    return _PLAIN + raw if len(raw) < SHORT else _COMPRESSED + zlib.compress(raw, 1)


def _raw(packed: bytes) -> Any:
    return marshal.loads(packed[1:] if packed[:1] == _PLAIN else zlib.decompress(packed[1:]))


@lru_cache(UNPACKED)
def _unpacked(packed: bytes) -> Contents:
    sent, done = _raw(packed)
    return tuple(_transaction(*each) for each in sent), tuple(_receipt(*each) for each in done)


def _transaction(encoded: bytes, sender: bytes) -> SignedTransaction:
    return sent_by(decode_transaction(encoded), sender)


def _receipt(first: tuple[Any, ...], logs: list[Any], rest: tuple[Any, ...]) -> BlockReceipt:
    state, gas_used, gas_price, created, output = rest
    kind, succeeded, cumulative = first
    return BlockReceipt(
        type=kind,
        succeeded=succeeded,
        cumulative_gas=cumulative,
        logs=[Log(*log) for log in logs],
        post_state=state,
        gas_used=gas_used,
        gas_price=gas_price,
        created=None if created is None else Address(created),
        output=output,
    )
