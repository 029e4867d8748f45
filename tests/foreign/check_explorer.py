"""Runs in an environment with aiohttp: who the explorer's server answers, what it refuses, how work is stopped."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fusevm.explorer import server as server_module
from fusevm.explorer.bundle import ASSETS
from fusevm.explorer.server import MAX_MESSAGE, MAX_PAGES, MAX_WAITING, ExplorerServer
from fusevm.explorer.settings import MAX_SOURCE, ExplorerSettings

SMALL = "{\n  sstore(0, add(calldataload(0), 0))\n}\n"
# Takes the optimiser much longer than any test waits: every function calls the one before it twice.
SLOW = "{\n" + "".join(
    f"function f{n}(a, b) -> c {{ let x := add(f{n - 1}(a, b), mul(a, {n})) c := f{n - 1}(x, sub(b, x)) }}\n"
    for n in range(1, 900)
) + "function f0(a, b) -> c { c := add(mload(a), b) }\nsstore(0, f899(calldataload(0), calldatasize()))\n}"  # fmt: skip
DEPOSITS = "{ let n := add(sload(0), calldataload(4)) sstore(0, n) mstore(0, n) return(0, 32) }\n"
Here = tuple[ExplorerServer, str]


@asynccontextmanager
async def serving(source: str = SMALL, **more: Any) -> AsyncIterator[Here]:
    server = ExplorerServer(ExplorerSettings(source=source, name="small.yul"), **more)
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await server.close()
        await runner.cleanup()


class Page:
    """A page as the browser's script would be one."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.progress: list[str] = []

    async def ask(self, **question: Any) -> Any:
        await self.socket.send_json({"id": 1, **question})
        return await self.answer(1)

    async def answer(self, number: int | None) -> Any:
        while True:
            message = json.loads(await self.socket.receive_str(timeout=60))
            if "progress" in message:
                self.progress.append(message["progress"])
            elif message["id"] == number:
                return message

    async def begun(self) -> None:
        """The worker is at work: it says so."""
        while "progress" not in json.loads(await self.socket.receive_str(timeout=60)):
            pass

    def explain(self, source: str = SMALL, **more: Any) -> Coroutine[Any, Any, Any]:
        return self.ask(do="explain", settings={"source": source, "name": "x.yul", **more})


@asynccontextmanager
async def opened(here: Here) -> AsyncIterator[Page]:
    server, url = here
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/{server.token}/ws", max_msg_size=0) as socket,
    ):
        hello = json.loads(await socket.receive_str(timeout=60))["hello"]
        assert hello["settings"]["name"] == "small.yul"
        yield Page(socket)


def spoken(talk: Callable[[Page], Coroutine[Any, Any, None]], **more: Any) -> None:
    async def run() -> None:
        async with serving(**more) as here, opened(here) as page:
            await talk(page)

    asyncio.run(run())


def fetched(path: str, headers: dict[str, str] | None = None) -> tuple[int, str, Any]:
    async def run() -> tuple[int, str, Any]:
        async with serving() as (server, url), aiohttp.ClientSession() as session:
            address = aiohttp.client.URL(url + path.replace("TOKEN", server.token), encoded=True)
            given = {name: value.replace("PORT", url.rpartition(":")[2]) for name, value in (headers or {}).items()}
            async with session.get(address, headers=given) as answer:
                return answer.status, await answer.text(), answer.headers

    return asyncio.run(run())


# -- what is shown


def test_a_source_that_cannot_be_explained_leaves_the_page_with_what_it_shows() -> None:
    async def talk(page: Page) -> None:
        assert "result" in await page.explain(DEPOSITS)
        call = {"signature": "", "data": "0x" + "00" * 36, "value": "", "caller": "", "arguments": []}
        assert "result" in await page.ask(do="run", call=call)
        assert "not declared" in (await page.explain("{ sstore(0, nothing) }"))["error"]["message"]
        again = await page.ask(do="run", call=call)
        assert again["result"]["status"] == "success", "a run of the source that is shown"

    spoken(talk)


def test_large_bytecode_is_explained_at_once_and_optimised_when_the_page_asks_for_it() -> None:
    async def talk(page: Page) -> None:
        code = "60015f5501" * 1_000 + "00"
        first = (await page.explain(code))["result"]
        assert first["deferred"]
        assert first["totals"]["bytes"]["before"] == first["totals"]["bytes"]["after"]
        then = (await page.explain(code, optimised=True))["result"]
        assert not then["deferred"]

    spoken(talk)


# -- who is answered


def test_the_page_is_served_to_who_has_the_token() -> None:
    status, text, _ = fetched("/TOKEN/")
    assert status == 200
    assert '<script type="module" src="main.js">' in text


