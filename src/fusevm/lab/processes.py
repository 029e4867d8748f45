"""Work in several processes that one Ctrl-C ends, without a traceback from each."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_processes(work: Callable[[T], R], items: Iterable[T], jobs: int, *, spawn: bool = False) -> Iterator[R]:
    """The results, in order. `spawn`: each process starts from nothing, whatever this one has loaded."""
    executor = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn") if spawn else None, initializer=_leave_interrupts
    )
    try:
        with _interrupts_held():
            futures = [executor.submit(work, item) for item in items]
        for future in futures:
            yield future.result()
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    executor.shutdown()


def _leave_interrupts() -> None:
    """To the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that are started meanwhile never see one; here one that comes meanwhile is heard afterwards."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
