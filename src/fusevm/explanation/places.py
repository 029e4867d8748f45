"""Offsets in a text, in bytes as compilers count them, to the numbers of its lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from fusevm.tracing.sources.functions import functions_of
from fusevm.yul.syntax.origins import Origins

_CONTRACT = re.compile(rb"(?m)(?<=^)[ \t]*(?:abstract[ \t]+)?(?:contract|library|interface)\b")


class Lines:
    """The lines of a text. Numbers begin with 1."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")
        self._starts = [0]
        for line in self.texts[:-1]:
            self._starts.append(self._starts[-1] + len(line.encode()) + 1)

    def at(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self._starts, offset)

    def of(self, offsets: Iterable[int]) -> tuple[int, ...]:
        """The lines of the offsets that are known, in order."""
        return tuple(sorted({self.at(offset) for offset in offsets if offset >= 0}))

    def innermost(self, offsets: Iterable[int]) -> int:
        """The line of the first offset that has one, else 0."""
        return next((line for offset in offsets for line in self.of([offset])), 0)


class OriginLines(Lines):
    """The lines of the text that Yul was made from, by offsets in the Yul, as its `@src` comments say."""

    def __init__(self, text: str, origins: Origins, source: int, size: int) -> None:
        super().__init__(text)
        self._origins, self._source, self._size = origins, source, size
        self._wholes = {match.start() for match in _CONTRACT.finditer(text.encode())}

    def of(self, offsets: Iterable[int]) -> tuple[int, ...]:
        """The line of a whole contract is used only if there is no more specific one."""
        found = [self._origins.at(offset, 0, self._size) for offset in offsets if offset >= 0]
        starts = {origin.start for origin in found if origin.source == self._source}
        return super().of(starts - self._wholes or starts)

    def innermost(self, offsets: Iterable[int]) -> int:
        """The line of the first specific offset, else of any."""
        offsets = list(offsets)
        wholes = {self.at(start) for start in self._wholes}
        lines = [line for offset in offsets for line in self.of([offset])]
        return next((line for line in lines if line not in wholes), lines[0] if lines else 0)


def opcodes_by_line(lines_at: Mapping[int, Iterable[int]]) -> dict[int, list[int]]:
    """The inverse: the opcodes generated from each line."""
    found: dict[int, list[int]] = {}
    for pc, lines in sorted(lines_at.items()):
        for line in lines:
            found.setdefault(line, []).append(pc)
    return found


def functions_of_lines(text: str, language: str) -> dict[int, str]:
    """The function that contains each line, by the text alone; lines outside of all have none."""
    lines = Lines(text)
    found: dict[int, str] = {}
    for function in functions_of("source.vy" if language == "vyper" else "source.sol", text.encode()):
        for number in range(lines.at(function.start), lines.at(max(function.end - 1, function.start)) + 1):
            found[number] = function.name  # one inside another comes after it
    return found
