"""Blocks by number and hash, and how many transactions and uncles they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.environment import blob_base_fee_of
from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import PENDING, Mined
from fusevm.rpc.forms import block_form, receipt_form
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


def count_by_number(session: Session, tag: Any) -> Any:
    form = by_number(session, tag)
    return None if form is None else hex(len(form["transactions"]))


def count_by_hash(session: Session, block_hash: Any) -> Any:
    form = by_hash(session, block_hash)
    return None if form is None else hex(len(form["transactions"]))


def uncles_by_number(session: Session, tag: Any) -> Any:
    form = by_number(session, tag)
    return None if form is None else hex(len(form["uncles"]))


def uncles_by_hash(session: Session, block_hash: Any) -> Any:
    form = by_hash(session, block_hash)
    return None if form is None else hex(len(form["uncles"]))


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
    step = session.dev.chain.step_of(block.hash)
    return 0 if step.blobs is None else blob_base_fee_of(block.header.excess_blob_gas or 0, step.blobs.fraction)


METHODS = {
    "eth_blockNumber": block_number,
    "eth_getBlockByNumber": by_number,
    "eth_getBlockByHash": by_hash,
    "eth_getBlockTransactionCountByNumber": count_by_number,
    "eth_getBlockTransactionCountByHash": count_by_hash,
    "eth_getUncleCountByBlockNumber": uncles_by_number,
    "eth_getUncleCountByBlockHash": uncles_by_hash,
    "eth_getUncleByBlockNumberAndIndex": no_uncle,
    "eth_getUncleByBlockHashAndIndex": no_uncle,
    "eth_getBlockReceipts": receipts,
    "erigon_getHeaderByNumber": header_by_number,
    "anvil_getGenesisTime": genesis_time,
}
