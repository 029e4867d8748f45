"""Data of many calls joined by native code is what Python would join; what is not plain bytes is left to Python."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any

import pytest

from fusevm.chain import packed as packing
from fusevm.chain.packed import BadCall, Common, PackedCalls, Pieces, Place
from fusevm.native.emit import packing as native
from fusevm.native.emit.build import library
from test_many import HERE, RETURN_WORD, machine, word

COMMON = Common.read(HERE, bytes(20), 0, 100_000)


class Named(bytes):
    """Of a type of its own: who knows what it has before its bytes."""


@pytest.fixture(autouse=True)
def joined_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    assert packing._native
    monkeypatch.setattr(packing, "MANY", 1)


def taken(calls: Iterable[Any], count: int = 1 << 16, place: Place | None = None) -> PackedCalls:
    found = Pieces(calls, COMMON).take(count, place)
    assert found is not None
    return found


def by_python(calls: list[Any]) -> PackedCalls:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_native", [])
        return taken(calls)


@pytest.mark.parametrize("sizes", [(0,), (1,), (36,), (0, 1), (4, 36, 68, 100), tuple(range(300))])
def test_calls_of_any_size_are_joined_as_python_joins_them(sizes: tuple[int, ...]) -> None:
    rng = random.Random(len(sizes))
    for count in (1, 2, 3, 1_000):
        calls = [rng.randbytes(rng.choice(sizes)) for _ in range(count)]
        for found in (taken(calls), taken(iter(calls)), taken(tuple(calls))):
            assert found == by_python(calls)
            assert [found.data_of(number) for number in range(count)] == calls


LIKE_OTHERS = [kind(b"abc".rjust(32, b"\0")) for kind in (Named, bytearray, memoryview)]  # in size


@pytest.mark.parametrize(
    "odd", [Named(b"abc"), bytearray(b"abc"), memoryview(b"abc"), "0x616263", (HERE, b"abc"), *LIKE_OTHERS]
)
@pytest.mark.parametrize("place", [0, 500, 999])
def test_what_is_not_plain_bytes_is_read_by_python(odd: Any, place: int) -> None:
    calls: list[Any] = [word(n) for n in range(1_000)]
    calls[place] = odd
    assert packing._native[0].join(tuple(calls)) is None
    assert packing._native[0].join_alike(calls, 0, 1_000, None) is None
    assert taken(calls) == taken(iter(calls)) == by_python(calls)
    assert taken(calls).data_of(place).lstrip(b"\0") == b"abc"


@pytest.mark.parametrize("size", [1, 8, 36, 68, 300])
def test_a_list_is_joined_piece_by_piece_where_one_says(size: int) -> None:
    rng, memory = random.Random(size), memoryview(bytearray(1 << 20))
    calls = [rng.randbytes(size) for _ in range(1_000)]
    pieces, first = Pieces(calls, COMMON), 0
    for count in (1, 300, 500, 500):
        found = pieces.take(count, lambda wanted: memory[64 : 64 + wanted])
        assert found is not None
        assert found == by_python(calls[first : first + count])
        assert isinstance(found.data, memoryview)
        assert bytes(memory[64 : 64 + len(found.data)]) == b"".join(calls[first : first + count])
        assert not any(memory[:64])
        first += found.count
    assert first == 1_000
    assert pieces.take(1) is None
    assert type(taken(calls, place=lambda wanted: None).data) is bytes  # there is no such place


def test_a_list_of_which_some_are_of_another_size_is_joined_all_the_same() -> None:
    for odd in (0, 1, 998, 999):
        calls = [word(n) for n in range(1_000)]
        calls[odd] += b"more"
        memory = memoryview(bytearray(1 << 16))
        assert packing._native[0].join_alike(calls, 0, 1_000, None) is None
        found = taken(calls, place=lambda wanted, memory=memory: memory[:wanted])
        assert found == by_python(calls)
        assert type(found.data) is bytes


def test_a_list_is_never_read_past_its_end() -> None:
    """As where another thread has made it shorter meanwhile."""
    calls = [word(n) for n in range(600)]
    join = packing._native[0].join_alike
    assert join(calls, 100, 500, None) == (b"".join(calls[100:]), 32)
    assert join(calls, 101, 500, None) is None
    assert join(calls, 599, 1 << 20, None) is None
    pieces = Pieces(calls, COMMON)
    assert pieces.take(400) is not None
    del calls[450:]
    assert pieces.take(400) == by_python(calls[400:])
    calls += [b"later"]
    assert pieces.take(400) == by_python([b"later"])
    assert pieces.take(400) is None


def test_data_of_very_many_bytes_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call says how large all would be; that may be more than there is memory."""
    monkeypatch.setattr(native, "MAX_ALIKE", 32 * 600)
    join = packing._native[0].join_alike
    assert join([word(n) for n in range(600)], 0, 600, None) is not None
    assert join([word(n) for n in range(601)], 0, 601, None) is None
    assert taken([bytes(20_000), *(word(n) for n in range(600))]).data_of(600) == word(599)


