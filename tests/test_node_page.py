"""The status page in a real browser: blocks live, calls and events by name, no markup from a contract."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from environments import environment
from nodes import Node

ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
TOKEN = "0x" + "c0" * 20
SECONDS = 60
# Reverts with Error("<img src=x onerror=alert(1)>"), 28 bytes.
MARKUP = b"<img src=x onerror=alert(1)>"
HOSTILE = (
    "6308c379a060e01b5f52602060045260"
    + f"{len(MARKUP):02x}"
    + "602452"
    + "7f"
    + MARKUP.ljust(32, b"\0").hex()
    + "60445260645ffd"
)


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("node", "web3>=7")


@pytest.fixture(scope="module")
def browser() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    return found


def start(browser: str, url: str, folder: Path) -> subprocess.Popen[str]:
    """Prints the page as it is after some seconds."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--timeout=8000"]
    return subprocess.Popen(
        [*command, "--dump-dom", url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )  # fmt: skip


def test_the_page_shows_blocks_as_they_come_and_no_markup_of_contracts(
    python: Path, browser: str, tmp_path: Path
) -> None:
    with Node(python) as node:
        transfer = "0xa9059cbb" + BOB[2:].rjust(64, "0") + f"{5:064x}"
        node.ask("anvil_setCode", TOKEN, "0x00")
        node.ask("eth_sendTransaction", {"from": ALICE, "to": TOKEN, "data": transfer})
        opened = start(browser, node.url, tmp_path)
        time.sleep(4)
        node.ask("anvil_setCode", TOKEN, "0x" + HOSTILE)
        node.ask("eth_sendTransaction", {"from": ALICE, "to": TOKEN, "gas": "0x186a0"})
        printed, _ = opened.communicate(timeout=SECONDS)
    assert "Block 1 " in printed
    assert "transfer(" in printed
    assert "Block 2 " in printed, "the block that came after the page was opened"
    assert "&lt;img src=x" in printed
    assert "<img" not in printed