@pytest.mark.parametrize("path", ["/", "/page.html", "/wrong/", "/wrong/main.js", "/wrong/ws", "/TOKENx/"])
def test_nothing_is_served_without_the_token(path: str) -> None:
    status, text, _ = fetched(path)
    assert status == 404
    assert "<" not in text


@pytest.mark.parametrize("host", ["evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:PORT", ""])
def test_a_name_that_leads_here_is_not_answered(host: str) -> None:
    assert fetched("/TOKEN/", {"Host": host})[0] == 421


def test_localhost_is_a_name_of_this_machine() -> None:
    assert fetched("/TOKEN/", {"Host": "localhost:PORT"})[0] == 200


def test_a_page_of_another_site_opens_no_socket() -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x" * 24,
    }
    for origin in ("http://evil.example", "https://127.0.0.1:PORT.evil.example", "null", "http://127.0.0.1:1"):
        assert fetched("/TOKEN/ws", {**upgrade, "Origin": origin})[0] == 403


@pytest.mark.parametrize(
    "path", ["..%2fserver.py", "%2e%2e%2fserver.py", "..%5cserver.py", "nosuch.js", "%00", "assets"]
)
def test_no_path_leads_out_of_the_folder_of_the_page(path: str) -> None:
    assert fetched(f"/TOKEN/{path}")[0] == 404


@pytest.mark.parametrize("name", sorted(path.name for path in ASSETS.iterdir()))
def test_every_file_comes_with_the_policy(name: str) -> None:
    status, text, headers = fetched(f"/TOKEN/{name}")
    assert status == 200
    assert text == (ASSETS / name).read_text("utf-8")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


# -- what it does


def test_a_source_is_explained() -> None:
    async def talk(page: Page) -> None:
        found = (await page.explain())["result"]
        assert found["name"] == "x.yul"
        assert {"source", "yul", "bytecode"} <= {pane["id"] for pane in found["panes"]}
        assert page.progress

    spoken(talk)


def test_an_error_has_its_line() -> None:
    async def talk(page: Page) -> None:
        error = (await page.explain("{\n  sstore(0, nothing)\n}\n"))["error"]
        assert "nothing" in error["message"]
        assert error["line"] == 2

    spoken(talk)


def test_calls_are_run_one_after_the_other_on_one_state() -> None:
    async def talk(page: Page) -> None:
        await page.explain(DEPOSITS)
        call = {"signature": "add(uint256)(uint256)", "arguments": ["5"]}
        first = (await page.ask(do="run", call=call))["result"]
        second = (await page.ask(do="run", call=call))["result"]
        assert int(first["output"], 16) == 5
        assert int(second["output"], 16) == 10
        await page.ask(do="reset")
        assert int((await page.ask(do="run", call=call))["result"]["output"], 16) == 5

    spoken(talk)


def test_two_versions_are_compared() -> None:
    async def talk(page: Page) -> None:
        await page.explain()
        assert (
            "panes" in (await page.ask(do="pin", settings={"source": SMALL, "name": "x.yul", "steps": ":"}))["result"]
        )
        found = (await page.ask(do="compare"))["result"]
        assert set(found["totals"]) >= {"bytes", "gas"}

    spoken(talk)


@pytest.mark.parametrize("part", ["schedule", "graph", "machine"])
def test_parts_that_take_long_are_made_when_they_are_asked_for(part: str) -> None:
    async def talk(page: Page) -> None:
        assert part in (await page.explain())["result"]["pending"]
        found = (await page.ask(do="part", part=part))["result"]
        assert found["blocks"] if part == "graph" else found["lines"]

    spoken(talk)


def test_an_export_holds_the_document() -> None:
    async def talk(page: Page) -> None:
        await page.explain()
        text = (await page.ask(do="export", view="panes=source"))["result"]
        assert "Content-Security-Policy" in text
        assert "calldataload(0)" in text

    spoken(talk)


def test_a_text_never_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.yul"
    path.write_text("{ sstore(0, 0x5ec2e7) }")

    async def talk(page: Page) -> None:
        answer = await page.explain(str(path))
        assert "error" in answer
        assert "5ec2e7" not in json.dumps(answer)

    spoken(talk)


# -- what it refuses


@pytest.mark.parametrize(
    "settings",
    [
        {"source": "x" * (MAX_SOURCE + 1)},
        {"source": 5},
        {"fork": "nosuch"},
        {"runs": -1},
        {"runs": True},
        {"steps": "x" * 3000},
        {"nosuch": 1},
        [],
        None,
    ],
)
def test_settings_that_cannot_be_are_one_line(settings: Any) -> None:
    async def talk(page: Page) -> None:
        error = (await page.ask(do="explain", settings=settings))["error"]
        assert error["message"]
        assert "\n" not in error["message"]
        assert len(error["message"]) <= 300
        assert "result" in await page.explain(), "the session goes on"

    spoken(talk)


