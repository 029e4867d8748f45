"""Calls and results in memory that processes share: the same answers, and nothing is left behind however they end."""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fusevm import Batch
from fusevm.batch import Processes, shared
from fusevm.batch.pool import CallPiece
from fusevm.batch.shared import WRITTEN, Errand, Parcel, SegmentAddress, Segments, can_open, carry_out, opened
from fusevm.chain.column import Column
from fusevm.chain.packed import Common, PackedCalls, Pieces
from fusevm.evm.forks import Fork
from fusevm.machine import batches
from fusevm.machine.batches import simulate_packed
from fusevm.native.host import many
from test_batch_pool import KillsOnce, asking, zeros
from test_many import HERE, RETURN_WORD, Scene, as_list, assert_same, machine, one_by_one, word

pytestmark = pytest.mark.skipif(not shared.is_supported(), reason="needs memory without a name, and /proc")
CODE = f"PUSH1 7 PUSH1 0 PUSH1 0 LOG1 PUSH1 0 CALLDATALOAD DUP1 ADD {RETURN_WORD}"
PROBE = "PUSH1 0 CALLDATALOAD DUP1 PUSH1 0 MSTORE DUP1 PUSH1 0 LOG0 PUSH1 0 RETURN"  # as much as it is told


def some_calls(first: int = 0, count: int = 300) -> PackedCalls:
    common = Common.read(HERE, bytes(20), 0, 100_000)
    found = Pieces([word(n) for n in range(first, first + count)], common).take(count)
    assert found is not None
    return found


def calls_in(segments: Segments, first: int = 0, count: int = 300) -> PackedCalls:
    """As `some_calls`, in memory of these segments."""
    common = Common.read(HERE, bytes(20), 0, 100_000)
    found = Pieces([word(n) for n in range(first, first + count)], common).take(count, segments.place)
    assert found is not None
    assert isinstance(found.data, memoryview)
    return found


def errand_of(segments: Segments, calls: object) -> Errand:
    found = segments.errand(calls)
    assert found is not None
    return found


def ours(*, collect: bool = True) -> list[str]:
    """Segments that this process has open or looks at."""
    if collect:
        gc.collect()
    links = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(each))
        except OSError:
            continue
    maps = Path("/proc/self/maps").read_text().splitlines()
    return [each for each in [*links, *maps] if shared.NAME in each]


@pytest.fixture(autouse=True)
def nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shared, "_windows", shared.Windows())
    yield
    shared._windows._kept.clear()
    assert ours() == []


def doubled(calls: Any, memory: memoryview | None = None) -> Batch:
    return simulate_packed(machine("native", here=CODE), calls, memory)


def test_a_thing_in_memory_is_the_thing_and_what_does_not_fit_is_in_its_text() -> None:
    calls = some_calls()
    batch = doubled(calls)
    for size in (64, 100, 9_600, 20_000, 1 << 20):
        memory = memoryview(bytearray(size))
        parcel = Parcel.of(batch, memory)
        assert parcel.open(memory) == batch
        assert all(first % 64 == 0 and first + size <= parcel.end for first, size in parcel.places)
    assert len(parcel.text) < 500
    first, size = parcel.places[1]
    memory[first + 31] ^= 1  # the last byte of the first output
    assert parcel.open(memory).words()[:2] == [1, 2]


def test_results_are_where_the_calls_were_sent_and_stay_while_somebody_has_them() -> None:
    segments = Segments()
    kept = []
    for number in range(12):
        errand = errand_of(segments, some_calls(number))
        assert not errand.is_answered
        assert carry_out(errand.order, doubled) is WRITTEN
        assert errand.is_answered
        kept.append(errand.taken(WRITTEN))
        if number % 3 == 2:
            del kept[-2]  # its segment is used again
    numbers = [0, 2, 3, 5, 6, 8, 9, 11]
    assert [batch.words() for batch in kept] == [[2 * n for n in range(first, first + 300)] for first in numbers]
    assert Batch.joined(kept).words()[600:602] == [6, 8]
    assert len(segments._free) <= 2
    segments.close()


def test_calls_that_are_written_to_a_segment_are_copied_neither_there_nor_by_the_worker() -> None:
    segments, seen = Segments(), []

    def run(calls: PackedCalls, memory: memoryview | None) -> Batch:
        assert isinstance(calls.data, memoryview)
        seen.append(bytes(calls.data[:32]))
        return doubled(calls, memory)

    calls = calls_in(segments, 5)
    errand = errand_of(segments, calls)
    assert errand.order.calls.places == [(64, len(calls.data))]
    assert calls.data == some_calls(5).data
    calls.data[:32] = word(9)  # the worker sees it
    assert errand.taken(carry_out(errand.order, run)).words()[:3] == [18, 12, 14]
    assert seen == [word(9)]
    del calls, errand
    segments.close()


def test_calls_of_a_lost_worker_are_sent_again_from_where_they_are() -> None:
    """Its segment is not used for others meanwhile."""
    segments = Segments()
    calls = calls_in(segments, 5)
    lost = errand_of(segments, calls)
    lost.drop()
    for first in (100, 200, 300):
        other = errand_of(segments, calls_in(segments, first))
        assert other.order.address.file != lost.order.address.file
        assert other.taken(carry_out(other.order, doubled)).words()[0] == 2 * first
    del lost
    again = errand_of(segments, calls)
    assert again.taken(carry_out(again.order, doubled)).words() == [2 * n for n in range(5, 305)]
    part = errand_of(segments, calls.part(100, 300))
    assert part.taken(carry_out(part.order, doubled)).words() == [2 * n for n in range(105, 305)]
    assert pickle.loads(pickle.dumps(calls)) == pickle.loads(pickle.dumps(calls, 5)) == some_calls(5)  # by a pipe


def test_the_place_for_calls_is_that_of_the_next_errand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_LENT", 2)
    segments = Segments()
    calls_in(segments, 1)  # which nobody sends
    kept = [errand_of(segments, calls_in(segments, 2)), errand_of(segments, some_calls(3))]
    assert segments.place(100) is None
    assert segments.errand(some_calls()) is None
    assert [each.taken(carry_out(each.order, doubled)).words()[0] for each in kept] == [4, 6]
    place = segments.place(100)
    assert place is not None
    assert len(place) == 100
    assert segments.place(shared.SPACE) is None
    assert errand_of(segments, None).order.calls.places == []
    segments.close()
    assert segments.place(100) is None


def test_memory_that_is_used_again_too_soon_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared._Lent, "__del__", lambda lent: None)
    segments = Segments()
    first = errand_of(segments, some_calls())
    batch = first.taken(carry_out(first.order, doubled))
    segments.give_back(first._segment, 0)
    again = errand_of(segments, some_calls(5))
    carry_out(again.order, doubled)
    assert batch.words() != [2 * n for n in range(300)]


def test_an_order_that_nobody_waits_for_any_more_is_not_carried_out() -> None:
    segments = Segments()
    ran: list[Any] = []

    def run(*given: Any) -> None:
        ran.append(given)

    errand = errand_of(segments, some_calls())
    batch = errand.taken(carry_out(errand.order, doubled))
    assert carry_out(errand.order, run) is None
    assert batch.words() == [2 * n for n in range(300)]
    del batch
    other = errand_of(segments, some_calls(7))
    assert other.order.address.file == errand.order.address.file  # the same segment, with other calls
    assert carry_out(errand.order, run) is None
    assert not ran
    assert other.taken(carry_out(other.order, doubled)).words()[0] == 14


@pytest.mark.parametrize("space", [1 << 15, 1 << 17, 1 << 19, 1 << 20, 1 << 22])
@pytest.mark.parametrize("least", [1, many.LEAST_ROOM])
def test_results_are_the_same_however_much_of_them_fits(
    space: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the smallest segment not even their records; and there are calls that Python has to end."""
    monkeypatch.setattr(shared, "SPACE", space)
    monkeypatch.setattr(many, "LEAST_ROOM", least)
    monkeypatch.setattr(batches, "WINDOW", 150)
    scene, segments, evm = Scene(6, Fork.OSAKA), Segments(), machine("native", here=PROBE)
    common = Common.read(HERE, bytes(20), 0, 10**7)
    sizes = [0, 1, 32, 100, 3_000, 9_000]
    for calls, run in (
        (scene.calls(300, special=0.3), partial(simulate_packed, scene.machine("native"))),
        ([word(sizes[n % len(sizes)]) for n in range(400)], partial(simulate_packed, evm)),
    ):
        packed = Pieces(calls, common).take(400)
        assert packed is not None
        errand = errand_of(segments, packed)
        found = errand.taken(carry_out(errand.order, run))
        expected = run(packed)
        assert as_list(found) == as_list(expected)
        assert found.outputs == expected.outputs
        assert [list(each) for each in found.logs] == [list(each) for each in expected.logs]
        assert list(found.gas_refunded) == list(expected.gas_refunded)
        assert pickle.loads(pickle.dumps(found)) == expected


def test_results_are_written_in_place() -> None:
    """Nothing but the memory's own bytes is in them, and the text is short."""
    memory = memoryview(bytearray(1 << 20))
    batch = doubled(some_calls(), memory[64:])
    parcel = Parcel.around(batch, memory, 64)
    assert len(parcel.text) < 400
    assert parcel.size == batch.size
    assert parcel.open(memory) == doubled(some_calls())
    first, _ = parcel.places[1]
    memory[first + 31] ^= 1  # the last byte of the first output
    assert batch.words()[:3] == parcel.open(memory).words()[:3] == [1, 2, 4]


def test_a_column_fills_its_room_first() -> None:
    rng = random.Random(1)
    for _ in range(300):
        room = memoryview(bytearray(rng.randrange(40)))
        column, right = Column(room=room), b""
        for _ in range(rng.randrange(12)):
            data = rng.randbytes(rng.randrange(12))
            free = column.free
            way = rng.randrange(8)
            if way < 3 and free is not None and len(free) >= len(data):
                free[: len(data)] = data
                column.grow(len(data))
            elif way == 3:
                column.adopt(data)
            elif way == 4:
                column.extend(Column([data]))
            else:
                column.add(data)
            right += data
            assert len(column) == len(right)
            if way == 7:
                assert bytes(column.whole()) == right
        assert b"".join(column.parts()) == right


def test_while_one_writes_another_sends_its_results_and_nobody_trusts_the_memory() -> None:
    segments = Segments()
    errand = errand_of(segments, calls_in(segments))
    with opened(errand.order.address) as (_, is_ours):  # a worker that was given up, and is not gone
        assert is_ours

        def run(calls: PackedCalls, memory: memoryview | None) -> Batch:
            assert type(calls.data) is bytes  # which nobody else writes to
            return doubled(calls, memory)

        answer = carry_out(errand.order, run)
        assert isinstance(answer, Batch)
        assert errand.taken(WRITTEN) is None  # nobody has written
        late = errand_of(segments, some_calls())
        carry_out(late.order, doubled)
        with opened(late.order.address):
            assert late.taken(WRITTEN) is None  # somebody may be writing once more
        again = errand_of(segments, some_calls())
        assert again.order.address.file != errand.order.address.file
    assert errand_of(segments, some_calls()).taken(answer) == doubled(some_calls())


def test_a_segment_is_not_used_again_while_somebody_writes_to_it() -> None:
    segments = Segments()
    errand = errand_of(segments, some_calls())
    answer = carry_out(errand.order, doubled)
    batch = errand.taken(answer)
    late = shared.SegmentWindow(errand.order.address)
    assert late.lock()
    del batch
    other = errand_of(segments, some_calls())
    assert other._segment is not errand._segment
    late.unlock()


def test_only_the_right_segment_is_opened(tmp_path: Path) -> None:
    segments = Segments()
    right = errand_of(segments, None).order.address
    assert can_open(right)
    assert not can_open(SegmentAddress(right.process, right.file, bytes(16)))
    assert not can_open(SegmentAddress(2**22 + 1, right.file, right.token))
    with (tmp_path / "other").open("wb") as file:
        assert not can_open(SegmentAddress(right.process, file.fileno(), right.token))
    small = os.memfd_create(shared.NAME)
    os.write(small, right.token)
    assert not can_open(SegmentAddress(right.process, small, right.token))
    os.close(small)


def test_segments_are_few_and_then_calls_go_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_LENT", 2)
    monkeypatch.setattr(shared, "KEPT", 1 << 12)
    segments = Segments()
    kept = []
    for _ in range(2):
        errand = errand_of(segments, some_calls())
        kept.append(errand.taken(carry_out(errand.order, doubled)))
    assert segments.errand(some_calls()) is None
    kept.pop()
    assert not segments._free  # it had more in it than is kept
    assert segments.errand(some_calls()) is not None


def test_windows_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "IDLE", 0.05)
    segments = Segments()
    errands = [errand_of(segments, some_calls()) for _ in range(3)]
    for each in errands:
        carry_out(each.order, doubled)
    del errands, each
    segments.close()
    until(lambda: not ours(), 10)


def test_a_worker_looks_for_garbage_only_when_it_closes_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    monkeypatch.setattr(shared.Windows, "_look_later", lambda windows: None)
    segments, windows = Segments(), shared._windows
    carry_out(errand_of(segments, some_calls()).order, doubled)
    windows._forget()
    assert windows._kept
    assert not collected
    windows._kept = {key: (window, used - 2 * shared.IDLE) for key, (window, used) in windows._kept.items()}
    windows._forget()
    assert not windows._kept
    assert collected
    segments.close()


def test_results_of_calls_that_failed_do_not_hold_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their exceptions may know frames that know results."""
    monkeypatch.setattr(shared, "IDLE", 0.05)
    segments, scene = Segments(), Scene(4, Fork.OSAKA)
    calls, run = scene.calls(300, special=0.2), partial(simulate_packed, scene.machine("native"))
    packed = Pieces(calls, Common(None, bytes(20), 0, 100_000)).take(300)
    gc.disable()
    try:
        errand = errand_of(segments, packed)
        assert carry_out(errand.order, run) is WRITTEN
        errand.drop()
        segments.close()
        del errand
        until(lambda: not ours(collect=False), 20)
    finally:
        gc.enable()


def until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- processes


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How pieces went to workers."""
    noted: list[str] = []
    submit = Processes.submit

    def noting(pool: Processes, piece: CallPiece) -> None:
        submit(pool, piece)
        worker = next(each for each in pool._workers if each.piece is piece)
        noted.append("pipe" if worker.errand is None else "memory")

    monkeypatch.setattr(Processes, "submit", noting)
    return noted


@pytest.mark.parametrize("most", [0, 3, shared.MAX_LENT])
def test_processes_answer_the_same_by_memory_and_by_pipe(
    most: int, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "MAX_LENT", most)
    scene = Scene(2, Fork.OSAKA)
    calls = scene.calls(2_000, special=0.1)
    expected = one_by_one(scene.machine("reference"), calls, keep=False)
    with Processes(scene.machine("native"), 2) as pool:
        assert_same(as_list(pool.simulate_many(calls[:50], errors="keep")), expected[:50], calls)
        found = pool.simulate_many(calls, errors="keep")
        assert_same(as_list(found), expected, calls)
    assert ("memory" in ways) == (most > 1)
    assert_same(as_list(found), expected, calls)  # after the pool is closed as well


def test_results_of_many_sizes_come_through_memory(ways: list[str]) -> None:
    rng, evm = random.Random(5), machine("native", here=PROBE)
    with Processes(evm, 1) as pool:
        for _ in range(5):
            calls = [word(rng.choice((0, 1, 32, 5_000))) for _ in range(400)]
            assert pool.simulate_many(calls, to=HERE) == evm.simulate_many(calls, to=HERE)
    assert ways.count("memory") >= 4


def test_a_worker_killed_in_the_middle_leaves_its_calls_to_another(tmp_path: Path, ways: list[str]) -> None:
    calls = [word(n % 200) for n in range(2_000)]
    expected = asking(zeros).simulate_many(calls, to=HERE)
    with Processes(asking(KillsOnce(199, tmp_path / "killed")), 2) as pool:
        pool.simulate_many(calls[:50], to=HERE)
        pool.simulate_many(calls[:50], to=HERE)
        assert pool.simulate_many(calls, to=HERE) == expected
    assert (tmp_path / "killed").exists()
    assert "memory" in ways


CLIENT = """
import os, sys, time
sys.path.insert(0, {tests!r})
from fusevm.batch import Processes
from test_batch_shared import CODE
from test_many import HERE, machine, word

if __name__ == "__main__":
    with Processes(machine("native", here=CODE), 2) as pool:
        kept = [pool.simulate_many([word(n) for n in range(600)], to=HERE) for _ in range(3)]
        assert len(pool._segments._lent) > 1
        segments = [os.fstat(each.file).st_ino for each in pool._segments._lent]
        print(*segments, flush=True)
        for _ in pool.stream((word(n % 9) for n in iter(int, 1)), to=HERE):
            pass
"""


def test_a_client_that_is_killed_leaves_no_memory_and_no_workers(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT.format(tests=str(Path(__file__).parent)))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        segments = client.stdout.readline().split()
        assert segments
        assert any(users(each) for each in segments)
        client.send_signal(signal.SIGKILL)
        client.wait()
    until(lambda: not any(users(each) for each in segments), 20)


def users(inode: str) -> list[str]:
    """Processes that look at a segment."""
    found = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            lines = maps.read_text().splitlines()
        except OSError:
            continue
        if any(shared.NAME in line and line.split()[4] == inode for line in lines):
            found.append(maps.parent.name)
    return found
