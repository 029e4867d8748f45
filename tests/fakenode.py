"""A node in this process that answers JSON-RPC as it is told to: slowly, wrongly, or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fusevm.chain.sources import json_rpc

A, C = b"\xa1" * 20, b"\xc0" * 20
HASH = b"\x77" * 32
LOADS = bytes.fromhex("60015460005260206000f3")  # returns storage[1]
HEADER = {
    "number": "0x64",
    "hash": "0x" + HASH.hex(),
    "timestamp": "0x6553f100",
    "miner": "0x" + "cb" * 20,
    "gasLimit": "0x1c9c380",
    "baseFeePerGas": "0x7",
    "mixHash": "0x" + "05" * 32,
    "difficulty": "0x0",
    "excessBlobGas": "0x0",
}


class FakeNode:
    """Answers as a node would; `before` may answer a request in its place, with a status and a body."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.paths: list[str] = []
        self.chain_id = 31337
        self.before: Callable[[Any], tuple[int, bytes, dict[str, str]] | None] = lambda request: None
        self.storage = {1: 42}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.paths.append(self.path)
                early = outer.before(body)
                status, content, headers = early or (200, outer.answered(body), {})
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *parts: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *error: None  # type: ignore[method-assign]  # whoever asked has gone
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/a-secret-key"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answered(self, body: Any) -> bytes:
        answers = [self.answer(each) for each in body] if isinstance(body, list) else self.answer(body)
        return json.dumps(answers).encode()

    def answer(self, question: Any) -> dict[str, Any]:
        parameters = question["params"]
        found: Any = None
        match question["method"]:
            case "eth_chainId":
                found = hex(self.chain_id)
            case "eth_getBlockByNumber" | "eth_getBlockByHash":
                if parameters[0] in ("latest", "0x64", HEADER["hash"]):
                    found = HEADER
                elif parameters[0] == "0x63":
                    found = {"hash": "0x" + "63" * 32}
            case "eth_getTransactionCount":
                found = "0x1" if C.hex() in parameters[0] else "0x0"
            case "eth_getBalance":
                found = hex(10**18) if A.hex() in parameters[0] else "0x0"
            case "eth_getCode":
                found = "0x" + LOADS.hex() if C.hex() in parameters[0] else "0x"
            case "eth_getStorageAt":
                found = f"0x{self.storage.get(int(parameters[1], 16), 0):064x}"
            case _:
                return {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "not known"}}
        return {"jsonrpc": "2.0", "id": question["id"], "result": found}

    def methods(self) -> list[str]:
        asked = [each if isinstance(each, list) else [each] for each in self.requests]
        return [question["method"] for questions in asked for question in questions]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    monkeypatch.setattr(json_rpc, "PAUSE", 0.001)
    server = FakeNode()
    yield server
    server.server.shutdown()
    server.server.server_close()