@pytest.mark.parametrize(
    "message", ["{", "[]", "5", "[" * 100_000, '{"do":"nosuch","id":null}', '{"do":["x"],"id":null}']
)
def test_a_message_that_cannot_be_read_is_answered(message: str) -> None:
    async def talk(page: Page) -> None:
        await page.socket.send_str(message)
        assert "error" in await page.answer(None)

    spoken(talk)


def test_a_message_that_is_too_large_ends_the_connection() -> None:
    async def talk(page: Page) -> None:
        with suppress(ConnectionError):  # it may end while the message is still being sent
            await page.socket.send_str("x" * (MAX_MESSAGE + 10))
        assert (await page.socket.receive(timeout=30)).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)

    spoken(talk)


def test_more_pages_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_PAGES", 1)
    assert MAX_PAGES > 1

    async def run() -> None:
        async with serving() as here, opened(here) as page:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with opened(here):
                    pass
            assert refused.value.status == 503
            await page.socket.close()

    asyncio.run(run())


def test_calls_beyond_their_number_are_refused() -> None:
    async def talk(page: Page) -> None:
        for number in range(MAX_WAITING + 5):
            await page.socket.send_json({"id": number, "do": "explain", "settings": {"source": SLOW, "name": "s.yul"}})
        error = (await page.answer(MAX_WAITING + 4))["error"]
        assert "wait" in error["message"]

    spoken(talk)


# -- how work is stopped


def test_work_is_cancelled_and_the_session_goes_on() -> None:
    async def talk(page: Page) -> None:
        await page.explain(DEPOSITS)
        call = {"signature": "add(uint256)(uint256)", "arguments": ["5"]}
        await page.ask(do="run", call=call)
        await page.socket.send_json({"id": 2, "do": "pin", "settings": {"source": SLOW, "name": "slow.yul"}})
        await page.begun()
        await page.socket.send_json({"do": "cancel"})
        assert (await page.answer(2))["error"]["message"] == "cancelled"
        after = await page.ask(do="run", call=call)
        assert int(after["result"]["output"], 16) == 10, "a new worker has made the first call again"

    spoken(talk)


def test_cancelling_answers_what_waits() -> None:
    async def talk(page: Page) -> None:
        for number in (2, 3, 4):
            await page.socket.send_json({"id": number, "do": "explain", "settings": {"source": SLOW, "name": "s.yul"}})
        await asyncio.sleep(0.5)
        await page.socket.send_json({"do": "cancel"})
        answered = set()
        for _ in range(3):
            message = json.loads(await page.socket.receive_str(timeout=30))
            while "progress" in message:
                message = json.loads(await page.socket.receive_str(timeout=30))
            assert message["error"]["message"] == "cancelled"
            answered.add(message["id"])
        assert answered == {2, 3, 4}

    spoken(talk)


def test_work_that_takes_too_long_is_stopped() -> None:
    async def talk(page: Page) -> None:
        error = (await page.explain(SLOW))["error"]
        assert "stopped after 2 s" in error["message"]
        assert "result" in await page.explain()

    spoken(talk, seconds=2.0)


def test_the_worker_ends_with_its_page() -> None:
    async def run() -> None:
        async with serving() as here:
            async with opened(here) as page:
                await page.explain()
                (held,) = here[0].pages
                process = held.session.worker._process
                assert process is not None
                await page.socket.send_json({"id": 9, "do": "explain", "settings": {"source": SLOW, "name": "s.yul"}})
                await page.begun()
            for _ in range(600):
                if process.returncode is not None:
                    break
                await asyncio.sleep(0.1)
            assert process.returncode is not None
            assert not Path(f"/proc/{process.pid}").exists() or os.name != "posix"
            assert not here[0].pages

    asyncio.run(run())


def test_a_worker_that_dies_is_one_line_and_replaced() -> None:
    async def run() -> None:
        async with serving() as here, opened(here) as page:
            await page.explain()
            (held,) = here[0].pages
            process = held.session.worker._process
            assert process is not None
            await page.socket.send_json({"id": 5, "do": "explain", "settings": {"source": SLOW, "name": "s.yul"}})
            await page.begun()
            process.kill()
            assert "worker process ended" in (await page.answer(5))["error"]["message"]
            assert "result" in await page.explain()

    asyncio.run(run())
