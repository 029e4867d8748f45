"""Calls and results on their way between processes: their columns are buffers that need not be copied."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fusevm import Batch, Call
from fusevm.chain.packed import Common, Packed, Pieces
from fusevm.evm.forks import Fork
from test_many import HERE, OTHER, RETURN_WORD, Scene, as_list, machine, word

CODE = f"PUSH1 7 PUSH1 0 PUSH1 0 LOG1 PUSH1 0 CALLDATALOAD DUP1 ADD {RETURN_WORD}"
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def a_batch() -> Batch:
    """Of each kind: a success with a log, a halt, an exception; and slots that were read."""
    calls: list[Any] = [word(1), (OTHER, b""), Call(data=word(2), value=1), word(3)]
    evm = machine("native", here=CODE, other="INVALID")
    return evm.simulate_many(calls, to=HERE, errors="keep", reads=[(HERE, 0), (HERE, 1)])


def some_calls() -> Packed:
    found = Pieces(Scene(3, Fork.OSAKA).calls(90, special=0.5), Common(None, bytes(20), 0, 100_000)).take(90)
    assert found is not None
    return found


def sent(thing: Any) -> tuple[bytes, list[bytearray]]:
    """What a transport sees: a short text, and buffers beside it that it may fill anew on the other side."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    return text, [bytearray(each.raw()) for each in buffers]


def assert_same_batch(found: Batch, expected: Batch) -> None:
    assert found == expected
    assert as_list(found) == as_list(expected)
    assert found.outputs == expected.outputs
    assert list(found.gas_used) == list(expected.gas_used)
    assert [list(each) for each in found.logs] == [list(each) for each in expected.logs]
    assert [found.reads(n) for n in (0, 1)] == [expected.reads(n) for n in (0, 1)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_batch_is_the_same_after_any_protocol_and_can_go_on(protocol: int) -> None:
    batch = a_batch()
    again = pickle.loads(pickle.dumps(batch, protocol))
    assert_same_batch(again, batch)
    assert_same_batch(pickle.loads(pickle.dumps(again, protocol)), batch)


def test_a_batch_that_arrived_in_buffers_is_the_same_and_can_go_on_and_be_joined() -> None:
    batch = a_batch()
    text, buffers = sent(batch)
    again = pickle.loads(text, buffers=[memoryview(each).toreadonly() for each in buffers])
    assert_same_batch(again, batch)
    for protocol in PROTOCOLS:
        assert_same_batch(pickle.loads(pickle.dumps(again, protocol)), batch)
    whole = Batch.joined([again, batch, again])
    assert as_list(whole)[4:8] == as_list(batch)
    assert whole.words() == batch.words() * 3
    assert_same_batch(again, batch)


def test_columns_are_not_in_the_text_but_in_the_buffers() -> None:
    evm = machine("native", here=CODE)
    text, buffers = sent(evm.simulate_many([word(n) for n in range(5_000)], to=HERE))
    assert len(text) < 500
    assert sum(map(len, buffers)) > 5_000 * 72
    buffers[1][31] ^= 1  # the last byte of the first output
    found = pickle.loads(text, buffers=buffers).words()
    assert found == [1, *(2 * n for n in range(1, 5_000))]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_are_the_same_after_any_protocol(protocol: int) -> None:
    calls = some_calls()
    assert calls.starts  # which need not travel
    assert pickle.loads(pickle.dumps(calls, protocol)) == calls


def test_calls_that_arrived_in_buffers_answer_as_those_that_were_sent() -> None:
    calls = some_calls()
    text, buffers = sent(calls)
    assert calls.data not in text
    assert [bytes(each) for each in buffers] == [calls.data]
    again = pickle.loads(text, buffers=[memoryview(each) for each in buffers])
    assert again == calls
    buffers[0][:] = bytes(len(buffers[0]))  # whoever sent them uses the memory for something else
    evm = Scene(3, Fork.OSAKA).machine("native")
    assert as_list(evm.simulate_many(again, errors="keep")) == as_list(evm.simulate_many(calls, errors="keep"))


def test_calls_that_were_packed_are_not_changed_by_a_run_of_them() -> None:
    evm = machine("native", here=CODE)
    calls = Pieces([word(1)], Common.read(HERE, bytes(20), 0, 100_000)).take(1)
    assert calls is not None
    assert evm.simulate_many(calls, reads=[(HERE, 0)]).reads() == [0]
    assert calls.reads == ()
    with pytest.raises(IndexError, match="0 were asked for"):
        evm.simulate_many(calls).reads()
