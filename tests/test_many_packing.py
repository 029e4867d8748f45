"""Data of many calls joined by native code is what Python would join; what is not plain bytes is left to Python."""

from __future__ import annotations

import random
from array import array
from threading import Event, Thread
from typing import Any

import pytest

from fusevm.chain import packed as packing
from fusevm.chain.packed import BadCall, Common, Packed, Pieces
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


def taken(calls: list[Any]) -> Packed:
    found = Pieces(calls, COMMON).take(len(calls))
    assert found is not None
    return found


def by_python(calls: list[Any]) -> Packed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_native", [])
        return taken(calls)


@pytest.mark.parametrize("sizes", [(0,), (1,), (36,), (0, 1), (4, 36, 68, 100), tuple(range(300))])
def test_calls_of_any_size_are_joined_as_python_joins_them(sizes: tuple[int, ...]) -> None:
    rng = random.Random(len(sizes))
    for count in (1, 2, 3, 1_000):
        calls = [rng.randbytes(rng.choice(sizes)) for _ in range(count)]
        found = taken(calls)
        assert found == by_python(calls)
        assert [found.data_of(number) for number in range(count)] == calls


@pytest.mark.parametrize("odd", [Named(b"abc"), bytearray(b"abc"), memoryview(b"abc"), "0x616263", (HERE, b"abc")])
@pytest.mark.parametrize("place", [0, 500, 999])
def test_what_is_not_plain_bytes_is_read_by_python(odd: Any, place: int) -> None:
    calls: list[Any] = [word(n) for n in range(1_000)]
    calls[place] = odd
    assert library().measure_each is not None
    assert packing._native[0](tuple(calls)) is None
    assert taken(calls) == by_python(calls)
    assert taken(calls).data_of(place) == b"abc"


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
        assert all(taken(calls).data == right for _ in range(200))
    finally:
        stop.set()
        thread.join()


def test_calls_joined_natively_answer_as_others() -> None:
    evm = machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")
    assert evm.simulate_many((word(n) for n in range(3_000)), to=HERE).words() == list(range(3_000))


@pytest.mark.parametrize("wrong", [-8, 8])
def test_objects_that_are_laid_out_otherwise_are_left_to_python(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(native, "use_native", used.append)
    native.quicken(library().measure_each, library().join_each)
    assert len(used) == 1
    monkeypatch.setattr(native, "_BEFORE", native._BEFORE + wrong)
    native.quicken(library().measure_each, library().join_each)
    assert len(used) == 1


def test_a_joiner_that_errs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(native, "use_native", used.append)
    native.quicken(library().measure_each, lambda *_: 1)  # which copies nothing, and says that all are alike
    assert not used


def test_sizes_are_one_number_where_all_are_alike() -> None:
    assert taken([b"abc"] * 9).sizes == 3
    assert taken([b"abc", b"de"] * 9).sizes == array("Q", [3, 2] * 9)
