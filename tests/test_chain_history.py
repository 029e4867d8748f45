"""Old blocks are packed: what is asked of them is answered as before, in a fraction of the memory."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

import fusevm.chain.tree as tree
from fusevm import Chain
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.transaction import Transaction
from fusevm.devchain import DevChain
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.lab.chains.generate import random_block, random_genesis, random_schedule
from fusevm.rpc import Session

KEEPER = b"\xc0" * 20
LOGS = assemble("PUSH1 7 PUSH0 PUSH0 LOG1 CALLDATASIZE PUSH0 SSTORE PUSH1 8 PUSH1 9 PUSH1 32 PUSH0 LOG2 STOP")


def whole(receipt: BlockReceipt) -> tuple[object, ...]:
    """With what is not compared."""
    return receipt, list(receipt.logs), receipt.gas_used, receipt.gas_price, receipt.created, receipt.output


def a_chain(monkeypatch: pytest.MonkeyPatch, latest: int, blocks: int = 12, senders: int = 3) -> DevChain:
    monkeypatch.setattr(tree, "WHOLE", latest)
    dev = DevChain()
    rng = random.Random(1)
    dev.next_randao = bytes(32)
    with dev.chain.edited() as state:
        state.set_code(KEEPER, LOGS)
    for number in range(blocks):
        for sender in rng.sample(dev.accounts, senders):
            to = rng.choice((KEEPER, None, b"\xaa" * 20))
            data = rng.randbytes(number) if to else bytes.fromhex("5f5ff3")
            kind = {"gas_price": 10**10} if rng.random() < 0.5 else {"max_fee": 10**10, "max_priority_fee": 1}
            dev.send(dev.sign(Transaction(sender, to, data, gas_limit=200_000, **kind)))
        dev.next_randao = bytes(32)
        dev.mine()
    return dev


def test_packed_blocks_receipts_and_transactions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, kept = a_chain(monkeypatch, 2), a_chain(monkeypatch, 1000)
    for number in range(13):
        ours, theirs = packed.chain.block(number), kept.chain.block(number)
        assert ours == theirs
        assert ours.encoded == theirs.encoded
        assert packed.chain.header(number) == theirs.header
        assert packed.chain.senders(number) == [each.sender for each in theirs.transactions]
        for one, other in zip(packed.chain.receipts(number), kept.chain.receipts(number), strict=True):
            assert whole(one) == whole(other)
        for signed in theirs.transactions:
            found = packed.find_mined(signed.hash)
            assert found is not None
            assert (found.signed, found.signed.sender, found.block) == (signed, signed.sender, theirs)


def test_the_state_at_packed_blocks_is_the_same_also_after_going_back(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, kept = a_chain(monkeypatch, 2), a_chain(monkeypatch, 1000)
    for number in (0, 3, 12, 5):
        with packed.chain.at(number) as ours, kept.chain.at(number) as theirs:
            assert ours.root() == theirs.root()
    for dev in (packed, kept):
        dev.chain.set_head(4)
        dev.next_randao = bytes(32)
        dev.mine()
    assert packed.head == kept.head


def test_an_impersonated_sender_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "WHOLE", 1)
    session, somebody = Session(), "0x" + "dd" * 20
    session.request("anvil_setBalance", [somebody, hex(10**19)])
    session.request("anvil_impersonateAccount", [somebody])
    sent = session.request("eth_sendTransaction", [{"from": somebody, "to": "0x" + "aa" * 20}])
    before = session.request("eth_getTransactionByHash", [sent])
    for _ in range(3):
        session.mine()
    assert session.request("eth_getTransactionByHash", [sent]) == before
    assert session.request("eth_getTransactionBySenderAndNonce", [somebody, "0x0"]) == before


@pytest.mark.parametrize("fork", [Fork.FRONTIER, Fork.BYZANTIUM, Fork.LONDON, Fork.OSAKA])
def test_random_chains_are_the_same_packed(monkeypatch: pytest.MonkeyPatch, fork: Fork) -> None:
    monkeypatch.setattr(tree, "WHOLE", 1)
    rng = random.Random(f"packed {fork}")
    chain = Chain(random_genesis(rng, random_schedule(rng, fork)))
    built, receipts = [chain.head], [chain.receipts(0)]
    for _ in range(8):
        built.append(random_block(rng, chain, 4))
        receipts.append(chain.receipts(chain.head.hash))
    for number, (block, expected) in enumerate(zip(built, receipts, strict=True)):
        assert chain.block(number) == block
        assert [whole(each) for each in chain.receipts(number)] == [whole(each) for each in expected]
    twin = Chain(chain.genesis)
    for number in range(1, len(built)):
        twin.import_block(chain.block(number).encoded)
    assert twin.head == chain.head


@pytest.mark.long
def test_packed_blocks_take_less_than_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    a_chain(monkeypatch, 4, 80, 10)  # whatever is kept by caches, and nodes of tries, which are used again
    sizes = []
    for latest in (4, 1000):
        gc.collect()
        tracemalloc.start()
        dev = a_chain(monkeypatch, latest, 80, 10)
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del dev
    packed, kept = sizes
    assert 2 * packed < kept


def test_a_transaction_of_a_packed_block_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, kept = a_chain(monkeypatch, 2), a_chain(monkeypatch, 1000)
    wanted = kept.chain.block(3).transactions[1].hash
    for where in (None, 3):
        found = packed.chain.trace_transaction(wanted, tracer="callTracer", block=where)
        assert found == kept.chain.trace_transaction(wanted, tracer="callTracer")
