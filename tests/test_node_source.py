"""A node as a source: batches, retries, timeouts, answers that cannot be read, and what is kept on disk."""

from __future__ import annotations

import json
import pickle
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from fakenode import HASH, HEADER, LOADS, A, C, FakeNode
from fusevm import EVM, BadValue, Fork
from fusevm.chain.sources import node
from fusevm.chain.sources.disk import Disk
from fusevm.chain.sources.json_rpc import JsonRpc, NodeError
from fusevm.chain.sources.node import NodeSource
from fusevm.chain.sources.source import Facts, SourceError, SourceUnavailable


def test_a_call_on_a_node_s_state(fake: FakeNode) -> None:
    evm = EVM.fork_from(fake.url)
    assert evm.call(C).output == (42).to_bytes(32, "big")
    assert evm.get_balance(A) == 10**18
    assert (evm.block.number, evm.block.base_fee, evm.block.coinbase) == (100, 7, b"\xcb" * 20)
    assert evm.block.prev_randao == int("05" * 32, 16)
    assert evm.block.hash_of(99) == b"\x63" * 32
    evm.block.number = 102
    assert (evm.block.hash_of(100), evm.block.hash_of(101)) == (HASH, bytes(32))


def test_an_account_is_one_request_and_the_block_is_named_by_hash(fake: FakeNode) -> None:
    evm = EVM.fork_from(fake.url, 100)
    fake.requests.clear()
    evm.get_code(C)
    assert [len(each) for each in fake.requests] == [3]
    assert fake.requests[0][0]["params"][-1] == {"blockHash": HEADER["hash"]}


def test_a_node_that_knows_no_block_hashes_is_asked_by_number(fake: FakeNode) -> None:
    def refuse(body: Any) -> tuple[int, bytes, dict[str, str]] | None:
        for each in body if isinstance(body, list) else [body]:
            if any(isinstance(given, dict) for given in each["params"]):
                error = {"id": each["id"], "error": {"code": -32602, "message": "invalid argument 1"}}
                return 200, json.dumps([error] if isinstance(body, list) else error).encode(), {}
        return None

    fake.before = refuse
    assert EVM.fork_from(fake.url).call(C).output == (42).to_bytes(32, "big")


def test_a_node_without_batches_is_asked_one_by_one(fake: FakeNode) -> None:
    refused = json.dumps({"id": None, "error": {"code": -32600, "message": "no batches"}}).encode()
    fake.before = lambda body: (200, refused, {}) if isinstance(body, list) else None
    assert EVM.fork_from(fake.url).call(C).output == (42).to_bytes(32, "big")


def test_a_call_that_fails_is_loaded_as_far_as_nodes_tell(fake: FakeNode) -> None:
    def refuse(body: Any) -> tuple[int, bytes, dict[str, str]] | None:
        asked = body if isinstance(body, list) else [body]
        if asked[0]["method"] != "eth_createAccessList":
            return None
        error = {"id": asked[0]["id"], "error": {"code": 3, "message": "execution reverted", "data": "0x"}}
        return 200, json.dumps([error] if isinstance(body, list) else error).encode(), {}

    fake.before = refuse
    evm = EVM.fork_from(fake.url)
    evm.prefetch_call(C)
    fake.requests.clear()
    evm.get_code(C)
    assert fake.requests == []


def test_many_questions_are_asked_in_batches_that_nodes_accept(fake: FakeNode) -> None:
    evm = EVM.fork_from(fake.url)
    fake.requests.clear()
    evm.state.prefetch([C], [(C, key) for key in range(250)])
    assert [len(each) for each in fake.requests] == [3, 100, 100, 50]


def test_a_busy_node_is_asked_again(fake: FakeNode) -> None:
    left = [429, 503, 502]
    fake.before = lambda body: (left.pop(), b"slow down", {"Retry-After": "0"}) if left else None
    evm = EVM.fork_from(fake.url)
    limited = [json.dumps({"id": 0, "error": {"code": -32005, "message": "limit exceeded"}}).encode()]
    fake.before = lambda body: (200, limited.pop(), {}) if limited else None
    assert evm.get_storage(C, 1) == 42


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_a_node_that_is_gone_is_one_clear_error_and_the_call_has_not_happened(fake: FakeNode, tier: str) -> None:
    evm = EVM.fork_from(fake.url, tier=tier, retries=1)
    evm.get_code(C)
    evm.set_storage(C, 7, 1)
    fake.before = lambda body: (503, b"", {})
    with pytest.raises(
        SourceUnavailable, match=r"does not answer eth_getStorageAt \(HTTP 503; tried 2 times\)"
    ) as raised:
        evm.call(C)
    assert "secret" not in str(raised.value)
    fake.before = lambda body: None
    assert evm.get_storage(C, 7) == 1
    assert evm.call(C).output == (42).to_bytes(32, "big")


