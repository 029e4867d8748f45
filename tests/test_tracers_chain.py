"""Tracing transactions of a chain: on the state that they ran on, with what came before them in their block."""

from __future__ import annotations

import pytest

from fusevm import BadValue, Chain
from fusevm.evm.assembly import assemble
from fusevm.evm.secp256k1 import address_of_key
from fusevm.reference.hooks import Hooks

KEY = bytes(31) + b"\x01"
SENDER = address_of_key(KEY)
COUNTER = b"\xc0" * 20
COUNT = assemble("PUSH1 1 PUSH1 0 SLOAD ADD PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1")
ZERO = f"0x{0:064x}"


@pytest.fixture
def chain() -> Chain:
    """Three blocks, of one, two and no transactions; each counts one more."""
    alloc = {
        SENDER.hex(): {"balance": "1000000000000000000"},
        COUNTER.hex(): {"balance": "0", "code": "0x" + COUNT.hex()},
    }
    config = {"londonBlock": 0, "mergeNetsplitBlock": 0, "shanghaiTime": 0}
    made = Chain.from_json({"config": config, "gasLimit": "0x1c9c380", "alloc": alloc})
    for count in (1, 2, 0):
        made.build([made.sign(KEY, COUNTER, nonce=made.state.account(SENDER).nonce + at) for at in range(count)])
    return made


def hash_of(chain: Chain, block: int, index: int) -> bytes:
    return chain.block(block).transactions[index].hash


def test_a_transaction_is_traced_on_the_state_that_it_ran_on(chain: Chain) -> None:
    for block, index, before in ((1, 0, 0), (2, 0, 1), (2, 1, 2)):
        diff = chain.trace_transaction(
            hash_of(chain, block, index), tracer="prestateTracer", config={"diffMode": True}
        )  # fmt: skip
        assert diff["post"]["0x" + COUNTER.hex()] == {"storage": {ZERO: f"0x{before + 1:064x}"}}


def test_gas_is_that_of_the_receipt(chain: Chain) -> None:
    for block, index in ((1, 0), (2, 0), (2, 1)):
        used = int(chain.trace_transaction(hash_of(chain, block, index), tracer="callTracer")["gasUsed"], 16)
        assert used == chain.receipts(block)[index].gas_used


def test_logs_are_counted_from_the_first_of_the_block(chain: Chain) -> None:
    found = chain.trace_transaction(hash_of(chain, 2, 1), tracer="callTracer", config={"withLog": True})
    assert found["logs"][0]["index"] == "0x1"


@pytest.mark.parametrize("tracer", [None, "callTracer", "prestateTracer", "4byteTracer"])
def test_a_block_is_traced_as_its_transactions_are(chain: Chain, tracer: str | None) -> None:
    assert chain.trace_block(2, tracer=tracer) == [
        {
            "txHash": "0x" + hash_of(chain, 2, index).hex(),
            "result": chain.trace_transaction(hash_of(chain, 2, index), tracer=tracer),
        }
        for index in range(2)
    ]


def test_a_block_without_transactions_has_no_traces(chain: Chain) -> None:
    assert chain.trace_block(3) == []
    assert chain.trace_block(0) == []


def test_tracing_leaves_the_chain_as_it_was(chain: Chain) -> None:
    root, head = chain.state.root(), chain.head
    chain.trace_block(2)
    chain.trace_transaction(hash_of(chain, 1, 0), tracer="prestateTracer")
    assert (chain.state.root(), chain.head) == (root, head)
    assert chain.state.open_marks == 0


def test_a_transaction_that_is_not_there_is_told_in_one_line(chain: Chain) -> None:
    with pytest.raises(BadValue, match=f"transaction 0x{'77' * 32}: not in the chain"):
        chain.trace_transaction(b"\x77" * 32)


def test_the_chains_own_hooks_are_not_told_of_what_is_traced(chain: Chain) -> None:
    calls: list[bytes] = []
    watched = Chain(chain.genesis, hooks=Hooks(on_call=lambda message: calls.append(message.address)))
    block = watched.build([watched.sign(KEY, COUNTER)])
    before = len(calls)
    watched.trace_transaction(block.transactions[0].hash)
    assert len(calls) == before
