"""The results of many calls: a sequence of results, decoded lazily, and columns of figures."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pickle import PickleBuffer
from typing import Any, NamedTuple, overload

from fusevm.chain.column import Column, Part
from fusevm.chain.outcomes import (
    COLUMNS,
    GAS_REFUNDED,
    GAS_USED,
    LOG_END,
    OUTPUT_END,
    RECORD,
    STATUS,
    STATUSES,
    CallFailed,
    Outcomes,
)
from fusevm.chain.result import Result
from fusevm.chain.state import Log

_WORD = 32


class ColumnMemory(NamedTuple):
    """Memory for the columns of a batch."""

    records: memoryview
    outputs: memoryview
    logs: memoryview

    @staticmethod
    def of(memory: memoryview, count: int) -> ColumnMemory:
        """For so many calls: their records, and half of what is left for outputs and for logs each."""
        records = count * RECORD.size
        half = max(0, len(memory) - records) // 2 & -_WORD
        return ColumnMemory(memory[:records], memory[records : records + half], memory[records + half :])

    def records_for(self, first: int, count: int) -> memoryview | None:
        found = self.records[first * RECORD.size : (first + count) * RECORD.size]
        return found if len(found) == count * RECORD.size else None


class Batch(Sequence[Result]):
    """Results by number. Columns are NumPy arrays where NumPy is installed, else arrays.

    >>> from fusevm import EVM
    >>> evm, target = EVM(), "0x" + "c0" * 20
    >>> evm.set_code(target, "0x5f3560010160005260206000f3")  # return data + 1
    >>> batch = evm.simulate_many([number.to_bytes(32, "big") for number in range(3)], to=target)
    >>> batch.words()
    [1, 2, 3]
    >>> batch[2].gas_used
    26
    """

    def __init__(self, room: ColumnMemory | None = None) -> None:
        """Results are written to `room` as far as they fit."""
        self._records = Column()
        self._room = room
        self._outputs = Column(room=None if room is None else room.outputs)
        self._logs = Column(room=None if room is None else room.logs)
        self._reads = bytearray()
        self._odd: dict[int, Result] = {}
        self.errors: dict[int, CallFailed] = {}  # calls that ended in an exception, where those are kept
        self._later: list[Batch] = []  # what comes after, not joined yet
        self._count = 0

    def room_for(self, count: int) -> Outcomes:
        """For the outcomes of so many calls after these; `add` takes them when they are written."""
        records = None if self._room is None else self._room.records_for(self._count, count)
        return Outcomes(count, self._outputs, self._logs, self._reads, records)

    def add(self, found: Outcomes) -> None:
        first = len(self)
        self._count += found.done
        self._records.adopt(memoryview(found.records)[: found.done * RECORD.size])
        self._note(first, found.odd, found.errors)

    def _append(self, other: Batch) -> None:
        """Appends the results of `other`; joined lazily."""
        other._join()
        self._note(len(self), other._odd, other.errors)
        self._later.append(other)
        self._count += other._count

    def _join(self) -> None:
        later, self._later = self._later, []
        for other in later:
            for part in other._records.parts():
                self._records.adopt(_shifted(part, len(self._outputs), len(self._logs)))
            self._outputs.extend(other._outputs)
            self._logs.extend(other._logs)
            self._reads += other._reads

    def _note(self, first: int, odd: dict[int, Result], errors: dict[int, CallFailed]) -> None:
        for number, result in odd.items():
            self._odd[first + number] = result
        for number, failed in errors.items():
            self.errors[first + number] = CallFailed(first + number, failed.error)

    @staticmethod
    def failed(error: str, reads: int = 0) -> Batch:
        """A batch of one call that ended in an exception; this many slots were to be read after it."""
        batch = Batch()
        found = batch.room_for(1)
        found.add_error(CallFailed(0, error))
        found.reads += bytes(reads * _WORD)
        batch.add(found)
        return batch

    @staticmethod
    def joined(parts: Iterable[Batch]) -> Batch:
        """One after another."""
        whole = Batch()
        for part in parts:
            whole._append(part)
        return whole

    @property
    def size(self) -> int:
        """Bytes of all columns."""
        self._join()
        return len(self._records) + len(self._outputs) + len(self._logs) + len(self._reads)

    # -- results

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"call {index}: there are {len(self)}")
        if number in self.errors:
            raise self.errors[number]
        found = self._odd.get(number)
        if found is not None:
            return found
        self._join()
        status, used, refunded, end, log_end = RECORD.unpack_from(self._records.whole(), number * RECORD.size)
        start, log_start = self._ends(number - 1)
        logs = self._decoded(log_start, log_end)
        return Result(STATUSES[status], bytes(self._outputs.whole()[start:end]), used, refunded, logs)

    def __iter__(self) -> Iterator[Result]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether all results are the same."""
        if not isinstance(other, Batch) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Batch) else False
        if {number: each.error for number, each in self.errors.items()} != {
            number: each.error for number, each in other.errors.items()
        }:
            return False
        self._join()
        other._join()
        return self._reads == other._reads and all(
            self[number] == other[number] for number in range(len(self)) if number not in self.errors
        )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Columns are separate buffers, which are sent without a copy (pickle's protocol 5)."""
        self._join()
        sent = PickleBuffer if protocol >= 5 else bytes
        columns = (self._records, self._outputs, self._logs)
        parts = [[sent(part) for part in column.parts()] for column in columns]
        return _received, (*parts, sent(self._reads), self._odd, self.errors)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = self._column(STATUS)
        ended = ", ".join(
            f"{number:,} {name}"
            for status, name in enumerate(("ok", "reverted", "halted", "failed"))
            if (number := sum(1 for each in counts if each == status))
        )
        return f"<Batch of {len(self):,} calls: {ended or 'none'}>"

    def _ends(self, number: int) -> tuple[int, int]:
        if number < 0:
            return 0, 0
        _, _, _, end, log_end = RECORD.unpack_from(self._records.whole(), number * RECORD.size)
        return end, log_end

    def _decoded(self, start: int, end: int) -> Sequence[Log]:
        if start == end:
            return []
        from fusevm.native.host.logs import NativeLogs  # whose they are; there would be none without

        return NativeLogs(bytes(self._logs.whole()[start:end]))

    # -- columns

    @property
    def status(self) -> Any:
        """0 for success, 1 for a revert, 2 for a halt, 3 for an exception (see `errors`)."""
        return self._column(STATUS)

    @property
    def gas_used(self) -> Any:
        return self._column(GAS_USED)

    @property
    def gas_refunded(self) -> Any:
        return self._column(GAS_REFUNDED)

    @property
    def outputs(self) -> list[bytes]:
        ends = self._numbers()[OUTPUT_END::COLUMNS]
        raw = bytes(self._outputs.whole())
        return [raw[start:end] for start, end in pairwise((0, *ends))]

    @property
    def logs(self) -> list[Sequence[Log]]:
        ends = pairwise((0, *self._numbers()[LOG_END::COLUMNS]))
        found = [self._decoded(start, end) for start, end in ends]
        for number, result in self._odd.items():
            found[number] = result.logs
        return found

    def reads(self, index: int = 0) -> list[int]:
        """What one of the slots that were asked for held after each call, the first unless told.

        >>> from fusevm import EVM
        >>> evm, counter = EVM(), "0x" + "c0" * 20
        >>> evm.set_code(counter, "0x5f355f54015f55")  # storage[0] += data
        >>> evm.simulate_many([b"\\0" * 31 + b"\\5", b""], to=counter, reads=[(counter, 0)]).reads()
        [5, 0]
        """
        self._join()
        width = len(self._reads) // len(self) if len(self) else 0
        start = index * _WORD
        if len(self) and not 0 <= start < width:
            raise IndexError(f"slot {index}: {width // _WORD} were asked for by reads=")
        raw = bytes(self._reads)
        return [int.from_bytes(raw[at + start : at + start + _WORD], "big") for at in range(0, len(raw), width or 1)]

    def words(self, index: int = 0) -> list[int | None]:
        """A word of each output, the first unless told; None where a call failed or its output is shorter."""
        start, end = index * _WORD, (index + 1) * _WORD
        status = self._numbers()[STATUS::COLUMNS]
        return [
            int.from_bytes(output[start:end], "big") if not failed and len(output) >= end else None
            for output, failed in zip(self.outputs, status, strict=True)
        ]

    def floats(self, index: int = 0) -> Any:
        """As `words`, as numbers to plot; NaN in the place of None."""
        found = array("d", [float("nan") if word is None else float(word) for word in self.words(index)])
        numpy = _numpy()
        return found if numpy is None else numpy.frombuffer(found)

    def _numbers(self) -> array[int]:
        self._join()
        return array("Q", bytes(self._records.whole()))

    def _column(self, which: int) -> Any:
        numpy = _numpy()
        if numpy is None:
            return self._numbers()[which::COLUMNS]
        self._join()
        return numpy.frombuffer(self._records.whole(), "<u8").reshape(-1, COLUMNS)[:, which].copy()


def _received(records: Any, outputs: Any, logs: Any, reads: Any, odd: Any, errors: Any) -> Batch:
    """A batch that came from elsewhere. Its columns are as they arrived: bytes, or views of them, to be read only."""
    batch = Batch()
    batch._records, batch._outputs, batch._logs, batch._reads = Column(records), Column(outputs), Column(logs), reads
    batch._odd, batch.errors = odd, errors
    batch._count = len(batch._records) // RECORD.size
    return batch


def _shifted(records: Part, outputs: int, logs: int) -> Part:
    """Records whose outputs and logs come after so many bytes of others."""
    if not (outputs or logs):
        return records
    numpy = _numpy()
    if numpy is not None:
        shift = numpy.array([0, 0, 0, outputs, logs], "<u8")
        return (numpy.frombuffer(records, "<u8").reshape(-1, COLUMNS) + shift).tobytes()  # type: ignore[no-any-return]
    numbers = array("Q", bytes(records))
    for place, more in ((OUTPUT_END, outputs), (LOG_END, logs)):
        if more:
            numbers[place::COLUMNS] = array("Q", [end + more for end in numbers[place::COLUMNS]])
    return numbers.tobytes()


@cache
def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy
