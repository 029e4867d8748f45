"""The status page in a real browser: blocks live, calls and events by name, no markup from a contract."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from environments import FOREIGN, environment, run_inside
from nodes import Node

pytestmark = pytest.mark.long  # real tools, installed for it

ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
TOKEN = "0x" + "c0" * 20
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


class Browser:
    """A page that is open until the `with` block ends."""

    def __init__(self, program: str, url: str, folder: Path) -> None:
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [*command, "--remote-debugging-port=0", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
        assert self._process.stderr is not None
        line = next(each for each in self._process.stderr if each.startswith("DevTools listening on"))
        self._port = line.partition("127.0.0.1:")[2].partition("/")[0]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def shown(self, python: Path, text: str) -> str:
        """The page, once it contains a text."""
        return run_inside(python, str(FOREIGN / "page_dom.py"), self._port, text, cwd=FOREIGN)


def test_the_page_shows_blocks_as_they_come_and_no_markup_of_contracts(
    python: Path, browser: str, tmp_path: Path
) -> None:
    with Node(python) as node:
        transfer = "0xa9059cbb" + BOB[2:].rjust(64, "0") + f"{5:064x}"
        node.ask("anvil_setCode", TOKEN, "0x00")
        node.ask("eth_sendTransaction", {"from": ALICE, "to": TOKEN, "data": transfer})
        with Browser(browser, node.url, tmp_path) as opened:
            first = opened.shown(python, "Block 1 ")
            assert "Block 1 " in first
            assert "transfer(" in first
            node.ask("anvil_setCode", TOKEN, "0x" + HOSTILE)
            node.ask("eth_sendTransaction", {"from": ALICE, "to": TOKEN, "gas": "0x186a0"})
            later = opened.shown(python, "Block 2 ")
    assert "Block 2 " in later, "the block that came after the page was opened"
    assert "&lt;img src=x" in later
    assert "<img" not in later


def test_the_page_begins_anew_with_the_chain(python: Path, browser: str, tmp_path: Path) -> None:
    with Node(python) as node:
        node.ask("anvil_mine", 12)
        with Browser(browser, node.url, tmp_path) as opened:
            assert "Block 12 " in opened.shown(python, "Block 12 ")
            node.ask("anvil_reset")
            reset = opened.shown(python, "block 0<")
            assert "Block 0 " in reset
            assert "Block 12 " not in reset
            node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
            assert "Block 1 · 1 transaction" in opened.shown(python, "Block 1 ")
            node.ask("anvil_rollback", 1)
            assert "Block 1 " not in opened.shown(python, "block 0<")
