"""Blocks by number and hash, and how many transactions and uncles they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import Mined, block_form, receipt_form
from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import PENDING
from fusevm.rpc.values import which_or_none
from fusevm.values import to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session


def block_number(session: Session) -> str:
    return hex(session.dev.head.number)


def by_number(session: Session, tag: Any, full: Any = False) -> Any:
    which = which_or_none(session, tag)
    if which is None:
        return None
    if (upstream := session.upstream_for(which)) is not None:
        return upstream.ask("eth_getBlockByNumber", hex(int(which)), bool(full))
    if which == PENDING:
        with session.dev.pending_block() as (block, receipts):
            return block_form(block, receipts, full=bool(full), pending=True)
    return _form(session, session.dev.chain.block(which), bool(full))


def by_hash(session: Session, block_hash: Any, full: Any = False) -> Any:
    found = to_hash(block_hash, "block hash")
    if session.dev.chain.knows(found):
        return _form(session, session.dev.chain.block(found), bool(full))
    if session.upstream is not None:
        return session.upstream.ask("eth_getBlockByHash", block_hash, bool(full))
    return None


def _form(session: Session, block: SealedBlock, full: bool) -> Any:
    return block_form(block, session.dev.chain.receipts(block.hash), full=full)


def counted(find: Callable[[Session, Any], Any], what: str) -> Callable[[Session, Any], Any]:
    """How many transactions or uncles the block has that a method finds."""

    def count(session: Session, block: Any) -> Any:
        form = find(session, block)
        return None if form is None else hex(len(form[what]))

    return count


def no_uncle(session: Session, block: Any, index: Any) -> None:
    """Blocks of this chain have none."""


def receipts(session: Session, tag: Any) -> Any:
    which = which_or_none(session, tag)
    if (upstream := session.upstream_for(which, tag)) is not None:
        return upstream.ask("eth_getBlockReceipts", tag if which is None else hex(int(which)))
    if which is None:
        return None
    block = session.dev.head if which == PENDING else session.dev.chain.block(which)
    found = session.dev.chain.receipts(block.hash)
    fee = blob_fee(session, block)
    return [
        receipt_form(Mined(signed, block, index, found), fee) for index, signed in enumerate(block.transactions)
    ]  # fmt: skip


def header_by_number(session: Session, tag: Any) -> Any:
    form = by_number(session, tag)
    if form is not None:
        for name in ("transactions", "withdrawals"):
            form.pop(name, None)
    return form


def genesis_time(session: Session) -> int:
    return session.dev.chain.genesis.block.header.timestamp


def blob_fee(session: Session, block: SealedBlock) -> int:
    """The price of blob gas in a block."""
    return session.dev.chain.step_of(block.hash).blob_price(block.header.excess_blob_gas)


METHODS = {
    "eth_blockNumber": block_number,
    "eth_getBlockByNumber": by_number,
    "eth_getBlockByHash": by_hash,
    "eth_getBlockTransactionCountByNumber": counted(by_number, "transactions"),
    "eth_getBlockTransactionCountByHash": counted(by_hash, "transactions"),
    "eth_getUncleCountByBlockNumber": counted(by_number, "uncles"),
    "eth_getUncleCountByBlockHash": counted(by_hash, "uncles"),
    "eth_getUncleByBlockNumberAndIndex": no_uncle,
    "eth_getUncleByBlockHashAndIndex": no_uncle,
    "eth_getBlockReceipts": receipts,
    "erigon_getHeaderByNumber": header_by_number,
    "anvil_getGenesisTime": genesis_time,
}
