"""`fusevm node` and anvil, asked the same over HTTP in the same run, the best of several.

python bench/node.py --anvil FOLDER [--json] [--quick]

FOLDER has the npm package @foundry-rs/anvil installed. The clients keep one connection open, as real ones do.
"""

from __future__ import annotations

import argparse
import http.client
import json
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
LOGS, TRANSFERS = 10_000, 1_000
# Logs as often as the first word of the calldata says.
LOGGER = "5f355b8015601557600160205fa1600190036002565b00"


class Rpc:
    """A node's process and one connection to it."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Listening on "):
                host, port = line.removeprefix("Listening on ").strip().split(":")
                break
        self.connection = http.client.HTTPConnection(host, int(port), timeout=300)

    def ask(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.connection.request("POST", "/", body, {"content-type": "application/json"})
        answer = json.loads(self.connection.getresponse().read())
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def receipt(self, sent: str) -> Any:
        while (found := self.ask("eth_getTransactionReceipt", sent)) is None:
            pass
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


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
    return best(20 * times, lambda: rpc.ask("eth_call", {"to": TARGET}, "latest"))


def chain_id(rpc: Rpc, times: int) -> float:
    return best(20 * times, lambda: rpc.ask("eth_chainId"))


def raw_with_receipt(rpc: Rpc, times: int) -> float:
    waiting = iter([signed(nonce_of(rpc) + at, TARGET) for at in range(10 * times)])
    return best(10 * times, lambda: rpc.receipt(rpc.ask("eth_sendRawTransaction", next(waiting))))


def many_logs(rpc: Rpc, times: int) -> float:
    rpc.ask("anvil_setCode", TARGET, "0x" + LOGGER)
    for _ in range(10):
        data = (LOGS // 10).to_bytes(32, "big")
        assert rpc.receipt(rpc.ask("eth_sendRawTransaction", signed(nonce_of(rpc), TARGET, data, 15_000_000)))
    asked = {"fromBlock": "0x0", "toBlock": "latest", "address": TARGET}
    assert len(rpc.ask("eth_getLogs", asked)) == LOGS
    return best(times, lambda: rpc.ask("eth_getLogs", asked))


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
        raw = [signed(first + at, token, selector + owner + (1).to_bytes(32, "big")) for at, owner in enumerate(owners)]
        began = time.perf_counter()
        for each in raw:
            rpc.ask("eth_sendRawTransaction", each)
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
    asked = {"to": target, "data": found["call"]["data"], "gas": hex(10**9)}
    return best(times, lambda: rpc.ask("eth_call", asked, "latest"))


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
    options = parser.parse_args()
    times = 2 if options.quick else 5
    binary = sorted((options.anvil / "node_modules" / "@foundry-rs").glob("anvil-*/bin/anvil*"))[0]
    fusevm = [sys.executable, "-c", "from fusevm.cli.start import main; main()", "node", "--port", "0"]
    commands = {"fusevm": fusevm, "anvil": [str(binary), "--port", "0", "--hardfork", "osaka"]}
    found: dict[str, dict[str, float]] = {name: {} for name in STEPS}
    for name, step in STEPS.items():
        for who, command in commands.items():
            rpc = Rpc(command)
            if who == "anvil":
                rpc.ask("anvil_setLoggingEnabled", False)
            try:
                found[name][who] = step(rpc, times)
            finally:
                rpc.stop()
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'milliseconds':40} {'fusevm':>10} {'anvil':>10} {'ratio':>7}")
    for name, each in found.items():
        print(f"{name:40} {each['fusevm']:10.2f} {each['anvil']:10.2f} {each['fusevm'] / each['anvil']:7.2f}")


if __name__ == "__main__":
    main()
