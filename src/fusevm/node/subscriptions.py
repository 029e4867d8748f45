"""eth_subscribe: what a WebSocket's client subscribes to, and the messages for a block or a transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.rpc.errors import invalid
from fusevm.rpc.filters import LogQuery
from fusevm.rpc.forms import header_form, transaction_form
from fusevm.rpc.values import data
from fusevm.values import shown

KINDS = ("newHeads", "logs", "newPendingTransactions", "syncing")
MOST = 1_000  # subscriptions of one client


class Subscriptions:
    """Those of one client, by id."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, Any]] = {}

    def subscribe(self, params: Any) -> str:
        kind = params[0] if isinstance(params, list) and params else None
        option = params[1] if isinstance(params, list) and len(params) > 1 else None
        if kind not in KINDS:
            raise invalid(f"eth_subscribe: {shown(kind)} is not one of {', '.join(KINDS)}")
        if len(self._kinds) >= MOST:
            raise invalid(f"eth_subscribe: this client has {MOST} subscriptions already; end some by eth_unsubscribe")
        wanted = LogQuery.read(option or {}) if kind == "logs" else option
        number = "0x" + secrets.token_hex(16)
        self._kinds[number] = kind, wanted
        return number

    def unsubscribe(self, params: Any) -> bool:
        number = params[0] if isinstance(params, list) and params else None
        return isinstance(number, str) and self._kinds.pop(number, None) is not None

    def of_block(self, block: SealedBlock, receipts: tuple[BlockReceipt, ...]) -> Iterator[dict[str, Any]]:
        for number, (kind, wanted) in list(self._kinds.items()):
            if kind == "newHeads":
                yield _told(number, header_form(block.header))
            elif kind == "logs":
                for log in wanted.found_in(block, receipts):
                    yield _told(number, log)

    def of_transaction(self, signed: SignedTransaction) -> Iterator[dict[str, Any]]:
        for number, (kind, wanted) in list(self._kinds.items()):
            if kind == "newPendingTransactions":
                yield _told(number, transaction_form(signed) if wanted is True else data(signed.hash))


def _told(number: str, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "eth_subscription", "params": {"subscription": number, "result": result}}
