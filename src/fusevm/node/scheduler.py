"""Which thread runs a request: one for everything that touches the chain, others for calls that take long."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from fusevm.chain.outcome import TimeLimit
from fusevm.child import renewed_in_child
from fusevm.node.talk import Talk
from fusevm.rpc.dispatch import Ask, Passed, one
from fusevm.rpc.errors import SERVER_ERROR, RpcError
from fusevm.rpc.pinned import CALLS, pinned
from fusevm.rpc.session import Session
from fusevm.rpc.transactions import read_raw

try:
    import orjson

    _quick: Callable[[Any], bytes] | None = orjson.dumps
except ImportError:  # it only makes long answers quicker
    _quick = None

Found = TypeVar("Found")

# Short ones, which are most: if the chain is idle, they run at once, without a change of threads.
# A transaction is run at once where its gas limit says that it is short.
AT_ONCE = frozenset({
    "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBalance",
    "eth_getBlockByHash", "eth_getBlockByNumber", "eth_getCode", "eth_getStorageAt", "eth_getTransactionByHash",
    "eth_getTransactionCount", "eth_getTransactionReceipt", "eth_sendRawTransaction", "net_version",
})  # fmt: skip
SENDING = "eth_sendRawTransaction"
BRIEF_GAS = 1_000_000  # some milliseconds, whatever is done with it
QUICK_SECONDS = 0.1  # that a call may keep the chain's own thread busy
SLOW_THREADS = 4


class TooSlow(Passed):
    """A call was cut off on the chain's thread; it runs again elsewhere, on a state of its own."""

    def __init__(self, twin: Session) -> None:
        super().__init__()
        self.twin = twin


class Later(NamedTuple):
    """What `Scheduler.now` answers where it cannot: for the thread of the chain, or one with a session of its own."""

    twin: Session | None = None
    ask: Ask | None = None  # how the request is answered, where that is known


class Scheduler:
    """Requests in the order they come, one at a time; a call that takes too long yields to the next."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._writer = ThreadPoolExecutor(1, "fusevm-chain")
        self._slow = ThreadPoolExecutor(SLOW_THREADS, "fusevm-call")
        self._chain = renewed_in_child(threading.Lock())  # its holder may touch the chain
        self._waiting = 0  # requests for the chain's thread that are not answered yet: they are not overtaken
        self.keep: Callable[[], None] | None = None  # writes what has changed; raises OSError
        self.talk: Talk | None = None  # is told what is asked and answered

    async def on_chain(self, function: Callable[..., Found], *arguments: Any) -> Found:
        """Runs a function where nothing else touches the chain."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._alone, function, *arguments)

    def _alone(self, function: Callable[..., Found], *arguments: Any) -> Found:
        with self._chain:
            return function(*arguments)

    def now(self, asked: Any) -> bytes | Later | None:
        """The answer to a short request if the chain is idle; on the event loop's thread."""
        method, session = asked.get("method") if isinstance(asked, dict) else None, self.session
        if not isinstance(method, str) or method not in AT_ONCE or self._waiting or session.upstream is not None:
            return Later()
        if not self._chain.acquire(blocking=False):
            return Later()
        try:
            if session.block_due:
                self._make_owed()
            if method != SENDING:
                return self._answered(asked, self._ask)
            ask, is_short = self._sending(asked)
            if not is_short:
                return Later(ask=ask)
            session.defers_mining = self.keep is None
            return self._answered(asked, ask)
        except TooSlow as slow:
            return Later(slow.twin)
        finally:
            session.defers_mining = False
            self._chain.release()

    def _sending(self, asked: Mapping[str, Any]) -> tuple[Ask, bool]:
        """What sends a transaction, which is decoded here and not again; and whether that takes little time."""
        send = self.session.request if self.keep is None else self._kept
        try:
            (raw,) = asked["params"]
            signed = read_raw(self.session, raw)
        except (RpcError, LookupError, TypeError, ValueError):
            return send, True  # refused at once
        waits, dev = not self.session.automine, self.session.dev
        is_short = waits or (not dev.chain.pool.listed and signed.gas_limit <= BRIEF_GAS)
        return lambda method, _: send(method, (signed,)), is_short

    def catch_up(self) -> None:
        """Makes the block of a transaction, while its sender reads the answer; at leisure, plans the next.

        The thread that has the chain makes that block before anything else.
        """
        session = self.session
        idle = session.dev.is_planned or session.upstream is not None  # an upstream node is not asked without need
        if (session.block_due or not idle) and self._chain.acquire(blocking=False):
            try:
                if session.block_due:
                    self._make_owed()
                else:
                    session.dev.plan_ahead()
            finally:
                self._chain.release()

    def _make_owed(self) -> None:
        """The answer is not awaited any more: its failure is reported elsewhere."""
        try:
            self.session.catch_up()
        except Exception as error:
            said = {"message": "fusevm: the block could not be made; its transactions wait", "exception": error}
            asyncio.get_running_loop().call_exception_handler(said)

    async def later(self, asked: Any, why: Later) -> bytes | None:
        """The answer to a request that `now` did not answer, as JSON; None where it is a notification."""
        twin = why.twin
        if twin is None:
            self._waiting += 1
            try:
                return await self.on_chain(self._answered, asked, why.ask or self._kept)
            except TooSlow as slow:
                twin = slow.twin
            finally:
                self._waiting -= 1
        again = partial(self._answered, asked, twin.request, again=True)
        return await asyncio.get_running_loop().run_in_executor(self._slow, again)

    async def answer(self, asked: Any) -> bytes | None:
        """Now or later."""
        found = self.now(asked)
        return await self.later(asked, found) if isinstance(found, Later) else found

    def _kept(self, method: str, params: Sequence[Any]) -> Any:
        """As `_ask`; changes are written before the answer is sent."""
        try:
            found = self._ask(method, params)
        except Exception:
            with suppress(OSError):
                self._keep()
            raise
        try:
            self._keep()
        except OSError as error:
            text = f"{method}: done, but --state is not written and would not know it: {error.strerror or error}"
            raise RpcError(SERVER_ERROR, f"{text}; make room, or give another file") from None
        return found

    def _keep(self) -> None:
        if self.keep is not None:
            self.keep()

    def _ask(self, method: str, params: Sequence[Any]) -> Any:
        session = self.session
        if method not in CALLS or session.call_seconds is None or session.call_seconds <= QUICK_SECONDS:
            return session.request(method, params)
        kept, session.call_seconds = session.call_seconds, QUICK_SECONDS
        try:
            return session.request(method, params)
        except RpcError as error:
            if not isinstance(error.__cause__, TimeLimit):
                raise
            session.call_seconds = kept
            raise TooSlow(pinned(session, list(params))) from None
        finally:
            session.call_seconds = kept

    def _answered(self, asked: Any, ask: Ask, *, again: bool = False) -> bytes | None:
        if self.talk is not None and not again:
            self.talk.asked(asked)
        found = one(asked, ask)
        if self.talk is not None:
            self.talk.answered(asked, found)
        return None if found is None else encoded(found)

    def close(self) -> None:
        self._writer.shutdown(wait=True)
        self._slow.shutdown(wait=False, cancel_futures=True)


def encoded(document: Any) -> bytes:
    if _quick is not None:
        try:
            return _quick(document)
        except TypeError:  # a number of more than 64 bits
            pass
    return json.dumps(document, separators=(",", ":")).encode()
