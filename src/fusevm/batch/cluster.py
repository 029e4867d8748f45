"""Workers of a Dask cluster: the state is sent to each once, and Dask does again what was lost with a worker."""

from __future__ import annotations

import pickle
import queue
import threading
import time
import warnings
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from fusevm.api import EVM
from fusevm.batch.pool import TRIES, CallPiece, Done, Pool, timed_piece
from fusevm.batch.shared import WRITTEN, Errand, Segments, WorkOrder, can_open, carry_out
from fusevm.chain.packed import PackedCalls
from fusevm.child import renewed_in_child

RECOUNT = 1.0  # seconds: workers come and go
LOOK, MAX_ALONE = 5.0, 60.0  # seconds: while nothing ends, whether there are workers; how long there may be none
SENDINGS = 4  # of a machine in a row, before any piece is done
PER_THREAD = 2  # pieces: one to do, one to begin with when it is done
SOON = 0.001  # seconds that a task waits for others to be sent with it; Dask's own 10 ms are 40,000 calls
MOST, MAX_BYTES = 1 << 18, 1 << 26  # of a piece, in calls and bytes: Dask spends some milliseconds on each
SELDOM = {  # a cluster of our own watches itself less: that took an eighth of a core from the calls
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
}

_machines = threading.local()  # of each thread of a worker: a copy of the machine that was sent


class Sent(NamedTuple):
    """A piece that is under way."""

    piece: CallPiece
    errand: Errand | None
    worker: str | None  # that shall do it, if it can


