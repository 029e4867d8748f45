"""Prints what a page of a browser shows, once it contains a text: `page_dom.py PORT TEXT`, by the DevTools protocol."""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp

SECONDS = 30


async def debugger_of(session: aiohttp.ClientSession, port: str, until: float) -> str:
    """Of the one page there is; it comes a moment after the browser."""
    while True:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            pages = [each for each in await answer.json() if each["type"] == "page"]
        if len(pages) == 1 or time.monotonic() > until:
            (page,) = pages
            return str(page["webSocketDebuggerUrl"])
        await asyncio.sleep(0.05)


async def shown(port: str, text: str) -> str:
    found = ""
    async with aiohttp.ClientSession() as session:
        until = time.monotonic() + SECONDS
        async with session.ws_connect(await debugger_of(session, port, until), max_msg_size=0) as socket:
            while text not in found and time.monotonic() < until:
                expression = {"expression": "document.body ? document.body.outerHTML : ''"}
                await socket.send_json({"id": 1, "method": "Runtime.evaluate", "params": expression})
                answer = (await socket.receive_json()).get("result", {})  # an error while one page follows another
                found = answer.get("result", {}).get("value", "")
                await asyncio.sleep(0.2)
    return found


print(asyncio.run(shown(*sys.argv[1:])))
