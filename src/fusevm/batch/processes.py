"""Workers that are processes of this machine. Each gets the state once, pickled, when it starts."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from fusevm.api import EVM
from fusevm.batch.pool import CallPiece, Done, Pool, WorkerLost, timed_piece
from fusevm.batch.shared import Errand, SegmentAddress, Segments, WorkOrder, can_open, carry_out
from fusevm.values import BadValue

LEAVE = 2.0  # seconds a worker has to end by itself


@dataclass
class ProcessWorker:
    process: BaseProcess
    connection: Connection
    piece: CallPiece | None = None  # what it is doing
    errand: Errand | None = None  # where the piece's calls are, if in shared memory
    ready: bool = False  # whether it has its machine
    shares: bool = False  # whether it can open our memory


class Processes(Pool):
    """Some processes, by default one per core, with copies of a machine as it is now.

    They are spawned (not forked from this process), so a script that makes them needs the usual
    `if __name__ == "__main__":`.
    """

    def __init__(self, evm: EVM, processes: int | None = None) -> None:
        super().__init__()
        if processes is not None and processes < 1:
            raise BadValue(f"processes: expected at least 1, got {processes}")
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(["fusevm.batch.processes", "fusevm.native.host.many"])
        self._machine = pickle.dumps(evm, pickle.HIGHEST_PROTOCOL)
        self._segments = Segments()
        self._probe = self._segments.errand(None)  # which workers try to open when they start
        self._workers = [self._start() for _ in range(processes or os.cpu_count() or 1)]

    @property
    def workers(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """Of the workers."""
        return [each.process.pid or 0 for each in self._workers]

    def _start(self) -> ProcessWorker:
        ours, theirs = self._context.Pipe()
        probe = None if self._probe is None else self._probe.order.address
        process = self._context.Process(target=_work, args=(theirs, self._machine, probe), daemon=True)
        process.start()
        theirs.close()
        return ProcessWorker(process, ours)

    def place(self, size: int) -> memoryview | None:
        return self._segments.place(size) if self._free_worker.shares else None

    @property
    def _free_worker(self) -> ProcessWorker:
        """Who gets the next piece."""
        return next(each for each in self._workers if each.piece is None)

    def submit(self, piece: CallPiece) -> None:
        worker = self._free_worker
        worker.piece = piece
        worker.errand = self._segments.errand(piece.calls) if worker.shares else None
        with suppress(OSError):  # it is gone, which `wait` finds
            worker.connection.send(piece.calls if worker.errand is None else worker.errand.order)

    def wait(self) -> list[Done]:
        while True:
            busy = {each.connection: each for each in self._workers if each.piece is not None}
            heard = [busy[each] for each in wait(list(busy)) if isinstance(each, Connection)]
            found = [done for worker in heard if (done := self._ended(worker)) is not None]
            if found:
                return found

    def _ended(self, worker: ProcessWorker) -> Done | None:
        """What a worker says of its piece; None where it says only that it is ready."""
        piece = worker.piece
        assert piece is not None
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return Done(piece, None, lost=self._replace(worker))
        if not worker.ready:
            worker.ready, worker.shares = True, answer
            return None
        worker.piece, errand, worker.errand = None, worker.errand, None
        if errand is not None:
            answer = errand.taken(answer)
        if answer is None:
            return Done(piece, None, lost="its memory was not there")
        seconds, batch = answer
        return Done(piece, batch, seconds)

    def _replace(self, worker: ProcessWorker) -> str:
        """Starts another in the place of one that is gone; why it is."""
        worker.process.join(LEAVE)
        if worker.errand is not None:
            worker.errand.drop()
        code = worker.process.exitcode
        worker.connection.close()
        if code and code > 0 and not worker.ready:
            raise WorkerLost(f"a worker ended before it began (exit code {code}); what it printed says why")
        self._workers[self._workers.index(worker)] = self._start()
        if code == -getattr(signal, "SIGKILL", 9):
            return "killed, as the system does when memory runs out"
        return f"exit code {code}"

    def cancel(self) -> None:
        """Workers that do something are ended, and others started in their place."""
        for worker in [each for each in self._workers if each.piece is not None]:
            worker.process.kill()
            self._replace(worker)

    def close(self) -> None:
        for worker in self._workers:
            if worker.piece is not None:
                worker.process.kill()
            worker.connection.close()  # one that waits for work ends with it
        for worker in self._workers:
            worker.process.join(LEAVE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []
        self._probe = None
        self._segments.close()


def _work(connection: Connection, machine: bytes, probe: SegmentAddress | None) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    run = partial(timed_piece, pickle.loads(machine))
    del machine
    connection.send(probe is not None and can_open(probe))
    while True:
        try:
            calls = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(carry_out(calls, run) if isinstance(calls, WorkOrder) else run(calls))
