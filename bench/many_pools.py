"""Pools of workers side by side, for bench/many.py: threads, processes and Dask in turns, the best of several rounds.

By the clock a pool is as quick as the cores it gets; what all its processes spend tells what it costs on any machine.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from fusevm import EVM, Batch
from fusevm.batch import Pool, Processes, Threads
from fusevm.native.host.many import ManyCalls


@dataclass
class Work:
    """Calls that every pool makes, and whether it answers as it should."""

    kind: str
    evm: EVM
    run: Callable[[Pool], int]
    check: Callable[[Pool], bool]
    calls: int
    answer: int  # bytes that a call's results take on their way


class Contender:
    """A pool with its workers started, and how it did."""

    def __init__(self, name: str, pool: Pool, pids: list[int]) -> None:
        self.name, self.pool = name, pool
        self._pids = [os.getpid(), *pids]
        self.clock = self.spent = float("inf")  # the best of each

    def go(self, run: Callable[[Pool], object]) -> None:
        started, spent = time.perf_counter(), processor_time(self._pids)
        run(self.pool)
        self.clock = min(self.clock, time.perf_counter() - started)
        self.spent = min(self.spent, processor_time(self._pids) - spent)


def processor_time(pids: list[int]) -> float:
    """Seconds that these processes have spent so far; without psutil those of this process alone."""
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:
        return time.process_time()
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def contenders(evm: EVM, workers: int, stack: ExitStack) -> Iterator[Contender]:
    for number in (1, workers):
        yield Contender(f"{number} threads", stack.enter_context(Threads(evm, number)), [])
    for number in (1, workers):
        processes = stack.enter_context(Processes(evm, number))
        yield Contender(f"{number} processes", processes, processes.pids)
    try:
        from fusevm.batch import Cluster

        cluster = stack.enter_context(Cluster(evm, n_workers=workers))
    except ImportError as error:
        print(error)
        return
    yield Contender(f"Dask, {workers} workers", cluster, list(cluster._client.run(os.getpid).values()))


def with_pools(work: Work, workers: int, rounds: int) -> None:
    with ExitStack() as stack:
        pools = list(contenders(work.evm, workers, stack))
        for each in pools:  # the first time workers get the state, and pieces grow
            assert work.check(each.pool)
            assert work.run(each.pool) == work.calls
        for _ in range(rounds):
            for each in pools:
                each.go(work.run)
        for each in pools:
            name = f"{work.kind}, {each.name}"
            print(f"{name:44} {work.calls / each.spent:12,.0f} {work.calls / each.clock:12,.0f}", flush=True)
        one, two, process, processes = pools[:4]
        share = lock_share(work, rounds)
        print(f"  {two.name} against {one.name}: {one.clock / two.clock:.2f} times by the clock;", end=" ")
        print(f"Python's lock is held for {share:.0%} of the processor time")
        print(f"  {processes.name} against {process.name}: {process.clock / processes.clock:.2f} times by the clock")
        if len(pools) > 4:
            dask = pools[4]
            more = dask.clock / processes.clock - 1, dask.spent / processes.spent - 1
            print(f"  Dask against {processes.name}: {more[0]:+.0%} by the clock, {more[1]:+.0%} of processor time")
            clock, spent = dask_floor(dask, work, rounds)
            print(f"  Dask, tasks that do nothing with as many bytes: {clock:.2f} s by the clock, {spent:.2f} s spent")


class Watched:
    """Native code, and how much processor time many calls have spent in it, where Python's lock is free."""

    def __init__(self, native: Any) -> None:
        self._native, self.spent = native, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def call_many(self, many: int) -> int:
        started = time.thread_time()
        status: int = self._native.call_many(many)
        self.spent += time.thread_time() - started
        return status


def lock_share(work: Work, rounds: int) -> float:
    """How much of one thread's processor time holds Python's lock, the least of some rounds: what two threads cannot
    do side by side. Other work on the machine changes it less than the clock."""
    watched: list[Watched] = []
    cross = ManyCalls._cross

    def crossing(calls: ManyCalls, engine: Any, end: int, fresh: bool) -> Any:
        if not isinstance(engine.native, Watched):
            engine.native = Watched(engine.native)
            watched.append(engine.native)
        return cross(calls, engine, end, fresh)

    shares = []
    ManyCalls._cross = crossing  # type: ignore[method-assign]
    try:
        with Threads(work.evm, 1) as pool:
            work.run(pool)
            for _ in range(rounds):
                before, started = sum(each.spent for each in watched), time.process_time()
                work.run(pool)
                spent = time.process_time() - started
                shares.append(1 - (sum(each.spent for each in watched) - before) / spent)
    finally:
        ManyCalls._cross = cross  # type: ignore[method-assign]
    return min(shares)


def size_of(batch: Batch) -> int:
    """Bytes of a batch on its way."""
    return len(pickle.dumps(batch, 5))


class Buffer:
    """Bytes that travel as calls and results do, beside the pickle."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Buffer, (pickle.PickleBuffer(self.data),)


def dask_floor(dask: Contender, work: Work, rounds: int) -> tuple[float, float]:
    """What it takes to send so many bytes through Dask and back, nothing done with them: clock and processor time."""
    from distributed import wait

    piece, question = 1 << 16, 68  # calls; bytes of each

    client = dask.pool._client  # type: ignore[attr-defined]
    probe = Contender("floor", dask.pool, dask._pids[1:])

    def run(_: Pool) -> None:
        left = -(-work.calls // piece)
        under_way: set[Any] = set()
        while left or under_way:
            while left and len(under_way) < 4:
                under_way.add(client.submit(_answer, Buffer(bytes(piece * question)), piece * work.answer, pure=False))
                left -= 1
            for future in wait(list(under_way), return_when="FIRST_COMPLETED").done:
                future.result()
                under_way.discard(future)
                future.release()

    for _ in range(rounds):
        probe.go(run)
    return probe.clock, probe.spent


def _answer(question: Buffer, size: int) -> Buffer:
    return Buffer(bytearray(size))
