"""A Dask cluster answers as one machine does. Needs the extra `batch`; without it these tests are skipped."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fusevm import Batch, Call
from fusevm.batch import Cluster, shared
from fusevm.batch.cluster import SOON
from fusevm.batch.shared import WRITTEN, Errand
from fusevm.evm.forks import Fork
from test_batch_pool import KILLABLE, Kills, KillsOnce, asking, zeros
from test_many import HERE, RETURN_WORD, Scene, as_list, assert_same, machine, one_by_one, word

pytestmark = pytest.mark.long  # real tools, installed for it

distributed = pytest.importorskip("distributed")
SHARES = pytest.mark.skipif(not shared.is_supported(), reason="needs memory without a name, and /proc")
STARTED = 1.5  # seconds: Dask starts a worker again, unless it ends while it starts
SETTINGS = {
    "distributed.scheduler.allowed-failures": 1,
    "distributed.deploy.lost-worker-timeout": "300s",  # a worker that is not there for that long is not started again
}


class LoadsAtLast:
    """Ends the process that loads it, so many times; then it is a machine that returns what it is given."""

    def __init__(self, noted: Path, times: int) -> None:
        self.noted, self.times = noted, times

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.noted, self.times)


def _loaded(noted: Path, times: int) -> Any:
    with noted.open("a") as file:
        file.write("\n")
    if noted.stat().st_size <= times:
        time.sleep(STARTED)
        os.kill(os.getpid(), signal.SIGKILL)
    return machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        pytest.importorskip("dask").config.set(SETTINGS),
        distributed.Client(n_workers=2, threads_per_worker=2, dashboard_address=None) as client,
    ):
        yield client


def test_random_calls_answer_as_by_themselves(client: Any) -> None:
    scene = Scene(1, Fork.OSAKA)
    calls = scene.calls(700, special=0.2)
    expected = one_by_one(scene.machine("reference"), calls, keep=False)
    with Cluster(scene.machine("native"), client) as pool:
        assert_same(as_list(pool.simulate_many(calls, errors="keep")), expected, calls)


def test_each_worker_gets_as_many_pieces_as_it_has_threads_for(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, chosen = client.submit, []

    def noting(*task: Any, workers: list[str] | None = None, **how: Any) -> Any:
        chosen.extend(workers or ())
        return submit(*task, workers=workers, **how)

    evm = machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}")
    with Cluster(evm, client) as pool:
        monkeypatch.setattr(client, "submit", noting)
        assert pool.room == 8
        assert pool.simulate_many([word(n) for n in range(5_000)], to=HERE).words() == list(range(5_000))
        assert set(chosen) == set(client.nthreads())
        assert Counter(chosen[:8]) == dict.fromkeys(client.nthreads(), 4)
        pool._threads = {"tcp://127.0.0.1:1": 3, "tcp://127.0.0.1:2": 1}  # that are gone
        pool._counted, pool._size = float("inf"), 256
        del chosen[:]
        assert pool.simulate_many([word(n) for n in range(5_000)], to=HERE).words() == list(range(5_000))
        assert Counter(chosen[:8]) == {"tcp://127.0.0.1:1": 6, "tcp://127.0.0.1:2": 2}


def open_segments() -> list[str]:
    """On a worker: those it looks at."""
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if shared.NAME in line]


@SHARES
def test_calls_and_results_are_in_memory_that_workers_of_this_machine_share(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    monkeypatch.setattr(Errand, "taken", noting(Errand.taken, taken))
    scene = Scene(4, Fork.OSAKA)
    calls = scene.calls(700, special=0.2)
    expected = one_by_one(scene.machine("reference"), calls, keep=False)
    with Cluster(scene.machine("native"), client) as pool:
        found = pool.simulate_many(calls, errors="keep")
        assert pool._shares
    assert taken
    assert all(taken)
    assert_same(as_list(found), expected, calls)  # after the pool is closed
    deadline = time.monotonic() + 10 * shared.IDLE
    while any(client.run(open_segments).values()):  # workers keep none for long
        assert time.monotonic() < deadline
        time.sleep(0.1)


def noting(method: Any, noted: list[bool]) -> Any:
    def run(errand: Errand, answer: object) -> Any:
        noted.append(answer is WRITTEN)
        return method(errand, answer)

    return run


@SHARES
def test_workers_that_are_not_on_this_machine_get_calls_another_way(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time they only seem to be: a worker that comes later may be elsewhere."""
    calls = [word(n) for n in range(1_000)]
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # so that no segment is where workers look for it
    for seems in (None, True):
        with Cluster(machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}"), client) as pool:
            assert not pool._shares
            pool._shares = bool(seems)
            assert pool.simulate_many(calls, to=HERE).words() == list(range(1_000))
            assert not pool._shares


