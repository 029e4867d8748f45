"""Workers that are threads: native code runs without Python's lock, so calls that need no Python run side by side."""

from __future__ import annotations

import os
import queue
import threading

from fusevm.api import EVM
from fusevm.batch.pool import CallPiece, Done, Pool, timed_piece
from fusevm.child import renewed_in_child
from fusevm.values import BadValue


class Threads(Pool):
    """Some threads, by default one per core, with copies of a machine that share its state until they change it.

    A child of `os.fork` has none of them, and can only close it.
    """

    def __init__(self, evm: EVM, threads: int | None = None) -> None:
        super().__init__()
        if threads is not None and threads < 1:
            raise BadValue(f"threads: expected at least 1, got {threads}")
        self._tasks: queue.SimpleQueue[CallPiece | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done | BaseException] = queue.SimpleQueue()
        machines = [evm.copy() for _ in range(threads or os.cpu_count() or 1)]
        self._threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in machines]
        for thread in self._threads:
            thread.start()
        self._under_way = 0
        renewed_in_child(self)

    def _at_fork_reinit(self) -> None:
        self._threads, self._under_way = [], 0

    @property
    def workers(self) -> int:
        return len(self._threads)

    def submit(self, piece: CallPiece) -> None:
        if not self._threads:
            raise RuntimeError("this pool has no threads: it was closed, or made before os.fork; make another")
        self._under_way += 1
        self._tasks.put(piece)

    def wait(self) -> list[Done]:
        found = self._done.get()
        self._under_way -= 1
        if isinstance(found, BaseException):
            raise found
        return [found]

    def cancel(self) -> None:
        """What was begun is done to its end, and thrown away."""
        while self._under_way:
            self._done.get()
            self._under_way -= 1

    def close(self) -> None:
        self.cancel()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _work(self, evm: EVM) -> None:
        while (piece := self._tasks.get()) is not None:
            try:
                seconds, batch = timed_piece(evm, piece.calls)
                self._done.put(Done(piece, batch, seconds))
            except BaseException as error:  # raised again in the thread that waits
                self._done.put(error)
