"""HTTP without aiohttp: plain requests are answered however they arrive; all else goes to aiohttp, byte for byte."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from fusevm.node.http_fast_path import PlainHttp


def request(body: bytes, *more: str, line: str = "POST / HTTP/1.1") -> bytes:
    head = [line, "Host: localhost", "Content-Type: application/json", *more, f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


class Other(asyncio.Protocol):
    """aiohttp's place."""

    def __init__(self) -> None:
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


class Transport(asyncio.Transport):
    """What is written is kept."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written, self.closed, self.protocol = b"", False, protocol
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = cast(asyncio.Protocol, protocol)

    def receive(self, data: bytes) -> None:
        self.protocol.data_received(data)

    @property
    def bodies(self) -> list[bytes]:
        """Of the answers, held against their lengths."""
        found, rest = [], self.written
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            assert b"Access-Control-Allow-Origin: *" in head
            if b" 204 " in head:
                found.append(b"")
                continue
            size = int(head.rpartition(b"Content-Length: ")[2])
            found.append(rest[:size])
            rest = rest[size:]
        return found


class Connection:
    def __init__(self, begin: Any, most: int = 1000) -> None:
        self.other = Other()
        self.open: set[PlainHttp] = set()
        self.protocol = PlainHttp(begin, lambda: self.other, self.open, most, lambda: None)
        self.transport = Transport(self.protocol)
        self.protocol.connection_made(self.transport)


def echoed(body: bytes) -> bytes | None:
    return body[::-1] or None


@pytest.mark.parametrize("seed", range(20))
def test_requests_are_answered_in_order_however_they_are_cut(seed: int) -> None:
    rng, connection = random.Random(seed), Connection(echoed)
    bodies = [rng.randbytes(rng.choice((0, 1, 10, 999))) for _ in range(8)]
    sent = b"".join(map(request, bodies))
    while sent:
        size = rng.choice((1, 2, 20, 200, 3000))
        connection.transport.receive(sent[:size])
        sent = sent[size:]
    assert connection.transport.bodies == [body[::-1] for body in bodies]
    assert connection.other.received == b""


OTHERS = [
    request(b"{}", line="GET / HTTP/1.1"),
    request(b"{}", line="POST / HTTP/1.0"),
    request(b"{}", line="POST /ws HTTP/1.1"),
    request(b"{}", "Transfer-Encoding: chunked"),
    request(b"{}", "Connection: close"),
    request(b"{}", "Expect: 100-continue"),
    request(b"{}", "Upgrade: websocket", "Connection: Upgrade"),
    request(b"{}", "Content-Encoding: gzip"),
    request(b"{}", "Content-Length: 5"),
    request(b"{}", "X: 1\nTransfer-Encoding: chunked"),
    request(b"{}", "X: 1\r\n folded"),
    request(b" " * 1001),
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"OPTIONS / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"POST / HTTP/1.1\r\nX: " + b"x" * 20_000,
]


@pytest.mark.parametrize("sent", OTHERS, ids=range(len(OTHERS)))
def test_what_is_not_a_plain_request_goes_to_aiohttp_with_all_that_follows(sent: bytes) -> None:
    connection = Connection(echoed)
    connection.transport.receive(request(b"first"))
    for at in range(0, len(sent), 50):
        connection.transport.receive(sent[at : at + 50])
    connection.transport.receive(b"more")
    assert connection.other.received == sent + b"more"
    assert connection.transport.bodies == [b"tsrif"]
    assert not connection.open


def test_answers_that_come_later_keep_their_order() -> None:
    async def run() -> list[bytes]:
        loop, waiting = asyncio.get_running_loop(), list[asyncio.Future[bytes | None]]()

        def begin(body: bytes) -> bytes | Awaitable[bytes | None]:
            if body == b"now":
                return body
            waiting.append(loop.create_future())
            return waiting[-1]

        connection = Connection(begin)
        connection.transport.receive(request(b"later") + request(b"now") + request(b"later"))
        assert connection.transport.bodies == []
        waiting[0].set_result(b"done")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(waiting) == 2
        waiting[1].set_exception(RuntimeError("gone wrong"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert connection.transport.closed
        return connection.transport.bodies

    assert asyncio.run(run()) == [b"done", b"now"]


def test_a_client_that_does_not_read_is_not_answered_until_it_does() -> None:
    connection = Connection(echoed)
    connection.protocol.pause_writing()
    connection.transport.receive(request(b"12") + request(b"34"))
    assert connection.transport.bodies == []
    connection.protocol.resume_writing()
    assert connection.transport.bodies == [b"21", b"43"]


def test_of_a_client_that_sends_without_reading_no_more_is_taken_than_one_request() -> None:
    connection = Connection(echoed)
    connection.protocol.pause_writing()
    sent = 0
    while connection.transport.reading:
        connection.transport.receive(request(b"x" * 900))
        sent += 1
    assert sent < 30
    connection.protocol.resume_writing()
    assert connection.transport.reading
    assert len(connection.transport.bodies) == sent


def test_a_connection_that_ends_is_forgotten() -> None:
    connection = Connection(echoed)
    connection.transport.receive(request(b"12")[:-1])
    connection.protocol.connection_lost(None)
    assert not connection.open


@pytest.mark.parametrize("size", [1, 100, 65_000, 65_536, 70_000, 300_000])
def test_over_a_socket_whole_and_broken_requests_arrive_as_they_were_sent(size: int) -> None:
    """More and less than the buffer holds; what is not ours goes to the other protocol, from its first byte."""

    class Shouting(Other):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast(asyncio.Transport, transport)

        def data_received(self, data: bytes) -> None:
            self.transport.write(data.upper())

    async def main() -> None:
        loop, bodies = asyncio.get_running_loop(), [random.Random(size).randbytes(size), b"short"]
        opened: set[PlainHttp] = set()
        server = await loop.create_server(
            lambda: PlainHttp(echoed, Shouting, opened, 1 << 20, lambda: None), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for body in [*bodies, *bodies]:
            writer.write(request(body))
            head = await reader.readuntil(b"\r\n\r\n")
            assert int(head.rpartition(b"Content-Length: ")[2]) == len(body)
            assert await reader.readexactly(len(body)) == body[::-1]
        other = request(b"x" * size, line="GET / HTTP/1.1")
        writer.write(other)
        assert await reader.readexactly(len(other)) == other.upper()
        writer.close()
        server.close()

    asyncio.run(asyncio.wait_for(main(), 60))
