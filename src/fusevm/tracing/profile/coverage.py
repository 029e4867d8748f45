"""Lines, branches and functions that ran, from a recording that noted coverage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fusevm.evm.bytecode import JUMPDEST
from fusevm.tracing.recording import CodeCoverage
from fusevm.tracing.sources.contracts import CompiledCode, Sources
from fusevm.tracing.sources.files import SourceFile, SourcePlace
from fusevm.tracing.sources.functions import SourceFunction

_JUMPI = 0x57
_DEFINITION = re.compile(r"(?:abstract\s+)?(?:contract|library|interface)\b")
_DECISION = re.compile(r"(?:if|elif|for|while|do|require|assert|try)\b")
_INSIDE = re.compile(r"\?|&&|\|\|")
_VYPER_INSIDE = re.compile(r" (?:if|and|or) ")


@dataclass(slots=True)
class Decision:
    """A decision: how often its jump was taken, and how often it was not."""

    line: int
    taken: int = 0
    passed: int = 0


@dataclass(slots=True)
class FileCoverage:
    """How often each line and function ran: all of which code was made, those that did not run with 0."""

    file: SourceFile
    lines: dict[int, int] = field(default_factory=dict)
    functions: dict[SourceFunction, int] = field(default_factory=dict)
    branches: dict[tuple[int, int], Decision] = field(default_factory=dict)  # by the place of the decision


class _Ran(NamedTuple):
    """One compiled code, and what was counted in all running codes that are it."""

    compiled: CompiledCode
    counts: list[CodeCoverage]
    creates: bool  # whether it is init code

    def hits(self, pc: int) -> int:
        return sum(each.hits.get(pc, 0) for each in self.counts)


def file_coverage(counted: Iterable[CodeCoverage], sources: Sources) -> list[FileCoverage]:
    """Of every file that has code, by path."""
    found: dict[str, FileCoverage] = {}
    for ran in _ran(counted, sources):
        lines: dict[tuple[str, int], int] = {}  # of this code alone: the most that any of its instructions ran
        entries: dict[tuple[str, SourceFunction], int] = {}
        firsts: dict[tuple[str, SourceFunction], tuple[int, int]] = {}  # where the compiler has inlined a function
        for pc, place in ran.compiled.map.places.items():
            path, function, hits = place.file.path, place.function, ran.hits(pc)
            file = found.setdefault(path, FileCoverage(place.file))
            if is_line(place, function, ran.creates):
                _raise(lines, (path, place.line), hits)
                if _is_decision(ran.compiled, pc, place):
                    _count_branch(file, ran, pc, place)
                if function is not None:
                    first = (place.start, -hits)
                    firsts[path, function] = min(first, firsts.get((path, function), first))
            elif function is not None and ran.compiled.code[pc] == JUMPDEST and place.start == function.start:
                _raise(entries, (path, function), hits)
        for (path, line), hits in lines.items():
            _add(found[path].lines, line, hits)
        for (path, function), (_, hits) in firsts.items():
            _add(found[path].functions, function, entries.get((path, function), -hits))
    for file in found.values():
        for function, hits in file.functions.items():
            _raise(file.lines, file.file.line_at(function.start), hits)
    return [found[path] for path in sorted(found)]


def _ran(counted: Iterable[CodeCoverage], sources: Sources) -> Iterator[_Ran]:
    by_map: dict[int, list[CodeCoverage]] = {}
    for each in counted:
        known = sources.of_code(each.code)
        if known is not None:
            by_map.setdefault(id(known.map), []).append(each)
    for contract in sources:
        for compiled in (contract.creation, contract.runtime):
            yield _Ran(compiled, by_map.get(id(compiled.map), []), compiled is contract.creation)


Key = TypeVar("Key")


def _raise(counts: dict[Key, int], key: Key, to: int) -> None:
    counts[key] = max(counts.get(key, 0), to)


def _add(counts: dict[Key, int], key: Key, hits: int) -> None:
    counts[key] = counts.get(key, 0) + hits


def is_line(place: SourcePlace, function: SourceFunction | None, creates: bool = False) -> bool:
    """Whether a place is code of its line: in a function's body, or in init code the initial value of a variable.

    Code that enters a function, checks its arguments or chooses it is made from the function or contract as a whole,
    and the function that reads a public variable from the variable.
    """
    if function is not None:
        return place.start > function.body
    return creates and not _DEFINITION.match(place.text[:60]) and place.last_line - place.line < 3


def _is_decision(compiled: CompiledCode, pc: int, place: SourcePlace) -> bool:
    """Whether a JUMPI is the user's; compilers add checks of their own, of overflows say."""
    if compiled.code[pc] != _JUMPI:
        return False
    text = place.text
    if _DECISION.match(text):
        return True
    inside = _VYPER_INSIDE if place.file.is_vyper else _INSIDE
    return pc not in compiled.map.errors and inside.search(text) is not None


def _count_branch(file: FileCoverage, ran: _Ran, pc: int, place: SourcePlace) -> None:
    branch = file.branches.setdefault((place.start, place.end), Decision(place.line))
    branch.taken += sum(each.taken.get(pc, 0) for each in ran.counts)
    branch.passed += sum(each.passed.get(pc, 0) for each in ran.counts)


def lcov(files: Iterable[FileCoverage]) -> str:
    """The text that genhtml and editors read."""
    return "".join(f"{line}\n" for file in files for line in _record(file))


def _record(file: FileCoverage) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{file.file.path}"
    functions = sorted(file.functions.items(), key=lambda item: item[0].start)
    for function, _ in functions:
        yield f"FN:{file.file.line_at(function.start)},{function.name}"
    for function, hits in functions:
        yield f"FNDA:{hits},{function.name}"
    yield f"FNF:{len(functions)}"
    yield f"FNH:{sum(hits > 0 for _, hits in functions)}"
    branches = [branch for _, branch in sorted(file.branches.items())]
    for number, branch in enumerate(branches):
        reached = branch.taken + branch.passed > 0
        for side, hits in enumerate((branch.passed, branch.taken)):
            yield f"BRDA:{branch.line},{number},{side},{hits if reached else '-'}"
    yield f"BRF:{2 * len(branches)}"
    yield f"BRH:{sum((branch.passed > 0) + (branch.taken > 0) for branch in branches)}"
    for line, hits in sorted(file.lines.items()):
        yield f"DA:{line},{hits}"
    yield f"LF:{len(file.lines)}"
    yield f"LH:{sum(hits > 0 for hits in file.lines.values())}"
    yield "end_of_record"