class Cluster(Pool):
    """The workers of a `distributed.Client`; without one, a cluster of processes of this machine.

    >>> Cluster.__mro__[1].__name__
    'Pool'
    """

    most, most_bytes = MOST, MAX_BYTES

    def __init__(self, evm: EVM, client: Any = None, **local: Any) -> None:
        super().__init__()
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError("a Dask cluster needs dask and distributed: pip install 'fusevm[batch]'") from error
        self._owned = client is None
        self._client = _own_client(Client, local) if self._owned else client
        self._token = f"fusevm-{id(self)}-{time.time_ns()}"
        self._pickled = pickle.dumps(evm, pickle.HIGHEST_PROTOCOL)
        self._evm = self._sent()
        self._sent_again = 0  # times in a row
        self._segments = Segments()
        self._shares = self._can_share()
        self._under_way: dict[Any, Sent] = {}  # by future
        self._over: queue.SimpleQueue[Any] = queue.SimpleQueue()  # finished futures, perhaps of cancelled pieces
        self._threads: dict[str, int] = {}  # by worker
        self._counted = float("-inf")  # when they were

    def _sent(self) -> Any:
        """The machine. A task, not scattered data: Dask does it again when all workers that had it are gone."""
        return self._submitted(pickle.loads, self._pickled)

    def _can_share(self) -> bool:
        """Whether all workers are on this machine: they have tried to open memory of this process."""
        probe = self._segments.errand(None)
        if probe is None:
            return False
        able = self._client.run(can_open, probe.order.address)
        probe.drop()
        return all(able.values())

    def _submitted(self, *task: Any, **how: Any) -> Any:
        with warnings.catch_warnings():  # of a large graph: a state is large, and so are the calls' data
            warnings.simplefilter("ignore", UserWarning)
            return self._client.submit(*task, pure=False, **how)

    @property
    def workers(self) -> int:
        if time.monotonic() - self._counted > RECOUNT:  # it is asked of the scheduler
            self._threads, self._counted = self._client.nthreads(), time.monotonic()
        return max(1, sum(self._threads.values()))

    @property
    def room(self) -> int:
        return PER_THREAD * self.workers

    def place(self, size: int) -> memoryview | None:
        return self._segments.place(size) if self._shares else None

    def submit(self, piece: CallPiece) -> None:
        errand = self._segments.errand(piece.calls) if self._shares else None
        calls = piece.calls if errand is None else errand.order
        worker = self._idlest()
        how = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        future = self._submitted(_run, self._evm, self._token, calls, **how)
        self._under_way[future] = Sent(piece, errand, worker)
        future.add_done_callback(self._over.put)
        time.sleep(0)  # Dask's thread sends it now, not after the next piece is packed: it needs Python's lock

    def _idlest(self) -> str | None:
        """The worker with the fewest pieces per thread. Dask would prefer those that have the machine already, and
        may give all pieces to one."""
        pieces = Counter(each.worker for each in self._under_way.values())
        return min(self._threads, key=lambda each: pieces[each] / max(1, self._threads[each]), default=None)

    def wait(self) -> list[Done]:
        """Raises RuntimeError where all workers are gone and none comes: what is under way would never end."""
        alone = 0.0  # seconds
        while True:
            try:
                future = self._over.get(timeout=LOOK)
            except queue.Empty:
                alone = 0.0 if self._client.nthreads() else alone + LOOK
                if alone >= MAX_ALONE:
                    raise RuntimeError(f"the cluster has no workers, for {MAX_ALONE:.0f} seconds now") from None
            else:
                if future in self._under_way:
                    return [self._ended(future)]

    def _ended(self, future: Any) -> Done:
        from distributed.scheduler import KilledWorker

        piece, errand, _ = self._under_way.pop(future)
        try:
            answer = _answer(future, errand)
        except KilledWorker as error:
            if error.task == future.key or not self._send_again(error.task):
                piece.tries = TRIES  # Dask has tried it more than once
            else:
                piece.tries -= 1
            return Done(piece, None, lost=" ".join(str(error).split()))
        finally:
            future.release()
        self._sent_again = 0
        if answer is None:  # from a worker that came later, elsewhere; or one that was given up writes still
            self._shares = False
            piece.tries -= 1
            return Done(piece, None, lost="its memory was not there")
        seconds, batch = answer
        return Done(piece, batch, seconds)

    def _send_again(self, lost: str) -> bool:
        """Workers that a piece ended may have been about to load the machine, and Dask gives that up as well."""
        if lost == self._evm.key:
            if self._sent_again >= SENDINGS:
                return False  # it is the machine itself that ends them
            self._sent_again += 1
            self._evm = self._sent()
        return True

    def cancel(self) -> None:
        self._client.cancel(list(self._under_way))
        for each in self._under_way.values():
            if each.errand is not None:
                each.errand.drop()
        self._under_way.clear()

    def close(self) -> None:
        self.cancel()
        self._segments.close()
        if self._owned:
            self._client.close()
            if self._client.cluster is not None:
                self._client.cluster.close()


def _own_client(make: Any, options: dict[str, Any]) -> Any:
    """Of a cluster of this machine: it takes results from the workers themselves, not through the scheduler."""
    import dask

    with dask.config.set(SELDOM):
        client = make(**{"threads_per_worker": 1, "dashboard_address": None, "direct_to_workers": True, **options})
    client.scheduler_comm.interval = SOON
    return client


def _answer(future: Any, errand: Errand | None) -> Any:
    """What a worker has answered. What it has written to memory need not be asked for."""
    if errand is None:
        return future.result()
    try:
        return errand.taken(WRITTEN if future.status == "finished" and errand.is_answered else future.result())
    except BaseException:
        errand.drop()
        raise


def _run(evm: EVM, token: str, calls: PackedCalls | WorkOrder) -> object:
    """On a worker. Its threads share what was sent, and a machine is used by one at a time: each has a copy."""
    if getattr(_machines, "token", None) != token:
        with _copying:
            _machines.evm, _machines.token = evm.copy(), token
    run = partial(timed_piece, _machines.evm)
    return carry_out(calls, run) if isinstance(calls, WorkOrder) else run(calls)


_copying = renewed_in_child(threading.Lock())
