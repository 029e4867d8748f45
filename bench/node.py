"""`fusevm node` and anvil, asked the same over HTTP in the same run, the best of several.

python bench/node.py --anvil FOLDER [--json] [--quick]

FOLDER has the npm package @foundry-rs/anvil installed. The clients keep one connection open, as real ones do.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fusevm import yul
from fusevm.chain.signed import sign
from fusevm.chain.transaction import Transaction
from fusevm.rpc.mnemonic import TEST_MNEMONIC, keys_of

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT.parent / "shared" / "fixtures" / "bench"
KEY = keys_of(TEST_MNEMONIC, 1)[0]
ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
TARGET = "0x" + "c0" * 20
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
LOGS, TRANSFERS = 10_000, 1_000
ROUNDS = 3
# Logs as often as the first word of the calldata says.
LOGGER = "5f355b8015601557600160205fa1600190036002565b00"


class Rpc:
    """A node's process and one connection to it: a plain socket, so that the client's own time is small."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Listening on "):
                host, port = line.removeprefix("Listening on ").strip().split(":")
                break
        self.socket = socket.create_connection((host, int(port)), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def post(self, request: bytes) -> bytes:
        """The body of the answer to what `asked` made."""
        self.socket.sendall(request)
        received = self.received
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        size = int(LENGTH.search(received, 0, end + 2)[1])  # type: ignore[index]
        parts, missing = [received[end + 4 :]], end + 4 + size - len(received)
        while missing > 0:
            parts.append(self._more())
            missing -= len(parts[-1])
        body = b"".join(parts)
        self.received = body[size:]
        return body[:size]

    def _more(self) -> bytes:
        found = self.socket.recv(1 << 20)
        if not found:
            raise ConnectionError("the node has closed the connection")
        return found

    def ask(self, method: str, *params: Any) -> Any:
        answer = json.loads(self.post(asked(method, *params)))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def receipt(self, sent: str) -> Any:
        while (found := self.ask("eth_getTransactionReceipt", sent)) is None:
            pass
        return found

    def stop(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait()


def asked(method: str, *params: Any) -> bytes:
    """A whole HTTP request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = (
        f"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def timed(rpc: Rpc, times: int, method: str, *params: Any) -> float:
    """Milliseconds of one request, the best."""
    request = asked(method, *params)
    assert b'"result"' in rpc.post(request)
    return best(times, lambda: rpc.post(request))


def best(times: int, function: Callable[[], Any]) -> float:
    """Milliseconds."""
    found = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        function()
        found = min(found, time.perf_counter() - began)
    return 1000 * found


def signed(nonce: int, to: str, data: bytes = b"", gas: int = 200_000) -> str:
    tx = Transaction(
        b"", bytes.fromhex(to[2:]), data, 0, gas, nonce, max_fee=10**11, max_priority_fee=0
    )  # fmt: skip
    return "0x" + sign(tx, KEY, 31337).encoded.hex()


def nonce_of(rpc: Rpc) -> int:
    return int(rpc.ask("eth_getTransactionCount", ALICE, "pending"), 16)


def small_call(rpc: Rpc, times: int) -> float:
    rpc.ask("anvil_setCode", TARGET, "0x602a5f5260205ff3")
    return timed(rpc, 100 * times, "eth_call", {"to": TARGET}, "latest")


def chain_id(rpc: Rpc, times: int) -> float:
    return timed(rpc, 100 * times, "eth_chainId")


def raw_with_receipt(rpc: Rpc, times: int) -> float:
    first, count = nonce_of(rpc), 30 * times
    waiting = iter([asked("eth_sendRawTransaction", signed(first + at, TARGET)) for at in range(count)])

    def once() -> None:
        sent = json.loads(rpc.post(next(waiting)))["result"]
        wanted = asked("eth_getTransactionReceipt", sent)
        while b'"result":null' in rpc.post(wanted):
            pass

    return best(count, once)


def many_logs(rpc: Rpc, times: int) -> float:
    rpc.ask("anvil_setCode", TARGET, "0x" + LOGGER)
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": TARGET}
    while len(rpc.ask("eth_getLogs", wanted)) < LOGS:
        data = (LOGS // 10).to_bytes(32, "big")
        assert rpc.receipt(rpc.ask("eth_sendRawTransaction", signed(nonce_of(rpc), TARGET, data, 15_000_000)))
    assert len(rpc.ask("eth_getLogs", wanted)) == LOGS
    return timed(rpc, times, "eth_getLogs", wanted)


def token_block(rpc: Rpc, times: int) -> float:
    """1,000 transfers sent and mined in one block."""
    source = (ROOT / "examples" / "token.yul").read_text("utf-8")
    code = yul.compile(source).code + (10**24).to_bytes(32, "big")
    token = rpc.receipt(rpc.ask("eth_sendTransaction", {"from": ALICE, "data": "0x" + code.hex()}))["contractAddress"]
    rpc.ask("evm_setAutomine", False)
    rpc.ask("evm_setBlockGasLimit", hex(10**9))
    found = float("inf")
    for run in range(times):
        first = nonce_of(rpc)
        selector = bytes.fromhex("a9059cbb")
        owners = ((at + 1 + run * TRANSFERS).to_bytes(32, "big") for at in range(TRANSFERS))
        raw = [
            asked("eth_sendRawTransaction", signed(first + at, token, selector + owner + (1).to_bytes(32, "big")))
            for at, owner in enumerate(owners)
        ]
        began = time.perf_counter()
        for each in raw:
            rpc.post(each)
        rpc.ask("evm_mine")
        found = min(found, time.perf_counter() - began)
        block = rpc.ask("eth_getBlockByNumber", "latest", False)
        assert len(block["transactions"]) == TRANSFERS, len(block["transactions"])
    rpc.ask("evm_setAutomine", True)
    return 1000 * found


def snailtracer(rpc: Rpc, times: int) -> float:
    found = json.loads((FIXTURES / "snailtracer.json").read_text("utf-8"))
    target = found["call"]["to"]
    for address, account in found["pre"].items():
        rpc.ask("anvil_setCode", address, account.get("code") or "0x")
        for key, value in (account.get("storage") or {}).items():
            rpc.ask("anvil_setStorageAt", address, f"0x{int(key, 16):064x}", f"0x{int(value, 16):064x}")
    rpc.ask("evm_setBlockGasLimit", hex(2 * 10**9))
    rpc.ask("evm_mine")
    return timed(rpc, times, "eth_call", {"to": target, "data": found["call"]["data"], "gas": hex(10**9)}, "latest")


STEPS: dict[str, Callable[[Rpc, int], float]] = {
    "eth_chainId": chain_id,
    "eth_call, small": small_call,
    "eth_sendRawTransaction and receipt": raw_with_receipt,
    f"eth_getLogs, {LOGS:,} logs": many_logs,
    f"{TRANSFERS:,} ERC-20 transfers, one block": token_block,
    "eth_call, snailtracer": snailtracer,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anvil", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="steps whose name contains this")
    options = parser.parse_args()
    times = 2 if options.quick else 5
    binary = sorted((options.anvil / "node_modules" / "@foundry-rs").glob("anvil-*/bin/anvil*"))[0]
    fusevm = [sys.executable, "-c", "from fusevm.cli.start import main; main()", "node", "--port", "0"]
    commands = {"fusevm": fusevm, "anvil": [str(binary), "--port", "0", "--hardfork", "osaka"]}
    steps = {name: step for name, step in STEPS.items() if options.only in name}
    found: dict[str, dict[str, float]] = {name: {} for name in steps}
    for name, step in steps.items():
        nodes = {who: Rpc(command) for who, command in commands.items()}
        for rpc in nodes.values():
            rpc.ask("anvil_setLoggingEnabled", False)
        try:
            for _ in range(ROUNDS):  # in turn, so that both have the machine's good moments and its bad ones
                for who, rpc in nodes.items():
                    found[name][who] = min(found[name].get(who, float("inf")), step(rpc, times))
        finally:
            for rpc in nodes.values():
                rpc.stop()
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'milliseconds':40} {'fusevm':>10} {'anvil':>10} {'ratio':>7}")
    for name, each in found.items():
        print(f"{name:40} {each['fusevm']:10.2f} {each['anvil']:10.2f} {each['fusevm'] / each['anvil']:7.2f}")


if __name__ == "__main__":
    main()