@KILLABLE
def test_a_worker_killed_while_others_wait_leaves_results_that_were_written(client: Any) -> None:
    evm = asking(zeros)
    calls = [word(n % 150) for n in range(20_000)]
    expected = evm.simulate_many(calls, to=HERE)
    with Cluster(evm, client) as pool:
        stream = pool.stream(calls, to=HERE)
        parts = [next(stream)]
        for pid in list(client.run(os.getpid).values())[:1]:
            os.kill(pid, signal.SIGKILL)
        parts += stream
        assert Batch.joined(parts) == expected


def test_a_call_that_fails_is_named_and_the_rest_is_done(client: Any) -> None:
    calls: list[Any] = [word(n) for n in range(1_000)]
    calls[777] = Call(data=word(1), value=5, caller=b"\xaa" * 20)  # who has nothing
    with Cluster(machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}"), client) as pool:
        found = pool.simulate_many(calls, to=HERE, errors="keep")
    assert list(found.errors) == [777]
    assert [n for n in found.words() if n is not None] == [n for n in range(1_000) if n != 777]


@KILLABLE
def test_a_worker_killed_in_the_middle_changes_nothing(client: Any, tmp_path: Path) -> None:
    calls = [word(n % 200) for n in range(2_000)]
    expected = asking(zeros).simulate_many(calls, to=HERE)
    with Cluster(asking(KillsOnce(150, tmp_path / "killed")), client) as pool:
        assert pool.simulate_many(calls, to=HERE) == expected
    assert (tmp_path / "killed").exists()


@KILLABLE
def test_a_worker_killed_from_outside_changes_nothing(client: Any) -> None:
    with Cluster(asking(zeros), client) as pool:
        pids = list(client.run(os.getpid).values())
        stream = pool.stream((word(1) for _ in range(30_000)), to=HERE)
        count = len(next(stream))
        os.kill(pids[0], signal.SIGKILL)
        assert count + sum(map(len, stream)) == 30_000


@KILLABLE
def test_a_call_that_ends_every_worker_is_named_and_the_rest_is_done(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fusevm.batch import pool as pools

    monkeypatch.setattr(pools, "FIRST", 8)
    with Cluster(asking(Kills(5, STARTED)), client) as pool:
        found = pool.simulate_many([word(n) for n in range(8)], to=HERE, errors="keep")
    assert list(found.errors) == [5]
    assert [n for n in found.words() if n is not None] == [n for n in range(8) if n != 5]


@KILLABLE
def test_a_machine_that_is_lost_with_its_workers_is_sent_again(client: Any, tmp_path: Path) -> None:
    machine = LoadsAtLast(tmp_path / "tries", 6)
    with Cluster(machine, client) as pool:  # type: ignore[arg-type]
        assert pool.simulate_many([word(4)], to=HERE).words() == [4]


@KILLABLE
def test_a_machine_that_ends_every_worker_is_given_up(client: Any, tmp_path: Path) -> None:
    with Cluster(LoadsAtLast(tmp_path / "tries", 1000), client) as pool:  # type: ignore[arg-type]
        assert list(pool.simulate_many([word(4)], to=HERE, errors="keep").errors) == [0]


def test_a_cluster_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusevm.batch import cluster as clusters

    monkeypatch.setattr(clusters, "LOOK", 0.2)
    monkeypatch.setattr(clusters, "MAX_ALONE", 1.0)
    with (
        distributed.Client(n_workers=0, dashboard_address=None) as client,
        Cluster(machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}"), client) as pool,
        pytest.raises(RuntimeError, match="the cluster has no workers, for 1 seconds now"),
    ):
        pool.simulate_many([word(4)], to=HERE)


def test_a_cluster_of_this_machine_is_made_where_none_is_given() -> None:
    with Cluster(machine("native", here=f"PUSH1 0 CALLDATALOAD {RETURN_WORD}"), n_workers=1) as pool:
        assert pool.simulate_many([word(4)], to=HERE).words() == [4]
        assert pool._client.scheduler_comm.interval == SOON
