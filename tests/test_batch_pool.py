"""Pools of workers answer as one machine does, whatever happens to the workers."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fusevm import EVM, Call, CallFailed
from fusevm.batch import Pool, Processes, Threads, WorkerLost
from fusevm.batch import pool as pools
from fusevm.chain.packed import Common, PackedCalls, Pieces
from fusevm.evm.forks import Fork
from fusevm.values import BadValue
from test_many import HERE, RETURN_WORD, Scene, as_list, assert_same, machine, one_by_one, word

KILLABLE = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
ASK = f"PUSH1 0 CALLDATALOAD BLOCKHASH PUSH1 0 CALLDATALOAD ADD {RETURN_WORD}"  # asks Python for a block's hash
WAYS = {"processes": partial(Processes, processes=2), "threads": partial(Threads, threads=2)}


def asking(hashes: Any) -> EVM:
    evm = machine("native", here=ASK)
    evm.block.number, evm.block.hashes = 200, hashes
    return evm


def zeros(number: int) -> bytes:
    return bytes(32)


class KillsOnce:
    """Ends its process when it is asked for a block for the first time."""

    def __init__(self, number: int, mark: Path) -> None:
        self.number = number
        self.mark = mark

    def __call__(self, number: int) -> bytes:
        if number == self.number and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return bytes(32)


class Kills:
    """Ends its process whenever it is asked for a block, after so many seconds."""

    def __init__(self, number: int, seconds: float = 0.0) -> None:
        self.number = number
        self.seconds = seconds

    def __call__(self, number: int) -> bytes:
        if number == self.number:
            time.sleep(self.seconds)
            os.kill(os.getpid(), signal.SIGKILL)
        return bytes(32)


class RunsOutOfMemory:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, number: int) -> bytes:
        if number == self.number:
            raise MemoryError("no memory for a hash")
        return bytes(32)


@pytest.mark.parametrize("way", WAYS)
def test_random_calls_answer_as_by_themselves(way: str) -> None:
    scene = Scene(1, Fork.OSAKA)
    calls = scene.calls(700, special=0.2)
    expected = one_by_one(scene.machine("reference"), calls, keep=False)
    with WAYS[way](scene.machine("native")) as pool:
        found = pool.simulate_many(calls, errors="keep")
        assert_same(as_list(found), expected, calls)
        assert found == scene.machine("native").simulate_many(calls, errors="keep")


@pytest.mark.parametrize("way", WAYS)
def test_results_come_in_the_order_of_calls_and_progress_is_told(way: str) -> None:
    told: list[int] = []
    with WAYS[way](machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")) as pool:
        parts = list(pool.stream((word(n) for n in range(5_000)), to=HERE, progress=told.append))
        assert [n for part in parts for n in part.words()] == list(range(5_000))
        assert told == sorted(told)
        assert told[-1] == 5_000
        assert pool.simulate_many([], to=HERE).words() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_fails_is_named_and_the_rest_is_done(way: str) -> None:
    calls: list[Any] = [word(n) for n in range(1_000)]
    calls[777] = Call(data=word(1), value=5, caller=bytes(20))
    with WAYS[way](machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")) as pool:
        with pytest.raises(CallFailed, match="call 777: value: caller 0x0000000000000000000000000000000000000000 has"):
            pool.simulate_many(calls, to=HERE)
        found = pool.simulate_many(calls, to=HERE, errors="keep")
    assert list(found.errors) == [777]
    assert found.errors[777].number == 777
    assert [n for n in found.words() if n is not None] == [n for n in range(1_000) if n != 777]


@KILLABLE
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    calls = [word(n % 200) for n in range(2_000)]
    expected = asking(zeros).simulate_many(calls, to=HERE)
    with Processes(asking(KillsOnce(150, tmp_path / "killed")), 2) as pool:
        assert pool.simulate_many(calls, to=HERE) == expected
        assert pool.workers == 2
    assert (tmp_path / "killed").exists()


@KILLABLE
def test_a_worker_killed_from_outside_while_it_waits_changes_nothing() -> None:
    with Processes(asking(zeros), 2) as pool:
        os.kill(pool.pids[0], signal.SIGKILL)
        assert len(pool.simulate_many([word(1)] * 600, to=HERE)) == 600


@KILLABLE
def test_a_call_that_ends_every_worker_is_named_and_the_rest_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "FIRST", 32)
    calls = [word(n) for n in range(64)]
    with Processes(asking(Kills(40)), 2) as pool:
        found = pool.simulate_many(calls, to=HERE, errors="keep")
    reason = "its worker was lost, more than once (killed, as the system does when memory runs out)"
    assert {number: each.error for number, each in found.errors.items()} == {40: reason}
    assert [n for n in found.words() if n is not None] == [n for n in range(64) if n != 40]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_runs_out_of_memory_is_named_and_the_rest_is_done(way: str) -> None:
    with WAYS[way](asking(RunsOutOfMemory(7))) as pool:
        found = pool.simulate_many([word(n) for n in range(20)], to=HERE, errors="keep")
    assert {number: each.error for number, each in found.errors.items()} == {7: "no memory for a hash"}


def test_the_state_is_the_one_of_when_the_workers_were_made() -> None:
    evm = machine("native", here=f"PUSH1 0 SLOAD {RETURN_WORD}")
    evm.set_storage(HERE, 0, 5)
    with Threads(evm, 2) as pool:
        evm.set_storage(HERE, 0, 6)
        assert pool.simulate_many([b""] * 10, to=HERE).words() == [5] * 10


def test_a_stream_that_is_left_early_leaves_workers_that_can_be_used() -> None:
    with Processes(machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}"), 2) as pool:
        stream = pool.stream((word(n) for n in iter(lambda: 1, 0)), to=HERE)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        assert pool.simulate_many([word(4)], to=HERE).words() == [4]


class CannotBeMade:
    """Can be pickled, but not made again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, (3,)

    def __call__(self, number: int) -> bytes:
        return bytes(32)


