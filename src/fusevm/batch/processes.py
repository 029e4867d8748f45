"""Workers that are processes of this machine. Each gets the state once, pickled, when it starts."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from fusevm.api import EVM
from fusevm.batch.pool import Done, Piece, Pool, WorkerLost, run_piece
from fusevm.values import BadValue

LEAVE = 2.0  # seconds a worker has to end by itself


@dataclass
class Worker:
    process: BaseProcess
    connection: Connection
    piece: Piece | None = None  # what it is doing
    ready: bool = False  # whether it has its machine


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
        self._workers = [self._start() for _ in range(processes or os.cpu_count() or 1)]

    @property
    def workers(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """Of the workers."""
        return [each.process.pid or 0 for each in self._workers]

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._machine), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    def submit(self, piece: Piece) -> None:
        worker = next(each for each in self._workers if each.piece is None)
        worker.piece = piece
        with suppress(OSError):  # it is gone, which `wait` finds
            worker.connection.send(piece.calls)

    def wait(self) -> list[Done]:
        while True:
            busy = {each.connection: each for each in self._workers if each.piece is not None}
            heard = [busy[each] for each in wait(list(busy)) if isinstance(each, Connection)]
            found = [done for worker in heard if (done := self._ended(worker)) is not None]
            if found:
                return found

    def _ended(self, worker: Worker) -> Done | None:
        """What a worker says of its piece; None where it says only that it is ready."""
        piece = worker.piece
        assert piece is not None
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            worker.piece = None
            return Done(piece, None, lost=self._replace(worker))
        if not worker.ready:
            worker.ready = True
            return None
        worker.piece = None
        seconds, batch = answer
        return Done(piece, batch, seconds)

    def _replace(self, worker: Worker) -> str:
        """Starts another in the place of one that is gone; why it is."""
        worker.process.join(LEAVE)
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
            worker.piece = None
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


def _work(connection: Connection, machine: bytes) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    evm: EVM = pickle.loads(machine)
    del machine
    connection.send("ready")
    while True:
        try:
            calls = connection.recv()
        except (EOFError, OSError):
            return
        started = time.perf_counter()
        batch = run_piece(evm, calls)
        connection.send((time.perf_counter() - started, batch))
