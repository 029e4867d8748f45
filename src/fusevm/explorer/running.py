"""The explorer from start to stop: listen on this machine, open the browser, serve until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from fusevm.explorer.server import ExplorerServer
from fusevm.explorer.settings import ExplorerSettings
from fusevm.values import BadValue

HOST = "127.0.0.1"
STOP_SECONDS = 2.0


def run(settings: ExplorerSettings, port: int, opens: bool, say: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM. Raises BadValue where it cannot begin."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(settings, port, opens, say))


async def _serve(settings: ExplorerSettings, port: int, opens: bool, say: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopped.set)
    server = ExplorerServer(settings)
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port, reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            raise BadValue(f"--port {port}: cannot listen on {HOST}:{port}: {error.strerror or error}") from None
        server.prepare()
        url = f"http://{HOST}:{runner.addresses[0][1]}/{server.token}/"
        say(f"Exploring at {url}")
        if opens:
            await asyncio.to_thread(webbrowser.open, url)
        await stopped.wait()
    finally:
        await server.close()
        await runner.cleanup()
