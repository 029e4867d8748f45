"""Source files, and places in them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.tracing.sources.functions import SourceFunction, functions_of


@dataclass(eq=False)
class SourceFile:
    """A file of Solidity, Yul or Vyper. Compilers count in bytes, so its text is kept as bytes."""

    path: str
    text: bytes
    line_starts: list[int] = field(init=False, repr=False)
    functions: list[SourceFunction] = field(init=False, repr=False)  # in the order in which they begin

    def __post_init__(self) -> None:
        self.line_starts = [0, *(at + 1 for at, byte in enumerate(self.text) if byte == 0x0A)]
        self.functions = functions_of(self.path, self.text)

    @property
    def is_vyper(self) -> bool:
        return self.path.endswith((".vy", ".vyi"))

    def line_at(self, offset: int) -> int:
        """The number of the line, from 1."""
        return bisect_right(self.line_starts, offset)

    def line(self, number: int) -> str:
        """The text of a line, without blanks around it."""
        lines = self.text.split(b"\n")
        return lines[number - 1].decode(errors="replace").strip() if 0 < number <= len(lines) else ""

    def offset_of(self, line: int, column: int) -> int:
        """Of a line from 1 and a column from 0, as Vyper writes places."""
        return self.line_starts[min(line, len(self.line_starts)) - 1] + column

    def function_at(self, offset: int) -> SourceFunction | None:
        """The innermost function around an offset."""
        found = None
        for function in self.functions:
            if function.start > offset:
                break
            if offset < function.end:
                found = function
        return found

    def place(self, start: int, end: int) -> SourcePlace:
        return SourcePlace(self, start, end, self.line_at(start), self.line_at(max(start, end - 1)))


class SourcePlace(NamedTuple):
    file: SourceFile
    start: int  # offsets in bytes
    end: int
    line: int  # of its start, from 1
    last_line: int

    @property
    def function(self) -> SourceFunction | None:
        return self.file.function_at(self.start)

    @property
    def text(self) -> str:
        return self.file.text[self.start : self.end].decode(errors="replace")

    def __str__(self) -> str:
        return f"{self.file.path}:{self.line}"
