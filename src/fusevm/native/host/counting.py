"""What ran, counted natively: cells that schedules count in, and what their numbers mean.

Sections are counted on entry, the fall-through of a JUMPI when it is taken, instructions of failed blocks one by one.
What a section promised and did not run, because it failed, is subtracted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import NamedTuple

from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.native.host.arena import Arena
from fusevm.native.host.tables import NativeLimit
from fusevm.reference.instructions import table_of
from fusevm.tracing.recording import Recording

SIZE = 1 << 24  # bytes: two million cells
CROWDED = SIZE // 4
JUMPI = BY_NAME["JUMPI"].byte
SECTION, PASSED, EXACT, METER = range(4)
MASK = (1 << 64) - 1


Of = tuple[bytes, Fork]  # the code that is counted, and as what it was read
Corrections = Counter[tuple[Of, int]]  # by pc


class Cell(NamedTuple):
    kind: int
    of: Of
    pc: int
    steps: int = 1


class _Sums:
    """Of one code."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()  # by pc, of sections
        self.exact: Counter[int] = Counter()
        self.passed: Counter[int] = Counter()
        self.spent: Counter[int] = Counter()


class Counting:
    """Cells of one engine, and what must be known beside them."""

    def __init__(self) -> None:
        self._arena = Arena(SIZE)
        self._cells: list[Cell] = []
        self._known: dict[Cell, int] = {}
        # beside the cells, by pc
        self._unrun: Corrections = Counter()  # counted with a section, and not run
        self._extra: Corrections = Counter()  # gas

    @property
    def is_crowded(self) -> bool:
        return 8 * len(self._cells) > CROWDED

    def forget(self) -> None:
        """No schedule counts any more; what was counted has been taken."""
        self._cells = []  # a new list: what was taken holds the old one
        self._known.clear()

    def cell(self, kind: int, of: Of, pc: int, steps: int = 1) -> int:
        """Where something is counted: always the same place."""
        cell = Cell(kind, of, pc, steps)
        place = self._known.get(cell)
        if place is None:
            offset = 8 * len(self._cells)
            if offset >= SIZE:
                raise NativeLimit("more code than can be counted natively")
            self._cells.append(cell)
            place = self._known[cell] = self._arena.address + offset
        return place

    def subtract(self, place: int, gas: int) -> None:
        """From a meter."""
        at = place - self._arena.address
        before = int.from_bytes(self._arena.read(at, 8), "little")
        self._arena.write(at, (before - gas & MASK).to_bytes(8, "little"))

    def stopped(self, of: Of, pc: int, steps: int, at: int) -> None:
        """A section failed: the instructions from `at` on did not run, or are counted separately."""
        for each in pcs_of(*of, pc, steps):
            if each >= at:
                self._unrun[of, each] += 1

    def took(self, of: Of, pc: int, gas: int) -> None:
        """An instruction that is not metered has halted a frame."""
        self._extra[of, pc] += gas

    def drop(self) -> None:
        """What was counted never was."""
        self._arena.write(0, bytes(8 * len(self._cells)))
        for each in (self._unrun, self._extra):
            each.clear()

    def taken(self) -> Counts:
        """Returns the counts and resets them."""
        counts = array("Q", self._arena.read(0, 8 * len(self._cells)))
        found = Counts(self._cells, counts, self._unrun.copy(), self._extra.copy())
        self.drop()
        return found


class Counts:
    """A snapshot of the counts, evaluated lazily."""

    def __init__(self, cells: list[Cell], counts: array[int], unrun: Corrections, extra: Corrections) -> None:
        self._cells, self._counts = cells, counts
        self._unrun, self._extra = unrun, extra

    def add_to(self, recording: Recording) -> None:
        sums: dict[Of, _Sums] = {}
        for cell, count in zip(self._cells, self._counts, strict=False):  # cells may have come since
            if count and cell.of[0]:
                _add(sums.setdefault(cell.of, _Sums()), cell, count)
        for of, found in sums.items():
            self._report(recording, of, found)

    def _report(self, recording: Recording, of: Of, sums: _Sums) -> None:
        code, table = of[0], table_of(of[1])
        begun = {pc: left for pc, count in sums.begun.items() if (left := count - self._unrun[of, pc])}
        hits = Counter(begun) + sums.exact
        if recording.wanted.coverage:
            covered = recording.coverage_of(code)
            jumps = {pc: count - sums.passed[pc] for pc, count in begun.items() if pc < len(code) and code[pc] == JUMPI}
            _merge(covered.hits, hits)
            _merge(covered.passed, sums.passed)
            _merge(covered.taken, {pc: count for pc, count in jumps.items() if count})
        if recording.wanted.gas:
            spent = recording.gas_of(code)
            _merge(spent, {pc: count * (table[code[pc]].gas if pc < len(code) else 0) for pc, count in hits.items()})
            _merge(spent, sums.spent)
            _merge(spent, {pc: gas for (each, pc), gas in self._extra.items() if each == of})


def _add(sums: _Sums, cell: Cell, count: int) -> None:
    if cell.kind == SECTION:
        for pc in pcs_of(*cell.of, cell.pc, cell.steps):
            sums.begun[pc] += count
    else:
        to = {PASSED: sums.passed, EXACT: sums.exact, METER: sums.spent}[cell.kind]
        to[cell.pc] += count


def pcs_of(code: bytes, fork: Fork, pc: int, steps: int) -> list[int]:
    """The pcs of this many instructions; one of them may be the STOP after the last byte."""
    found: list[int] = []
    following = pc
    for each in instructions(code, fork, pc):
        if len(found) == steps:
            break
        found.append(each.pc)
        following = each.pc + 1 + (each.op.immediate if each.op else 0)
    if len(found) < steps:
        found.append(following)
    return found


class ScheduleMarks:
    """What a schedule counts, as `schedule.build` asks for it."""

    def __init__(self, counting: Counting, fork: Fork, *, gas: bool) -> None:
        self._counting, self._fork, self._gas = counting, fork, gas

    def section(self, code: bytes, pc: int, steps: int) -> int:
        return self._counting.cell(SECTION, (code, self._fork), pc, steps)

    def passed(self, code: bytes, pc: int, steps: int) -> int:
        last = pcs_of(code, self._fork, pc, steps)[-1] if steps else len(code)
        if last < len(code) and code[last] == JUMPI:
            return self._counting.cell(PASSED, (code, self._fork), last)
        return 0

    def meter(self, code: bytes, pc: int) -> int:
        return self._counting.cell(METER, (code, self._fork), pc) if self._gas else 0

    def exact(self, code: bytes, pc: int) -> int:
        return self._counting.cell(EXACT, (code, self._fork), pc)


def _merge(into: dict[int, int], counts: dict[int, int]) -> None:
    for pc, count in counts.items():
        into[pc] = into.get(pc, 0) + count
