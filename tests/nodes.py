"""A `fusevm node` process for tests, started in an environment that has aiohttp, on a free port."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from anvil import RpcError
from started import Started

ROOT = Path(__file__).resolve().parent.parent
ASK_SECONDS = 60


class Node(Started):
    """Running until the `with` block ends."""

    def __init__(self, python: Path, *options: str) -> None:
        surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(python), "-c", "from fusevm.cli.start import main; main()", "node", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings
        )  # fmt: skip
        assert self.process.stdout is not None
        self.printed: list[str] = []
        for line in self.process.stdout:
            self.printed.append(line.rstrip("\n"))
            if line.startswith("Listening on "):
                self.url = "http://" + line.removeprefix("Listening on ").strip()
                return
        self.stop()
        raise RuntimeError(f"the node ended before it listened: {self.errors}")

    def __enter__(self) -> Node:
        return self

    def post(self, body: bytes) -> Any:
        asked = urllib.request.Request(self.url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=ASK_SECONDS) as response:
            return json.load(response)

    def ask(self, method: str, *parameters: Any) -> Any:
        """The result of a JSON-RPC call. Raises RpcError."""
        answer = self.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode())
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]


def refused(python: Path, *options: str) -> str:
    """What the command says that does not begin to listen."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [str(python), "-c", "from fusevm.cli.start import main; main()", "node", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings, timeout=ASK_SECONDS)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr
