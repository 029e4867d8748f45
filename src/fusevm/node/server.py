"""HTTP and WebSocket on one port, with aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.node.http_fast_path import CROSS_ORIGIN, PlainHttp
from fusevm.node.page import PAGE, POLICY
from fusevm.node.scheduler import Later, Scheduler, encoded
from fusevm.node.subscriptions import News, Subscriptions, Told, of_block, of_head, of_transaction
from fusevm.rpc.dispatch import MAX_IN_BATCH, failure, parse
from fusevm.rpc.errors import INVALID_REQUEST, RpcError, translated
from fusevm.rpc.session import Session

MAX_BYTES = 64 << 20  # of a request
MAX_WAITING = 10_000  # answers, and news of blocks, for a client that does not read


class Client:
    """A WebSocket: what it subscribes to, and what waits to be sent."""

    def __init__(self) -> None:
        self.socket = web.WebSocketResponse(max_msg_size=MAX_BYTES, heartbeat=30.0)
        self.subscriptions = Subscriptions()
        self.waiting: asyncio.Queue[bytes | Told] = asyncio.Queue(MAX_WAITING)
        self.is_cut_off = False

    def put(self, message: bytes | Told) -> None:
        """A client that does not read what it asked for is cut off, and told nothing more."""
        if self.is_cut_off:
            return
        try:
            self.waiting.put_nowait(message)
        except asyncio.QueueFull:
            self.is_cut_off = True
            asyncio.ensure_future(self.socket.close(code=WSCloseCode.TRY_AGAIN_LATER))  # noqa: RUF006

    async def send_all(self) -> None:
        while True:
            found = await self.waiting.get()
            for message in (found.decode(),) if isinstance(found, bytes) else found.messages():
                await self.socket.send_str(message)


class NodeServer:
    """Answers requests from a session; blocks are mined at intervals where that is wanted."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.scheduler = Scheduler(session)
        self.clients: set[Client] = set()
        self.connections: set[PlainHttp] = set()
        self._interval_changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        session.on_block.append(self._on_block)
        session.on_pending.append(self._on_pending)
        session.on_head.append(self._on_head)
        self.app = web.Application(client_max_size=MAX_BYTES)
        self.app.add_routes(
            [web.post("/", self.post), web.get("/", self.get), web.options("/", self.options), web.get("/ws", self.get)]
        )

    # -- HTTP

    def protocol(self, other: Callable[[], asyncio.Protocol]) -> PlainHttp:
        """For a new connection; `other` makes aiohttp's."""
        return PlainHttp(self.begin, other, self.connections, MAX_BYTES, self.scheduler.catch_up)

    async def post(self, request: web.Request) -> web.Response:
        body = await self.answer(await request.read())
        if body is None:
            return web.Response(status=204, headers=CROSS_ORIGIN)
        return web.Response(body=body, content_type="application/json", headers=CROSS_ORIGIN)

    async def options(self, request: web.Request) -> web.Response:
        return web.Response(status=204, headers=CROSS_ORIGIN)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """A WebSocket where one is asked for; else the page for people."""
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._connected(request)
        return web.Response(text=PAGE, content_type="text/html", headers=POLICY)

    def begin(self, body: bytes | str, client: Client | None = None) -> bytes | Awaitable[bytes | None] | None:
        """What to send back for a body, which may be a batch: now, or once it is awaited. Then `Scheduler.catch_up`."""
        try:
            asked = parse(body)
        except RpcError as error:
            return encoded(failure(None, error))
        if not isinstance(asked, list):
            return self._one(asked, client)
        if not 0 < len(asked) <= MAX_IN_BATCH:
            text = f"Invalid request: a batch of {len(asked)}; send from 1 to {MAX_IN_BATCH} at once"
            return encoded(failure(None, RpcError(INVALID_REQUEST, text)))
        return self._batch(asked, client)

    async def answer(self, body: bytes | str, client: Client | None = None) -> bytes | None:
        """As `begin`, and waited for; nothing is left to do after it."""
        found = await _awaited(self.begin(body, client))
        self.scheduler.catch_up()
        return found

    def _one(self, asked: Any, client: Client | None) -> bytes | Awaitable[bytes | None] | None:
        method = asked.get("method") if isinstance(asked, dict) else None
        if client is not None and method in ("eth_subscribe", "eth_unsubscribe"):
            return encoded(self._subscribed(asked, client))
        found = self.scheduler.now(asked)
        return self._later(asked, found) if isinstance(found, Later) else found

    async def _later(self, asked: Any, why: Later) -> bytes | None:
        found = await self.scheduler.later(asked, why)
        if self.session.interval != self._interval:
            self._interval_changed.set()
        return found

    async def _batch(self, asked: list[Any], client: Client | None) -> bytes | None:
        answers = [found for each in asked if (found := await _awaited(self._one(each, client))) is not None]
        return b"[" + b",".join(answers) + b"]" if answers else None

    # -- WebSocket

    async def _connected(self, request: web.Request) -> web.WebSocketResponse:
        client = Client()
        await client.socket.prepare(request)
        self.clients.add(client)
        sender = asyncio.create_task(client.send_all())
        try:
            async for message in client.socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    answer = await self.answer(message.data, client)
                    if answer is not None:
                        client.put(answer)
        finally:
            self.clients.discard(client)
            sender.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sender
        return client.socket

    def _subscribed(self, asked: dict[str, Any], client: Client) -> dict[str, Any]:
        try:
            if self.scheduler.talk is not None:
                self.scheduler.talk.asked(asked)
            own = client.subscriptions
            act = own.subscribe if asked["method"] == "eth_subscribe" else own.unsubscribe
            return {"jsonrpc": "2.0", "id": asked.get("id"), "result": act(asked.get("params"))}
        except Exception as error:
            return failure(asked.get("id"), translated(error))

    def _on_block(self, block: SealedBlock) -> None:
        """On the chain's thread: messages are made here, and handed over."""
        self._tell(of_block(block, self.session.dev.chain.receipts(block.hash), encoded))

    def _on_head(self, block: SealedBlock) -> None:
        self._tell(of_head(block, encoded))

    def _on_pending(self, signed: SignedTransaction) -> None:
        self._tell(of_transaction(signed, encoded))

    def _tell(self, news: News) -> None:
        listed = [
            (client, told) for client in list(self.clients) if not client.is_cut_off
            for told in client.subscriptions.told(news)
        ]  # fmt: skip
        if listed:
            self._loop.call_soon_threadsafe(self._put_all, listed)

    def _put_all(self, listed: list[tuple[Client, Told]]) -> None:
        for client, told in listed:
            client.put(told)

    # -- blocks at intervals

    _interval: float | None = None

    async def mine_at_intervals(self) -> None:
        """Until it is cancelled."""
        while True:
            self._interval = self.session.interval
            self._interval_changed.clear()
            try:
                await asyncio.wait_for(self._interval_changed.wait(), self._interval)
            except TimeoutError:
                await self.scheduler.on_chain(self.session.mine)

    async def close(self) -> None:
        for each in list(self.connections):
            each.close()
        for client in list(self.clients):
            await client.socket.close(code=WSCloseCode.GOING_AWAY)
        await asyncio.to_thread(self.scheduler.close)


async def _awaited(found: bytes | Awaitable[bytes | None] | None) -> bytes | None:
    return found if found is None or isinstance(found, bytes) else await found
