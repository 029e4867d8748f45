"""The transaction pool as clients see it: txpool_*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data, transaction_form
from fusevm.chain.signed import SignedTransaction

if TYPE_CHECKING:
    from fusevm.rpc.session import Session


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
    return f"{target}: {signed.value} wei + {signed.gas_limit} gas × {signed.fee_cap} wei"


METHODS = {"txpool_status": status, "txpool_content": content, "txpool_inspect": inspect}
