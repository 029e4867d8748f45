"""What folding did, line by line: the chain of rules that made each value, and the instructions that were removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusevm.explanation.document import REMOVED, Line
from fusevm.ir.fold.recorder import FoldEvent, FoldRecorder

MAX_CHAIN = 40  # changes of one value
MAX_CHANGES = 20_000  # altogether
_SAID = {
    "shared": "an equal instruction was there already",
    "forwarded": "the word that is loaded is known",
}


def folds_of(recorder: FoldRecorder, lines: Iterable[Line]) -> dict[int, list[dict[str, Any]]]:
    """The history of every value that has one, by the number that its line has."""
    found: dict[int, list[dict[str, Any]]] = {}
    left = MAX_CHANGES
    for number in dict.fromkeys(line.value for line in lines if line.value is not None):
        chain = recorder.history(number)[:MAX_CHAIN]
        if chain and left >= len(chain):
            left -= len(chain)
            found[number] = [_as_data(event) for event in chain]
    return found


def _as_data(event: FoldEvent) -> dict[str, Any]:
    rule = event.rule
    data: dict[str, Any] = {"kind": event.why, "before": event.before, "after": event.after}
    if rule is None:
        return data | {"rule": event.why, "equation": _SAID[event.why], "proved": False}
    data |= {"rule": rule.name, "equation": rule.equation, "proved": rule.axiom is None}
    return data if rule.axiom is None else data | {"axiom": rule.axiom}


def with_removed(recorder: FoldRecorder, lines: list[Line], lines_of: Any) -> list[Line]:
    """The lines with those put in, where they stood, that folding took out. Nothing is left of them, so they have no
    opcodes."""
    at: dict[int, int] = {}  # the line of every number that is left, and of those it had before
    for index, line in enumerate(lines):
        if line.value is not None:
            for number in recorder.lineage(line.value):
                at.setdefault(number, index)
    before = {each.number: each.after for each in recorder.removed}
    after: dict[int, list[Line]] = {}
    seen: set[int] = set()
    for each in recorder.removed:
        place = each.after
        for _ in range(len(before)):  # what it stood after may be gone as well
            if place in at or place not in before:
                break
            place = before[place]
        if each.number in at or each.number in seen:
            continue
        seen.add(each.number)
        index = at.get(place, _first_of(each.number, recorder, at))
        src = lines_of(recorder.place(each.number))
        after.setdefault(index, []).append(Line(f"    {each.text}", src, (), REMOVED, each.why, each.number))
    found: list[Line] = list(after.get(-1, ()))
    for index, line in enumerate(lines):
        found += [line, *after.get(index, ())]
    return found


def _first_of(number: int, recorder: FoldRecorder, at: dict[int, int]) -> int:
    """The line before the next instruction that is left of those numbered after it, in the same round."""
    for later in range(number + 1, min(number + 200, len(recorder.numbered))):
        if later in at:
            return at[later] - 1
    return -1
