"""`fusevm node` as a process: HTTP and WebSocket, slow clients, hostile calls, state files, stopping."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
import urllib.error
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from anvil import RpcError
from environments import environment, run_inside
from nodes import Node, refused

pytestmark = pytest.mark.long  # a node needs an environment with aiohttp

ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
STRANGER = "0x" + "99" * 20
KEEPER = "36600c575f545f5260205ff35b5f355f555f355f52600760205fa160205ff3"  # as in test_rpc
ENDLESS = "5b600056"


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("node", "web3>=7")


@pytest.fixture
def node(python: Path) -> Any:
    with Node(python) as started:
        yield started


def test_the_accounts_and_keys_of_anvil_are_printed(node: Node) -> None:
    text = "\n".join(node.printed)
    assert ALICE in text
    assert "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" in text


def test_requests_batches_and_nonsense_are_answered_over_http(node: Node) -> None:
    assert node.ask("eth_chainId") == "0x7a69"
    batch = [{"id": at, "method": "eth_blockNumber"} for at in range(3)]
    assert [each["id"] for each in node.post(json.dumps(batch).encode())] == [0, 1, 2]
    assert node.post(b"{")["error"]["code"] == -32700
    with pytest.raises(RpcError, match="does not exist"):
        node.ask("eth_nothing")


def test_a_stopped_node_ends_with_status_0(node: Node) -> None:
    node.ask("evm_mine")
    assert node.stop(signal.SIGINT) == 0
    assert node.errors == ""


def test_an_endless_call_does_not_stop_other_clients(python: Path) -> None:
    with Node(python, "--gas-limit", str(10**15), "--call-timeout", "4") as node:
        node.ask("anvil_setCode", STRANGER, "0x" + ENDLESS)
        failed: list[str] = []

        def hostile() -> None:
            try:
                node.ask("eth_call", {"to": STRANGER}, "latest")
            except RpcError as error:
                failed.append(str(error))

        threads = [threading.Thread(target=hostile) for _ in range(2)]
        for each in threads:
            each.start()
        time.sleep(0.5)
        answered = 0
        while any(each.is_alive() for each in threads):
            node.ask("evm_mine")
            answered += 1
        assert failed == ["the time limit is reached"] * 2
        assert answered > 10  # in the seconds that both calls ran


def test_blocks_come_at_intervals(python: Path) -> None:
    with Node(python, "--block-time", "0.2") as node:
        sent = node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
        deadline = time.monotonic() + 30
        while node.ask("eth_getTransactionReceipt", sent) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        node.ask("evm_setIntervalMining", 0)
        number = node.ask("eth_blockNumber")
        time.sleep(0.6)
        assert node.ask("eth_blockNumber") == number


def test_the_state_is_there_again_after_a_stop(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with Node(python, "--state", str(file)) as node:
        node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "value": "0x5"})
        node.ask("anvil_setStorageAt", STRANGER, "0x1", f"0x{7:064x}")
        assert node.stop() == 0
    with Node(python, "--state", str(file)) as node:
        assert node.ask("eth_getBalance", BOB, "latest") == hex(10_000 * 10**18 + 5)
        assert node.ask("eth_getTransactionCount", ALICE, "latest") == "0x1"
        assert node.ask("eth_getStorageAt", STRANGER, "0x1", "latest") == f"0x{7:064x}"
        assert node.ask("eth_blockNumber") == "0x1"
        node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
        assert node.ask("eth_blockNumber") == "0x2"


def test_a_killed_node_has_lost_nothing_that_it_answered(python: Path, tmp_path: Path) -> None:
    """Killed at random moments while clients send: each transaction that was answered is there, and at most the one
    per client that was not."""
    file, clients, answered = tmp_path / "state.json", 2, 0
    moments = random.Random(16)
    for _ in range(6):
        with Node(python, "--state", str(file)) as node:
            sent = int(node.ask("eth_getBalance", STRANGER, "latest"), 16)
            assert answered <= sent <= answered + clients
            assert int(node.ask("eth_blockNumber"), 16) >= sent
            answered = sent
            counts = [0] * clients
            threads = [threading.Thread(target=_sends, args=(node, counts, each)) for each in range(clients)]
            for each in threads:
                each.start()
            time.sleep(moments.uniform(0.02, 0.5))
            while sum(counts) < 5 and all(each.is_alive() for each in threads):  # a machine may have more to do
                time.sleep(0.001)
            node.process.kill()
            for each in threads:
                each.join()
            answered += sum(counts)
    assert answered > 20
    with Node(python, "--state", str(file)) as node:
        assert answered <= int(node.ask("eth_getBalance", STRANGER, "latest"), 16) <= answered + clients


def _sends(node: Node, counts: list[int], client: int) -> None:
    """Until the node is gone."""
    form = {"from": (ALICE, BOB)[client], "to": STRANGER, "value": "0x1", "gas": "0x5208"}
    with suppress(OSError, http.client.HTTPException):
        while True:
            node.ask("eth_sendTransaction", form)
            counts[client] += 1


def test_transactions_that_wait_are_there_after_a_kill(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with Node(python, "--state", str(file), "--no-mining", "--state-interval", "0") as node:
        sent = node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "value": "0x1"})
        node.stop(signal.SIGKILL)
    with Node(python, "--state", str(file), "--no-mining") as node:
        assert node.ask("txpool_status")["pending"] == "0x1"
        node.ask("evm_mine")
        assert node.ask("eth_getTransactionReceipt", sent)["status"] == "0x1"


@pytest.mark.parametrize("content", ["{", "[]", '{"accounts": 5}', '{"accounts": {"0x12": {}}}', "\x00\x01"])
def test_a_corrupt_state_file_is_refused_in_one_line(python: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(content)
    printed = refused(python, "--state", str(file))
    assert printed.count("\n") == 1
    assert "state.json" in printed
    assert "delete the file" in printed
    assert file.read_text() == content


def test_a_state_file_that_cannot_be_written_is_one_line_and_the_node_goes_on(python: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with Node(python, "--state", str(folder / "state.json"), "--state-interval", "0.1") as node:
        assert node.ask("eth_chainId") == "0x7a69"
        with pytest.raises(RpcError, match="done, but --state is not written"):
            node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
        assert node.ask("eth_blockNumber") == "0x1"
        assert node.stop() == 0
        assert "not written" in node.errors
        assert "Traceback" not in node.errors


def test_a_port_that_is_taken_is_one_line(python: Path, node: Node) -> None:
    printed = refused(python, "--port", node.url.rpartition(":")[2])
    assert "cannot listen" in printed
    assert printed.count("\n") == 1


def test_listening_for_others_warns(python: Path) -> None:
    with Node(python, "--host", "0.0.0.0") as node:
        node.stop()
        assert "can spend from all accounts" in node.errors


def test_a_node_is_forked(python: Path, node: Node) -> None:
    node.ask("eth_sendTransaction", {"from": ALICE, "to": STRANGER, "value": "0x5"})
    node.ask("anvil_setCode", BOB, "0x" + KEEPER)
    node.ask("evm_mine")
    before = node.ask("eth_getBlockByNumber", "0x1", False)
    with Node(python, "--fork", node.url) as fork:
        assert fork.ask("eth_chainId") == "0x7a69"
        assert fork.ask("eth_blockNumber") == "0x2"
        assert (
            fork.ask("eth_getBlockByNumber", "0x2", False)["hash"]
            == node.ask("eth_getBlockByNumber", "0x2", False)["hash"]
        )
        assert fork.ask("eth_getBlockByNumber", "0x1", False) == before
        assert fork.ask("eth_getBalance", STRANGER, "latest") == "0x5"
        assert fork.ask("eth_getBalance", STRANGER, "0x0") == "0x0"
        fork.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "data": f"0x{3:064x}"})
        assert fork.ask("eth_call", {"to": BOB}, "latest") == f"0x{3:064x}"
        assert node.ask("eth_call", {"to": BOB}, "latest") == f"0x{0:064x}"


def test_subscriptions_tell_of_heads_logs_and_transactions(python: Path, node: Node, tmp_path: Path) -> None:
    script = tmp_path / "subscribe.py"
    script.write_text(
        f"""
