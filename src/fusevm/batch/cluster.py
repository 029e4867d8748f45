"""Workers of a Dask cluster: the state is sent to each once, and Dask does again what was lost with a worker."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from typing import Any

from fusevm.api import EVM
from fusevm.batch.pool import TRIES, Done, Piece, Pool, run_piece
from fusevm.chain.packed import Packed
from fusevm.machine.batch import Batch

RECOUNT = 1.0  # seconds: workers come and go
PER_THREAD = 2  # pieces: one to do, one to begin with when it is done

_machines = threading.local()  # of each thread of a worker: a copy of the machine that was sent


class Cluster(Pool):
    """The workers of a `distributed.Client`; without one, a cluster of processes of this machine.

    >>> Cluster.__mro__[1].__name__
    'Pool'
    """

    def __init__(self, evm: EVM, client: Any = None, **local: Any) -> None:
        super().__init__()
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError("a Dask cluster needs dask and distributed: pip install 'fusevm[batch]'") from error
        options = {"threads_per_worker": 1, "dashboard_address": None, **local}
        self._owned = client is None
        self._client = Client(**options) if self._owned else client
        self._token = f"fusevm-{id(self)}-{time.time_ns()}"
        with warnings.catch_warnings():  # of a large graph: a state is large, and is sent once
            warnings.simplefilter("ignore", UserWarning)
            # A task, not scattered data: Dask does it again when all workers that had the machine are gone.
            self._evm = self._client.submit(pickle.loads, pickle.dumps(evm, pickle.HIGHEST_PROTOCOL), pure=False)
        self._under_way: dict[Any, Piece] = {}  # by future
        self._threads, self._counted = 1, float("-inf")  # of all workers, and when they were counted

    @property
    def workers(self) -> int:
        if time.monotonic() - self._counted > RECOUNT:  # it is asked of the scheduler
            threads: dict[str, int] = self._client.nthreads()
            self._threads, self._counted = max(1, sum(threads.values())), time.monotonic()
        return self._threads

    @property
    def room(self) -> int:
        return PER_THREAD * self.workers

    def submit(self, piece: Piece) -> None:
        future = self._client.submit(_run, self._evm, self._token, piece.calls, pure=False)
        self._under_way[future] = piece

    def wait(self) -> list[Done]:
        from distributed import wait

        over = wait(list(self._under_way), return_when="FIRST_COMPLETED").done
        return [self._ended(future) for future in over]

    def _ended(self, future: Any) -> Done:
        from distributed.scheduler import KilledWorker

        piece = self._under_way.pop(future)
        try:
            seconds, batch = future.result()
        except KilledWorker as error:
            piece.tries = TRIES  # Dask has tried it more than once
            return Done(piece, None, lost=" ".join(str(error).split()))
        finally:
            future.release()
        return Done(piece, batch, seconds)

    def cancel(self) -> None:
        self._client.cancel(list(self._under_way))
        self._under_way.clear()

    def close(self) -> None:
        self.cancel()
        if self._owned:
            self._client.close()
            if self._client.cluster is not None:
                self._client.cluster.close()


def _run(evm: EVM, token: str, calls: Packed) -> tuple[float, Batch]:
    """On a worker. Its threads share what was sent, and a machine is used by one at a time: each has a copy."""
    started = time.perf_counter()
    if getattr(_machines, "token", None) != token:
        with _copying:
            _machines.evm, _machines.token = evm.copy(), token
    batch = run_piece(_machines.evm, calls)
    return time.perf_counter() - started, batch


_copying = threading.Lock()
