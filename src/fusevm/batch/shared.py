"""Memory that a client shares with workers on the same machine, so that calls and results need not go through pipes.

A segment is an anonymous file (memfd) of the client; workers open it through /proc. The kernel frees it when the last
process that has it open ends, even by SIGKILL. A token at its start tells a worker that it opened the right segment and
that its result is still wanted. A writer holds the file's lock, which the kernel releases if the writer is killed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import pickle
import secrets
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from fusevm.child import renewed_in_child

if sys.platform == "linux":
    import fcntl

SPACE = 1 << 28  # bytes of a segment: a file with a hole, memory is taken where something is written
MAX_LENT, MAX_FREE = 64, 8  # segments with results in use, and free ones kept for reuse
KEPT = 1 << 27  # bytes: one with more in it is not kept
IDLE = 5.0  # seconds: so long a worker keeps a segment open that it does not use
NAME = "fusevm-batch"
WRITTEN = True  # what a worker answers whose results are in the segment
_TOKEN = 16  # bytes, at the beginning
_NOTE = struct.Struct("<QQ")  # after it: where the worker's parcel is described, and in how many bytes
_ALIGN = 64
_NO_TOKEN = bytes(_TOKEN)


class NotHere(RuntimeError):
    """A segment that cannot be opened here, or is not wanted any more."""


@dataclass(frozen=True)
class SegmentAddress:
    """Where a segment is: the number of a file of a process, and what the file begins with."""

    process: int
    file: int
    token: bytes


@dataclass(frozen=True)
class Parcel:
    """A thing whose buffers are in a segment: its pickle without them, and where they begin and how large they are."""

    text: bytes
    places: list[tuple[int, int]]
    end: int  # of all of them: the next may begin there

    @staticmethod
    def of(thing: object, memory: memoryview, start: int = _ALIGN) -> Parcel:
        """Buffers that do not fit stay in the pickle; one that is where it is to be copied to stays there."""
        places: list[tuple[int, int]] = []
        end, base = start, _address(memory)

        def place(buffer: pickle.PickleBuffer) -> bool:
            nonlocal end
            raw = buffer.raw()
            if end + raw.nbytes > len(memory):
                return True
            if raw.readonly or not raw.nbytes or _address(raw) != base + end:
                memory[end : end + raw.nbytes] = raw
            places.append((end, raw.nbytes))
            end += -(-raw.nbytes // _ALIGN) * _ALIGN
            return False

        return Parcel(pickle.dumps(thing, 5, buffer_callback=place), places, end)

    @staticmethod
    def around(thing: object, memory: memoryview, start: int) -> Parcel:
        """Of a thing that has buffers in this memory already, from there on; others stay in the pickle."""
        places: list[tuple[int, int]] = []
        base = _address(memory)

        def is_elsewhere(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            first = -1 if raw.readonly or not raw.nbytes else _address(raw) - base
            if not start <= first <= len(memory) - raw.nbytes:
                return True
            places.append((first, raw.nbytes))
            return False

        text = pickle.dumps(thing, 5, buffer_callback=is_elsewhere)
        return Parcel(text, places, max([start, *(first + size for first, size in places)]))

    @property
    def size(self) -> int:
        return sum(size for _, size in self.places)

    def note(self, memory: memoryview) -> bool:
        """Writes its description after its buffers, for the client to read; False if it does not fit."""
        raw = pickle.dumps(self)
        if self.end + len(raw) > len(memory):
            return False
        memory[self.end : self.end + len(raw)] = raw
        _NOTE.pack_into(memory, _TOKEN, self.end, len(raw))
        return True

    def open(self, memory: memoryview) -> Any:
        return pickle.loads(self.text, buffers=[memory[first : first + size] for first, size in self.places])


@dataclass(frozen=True)
class WorkOrder:
    """Calls for a worker, in a segment."""

    address: SegmentAddress
    calls: Parcel


class _Lent(mmap.mmap):
    """A view of a segment's memory; when the last reference to it is dropped, the segment is free again."""

    give_back: Callable[[], None] | None = None

    def __del__(self) -> None:
        if self.give_back is not None:
            self.give_back()


