"""Pools of workers side by side, for bench/many.py: threads and processes in turns, the best of several rounds; then
processes and Dask, whose threads in this process the others need not have beside them.

By the clock a pool is as quick as the cores it gets; what all its processes spend tells what it costs on any machine.
Rounds beside which other work of the machine took much count only where there were no others: `QUIET`. What the cores
could do at most is measured as well: `ceiling`.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from fusevm import EVM, Batch
from fusevm.batch import Pool, Processes, Threads
from fusevm.chain.packed import PackedCalls
from fusevm.machine.batches import simulate_packed
from fusevm.native.host.many import ManyCalls


@dataclass
class Work:
    """Calls that every pool makes, and whether it answers as it should."""

    kind: str
    evm: EVM
    stream: Callable[[Pool], Iterator[Batch]]
    check: Callable[[Pool], bool]
    calls: int
    packed: PackedCalls  # all of them

    def run(self, pool: Pool) -> int:
        return sum(map(len, self.stream(pool)))


PART = 1 << 16  # calls
QUIET = 0.05  # of the machine, that other work takes
ENOUGH, PATIENCE = 3, 4  # quiet rounds that are waited for, and how many times as many rounds there are at most


class Contender:
    """A pool with its workers started, and how it did."""

    def __init__(self, name: str, pool: Any, pids: list[int]) -> None:
        self.name, self.pool = name, pool
        self._pids = [os.getpid(), *pids]
        self.rounds: list[tuple[bool, float, float]] = []  # whether not quiet, clock, processor time

    def go(self, run: Callable[[Pool], object]) -> None:
        started, spent, busy = time.perf_counter(), processor_time(self._pids), busy_time()
        run(self.pool)
        clock, spent, busy = (
            time.perf_counter() - started, processor_time(self._pids) - spent, busy_time() - busy
        )  # fmt: skip
        self.rounds.append(((busy - spent) / (clock * (os.cpu_count() or 1)) > QUIET, clock, spent))

    @property
    def clock(self) -> float:
        """The best by the clock, of quiet rounds if there were any."""
        return min(self.rounds)[1]

    @property
    def spent(self) -> float:
        return min(spent for _, _, spent in self.rounds)

    @property
    def quiet(self) -> int:
        return sum(not loud for loud, _, _ in self.rounds)


def busy_time() -> float:
    """Seconds that all cores have worked so far."""
    try:
        import psutil
    except ImportError:
        return 0.0
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


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


def with_dask(evm: EVM, workers: int, stack: ExitStack) -> Iterator[Contender]:
    """Dask, and processes in turns with it."""
    try:
        from fusevm.batch import Cluster

        cluster = stack.enter_context(Cluster(evm, n_workers=workers))
    except ImportError as error:
        print(error)
        return
    processes = stack.enter_context(Processes(evm, workers))
    yield Contender(f"{workers} processes beside Dask", processes, processes.pids)
    yield Contender(f"Dask, {workers} workers", cluster, list(cluster._client.run(os.getpid).values()))


def with_pools(work: Work, workers: int, rounds: int) -> None:
    most = ceiling(work, workers, rounds)
    with ExitStack() as stack:
        one, two, process, processes = in_turns(work, contenders(work.evm, workers, stack), rounds)
        share = lock_share(work, rounds)
    print(f"  {workers} processes that share nothing against one: {most:.2f} times by the clock")
    print(f"  {two.name} against {one.name}: {one.clock / two.clock:.2f} times by the clock;", end=" ")
    print(f"Python's lock is held for {share:.0%} of the processor time")
    print(f"  {processes.name} against {process.name}: {process.clock / processes.clock:.2f} times by the clock")
    with ExitStack() as stack:
        found = in_turns(work, with_dask(work.evm, workers, stack), rounds)
        if found:
            processes, dask = found
            more = dask.clock / processes.clock - 1, dask.spent / processes.spent - 1
            print(f"  Dask against {processes.name}: {more[0]:+.0%} by the clock, {more[1]:+.0%} of processor time")
            tasks = sum(1 for _ in work.stream(dask.pool))
            floor = dask_floor(dask, tasks, rounds)
            print(f"  Dask, {tasks} tasks that do nothing: {floor.clock:.3f} s by the clock, {floor.spent:.2f} s spent")
    made_new(work, workers)


def in_turns(work: Work, given: Iterator[Contender], rounds: int) -> list[Contender]:
    """All of them, with their figures printed."""
    pools = list(given)
    for each in pools:  # the first time workers get the state, and pieces grow
        assert work.check(each.pool)
        for _ in range(2):
            assert work.run(each.pool) == work.calls
    take_turns([(each, work.run) for each in pools], rounds)
    for each in pools:
        name = f"{work.kind}, {each.name}"
        figures = f"{work.calls / each.spent:12,.0f} {work.calls / each.clock:12,.0f}"
        print(f"{name:44} {figures}   ({each.quiet} of {len(each.rounds)} rounds quiet)", flush=True)
    return pools


def take_turns(given: list[tuple[Contender, Callable[[Any], object]]], rounds: int) -> None:
    """So many times, and more where other work on the machine left none of them enough quiet rounds."""
    for number in range(PATIENCE * rounds):
        if number >= rounds and all(each.quiet >= ENOUGH for each, _ in given):
            return
        for each, run in given:
            each.go(run)


def ceiling(work: Work, workers: int, rounds: int) -> float:
    """How many times as much so many processes do that each have their calls and share nothing, as one of them does
    while the others rest: no pool can be better by more than what it wastes alone."""
    context = multiprocessing.get_context("spawn")
    half = work.packed.part(0, work.packed.count // workers)
    ends, pids = [], []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=_alone, args=(theirs, work.evm, half), daemon=True)
        process.start()
        ends.append(ours)
        pids.append(process.pid or 0)
    for each in ends:
        each.recv()
    alone, together = Contender("one", None, pids), Contender("all", None, pids)
    take_turns([(alone, lambda _: _go(ends[:1])), (together, lambda _: _go(ends))], rounds)
    for each in ends:
        each.send(False)
    return workers * alone.clock / together.clock


def _go(ends: list[Any]) -> None:
    """Has these processes make their calls."""
    for each in ends:
        each.send(True)
    for each in ends:
        each.recv()


def _alone(connection: Any, evm: EVM, calls: PackedCalls) -> None:
    parts = [calls.part(first, min(first + PART, calls.count)) for first in range(0, calls.count, PART)]
    wanted = True
    while wanted:
        for part in parts:
            simulate_packed(evm, part)
        connection.send(None)
        wanted = connection.recv()


def made_new(work: Work, workers: int) -> None:
    """With workers that are started for it and have compiled nothing: what a single run takes."""
    for number in (1, workers):
        started = time.perf_counter()
        with Processes(work.evm, number) as pool:
            assert work.run(pool) == work.calls
        print(f"  {number} processes, made new and ended: {time.perf_counter() - started:.2f} s by the clock")


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


def dask_floor(dask: Contender, tasks: int, rounds: int) -> Contender:
    """What it takes to have so many tasks done by Dask that do nothing, two per worker under way."""
    client = dask.pool._client
    probe = Contender("floor", dask.pool, dask._pids[1:])

    def run(pool: Pool) -> None:
        over: queue.SimpleQueue[Any] = queue.SimpleQueue()
        left, under_way = tasks, 0
        while left or under_way:
            while left and under_way < pool.room:
                client.submit(_nothing, pure=False).add_done_callback(over.put)
                left, under_way = left - 1, under_way + 1
            over.get()
            under_way -= 1

    take_turns([(probe, run)], rounds)
    return probe


def _nothing() -> None: ...
