"""Providers that answer requests from a development chain, without a server and without eth-tester in between."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal

from web3.providers.async_base import AsyncJSONBaseProvider
from web3.providers.base import JSONBaseProvider

from fusevm.devchain import DevChain
from fusevm.rpc.methods import answer
from fusevm.rpc.session import Session


def _session(chain: DevChain | Session | None) -> Session:
    return chain if isinstance(chain, Session) else Session(chain)


class FusevmProvider(JSONBaseProvider):  # type: ignore[misc]
    """Of a chain of its own, or of one that is given: `session.dev` is the chain."""

    def __init__(self, chain: DevChain | Session | None = None) -> None:
        super().__init__()
        self.session = _session(chain)
        self._ids = count(1)

    def make_request(self, method: str, params: Any) -> Any:
        return answer(self.session, {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})

    def make_batch_request(self, requests: list[tuple[str, Any]]) -> Any:
        return [self.make_request(method, params) for method, params in requests]

    def is_connected(self, show_traceback: bool = False) -> Literal[True]:
        return True


class AsyncFusevmProvider(AsyncJSONBaseProvider):  # type: ignore[misc]
    """The same for `AsyncWeb3`. A request runs to its end before another begins."""

    def __init__(self, chain: DevChain | Session | None = None) -> None:
        super().__init__()
        self.session = _session(chain)
        self._ids = count(1)

    async def make_request(self, method: str, params: Any) -> Any:
        return answer(self.session, {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})

    async def make_batch_request(self, requests: list[tuple[str, Any]]) -> Any:
        return [await self.make_request(method, params) for method, params in requests]

    async def is_connected(self, show_traceback: bool = False) -> Literal[True]:
        return True
