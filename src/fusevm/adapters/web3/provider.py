"""Providers that answer requests from a development chain, without a server and without eth-tester in between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, Literal

from web3 import Web3
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.providers.base import JSONBaseProvider

from fusevm.chain.forms import transaction_form
from fusevm.chain.signed import decode_transaction
from fusevm.rpc.dispatch import one
from fusevm.rpc.session import Session
from fusevm.rpc.start import Config
from fusevm.values import to_bytes


def _session(chain: Session | Config | None) -> Session:
    return chain if isinstance(chain, Session) else Session(chain)


class FusevmProvider(JSONBaseProvider):  # type: ignore[misc]
    """Of a chain of its own, as configured, or of a session that is given: `session.dev` is the chain."""

    def __init__(self, chain: Session | Config | None = None) -> None:
        super().__init__()
        self.session = _session(chain)
        self._ids = count(1)

    def make_request(self, method: str, params: Any) -> Any:
        return _answer(self.session, next(self._ids), method, params)

    def make_batch_request(self, requests: list[tuple[str, Any]]) -> Any:
        return [self.make_request(method, params) for method, params in requests]

    def is_connected(self, show_traceback: bool = False) -> Literal[True]:
        return True


class AsyncFusevmProvider(AsyncJSONBaseProvider):  # type: ignore[misc]
    """The same for `AsyncWeb3`. A request runs to its end before another begins."""

    def __init__(self, chain: Session | Config | None = None) -> None:
        super().__init__()
        self.session = _session(chain)
        self._ids = count(1)

    async def make_request(self, method: str, params: Any) -> Any:
        return _answer(self.session, next(self._ids), method, params)

    async def make_batch_request(self, requests: list[tuple[str, Any]]) -> Any:
        return [await self.make_request(method, params) for method, params in requests]

    async def is_connected(self, show_traceback: bool = False) -> Literal[True]:
        return True


def _answer(session: Session, number: int, method: str, params: Any) -> Any:
    """Parameters are what would come over the wire: web3.py has tuples and bytes of its own types."""
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": json.loads(Web3.to_json(list(params)))}
    return one(asked, partial(_asked, session))


def _asked(session: Session, method: str, params: Sequence[Any]) -> Any:
    """web3.py reads a signed transaction as geth has it: the bytes and the fields. anvil has the bytes alone."""
    found = session.request(method, params)
    if method == "eth_signTransaction":
        return {"raw": found, "tx": transaction_form(decode_transaction(to_bytes(found)))}
    return found