class Segment:
    """Memory of this process that workers can write to."""

    def __init__(self) -> None:
        self.file = os.memfd_create(NAME, os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self.file)
        os.ftruncate(self.file, SPACE)
        self.map = mmap.mmap(self.file, SPACE)

    def claim(self, token: bytes) -> bool:
        """Sets a new token; False if a worker that has the old one is still writing."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        self.map[:_TOKEN] = token
        fcntl.flock(self.file, fcntl.LOCK_UN)
        return True


class Errand:
    """Calls sent in a segment, until their results are taken or dropped."""

    def __init__(self, segments: Segments, segment: Segment, calls: object) -> None:
        self._segments, self._segment = segments, segment
        token = secrets.token_bytes(_TOKEN)
        with memoryview(segment.map) as memory:
            parcel = Parcel.of(calls, memory)
        _NOTE.pack_into(segment.map, _TOKEN, 0, 0)
        segment.map[:_TOKEN] = token
        self.order = WorkOrder(SegmentAddress(os.getpid(), segment.file, token), parcel)

    @property
    def is_answered(self) -> bool:
        """Whether a worker has written results."""
        return _NOTE.unpack_from(self._segment.map, _TOKEN) != (0, 0)

    def taken(self, answer: object) -> Any:
        """The worker's result; None if another worker is writing to the segment."""
        if answer is not WRITTEN or not self.is_answered or not self._segment.claim(_NO_TOKEN):
            self.drop()
            return None if answer is WRITTEN else answer
        start, size = _NOTE.unpack_from(self._segment.map, _TOKEN)
        parcel: Parcel = pickle.loads(self._segment.map[start : start + size])
        lent = _Lent(self._segment.file, parcel.end, access=mmap.ACCESS_READ)
        lent.give_back = partial(self._segments.give_back, self._segment, self.order.calls.size + parcel.size)
        return parcel.open(memoryview(lent))

    def drop(self) -> None:
        """Discards the results."""
        self._segments.forget(self._segment)


class Segments:
    """Those of a pool."""

    def __init__(self) -> None:
        self._free: deque[Segment] = deque()
        self._lent: set[Segment] = set()
        self._begun: Segment | None = None  # that has been given out to write calls to
        self._closed = False

    def place(self, size: int) -> memoryview | None:
        """Where to write the data of the calls of the next errand, so that it need not be copied; as `errand`."""
        if not self._begin():
            return None
        assert self._begun is not None
        return memoryview(self._begun.map)[_ALIGN : _ALIGN + size] if size <= SPACE - _ALIGN else None

    def errand(self, calls: object) -> Errand | None:
        """None if all segments hold results that are still in use, or memory cannot be shared."""
        if not self._begin():
            return None
        segment, self._begun = self._begun, None
        assert segment is not None
        with suppress(OSError, ValueError):
            return Errand(self, segment, calls)
        return None

    def _begin(self) -> bool:
        """Whether there is a segment for the next errand."""
        if self._begun is None and not self._closed and len(self._lent) < MAX_LENT and is_supported():
            with suppress(OSError, ValueError):
                self._begun = self._unused()
                self._lent.add(self._begun)
        return self._begun is not None

    def _unused(self) -> Segment:
        with suppress(IndexError):
            while True:
                segment = self._free.pop()
                if segment.claim(_NO_TOKEN):
                    return segment
        return Segment()

    def give_back(self, segment: Segment, used: int) -> None:
        """With so many bytes written to; perhaps from another thread, when the last who looked at it is gone."""
        self.forget(segment)
        if not self._closed and len(self._free) < MAX_FREE and used <= KEPT:
            self._free.append(segment)

    def forget(self, segment: Segment) -> None:
        """The segment is not reused: a worker may still write to it."""
        self._lent.discard(segment)

    def close(self) -> None:
        """Segments in use stay until their last reference is dropped."""
        self._closed, self._begun = True, None
        self._free.clear()
        self._lent.clear()


def is_supported() -> bool:
    return sys.platform == "linux" and hasattr(os, "memfd_create")


