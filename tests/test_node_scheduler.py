"""When a transaction that was sent is in a block: after its sender has an answer, before anybody can ask anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from fusevm.chain.signed import SignedTransaction, decode_transaction
from fusevm.chain.transaction import Transaction
from fusevm.node.http_fast_path import PlainHttp
from fusevm.node.scheduler import Later, Scheduler
from fusevm.rpc import Config, Session

PRICE = 10**11


class Client(asyncio.Transport):
    """A connection to a session by way of `PlainHttp`: the answers, each with the head's number when it was sent."""

    def __init__(self, *, after: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.session = Session(Config(timestamp=1_700_000_000))
        self.scheduler = Scheduler(self.session)
        self.answers: list[tuple[int, Any]] = []
        self.protocol = PlainHttp(self.begin, Exception, set(), 10_000, after or self.scheduler.catch_up)  # type: ignore[arg-type]
        self.protocol.connection_made(self)

    def begin(self, body: bytes) -> bytes | None:
        found = self.scheduler.now(json.loads(body))
        assert not isinstance(found, Later)
        return found

    def write(self, data: Any) -> None:
        answer = json.loads(data.partition(b"\r\n\r\n")[2])
        self.answers.append((self.session.dev.head.number, answer.get("result", answer.get("error"))))

    def is_closing(self) -> bool:
        return False

    def ask(self, *requests: tuple[str, list[Any]]) -> list[tuple[int, Any]]:
        """All in one piece."""
        self.answers.clear()
        bodies = (json.dumps({"id": 1, "method": method, "params": params}).encode() for method, params in requests)
        whole = (b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)
        self.protocol.data_received(b"".join(whole))
        return list(self.answers)

    def raw(self, nonce: int) -> tuple[str, list[Any]]:
        tx = Transaction(self.session.dev.accounts[0], b"\x02" * 20, gas_limit=21_000, nonce=nonce, gas_price=PRICE)
        return "eth_sendRawTransaction", ["0x" + self.session.dev.sign(tx).encoded.hex()]

    def hash_of(self, nonce: int) -> str:
        tx = Transaction(self.session.dev.accounts[0], b"\x02" * 20, gas_limit=21_000, nonce=nonce, gas_price=PRICE)
        return "0x" + self.session.dev.sign(tx).hash.hex()


def test_a_transaction_is_answered_before_its_block_is_made_and_the_block_made_at_once() -> None:
    client = Client()
    assert client.ask(client.raw(0)) == [(0, client.hash_of(0))]
    assert (client.session.dev.head.number, client.session.block_due) == (1, False)
    assert client.ask(client.raw(1)) == [(1, client.hash_of(1))]


@pytest.mark.parametrize("prompt", [True, False])
def test_no_request_sees_the_chain_without_the_block(prompt: bool) -> None:
    """Not even one that came in the same piece; nor where nobody but the requests themselves sees to it."""
    client = Client(after=None if prompt else lambda: None)
    sent, found, again, seen = client.ask(
        client.raw(0), ("eth_getTransactionReceipt", [client.hash_of(0)]), client.raw(1), ("eth_blockNumber", [])
    )
    assert (sent, again) == ((0, client.hash_of(0)), (1, client.hash_of(1)))
    assert (found[1]["status"], found[1]["blockNumber"]) == ("0x1", "0x1")
    assert seen == (2, "0x2")


def test_transactions_in_one_piece_are_each_answered_at_once() -> None:
    client = Client(after=lambda: None)
    assert client.ask(*(client.raw(nonce) for nonce in range(3))) == [(at, client.hash_of(at)) for at in range(3)]
    client.session.catch_up()
    assert [len(client.session.dev.chain.block(number).transactions) for number in (1, 2, 3)] == [1, 1, 1]


def test_a_transaction_that_comes_another_way_is_in_a_block_when_it_is_answered() -> None:
    client = Client()
    client.ask(client.raw(0))
    sender = "0x" + client.session.dev.accounts[0].hex()
    client.session.request("eth_sendTransaction", [{"from": sender, "to": sender}])
    assert (client.session.dev.head.number, client.session.block_due) == (2, False)


def test_a_request_for_the_other_thread_sees_the_block_too() -> None:
    client = Client(after=lambda: None)
    client.ask(client.raw(0))
    assert (client.session.dev.head.number, client.session.block_due) == (0, True)
    asked = {"id": 1, "method": "anvil_metadata", "params": []}
    answer = asyncio.run(client.scheduler.later(asked, Later()))
    assert json.loads(answer or b"")["result"]["latestBlockNumber"] == 1
    client.scheduler.close()


def test_a_transaction_that_may_take_long_is_for_the_other_thread_and_not_decoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, decoded = Client(), list[bytes]()

    def decode(data: bytes) -> SignedTransaction:
        decoded.append(data)
        return decode_transaction(data)

    monkeypatch.setattr("fusevm.rpc.transactions.decode_transaction", decode)
    tx = Transaction(client.session.dev.accounts[0], b"\x02" * 20, gas_limit=2_000_000, nonce=0, gas_price=PRICE)
    signed = client.session.dev.sign(tx)
    asked = {"id": 1, "method": "eth_sendRawTransaction", "params": ["0x" + signed.encoded.hex()]}
    later = client.scheduler.now(asked)
    assert isinstance(later, Later)
    assert client.session.dev.head.number == 0
    answer = asyncio.run(client.scheduler.later(asked, later))
    assert json.loads(answer or b"")["result"] == "0x" + signed.hash.hex()
    assert (client.session.dev.head.number, decoded) == (1, [signed.encoded])
    client.scheduler.close()


def test_blocks_on_demand_come_after_the_one_that_is_owed() -> None:
    client = Client(after=lambda: None)
    client.ask(client.raw(0))
    client.session.request("evm_mine")
    assert [len(client.session.dev.chain.block(number).transactions) for number in (1, 2)] == [1, 0]


def test_with_a_state_file_the_block_is_made_and_kept_before_the_answer() -> None:
    client = Client()
    kept: list[int] = []
    client.scheduler.keep = lambda: kept.append(client.session.dev.head.number)
    assert client.ask(client.raw(0)) == [(1, client.hash_of(0))]
    assert kept == [1]


def test_nothing_is_owed_for_a_transaction_that_is_refused_or_only_waits() -> None:
    client = Client()
    ((_, refused),) = client.ask(("eth_sendRawTransaction", ["0x02"]))
    assert refused["code"] == -32602
    client.ask(client.raw(1))  # the one before it is missing
    assert (client.session.block_due, client.session.dev.head.number) == (False, 0)
    client.session.automine = False
    client.ask(client.raw(0))
    assert (client.session.block_due, client.session.dev.head.number) == (False, 0)


@pytest.mark.parametrize("prompt", [True, False])
def test_a_block_that_cannot_be_made_is_told_and_the_node_goes_on(
    prompt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        client, told = Client(after=None if prompt else lambda: None), list[Any]()
        asyncio.get_running_loop().set_exception_handler(lambda loop, said: told.append(str(said["exception"])))

        def fails(*given: Any) -> Any:
            raise MemoryError("no room")

        with monkeypatch.context() as patch:
            patch.setattr(client.session.dev.chain, "build_planned", fails)
            assert client.ask(client.raw(0)) == [(0, client.hash_of(0))]
            assert client.ask(("eth_blockNumber", [])) == [(0, "0x0")]
        assert told == ["no room"]
        assert client.session.request("txpool_status") == {"pending": "0x1", "queued": "0x0"}
        client.session.request("evm_mine")
        assert client.session.request("eth_getTransactionReceipt", [client.hash_of(0)])["status"] == "0x1"

    asyncio.run(main())


def test_the_next_block_is_planned_when_an_answer_is_on_its_way() -> None:
    client = Client()
    client.ask(client.raw(0))
    assert not client.session.dev.is_planned, "the sender waits for its receipt"
    client.ask(("eth_getTransactionReceipt", [client.hash_of(0)]))
    assert client.session.dev.is_planned