def test_a_node_that_does_not_listen(fake: FakeNode) -> None:
    fake.server.shutdown()
    fake.server.server_close()
    with pytest.raises(SourceUnavailable, match="check that the node runs"):
        EVM.fork_from(fake.url, retries=1)


def test_a_node_that_takes_too_long(fake: FakeNode) -> None:
    evm = EVM.fork_from(fake.url, node_timeout=0.1, retries=0)
    done = threading.Event()
    fake.before = lambda body: (200, b"", {}) if done.wait(5) else None
    with pytest.raises(SourceUnavailable, match="timed out"):
        evm.get_balance(A)
    done.set()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "the answer is not JSON"),
        (b"[]", "the answer is not JSON-RPC"),
        (b"7", "the answer is not JSON-RPC"),
        (b'{"id": 0, "result": "zz"}', "cannot read an answer"),
        (b'{"id": 0, "result": null}', "cannot read an answer"),
        (b'{"id": 0, "result": "0x' + b"1" * 66 + b'"}', "cannot read an answer"),
        (b'{"id": 0, "error": {"code": -32000, "message": "missing trie node"}}', "missing trie node.*archive node"),
        (b'{"id": 0, "error": "odd"}', "odd"),
    ],
)
def test_an_answer_that_cannot_be_read_loads_nothing(fake: FakeNode, body: bytes, message: str) -> None:
    evm = EVM.fork_from(fake.url)
    evm.get_code(C)
    fake.before = lambda asked: (200, body, {})
    with pytest.raises(SourceError, match=message):
        evm.get_storage(C, 1)
    fake.before = lambda asked: None
    assert evm.get_storage(C, 1) == 42


def test_half_a_batch_loads_nothing(fake: FakeNode) -> None:
    evm = EVM.fork_from(fake.url)
    fake.before = lambda body: (200, json.dumps([fake.answer(body[0]), fake.answer(body[1])]).encode(), {})
    with pytest.raises(SourceError, match="eth_getCode: the answer is not JSON-RPC"):
        evm.get_balance(A)
    fake.before = lambda body: None
    assert evm.get_balance(A) == 10**18


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("newest", "'newest' is not a number, a hash or one of latest"),
        (5, "has no block 5"),
        (b"\x01" * 32, "has no block"),
        (-1, "block: -1 is not a number"),
        (1.5, "block: expected an int"),
    ],
)
def test_a_block_that_is_not_there_is_refused(fake: FakeNode, block: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        EVM.fork_from(fake.url, block)


def test_a_block_by_hash(fake: FakeNode) -> None:
    assert EVM.fork_from(fake.url, HASH).block.number == 100
    assert EVM.fork_from(fake.url, "0x" + HASH.hex()).block.number == 100


def test_the_fork_is_the_network_s_at_that_time_or_the_latest(fake: FakeNode) -> None:
    assert EVM.fork_from(fake.url).fork is Fork.OSAKA
    assert EVM.fork_from(fake.url, fork="london").fork is Fork.LONDON
    fake.chain_id = 17_000
    assert EVM.fork_from(fake.url).fork is Fork.SHANGHAI


def test_login_in_a_url_is_sent_and_not_shown(fake: FakeNode) -> None:
    rpc = JsonRpc(fake.url.replace("http://", "http://user:pass@"))
    assert rpc.ask("eth_chainId") == "0x7a69"
    with pytest.raises(NodeError) as raised:
        rpc.ask("eth_nothing")
    assert "pass" not in str(raised.value)


def test_a_proxy_of_the_environment_is_used_except_for_this_machine(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", fake.url)
    monkeypatch.delenv("no_proxy", raising=False)
    assert JsonRpc("http://node.invalid:81/key").ask("eth_chainId") == "0x7a69"
    assert fake.paths[-1] == "http://node.invalid:81/key"
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    assert JsonRpc(fake.url).ask("eth_chainId") == "0x7a69"
    assert fake.paths[-1] == "/a-secret-key"
    monkeypatch.setenv("no_proxy", "node.invalid")
    with pytest.raises(SourceUnavailable):
        JsonRpc("http://node.invalid:81", retries=0).ask("eth_chainId")


# -- on disk


def test_what_was_loaded_is_kept_on_disk_by_block(fake: FakeNode, tmp_path: Path) -> None:
    first = EVM.fork_from(fake.url, cache=tmp_path)
    assert first.call(C).output == (42).to_bytes(32, "big")
    assert first.get_balance(b"\xee" * 20) == first.get_storage(C, 9) == 0
    assert first.block.hash_of(99) == b"\x63" * 32
    fake.requests.clear()
    again = EVM.fork_from(fake.url, cache=tmp_path)
    assert again.call(C).output == (42).to_bytes(32, "big")
    assert again.get_balance(b"\xee" * 20) == again.get_storage(C, 9) == 0
    assert again.block.hash_of(99) == b"\x63" * 32
    assert fake.methods() == ["eth_chainId", "eth_getBlockByNumber"]


def test_another_block_or_chain_has_files_and_rows_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "chain-1.sqlite"
    Disk(path, HASH).keep_slots({(C, 1): 5})
    assert Disk(path, HASH).slots([(C, 1), (C, 2)]) == {(C, 1): 5}
    assert Disk(path, b"\x78" * 32).slots([(C, 1)]) == {}


def test_accounts_with_large_numbers_and_shared_code_are_kept_exactly(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "a.sqlite", HASH)
    found = {A: Facts((1 << 64) - 1, (1 << 256) - 1, LOADS), C: Facts(0, 1, LOADS), b"\xee" * 20: None}
    disk.keep_accounts(found)
    assert Disk(tmp_path / "a.sqlite", HASH).accounts(list(found)) == found
    rows = sqlite3.connect(tmp_path / "a.sqlite").execute("SELECT COUNT(*) FROM codes").fetchone()
    assert rows == (1,)


def test_a_node_on_this_machine_is_not_cached_unless_a_folder_is_given(
    fake: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path))
    assert NodeSource.at(fake.url).disk is None
    monkeypatch.setattr(node, "is_local", lambda host: False)
    kept = NodeSource.at(fake.url).disk
    assert kept is not None
    assert kept.path == tmp_path / "forks" / "chain-31337.sqlite"
    assert NodeSource.at(fake.url, cache=False).disk is None


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 40, None])
def test_a_file_that_cannot_be_used_is_one_warning(fake: FakeNode, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "chain-31337.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.warns(UserWarning, match="cannot keep forked state") as warned:
        output = EVM.fork_from(fake.url, cache=tmp_path).call(C).output
    assert output == (42).to_bytes(32, "big")
    assert sum("cannot keep" in str(each.message) for each in warned) == 1


def test_a_file_that_grew_too_large_drops_old_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sqlite"
    for number in range(6):
        disk = Disk(path, number.to_bytes(32, "big"))
        disk.keep_accounts({A: Facts(1, 1, bytes((number,)))})
    monkeypatch.setattr("fusevm.chain.sources.disk.MAX_BYTES", 1)
    newest = Disk(path, b"\x99" * 32)
    assert newest.accounts([A]) == {}
    monkeypatch.undo()
    left = [Disk(path, number.to_bytes(32, "big")).accounts([A]) for number in range(6)]
    assert [bool(each) for each in left] == [False, False, False, True, True, True]


def test_a_forked_machine_can_be_pickled_and_goes_on(fake: FakeNode, tmp_path: Path) -> None:
    evm = EVM.fork_from(fake.url, cache=tmp_path)
    evm.set_storage(C, 2, 5)
    twin = pickle.loads(pickle.dumps(evm))
    assert twin.call(C).output == (42).to_bytes(32, "big")
    assert (twin.get_storage(C, 2), twin.block.hash_of(99)) == (5, b"\x63" * 32)


def test_two_threads_may_share_a_source(fake: FakeNode, tmp_path: Path) -> None:
    evm = EVM.fork_from(fake.url, cache=tmp_path, tier="reference")
    twins = [evm.copy() for _ in range(4)]
    answers: list[int] = []

    def work(twin: EVM) -> None:
        answers.extend(twin.get_storage(C, key) for key in range(20))

    threads = [threading.Thread(target=work, args=(twin,)) for twin in twins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == 4 * 42
