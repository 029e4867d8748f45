"""eth_subscribe: what is told of a block is made once, however many want it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusevm.node.subscriptions import MOST, News, Subscriptions, of_block, of_transaction
from fusevm.node.subscriptions import of_head as of_another_head
from fusevm.rpc import Config, RpcError, Session

NOW = 1_800_000_000
ALICE, THERE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x" + "c0" * 20
LOGGING = "0x60075f5fa1"  # a log with topic 7


class Counting:
    """JSON, and how often it was made."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, document: Any) -> bytes:
        self.count += 1
        return json.dumps(document).encode()


@pytest.fixture
def session() -> Session:
    session = Session(Config(timestamp=NOW), now=lambda: NOW)
    session.request("anvil_setCode", [THERE, LOGGING])
    session.request("eth_sendTransaction", [{"from": ALICE, "to": THERE}])
    return session


def of_head(session: Session, encode: Counting) -> News:
    head = session.dev.head
    return of_block(head, session.dev.chain.receipts(head.hash), encode)


def messages(told: Any) -> list[Any]:
    return [json.loads(text) for each in told for text in each.messages()]


def test_the_work_for_a_block_does_not_grow_with_those_who_want_the_same(session: Session) -> None:
    clients = [Subscriptions() for _ in range(4)]
    for client in clients:
        for _ in range(200):
            client.subscribe(["newHeads"])
            client.subscribe(["logs", {"topics": ["0x" + "00" * 31 + "07"]}])
    encode = Counting()
    news = of_head(session, encode)
    told = [client.told(news) for client in clients]
    assert encode.count == 2  # the header, the log
    assert [len(each) for each in told] == [2] * 4  # handed over, not the 400 messages
    assert [len(messages(each)) for each in told] == [400] * 4


def test_each_subscription_gets_a_message_of_its_own(session: Session) -> None:
    client = Subscriptions()
    numbers = [client.subscribe(["newHeads"]) for _ in range(3)]
    found = messages(client.told(of_head(session, Counting())))
    assert [each["params"]["subscription"] for each in found] == numbers
    assert {each["params"]["result"]["number"] for each in found} == {"0x1"}
    assert {(each["jsonrpc"], each["method"]) for each in found} == {("2.0", "eth_subscription")}


def test_logs_are_told_to_those_who_asked_for_them(session: Session) -> None:
    client = Subscriptions()
    some = client.subscribe(["logs", {"address": THERE}])
    client.subscribe(["logs", {"address": ALICE}])
    assert [each["params"]["subscription"] for each in messages(client.told(of_head(session, Counting())))] == [some]


def test_pending_transactions_are_told_by_hash_or_whole(session: Session) -> None:
    client = Subscriptions()
    client.subscribe(["newPendingTransactions"])
    client.subscribe(["newPendingTransactions", True])
    (signed,) = session.dev.head.transactions
    by_hash, whole = (each["params"]["result"] for each in messages(client.told(of_transaction(signed, Counting()))))
    assert by_hash == "0x" + signed.hash.hex() == whole["hash"]


def test_a_head_that_goes_back_is_told_to_those_who_follow_it_and_is_no_new_block(session: Session) -> None:
    client, heads = Subscriptions(), list[int]()
    client.subscribe(["newHeads"])
    follows = client.subscribe(["fusevm_head"])
    session.on_head.append(lambda block: heads.append(block.number))
    snapshot = session.request("evm_snapshot")
    session.request("anvil_mine", [2])
    session.request("evm_revert", [snapshot])
    session.request("anvil_rollback", [1])
    session.request("anvil_reset")
    assert heads == [1, 0, 0]
    (told,) = messages(client.told(of_another_head(session.dev.head, Counting())))
    assert told["params"]["subscription"] == follows


def test_what_has_ended_is_told_nothing(session: Session) -> None:
    client = Subscriptions()
    first, second = client.subscribe(["newHeads"]), client.subscribe(["newHeads"])
    assert client.unsubscribe([first])
    assert not client.unsubscribe([first])
    found = messages(client.told(of_head(session, Counting())))
    assert [each["params"]["subscription"] for each in found] == [second]
    assert client.unsubscribe([second])
    assert not client.told(of_head(session, Counting()))


def test_a_client_has_only_so_many() -> None:
    client = Subscriptions()
    for _ in range(MOST):
        client.subscribe(["syncing"])
    with pytest.raises(RpcError, match=f"{MOST} subscriptions already"):
        client.subscribe(["syncing"])
