"""What every pool of workers does with many calls: pieces of a sensible size, in order, done again if one is lost."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from fusevm.api import DEFAULT_GAS, EVM
from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.chain.packed import CallLike, Common, PackedCalls, Pieces, ReadsLike
from fusevm.machine.batch import Batch
from fusevm.machine.batches import ERRORS, simulate_packed
from fusevm.values import AddressLike, BadValue, Number

FIRST, MOST = 1 << 8, 1 << 16  # calls in a piece
MAX_BYTES = 1 << 25  # of its calls and results: those of several pieces are in memory at once
LONG_ENOUGH = 0.2  # seconds that a piece should take: the work of sending it is little beside that
AHEAD = 4  # pieces per worker that may wait for one before them
TRIES = 2  # for a piece before it is split to find the call that ends its workers
PARTS = 16  # that it is then split into

Progress = Callable[[int], None]


class WorkerLost(RuntimeError):
    """A worker ended in the middle of its work."""


@dataclass
class CallPiece:
    """Calls that one worker does at once."""

    first: int  # number of the first call
    calls: PackedCalls
    tries: int = 0

    def parts(self) -> Iterator[CallPiece]:
        """To be tried again: as a whole, or in parts, once it has been tried often enough."""
        if self.tries < TRIES:
            yield self
            return
        size = -(-self.calls.count // PARTS)
        for first in range(0, self.calls.count, size):
            last = min(first + size, self.calls.count)
            yield CallPiece(self.first + first, self.calls.part(first, last), TRIES - 1)


@dataclass
class Done:
    """A finished piece: its results and how long it took, or why its worker was lost."""

    piece: CallPiece
    batch: Batch | None
    seconds: float = 0.0
    lost: str = ""


def timed_piece(evm: EVM, calls: PackedCalls, memory: memoryview | None = None) -> tuple[float, Batch]:
    """What a worker does with a piece, and the seconds it takes; results are in that memory, as far as they fit."""
    started = time.perf_counter()
    batch = simulate_packed(evm, calls, memory)
    return time.perf_counter() - started, batch


class Pool(ABC):
    """Workers that each have a copy of one machine. A `with` block ends them."""

    most, most_bytes = MOST, MAX_BYTES

    def __init__(self) -> None:
        self._size = FIRST

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many there are."""

    @abstractmethod
    def submit(self, piece: CallPiece) -> None:
        """Gives a piece to a worker; there are never more pieces in flight than `room`."""

    @abstractmethod
    def wait(self) -> list[Done]:
        """Waits until at least one piece is over."""

    @abstractmethod
    def close(self) -> None:
        """Ends all workers, and what they are doing."""

    def place(self, size: int) -> memoryview | None:
        """Memory for so many bytes of the calls that are submitted next, where they need not be copied from."""
        return None

    @property
    def room(self) -> int:
        """The maximum number of pieces in flight."""
        return self.workers

    def cancel(self) -> None:
        """The results of pieces in flight are not wanted any more."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def simulate_many(
        self,
        calls: Iterable[CallLike],
        to: AddressLike | None = None,
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        errors: str = "raise",
        reads: ReadsLike = (),
        progress: Progress | None = None,
    ) -> Batch:
        """As `EVM.simulate_many`, the calls shared among the workers. `progress` is told how many are done."""
        given = {"value": value, "caller": caller, "gas": gas, "reads": reads}
        return Batch.joined(self.stream(calls, to, errors=errors, progress=progress, **given))  # type: ignore[arg-type]

    def stream(
        self,
        calls: Iterable[CallLike],
        to: AddressLike | None = None,
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        errors: str = "raise",
        reads: ReadsLike = (),
        progress: Progress | None = None,
    ) -> Iterator[Batch]:
        """As `simulate_many`, piece by piece in the calls' order: only pieces in flight are in memory."""
        if errors not in ERRORS:
            raise BadValue(f"errors: expected {' or '.join(map(repr, ERRORS))}, got {errors!r}")
        return self._stream(Pieces(calls, Common.read(to, caller, value, gas, reads)), errors, progress)

    def _stream(self, pieces: Pieces, errors: str, progress: Progress | None) -> Iterator[Batch]:
        again: deque[CallPiece] = deque()
        ready: dict[int, Batch] = {}  # by the number of their first call
        under_way = done = following = 0
        try:
            while True:
                while under_way < self.room and (piece := self._next(pieces, again, under_way, len(ready))) is not None:
                    piece.tries += 1
                    under_way += 1
                    self.submit(piece)
                    if piece.tries > 1:
                        break  # alone, so that nothing else is blamed if its worker is lost again
                if not under_way:
                    return
                for each in self.wait():
                    under_way -= 1
                    batch = self._taken(each, again)
                    if batch is not None:
                        ready[each.piece.first] = batch
                        done += len(batch)
                        if progress is not None:
                            progress(done)
                while (batch := ready.pop(following, None)) is not None:
                    if batch.errors and errors == "raise":
                        number, failed = min(batch.errors.items())
                        raise type(failed)(following + number, failed.error)
                    following += len(batch)
                    yield batch
        finally:
            if under_way:
                self.cancel()

    def _next(self, pieces: Pieces, again: deque[CallPiece], under_way: int, waiting: int) -> CallPiece | None:
        if again:
            return None if under_way else again.popleft()
        if waiting > AHEAD * self.workers:
            return None
        first = pieces.taken
        calls = pieces.take(self._share(pieces.total), self.place)
        return None if calls is None else CallPiece(first, calls)

    def _share(self, total: int | None) -> int:
        """Calls of the next piece; where it is known how many there are in all, each worker shall get equally many."""
        if total is None or total <= FIRST:
            return self._size
        rounds = -(-total // (self._size * self.workers))
        return -(-total // (rounds * self.workers))

    def _taken(self, done: Done, again: deque[CallPiece]) -> Batch | None:
        piece = done.piece
        if done.batch is not None:
            self._adapt(piece.calls.count, done.seconds, len(piece.calls.data) + done.batch.size)
            return done.batch
        if piece.calls.count == 1 and piece.tries >= TRIES:
            return Batch.failed(f"its worker was lost, more than once ({done.lost})", len(piece.calls.reads))
        again.extendleft(reversed(list(piece.parts())))
        return None

    def _adapt(self, calls: int, seconds: float, size: int) -> None:
        """Pieces grow or shrink until they take about as long, or as many bytes, as they should."""
        wanted = calls * min(LONG_ENOUGH / max(seconds, 1e-6), self.most_bytes / max(size, 1))
        self._size = int(min(max(wanted, self._size / 4, 1), self._size * 4, self.most))