def carry_out(order: WorkOrder, run: Callable[[Any, memoryview | None], object]) -> object:
    """On a worker: `WRITTEN`, where what comes of the calls is in their segment; itself, where another one writes to
    it; None where the segment is not to be had. `run` may write results to the memory it is given."""
    try:
        with opened(order.address) as (memory, is_ours):
            calls = order.calls.open(memory)
            if not is_ours:  # then their memory may be used for something else before they are done
                calls = _apart(calls)
            _check(memory, order.address)
            if not is_ours:
                return run(calls, None)
            result = run(calls, memory[order.calls.end :])
            parcel = Parcel.around(result, memory, order.calls.end)
            return WRITTEN if parcel.note(memory) else _apart(result)
    except NotHere:
        return None


def can_open(address: SegmentAddress) -> bool:
    """Whether a worker is where it can share memory with the process of this address."""
    try:
        with opened(address):
            return True
    except NotHere:
        return False


@contextmanager
def opened(address: SegmentAddress) -> Iterator[tuple[memoryview, bool]]:
    """A segment of another process, and whether this one may write to it."""
    window = _windows.get(address)
    try:
        is_ours = window.lock()
        _check(window.memory, address)
        yield window.memory, is_ours
    finally:
        window.unlock()
    _windows.keep(address, window)


class SegmentWindow:
    """A segment of another process, opened in this one."""

    def __init__(self, address: SegmentAddress) -> None:
        path = f"/proc/{address.process}/fd/{address.file}"
        try:
            if not os.readlink(path).startswith(f"/memfd:{NAME}"):
                raise NotHere(f"{path} is another file")
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise NotHere(f"{path}: {error.strerror}") from None
        weakref.finalize(self, os.close, self._file)
        if os.fstat(self._file).st_size != SPACE:
            raise NotHere(f"{path} has another size")
        self.memory = memoryview(mmap.mmap(self._file, SPACE))

    def lock(self) -> bool:
        """Takes the lock; False if another process holds it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)


class Windows:
    """Those that were used last: opened anew, each page of them would cost a fault again. None is kept for long."""

    def __init__(self) -> None:
        self._kept: dict[
            tuple[int, int], tuple[SegmentWindow, float]
        ] = {}  # by process and file; and when they were used
        self._lock = renewed_in_child(threading.Lock())
        self._is_watched = False

    def get(self, address: SegmentAddress) -> SegmentWindow:
        """For one user at a time."""
        with self._lock:
            window, _ = self._kept.pop((address.process, address.file), (None, 0.0))
        if window is None or window.memory[:_TOKEN] != address.token:  # the file of that number is another one now
            window = SegmentWindow(address)
        return window

    def keep(self, address: SegmentAddress, window: SegmentWindow) -> None:
        with self._lock:
            self._kept[address.process, address.file] = window, time.monotonic()
            while len(self._kept) > MAX_FREE:
                self._kept.pop(next(iter(self._kept)))
            if not self._is_watched:
                self._is_watched = True
                self._look_later()

    def _look_later(self) -> None:
        timer = threading.Timer(IDLE, self._forget)
        timer.daemon = True
        timer.start()

    def _forget(self) -> None:
        """Closes segments that were not used for a while: their client may be gone, and only we keep them."""
        with self._lock:
            long_ago, before = time.monotonic() - IDLE, len(self._kept)
            self._kept = {key: each for key, each in self._kept.items() if each[1] > long_ago}
            are_fewer = len(self._kept) < before
            self._is_watched = bool(self._kept)
            if self._is_watched:
                self._look_later()
        if are_fewer:
            gc.collect()  # frames of calls that failed may be in cycles, and have results in view


_windows = Windows()


def _apart(thing: object) -> object:
    """The same without what it has in memory that others will write to."""
    return pickle.loads(pickle.dumps(thing, 4))


def _address(memory: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _check(memory: memoryview, address: SegmentAddress) -> None:
    if memory[:_TOKEN] != address.token:
        raise NotHere(f"a segment of process {address.process} is used for something else now")