def test_workers_that_cannot_begin_are_not_started_for_ever() -> None:
    evm = asking(CannotBeMade())
    with Processes(evm, 1) as pool, pytest.raises(WorkerLost, match=r"ended before it began \(exit code 3\)"):
        pool.simulate_many([b""], to=HERE)


class Slow(Pool):
    """Takes as long as it is told for a call, on one worker."""

    def __init__(self, seconds: float, code: str = "STOP") -> None:
        super().__init__()
        self.seconds = seconds
        self.sizes: list[int] = []
        self._evm = machine("native", here=code)

    @property
    def workers(self) -> int:
        return 1

    def submit(self, piece: pools.CallPiece) -> None:
        self._piece = piece
        self.sizes.append(piece.calls.count)

    def wait(self) -> list[pools.Done]:
        _, batch = pools.timed_piece(self._evm, self._piece.calls)
        return [pools.Done(self._piece, batch, self.seconds * len(batch))]

    def close(self) -> None: ...


@pytest.mark.parametrize(("seconds", "size"), [(1e-7, pools.MOST), (1e-2, 20), (5.0, 1)])
def test_pieces_take_about_as_long_as_they_should(seconds: float, size: int) -> None:
    pool = Slow(seconds)
    for _ in pool.stream((b"" for _ in range(300_000 if size > 20 else 900)), to=HERE):
        pass
    assert size in pool.sizes
    assert max(pool.sizes[4:-1]) <= size


def test_pieces_have_no_more_bytes_than_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slow, "most_bytes", 1 << 16)
    pool = Slow(1e-7, "PUSH2 1000 PUSH1 0 RETURN")
    for _ in pool.stream((b"" for _ in range(5_000)), to=HERE):
        pass
    assert set(pool.sizes[4:-1]) == {(1 << 16) // 1040}


@pytest.mark.parametrize(("total", "workers", "sizes"), [(1_000, 3, [334, 334, 332]), (200, 3, [200]), (0, 3, [])])
def test_workers_get_equally_many_where_it_is_known_how_many_there_are(
    total: int, workers: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slow, "workers", workers)
    monkeypatch.setattr(Slow, "room", 1)
    pool = Slow(1e-7)
    pool._size = 700
    assert sum(map(len, pool.stream([b""] * total, to=HERE))) == total
    assert pool.sizes == sizes


def test_parts_of_packed_calls_are_the_calls() -> None:
    scene = Scene(3, Fork.OSAKA)
    calls = scene.calls(90, special=0.5)
    common = Common(None, bytes(20), 0, 100_000)
    whole = Pieces(calls, common).take(90)
    assert isinstance(whole, PackedCalls)
    rng = random.Random(0)
    for _ in range(50):
        first, last = sorted(rng.randrange(91) for _ in range(2))
        part, right = whole.part(first, last), Pieces(calls[first:last], common).take(90)
        for number in range(last - first):
            assert right is not None
            assert part.data_of(number) == right.data_of(number)
            assert part.kind(number) == right.kind(number)
            assert part.special.get(number) == right.special.get(number)


def test_there_is_at_least_one_worker() -> None:
    with pytest.raises(BadValue, match="processes: expected at least 1, got 0"):
        Processes(EVM(), 0)
    with pytest.raises(BadValue, match="errors: expected"), Threads(EVM(), 1) as pool:
        pool.stream([], errors="ignore")
