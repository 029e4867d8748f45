"""anvil, a real node, for tests to ask: installed by npm, started on a free port, ended with the test session.

`FUSEVM_ANVIL` names a folder that has the npm package `@foundry-rs/anvil` installed, as `FUSEVM_SOLC` does for solc.
Without it the package is installed for the session, and where npm cannot do that the tests are skipped with a reason.
The fixtures `anvil` and `anvil_binary` are there for every test; with the latter a test starts an `Anvil` of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "@foundry-rs/anvil"
INSTALL_SECONDS = 120
NO_FEES = ("--base-fee", "0", "--gas-price", "0")
ASK_SECONDS = 60
# The first of the accounts that anvil gives ether to, from its well-known test mnemonic.
KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
ACCOUNT = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


def npm_folder(factory: pytest.TempPathFactory, variable: str, packages: Sequence[str]) -> Path:
    """A folder with these npm packages: the one that the environment variable names, or a new one."""
    given = os.environ.get(variable)
    if given is not None:
        for name in packages:
            folder = Path(given) / "node_modules" / _plain(name)
            assert folder.is_dir(), f"{variable} is {given}, which has no package {_plain(name)}"
        return Path(given)
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip(f"npm and node are needed to install {', '.join(packages)}")
    folder = factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", *packages]
    try:
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=INSTALL_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not install {', '.join(packages)}: {error}")
    return folder


def _plain(package: str) -> str:
    """A package's name without the version."""
    return package[0] + package[1:].partition("@")[0]


@pytest.fixture(scope="session")
def anvil_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program itself, from the package of this platform."""
    folder = npm_folder(tmp_path_factory, "FUSEVM_ANVIL", [PACKAGE])
    found = sorted((folder / "node_modules" / "@foundry-rs").glob("anvil-*/bin/anvil*"))
    if not found:
        pytest.skip("anvil has no program for this platform")
    return found[0]


@pytest.fixture(scope="session")
def anvil(anvil_binary: Path) -> Iterator[Anvil]:
    """One node for the whole session, at Osaka. Tests share its chain: deploy contracts of your own."""
    with Anvil(anvil_binary) as node:
        yield node


class RpcError(Exception):
    """The node's answer is an error; `data` is what a revert returned."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message"))
        self.code = error.get("code")
        self.data = error.get("data")


class Anvil:
    """A running node.

    Transactions are mined at once, one block each. The base fee is zero unless `fees` or the options set it.
    """

    def __init__(self, binary: Path, *options: str, hardfork: str = "osaka", fees: Sequence[str] = NO_FEES) -> None:
        command = [str(binary), "--port", "0", "--hardfork", hardfork, *fees, *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._ids = count(1)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("Listening on "):
                self.url = "http://" + line.removeprefix("Listening on ").strip()
                break
        else:
            raise RuntimeError(f"anvil ended with status {self._process.wait()} before it listened")
        self.ask("anvil_setLoggingEnabled", False)  # nobody reads what it would print

    def __enter__(self) -> Anvil:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def ask(self, method: str, *parameters: Any) -> Any:
        """The result of a JSON-RPC call. Raises RpcError."""
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": parameters}
        asked = urllib.request.Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=ASK_SECONDS) as response:
            answer = json.load(response)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def send(self, to: str | None, data: bytes = b"", value: int = 0, gas: int = 15_000_000, **fields: Any) -> Any:
        """The receipt of a transaction of the first account (or of `from_`), mined."""
        sender = fields.pop("from_", "0x" + ACCOUNT.hex())
        tx = {"from": sender, "data": "0x" + data.hex(), "value": hex(value), "gas": hex(gas), **fields}
        if to is not None:
            tx["to"] = to
        return self.receipt(self.ask("eth_sendTransaction", tx))

    def receipt(self, transaction: str) -> Any:
        """Of a transaction that was sent: mining takes a moment."""
        deadline = time.monotonic() + ASK_SECONDS
        while (found := self.ask("eth_getTransactionReceipt", transaction)) is None:
            assert time.monotonic() < deadline, f"no receipt of {transaction}"
            time.sleep(0.002)
        return found

    def deploy(self, initcode: bytes) -> str:
        """The address of a new contract."""
        receipt = self.send(None, initcode)
        assert receipt["status"] == "0x1", "the deployment failed"
        return str(receipt["contractAddress"])

    def call(self, to: str, data: bytes = b"", **fields: Any) -> bytes:
        """The output of eth_call on the latest block. Raises RpcError with the revert's data."""
        asked = {"to": to, "data": "0x" + data.hex(), **fields}
        return bytes.fromhex(self.ask("eth_call", asked, "latest").removeprefix("0x"))
