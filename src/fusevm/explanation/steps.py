"""The optimiser's steps: what each did to the code, as a diff, with the size and the gas after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from fusevm.explanation.places import Lines
from fusevm.yul.analysis.metrics import estimated_bytes, estimated_gas
from fusevm.yul.optimise import StepEvent
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.printer import block_lines

CONTEXT = 3  # lines around a change
MAX_DIFF = 400  # lines of one diff; the rest is counted
MAX_COMPARED = 1_500  # lines that are matched one by one; longer changes are shown as one
MAX_STEPS = 2_000


class DiffLine(NamedTuple):
    """A line of a diff: what happened to it (` `, `+`, `-`, `…` for what is left out), and where it comes from."""

    sign: str
    text: str
    src: tuple[int, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"sign": self.sign, "text": self.text, "src": list(self.src)}


@dataclass(slots=True)
class StepRun:
    """One run of a step. `bytes` and `gas` are static estimates of the text after it, each instruction counted once."""

    index: int
    letter: str | None
    name: str
    object: str
    changed: bool
    bytes: int
    gas: int
    ms: float
    diff: list[DiffLine] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "index": self.index,
            "letter": self.letter,
            "name": self.name,
            "object": self.object,
            "changed": self.changed,
            "bytes": self.bytes,
            "gas": self.gas,
            "ms": round(self.ms, 3),
            "diff": [line.as_data() for line in self.diff],
        }


class _Seen(NamedTuple):
    texts: list[str]
    starts: list[int]  # in the source
    bytes: int
    gas: int


@dataclass(slots=True)
class StepWatcher:
    """Inspects the code after each step."""

    dialect: Dialect
    lines: Lines
    steps: list[StepRun] = field(default_factory=list)
    left_out: int = 0
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def watch(self, event: StepEvent) -> None:
        if len(self.steps) >= MAX_STEPS:
            self.left_out += 1
            return
        before = self._seen.get(event.object_name)
        printed = block_lines(event.block)
        texts = [line.text for line in printed]
        changed = before is not None and before.texts != texts
        if before is None or changed:
            starts = [line.nodes[0].location.start if line.nodes else -1 for line in printed]
            size, gas = estimated_bytes(self.dialect, event.block), estimated_gas(self.dialect, event.block)
            now = self._seen[event.object_name] = _Seen(texts, starts, size, gas)
        else:
            now = before
        step = StepRun(
            len(self.steps),
            event.step.letter,
            event.step.name,
            event.object_name.rpartition(".")[2],
            changed,
            now.bytes,
            now.gas,
            event.seconds * 1000,
        )
        if before is not None and changed:
            step.diff = self._diff(before, now)
        self.steps.append(step)

    def _diff(self, before: _Seen, now: _Seen) -> list[DiffLine]:
        found: list[DiffLine] = []
        for sign, number in changes(before.texts, now.texts):
            if len(found) == MAX_DIFF:
                found.append(DiffLine("…", "the rest of the change is left out"))
                break
            side = before if sign == "-" else now
            if sign == "…":
                found.append(DiffLine("…", ""))
            else:
                found.append(DiffLine(sign, side.texts[number], self.lines.of([side.starts[number]])))
        return found


def changes(old: list[str], new: list[str]) -> Iterator[tuple[str, int]]:
    """Signs and the numbers of lines: of the old text for `-`, of the new text else."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    shift = len(new) - len(old)
    first, last = max(start - CONTEXT, 0), min(len(old) - end + CONTEXT, len(old))
    if max(len(old), len(new)) - start - end > MAX_COMPARED:
        yield from ((" ", number) for number in range(first, start))
        yield from (("-", number) for number in range(start, len(old) - end))
        yield from (("+", number) for number in range(start, len(new) - end))
        yield from ((" ", number + shift) for number in range(len(old) - end, last))
        return
    matcher = SequenceMatcher(None, old[first:last], new[first : last + shift], autojunk=False)
    for index, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if index:
            yield "…", 0
        for tag, one, other, there, beyond in group:
            if tag == "equal":
                yield from ((" ", first + number) for number in range(there, beyond))
                continue
            yield from (("-", first + number) for number in range(one, other))
            yield from (("+", first + number) for number in range(there, beyond))
