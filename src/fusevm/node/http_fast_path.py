"""HTTP as JSON-RPC clients write it, without aiohttp: POST / with a length. Anything else is aiohttp's.

Most requests are answered in some microseconds; aiohttp's own work for each of them takes longer than that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache

Begin = Callable[[bytes], "bytes | Awaitable[bytes | None] | None"]  # the answer to a body, now or later

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,10})[ \t]*(?=\r\n)")
_REQUEST = b"post / http/1.1\r\n"
# What only aiohttp deals with: found anywhere in the head, it gets the connection.
_OTHER = re.compile(
    rb"\r\n(?:transfer-encoding|expect|upgrade|connection:[ \t]*close|content-encoding|\s)|\n\n|[^\r]\n"
)
_MAX_HEAD = 1 << 14
_HEADS = 64  # that are remembered
_BUFFER = 1 << 16
CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
}
_ALWAYS = "".join(f"\r\n{name}: {value}" for name, value in CROSS_ORIGIN.items()).encode()
_DONE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json" + _ALWAYS + b"\r\nContent-Length: %d\r\n\r\n"
_NOTHING = b"HTTP/1.1 204 No Content" + _ALWAYS + b"\r\n\r\n"


@lru_cache(_HEADS)
def _size_of_body(head: bytes) -> int | None:
    """What the head of a plain request says; None for any other. A client's heads are mostly the same."""
    head = head.lower()
    lengths = _LENGTH.findall(head)
    if not head.startswith(_REQUEST) or len(lengths) != 1 or _OTHER.search(head):
        return None
    return int(lengths[0])


class PlainHttp(asyncio.BufferedProtocol):
    """One connection, until something comes on it that is not a plain request."""

    def __init__(
        self,
        begin: Begin,
        other: Callable[[], asyncio.Protocol],
        open_ones: set[PlainHttp],
        most_bytes: int,
        after: Callable[[], None],
    ) -> None:
        """`other` makes a protocol that understands all of HTTP; of bodies longer than `most_bytes` it says so.
        `after` is called when an answer has been sent."""
        self._begin, self._other, self._open, self._most, self._after = begin, other, open_ones, most_bytes, after
        self._buffer = bytearray(_BUFFER)  # asyncio would allocate its own for every read, 256 KB each time
        self._received = bytearray()
        self._wanted = 0  # bytes that the request being received has in all, once its head is there
        self._head = 0  # and those of its head
        self._busy = False  # a request is being answered: those after it wait
        self._held = False  # as much is received as may wait: no more is taken
        self._full = False  # the client does not read: nothing is answered until it does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.discard(self)
        self._received.clear()

    def close(self) -> None:
        self._transport.close()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._go_on()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | bytearray) -> None:
        self._received += data
        self._go_on()
        if len(self._received) > self._most + _MAX_HEAD and not self._held:
            self._held = True
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """Answers whole requests, one after the other."""
        self._answer_all()
        if self._held and len(self._received) <= self._most + _MAX_HEAD:
            self._held = False
            self._transport.resume_reading()

    def _answer_all(self) -> None:
        received = self._received
        while received and not self._busy and not self._full and not self._transport.is_closing():
            if not self._wanted and not self._read_head():
                return
            if len(received) < self._wanted:
                return
            body = bytes(received[self._head : self._wanted])
            del received[: self._wanted]
            self._wanted = 0
            found = self._begin(body)
            if found is None or isinstance(found, bytes):
                self._send(found)
            else:
                self._busy = True
                asyncio.ensure_future(found).add_done_callback(self._done)

    def _read_head(self) -> bool:
        """Whether the head is there, and is one of ours; where it is not, the connection changes hands."""
        received = self._received
        end = received.find(b"\r\n\r\n")
        if end < 0:
            if len(received) > _MAX_HEAD or received[: len(_REQUEST)].lower() != _REQUEST[: len(received)]:
                self._hand_over()
            return False
        size = _size_of_body(bytes(received[: end + 2]))
        if size is None or size > self._most:
            self._hand_over()
            return False
        self._head = end + 4
        self._wanted = self._head + size
        return True

    def _hand_over(self) -> None:
        other, received = self._other(), bytes(self._received)
        self._open.discard(self)
        self._received.clear()
        self._transport.set_protocol(other)
        other.connection_made(self._transport)
        other.data_received(received)

    def _send(self, body: bytes | None) -> None:
        self._transport.write(_NOTHING if body is None else _DONE % len(body) + body)
        self._after()

    def _done(self, task: asyncio.Future[bytes | None]) -> None:
        self._busy = False
        if self._transport.is_closing():
            return
        if task.cancelled() or task.exception() is not None:
            self._transport.close()
            return
        self._send(task.result())
        self._go_on()
