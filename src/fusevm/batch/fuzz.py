"""A fuzzer as people write it: sequences of calls that are mutated, kept where they reach something new, and checked.

It is built on `call_many` alone. A sequence runs in a snapshot, so the state is the same for each. What it reached is
judged in two steps: by its calls' status and gas, which come with the batch and distinguish most paths; and, only where
those are new, by the jumps it took, on a slower run that watches them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from fusevm.api import EVM
from fusevm.batch.mutations import SELECTOR, WORD, Calls, Mutator, smaller
from fusevm.chain.packed import Call
from fusevm.evm.bytecode import instructions
from fusevm.machine.batch import Batch
from fusevm.reference.hooks import Hooks, Step
from fusevm.values import BadValue, to_address, to_bytes

ODD = 64  # sequences
SHRINKS = 2_000  # sequences that are tried to make a failing one smaller

Property = Callable[[EVM, Batch], object]
Coverage = Callable[[EVM, Calls], Iterable[Hashable]]


@dataclass
class Finding:
    """A sequence of calls after which the property does not hold, and what it said."""

    calls: Calls
    reason: str


@dataclass
class Report:
    """What a fuzzer did and found."""

    sequences: int = 0
    calls: int = 0
    seconds: float = 0.0
    replayed: int = 0  # sequences whose jumps were looked at
    coverage: set[Hashable] = field(default_factory=set)
    corpus: list[Calls] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.calls / self.seconds if self.seconds else 0
        return (
            f"{self.sequences:,} sequences, {self.calls:,} calls ({rate:,.0f} per second), "
            f"{len(self.coverage):,} jumps, {len(self.corpus):,} sequences kept, {len(self.findings):,} findings"
        )


def fuzz(
    target: EVM,
    check: Property,
    corpus: Iterable[Sequence[Any]],
    *,
    sequences: int = 10_000,
    longest: int = 16,
    callers: Iterable[Any] = (),
    seed: int = 0,
    coverage: Coverage | None = None,
    most_findings: int = 1,
) -> Report:
    """Looks for sequences of calls after which a property does not hold.

    `check` gets the machine as the calls left it and their results. It holds unless it returns False or raises
    AssertionError. `corpus` has the sequences to begin with: calls as `call_many` takes them, with their targets.
    `callers` are who may call. `coverage` says what a sequence reaches: the jumps it takes, unless told otherwise.
    """
    return _Fuzzer(target, check, coverage or jumps_of, Report()).run(
        [_read(each) for each in corpus],
        Random(seed),
        [to_address(each, "callers") for each in callers],
        sequences,
        longest,
        most_findings,
    )


class _Fuzzer:
    def __init__(self, evm: EVM, check: Property, coverage: Coverage, report: Report) -> None:
        self._evm = evm
        self._check = check
        self._coverage = coverage
        self._report = report
        self._signatures: set[Hashable] = set()
        self._odd: deque[Calls] = deque(maxlen=ODD)  # the last that reached no new jump, but used gas in a new way

    def run(
        self, corpus: list[Calls], rng: Random, callers: list[bytes], sequences: int, longest: int, most: int
    ) -> Report:
        if not corpus or not all(corpus):
            raise BadValue("corpus: expected at least one sequence of calls, and a call in each")
        report, started = self._report, time.perf_counter()
        mutator = Mutator(rng, callers, [*_words_of(corpus), *_constants_of(self._evm, corpus)], longest)
        for number in range(sequences):
            calls = corpus[number] if number < len(corpus) else mutator.mutated(self._parent(rng, corpus), corpus)
            reason, signature = self._tried(calls)
            report.sequences += 1
            report.calls += len(calls)
            if reason is not None:
                report.findings.append(self._shrunk(calls, reason))
                if len(report.findings) >= most:
                    break
            elif not signature <= self._signatures:
                self._signatures |= signature
                self._keep_if_new(calls)
        report.seconds = time.perf_counter() - started
        return report

    def _parent(self, rng: Random, corpus: list[Calls]) -> Calls:
        """What to change next. Gas reveals states that jumps do not: a slot that was zero, say."""
        if self._odd and not rng.randrange(3):
            return rng.choice(self._odd)
        return rng.choice(self._report.corpus or corpus)

    def _tried(self, calls: Calls) -> tuple[str | None, set[Hashable]]:
        """Why the property does not hold after these calls, or None; and what distinguishes their paths."""
        with self._evm.snapshot():
            batch = self._evm.call_many(calls, errors="keep")
            status, gas = batch.status.tolist(), batch.gas_used.tolist()
            try:
                reason = "the property is False" if self._check(self._evm, batch) is False else None
            except AssertionError as error:
                reason = str(error).partition("\n")[0] or "an assertion of the property failed"
        selectors = (to_bytes(call.data)[:SELECTOR] for call in calls)
        return reason, set(zip(selectors, status, gas, strict=True))

    def _keep_if_new(self, calls: Calls) -> None:
        report = self._report
        report.replayed += 1
        with self._evm.snapshot():
            reached = set(self._coverage(self._evm, calls))
        if not reached <= report.coverage:
            report.coverage |= reached
            report.corpus.append(calls)
        else:
            self._odd.append(calls)

    def _shrunk(self, calls: Calls, reason: str) -> Finding:
        """The same failure with fewer calls and smaller numbers, as far as single steps lead."""
        tries, found = 0, Finding(calls, reason)
        while tries < SHRINKS:
            for each in smaller(found.calls):
                tries += 1
                reason_of_each, _ = self._tried(each)
                if reason_of_each is not None:
                    found = Finding(each, reason_of_each)
                    break
                if tries >= SHRINKS:
                    break
            else:
                break
        return found


def jumps_of(evm: EVM, calls: Calls) -> set[Hashable]:
    """The jumps that calls take: whose code, from where, to where."""
    reached: set[Hashable] = set()
    last: dict[int, Step] = {}  # by depth

    def look(step: Step) -> None:
        before = last.get(step.depth)
        if before is not None and before.name in ("JUMP", "JUMPI"):
            reached.add((step.address, before.pc, step.pc))
        last[step.depth] = step

    before, evm.hooks = evm.hooks, Hooks(on_opcode=look)
    try:
        for call in calls:
            last.clear()
            evm.call_many([call], errors="keep")
    finally:
        evm.hooks = before
    return reached


def _read(sequence: Sequence[Any]) -> Calls:
    """Calls as objects, their data as bytes."""
    if isinstance(sequence, str | bytes | Call | dict):
        raise BadValue("corpus: expected sequences of calls, got a call that is not in a list")
    found = []
    for each in sequence:
        call = Call(**each) if isinstance(each, dict) else each if isinstance(each, Call) else Call(*each)
        found.append(replace(call, data=to_bytes(call.data)))
    return tuple(found)


def _constants_of(evm: EVM, corpus: list[Calls]) -> list[int]:
    """The numbers that the code of those who are called pushes, and those beside them: what it compares with."""
    targets = {to_address(call.to, "to") for calls in corpus for call in calls if call.to is not None}
    pushed = {each.push for to in targets for each in instructions(evm.get_code(to)) if each.push is not None}
    return sorted({near for word in pushed for near in (word - 1, word, word + 1) if 0 <= near < 1 << 256})


def _words_of(corpus: list[Calls]) -> list[int]:
    """The words of calls' data: amounts and addresses that mean something to the contract."""
    datas = {to_bytes(call.data)[SELECTOR:] for calls in corpus for call in calls}
    return sorted({int.from_bytes(data[at : at + WORD], "big") for data in datas for at in range(0, len(data), WORD)})