import asyncio, json, aiohttp

async def main():
    async with aiohttp.ClientSession() as session, session.ws_connect("{node.url}") as socket:
        number = 0
        async def ask(method, *params):
            nonlocal number
            number += 1
            await socket.send_json({{"jsonrpc": "2.0", "id": number, "method": method, "params": params}})
            while True:
                message = await socket.receive_json()
                if message.get("id") == number:
                    return message.get("result", message.get("error"))
                told.append(message)
        told = []
        await ask("anvil_setCode", "{STRANGER}", "0x{KEEPER}")
        names = {{}}
        for kind in ("newHeads", "logs", "newPendingTransactions"):
            names[await ask("eth_subscribe", kind)] = kind
        await ask("eth_sendTransaction", {{"from": "{ALICE}", "to": "{STRANGER}", "data": "0x" + "00" * 31 + "05"}})
        while len(told) < 3:
            told.append(await socket.receive_json())
        for message in told:
            print(names[message["params"]["subscription"]])
        print((await ask("eth_subscribe", "nothing"))["code"])
        print(await ask("eth_unsubscribe", next(iter(names))))

asyncio.run(main())
"""
    )
    lines = run_inside(python, str(script), cwd=tmp_path).split()
    assert sorted(lines[:3]) == ["logs", "newHeads", "newPendingTransactions"], lines
    assert lines[3:] == ["-32602", "True"]


def test_over_http_there_are_no_subscriptions(node: Node) -> None:
    with pytest.raises(RpcError):
        node.ask("eth_subscribe", "newHeads")


def test_too_large_a_body_is_refused(node: Node) -> None:
    with pytest.raises((urllib.error.HTTPError, urllib.error.URLError)):
        node.post(b" " * (65 << 20))
    assert node.ask("eth_chainId") == "0x7a69"
