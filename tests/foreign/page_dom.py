"""Prints what a page of a browser shows, once it contains a text: `page_dom.py PORT TEXT`, by the DevTools protocol."""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp

SECONDS = 30


async def shown(port: str, text: str) -> str:
    found = ""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            (page,) = [each for each in await answer.json() if each["type"] == "page"]
        async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            until = time.monotonic() + SECONDS
            while text not in found and time.monotonic() < until:
                expression = {"expression": "document.body ? document.body.outerHTML : ''"}
                await socket.send_json({"id": 1, "method": "Runtime.evaluate", "params": expression})
                answer = (await socket.receive_json()).get("result", {})  # an error while one page follows another
                found = answer.get("result", {}).get("value", "")
                await asyncio.sleep(0.2)
    return found


print(asyncio.run(shown(*sys.argv[1:])))