def test_a_call_that_cannot_be_read_is_named() -> None:
    with pytest.raises(BadCall, match="call 700: data: "):
        taken([b""] * 700 + [7.5] + [b""] * 9)


def test_the_data_is_bytes_of_its_own_and_none_of_them_are_changed() -> None:
    calls = [bytes([n % 256]) * 40 for n in range(600)]
    before = [bytes(bytearray(each)) for each in calls]
    first, second = taken(calls), taken(calls)
    assert type(first.data) is bytes
    assert (first.data, hash(first.data)) == (second.data, hash(b"".join(before)))
    assert calls == before
    assert taken([b""] * 5).data == b""
    assert not bytes(bytearray())  # the one empty object of all is not written to


def test_other_threads_run_while_calls_are_joined() -> None:
    """Many times over: were the lock not given back, or something changed meanwhile, some would differ."""
    calls = [random.Random(n).randbytes(36) for n in range(2_000)]
    right, stop = b"".join(calls), Event()

    def disturb() -> None:
        while not stop.is_set():
            [bytes(36) for _ in range(1_000)]

    thread = Thread(target=disturb)
    thread.start()
    try:
        assert all(taken(iter(calls)).data == right for _ in range(200))
        assert all(taken(calls).data == right for _ in range(200))
    finally:
        stop.set()
        thread.join()


def test_calls_joined_natively_answer_as_others() -> None:
    evm = machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")
    assert evm.simulate_many((word(n) for n in range(3_000)), to=HERE).words() == list(range(3_000))
    assert evm.simulate_many([word(n) for n in range(3_000)], to=HERE).words() == list(range(3_000))


def test_a_list_that_another_thread_changes_meanwhile_is_read_in_one_state_of_it() -> None:
    calls, stop = [bytes([7]) * 36] * 3_000, Event()

    def change() -> None:
        while not stop.is_set():
            calls.extend([bytes([7]) * 36] * 50_000)  # its items are elsewhere then
            del calls[3_000:]

    thread = Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            found = taken(calls, 3_000)
            assert found.data == bytes([7]) * 36 * 3_000
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("wrong", [-8, 8])
def test_objects_that_are_laid_out_otherwise_are_left_to_python(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(native, "use_native", used.append)
    native.install(*functions())
    assert len(used) == 1
    with monkeypatch.context() as patch:
        patch.setattr(native, "_BEFORE", native._BEFORE + wrong)
        native.install(*functions())
    with monkeypatch.context() as patch:
        patch.setattr(native.ListObject, "byte_size", lambda: 32 + wrong)
        native.install(*functions())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)  # lists change while they are read
        native.install(*functions())
    assert len(used) == 1


def functions() -> tuple[native.Function, native.Function, native.Function]:
    return library().measure_each, library().join_each, library().join_alike


def test_a_joiner_that_errs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(native, "use_native", used.append)
    measure, join, join_alike = functions()
    native.install(measure, lambda *_: 1, join_alike)  # which copies nothing, and says that all are alike
    native.install(measure, join, lambda *_: 2)
    assert not used
    native.install(measure, join, join_alike)
    assert used


def test_sizes_are_one_number_where_all_are_alike() -> None:
    assert taken([b"abc"] * 9).sizes == 3
    assert taken([b"abc", b"de"] * 9).sizes == array("Q", [3, 2] * 9)
