"""Messages between the server and its worker process: a length in eight bytes, then JSON."""

from __future__ import annotations

import json
from asyncio import StreamReader
from typing import Any, BinaryIO

_LENGTH = 8
MAX_BYTES = 512 << 20


def packed(message: Any) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return len(body).to_bytes(_LENGTH, "big") + body


async def receive(reader: StreamReader) -> bytes:
    """The next message, as JSON. Raises IncompleteReadError where the other side has ended."""
    length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
    if length > MAX_BYTES:
        raise ValueError(f"a message of {length:,} bytes; the most is {MAX_BYTES:,}")
    return await reader.readexactly(length)


def read(stream: BinaryIO) -> Any:
    """The next message; None at the end."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    return json.loads(stream.read(int.from_bytes(head, "big")))
