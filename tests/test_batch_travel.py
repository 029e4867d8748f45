"""Calls and results on their way between processes: their columns are buffers that need not be copied."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fusevm import Batch, Call
from fusevm.chain.column import Column
from fusevm.chain.packed import Common, PackedCalls, Pieces
from fusevm.evm.forks import Fork
from fusevm.native.host import many
from test_many import HERE, OTHER, RETURN_WORD, Scene, as_list, machine, word

CODE = f"PUSH1 7 PUSH1 0 PUSH1 0 LOG1 PUSH1 0 CALLDATALOAD DUP1 ADD {RETURN_WORD}"
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def a_batch() -> Batch:
    """Of each kind: a success with a log, a halt, an exception; and slots that were read."""
    calls: list[Any] = [word(1), (OTHER, b""), Call(data=word(2), value=1), word(3)]
    evm = machine("native", here=CODE, other="INVALID")
    return evm.simulate_many(calls, to=HERE, errors="keep", reads=[(HERE, 0), (HERE, 1)])


def some_calls() -> PackedCalls:
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


# -- results that are handed over with their memory


@pytest.mark.parametrize("large", [1, 1_000, many.LARGE])
def test_results_are_the_same_whether_they_are_copied_or_handed_over(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of calls with outputs and logs of many sizes; what was handed over before stays as it was."""
    monkeypatch.setattr(many, "LARGE", large)
    code = "PUSH1 0 CALLDATALOAD DUP1 PUSH1 0 MSTORE DUP1 PUSH1 0 LOG0 PUSH1 0 RETURN"
    evm, judge = machine("native", here=code), machine("reference", here=code)
    sizes = [n * 7 % 300 for n in range(2_000)]
    first = evm.simulate_many([word(n) for n in sizes], to=HERE)
    before = list(first)
    second = evm.simulate_many([word(n + 1) for n in sizes], to=HERE)
    assert list(first) == before
    assert list(first)[:400] == [judge.simulate(HERE, word(n)) for n in sizes[:400]]
    assert list(Batch.joined([first, second])) == [*first, *second]
    assert pickle.loads(pickle.dumps(first)) == first
    assert_same_columns(pickle.loads(pickle.dumps(second, 5)), second)


def assert_same_columns(found: Batch, expected: Batch) -> None:
    assert found.outputs == expected.outputs
    assert [list(each) for each in found.logs] == [list(each) for each in expected.logs]


def test_memory_that_is_not_handed_over_but_used_again_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(arena: Any, size: int, column: Column) -> Any:
        column.adopt(arena.view(arena.address, size))
        return arena  # which the next calls write to

    monkeypatch.setattr(many, "_handed_over", wrong)
    evm = machine("native", here=CODE)
    first = evm.simulate_many([word(n) for n in range(300)], to=HERE)
    evm.simulate_many([word(n + 1) for n in range(300)], to=HERE)
    assert first.words() != [2 * n for n in range(300)]


def test_a_column_that_another_was_extended_with_can_grow_by_itself() -> None:
    first, second = Column([b"ab"]), Column()
    first.add(b"c")
    second.add(b"-")
    second.extend(first)
    first.add(b"d")
    second.add(b"e")
    assert (bytes(first.whole()), bytes(second.whole())) == (b"abcd", b"-abce")
    assert (len(first), len(second)) == (4, 5)
    assert (bytes(first.whole()), Column().whole()) == (b"abcd", b"")
