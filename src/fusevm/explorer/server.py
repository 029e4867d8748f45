"""The page over HTTP and what it asks over a WebSocket, on this machine alone, for clients with the token."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from fusevm.explorer.bundle import POLICY, TYPES, asset
from fusevm.explorer.jobs import failure
from fusevm.explorer.session import ExplorerSession
from fusevm.explorer.settings import FORKS, MAX_SOURCE, ExplorerSettings
from fusevm.explorer.workers import Cancelled, ExplorerWorker
from fusevm.values import BadValue

MAX_MESSAGE = 4 * MAX_SOURCE  # bytes
MAX_PAGES = 8  # open at a time: each has a worker process
MAX_WAITING = 20  # questions of a page
JOB_SECONDS = 60.0
SPARE_SECONDS = 5.0  # after a page was opened, when the worker of the next one is started


class ExplorerServer:
    """Serves until it is closed. `hosts` are the names under which browsers may know it."""

    def __init__(self, settings: ExplorerSettings, *, seconds: float = JOB_SECONDS, token: str | None = None) -> None:
        self.settings = settings
        self.seconds = seconds
        self.token = token or secrets.token_urlsafe(24)
        self.pages: set[Page] = set()
        self._spare: ExplorerWorker | None = None
        self._later: asyncio.TimerHandle | None = None
        guard = web.middleware(lambda request, handler: self._guarded(request, handler))
        self.app = web.Application(client_max_size=1 << 16, middlewares=[guard])
        self.app.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/ws", self._socket),
                web.get("/{token}/{name}", self._asset),
            ]
        )

    def prepare(self) -> None:
        """A worker for the next page explains what that page will ask for first, while the browser is still opening."""
        if self._spare is None:
            self._spare = ExplorerWorker(self.seconds)
            self._spare.prepare(ExplorerSession(self.settings, self._spare).job("explain"))

    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """No page of another site reads or asks anything: not by guessing, not by a name that leads here."""
        if not _is_own(request.headers.get("Host", ""), request):
            return web.Response(status=421, text="this server answers on 127.0.0.1 alone\n")
        given = request.match_info.get("token", "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return web.Response(status=404, text="open the address that fusevm explore printed\n")
        response: web.StreamResponse = await handler(request)
        return response

    async def _page(self, request: web.Request) -> web.Response:
        return _file("page.html")

    async def _asset(self, request: web.Request) -> web.Response:
        return _file(request.match_info["name"])

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if origin is not None and not _is_own(origin.removeprefix("http://"), request):
            return web.Response(status=403, text="a page of another site\n")
        if len(self.pages) >= MAX_PAGES:
            return web.Response(status=503, text=f"{MAX_PAGES} pages are open; close one\n")
        worker, self._spare = self._spare or ExplorerWorker(self.seconds), None
        page = Page(ExplorerSession(self.settings, worker))
        self.pages.add(page)
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_later(SPARE_SECONDS, self.prepare)
        try:
            await page.serve(request)
        finally:
            self.pages.discard(page)
        return page.socket

    async def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        if self._spare is not None:
            await self._spare.stop()
        for page in list(self.pages):
            await page.socket.close(code=WSCloseCode.GOING_AWAY)


def _is_own(host: str, request: web.Request) -> bool:
    """Whether a Host or Origin names this machine, with the port that the request came in on."""
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    port = name[1] if name else None
    return host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}")


def _file(name: str) -> web.Response:
    body, kind = asset(name), TYPES.get(PurePosixPath(name).suffix)
    if body is None or kind is None:
        return web.Response(status=404, text="not a file of the page\n", headers=POLICY)
    return web.Response(body=body, content_type=kind, charset="utf-8", headers=POLICY)


class Page:
    """An open page: its socket, and the questions that wait for the worker, answered one by one."""

    def __init__(self, session: ExplorerSession) -> None:
        self.session = session
        self.socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, heartbeat=30.0, compress=False)
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_WAITING)
        self._sending: set[asyncio.Task[None]] = set()
        self._current: Any = None

    async def serve(self, request: web.Request) -> None:
        await self.socket.prepare(request)
        hello = {"hello": {"settings": self.session.settings.to_json(), "forks": FORKS, "most_source": MAX_SOURCE}}
        await self._send(json.dumps(hello))
        answering = asyncio.create_task(self._answer_all())
        try:
            async for message in self.socket:
                if message.type == WSMsgType.TEXT:
                    await self._asked(message.data)
        finally:
            answering.cancel()
            self.session.worker.cancel()
            with suppress(asyncio.CancelledError):
                await answering
            await self.session.worker.stop()

    async def _asked(self, text: str) -> None:
        try:
            asked = json.loads(text)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            await self._send(json.dumps({"id": None, "error": failure(BadValue("a message is a JSON object"))}))
        elif asked.get("do") == "cancel":
            self._cancel()
        else:
            try:
                self._waiting.put_nowait(asked)
            except asyncio.QueueFull:
                busy = BadValue(f"{MAX_WAITING} questions wait already; cancel, or wait for the answers")
                await self._send(json.dumps({"id": asked.get("id"), "error": failure(busy)}))

    def _cancel(self) -> None:
        """Ends the job that runs and those that wait; each is answered."""
        while not self._waiting.empty():
            left = self._waiting.get_nowait()
            self._later(json.dumps({"id": left.get("id"), "error": _CANCELLED}))
        if self._current is not None:
            self.session.worker.cancel()

    async def _answer_all(self) -> None:
        while True:
            asked = await self._waiting.get()
            self._current = asked
            number = json.dumps(asked.get("id"))
            try:
                answer = await self.session.answer(asked, partial(self._progress, number))
            except Cancelled:
                answer = json.dumps({"error": _CANCELLED}).encode()
            except TimeoutError:
                late = RuntimeError(f"stopped after {self.session.worker.seconds:g} s; try a smaller source")
                answer = json.dumps({"error": failure(late)}).encode()
            except Exception as error:
                answer = json.dumps({"error": failure(error)}).encode()
            self._current = None
            # The answer is JSON already: the number goes in front of its first key.
            await self._send(f'{{"id":{number},' + answer[1:].decode())

    def _progress(self, number: str, text: str) -> None:
        self._later(f'{{"id":{number},"progress":{json.dumps(text)}}}')

    def _later(self, text: str) -> None:
        task = asyncio.ensure_future(self._send(text))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, text: str) -> None:
        with suppress(ConnectionError, RuntimeError):  # the page was closed meanwhile
            await self.socket.send_str(text)


_CANCELLED = {"message": "cancelled", "line": None, "column": None}
