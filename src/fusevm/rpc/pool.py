"""The transaction pool: admission, replacement, and txpool_*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.signed import SignedTransaction
from fusevm.rpc.errors import TRANSACTION_REJECTED, RpcError
from fusevm.rpc.forms import transaction_form
from fusevm.rpc.values import data

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

REPLACING_PERCENT = 110  # of the price of the one that is replaced


def add(session: Session, signed: SignedTransaction) -> bool:
    """Adds a transaction; whether it can be in the next block. Raises Rejected, or RpcError."""
    dev = session.dev
    dev.check(signed, gaps=True)
    pending = dev.chain.pending
    place = dev.waiting.of(pending, signed.sender).get(signed.nonce)
    if place is None:
        dev.chain.submit(signed)
    else:
        other = pending[place]
        if other.hash == signed.hash:
            raise RpcError(TRANSACTION_REJECTED, f"already known: transaction {data(signed.hash)} is pending")
        if 100 * _price(signed) < REPLACING_PERCENT * _price(other):
            raise RpcError(TRANSACTION_REJECTED, "replacement transaction underpriced")
        pending[place] = signed
    return signed.nonce < dev.next_nonce(signed.sender)


def _price(signed: SignedTransaction) -> int:
    return (signed.max_fee if signed.max_fee is not None else signed.gas_price) or 0


def _split(session: Session) -> tuple[list[SignedTransaction], list[SignedTransaction]]:
    """Those that can be in the next block, and those that wait for one before them."""
    limits: dict[bytes, int] = {}
    ready: list[SignedTransaction] = []
    queued: list[SignedTransaction] = []
    for each in session.dev.chain.pending:
        if each.sender not in limits:
            limits[each.sender] = session.dev.next_nonce(each.sender)
        (ready if each.nonce < limits[each.sender] else queued).append(each)
    return ready, queued


def status(session: Session) -> Any:
    ready, queued = _split(session)
    return {"pending": hex(len(ready)), "queued": hex(len(queued))}


def content(session: Session) -> Any:
    return {name: _by_sender(each, _full) for name, each in zip(("pending", "queued"), _split(session), strict=True)}


def inspect(session: Session) -> Any:
    return {name: _by_sender(each, _brief) for name, each in zip(("pending", "queued"), _split(session), strict=True)}


def _by_sender(listed: list[SignedTransaction], form: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for each in listed:
        found.setdefault(data(each.sender), {})[str(each.nonce)] = form(each)
    return found


def _full(signed: SignedTransaction) -> Any:
    return transaction_form(signed)


def _brief(signed: SignedTransaction) -> str:
    target = "contract creation" if signed.to is None else data(signed.to)
    return f"{target}: {signed.value} wei + {signed.gas_limit} gas × {_price(signed)} wei"


METHODS = {"txpool_status": status, "txpool_content": content, "txpool_inspect": inspect}
