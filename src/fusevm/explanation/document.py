"""What an explanation is made of: panes of lines, each linked to source lines and to places in the bytecode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

VERSION = 1
CODE, LABEL, NOTE, REMOVED = "code", "label", "note", "removed"


class Line(NamedTuple):
    """A line of a pane: its text, the source lines it comes from (1-based), and the opcodes it became.

    >>> Line("ADD", (3,), (4,)).as_data()
    {'text': 'ADD', 'src': [3], 'pcs': [4], 'kind': 'code'}
    """

    text: str
    src: tuple[int, ...] = ()
    pcs: tuple[int, ...] = ()
    kind: str = CODE
    why: str | None = None
    value: int | None = None  # the key of its history in `folds`

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        data: dict[str, Any] = {"text": self.text, "src": list(self.src), "pcs": list(self.pcs), "kind": self.kind}
        if self.why is not None:
            data["why"] = self.why
        if self.value is not None:
            data["value"] = self.value
        return data


@dataclass(slots=True)
class Pane:
    """One form of the program: `id` is source, yul, ir, bytecode, schedule or machine."""

    id: str
    title: str
    note: str
    lines: list[Line] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "id": self.id,
            "title": self.title,
            "note": self.note,
            "lines": [line.as_data() for line in self.lines],
        }

    def __str__(self) -> str:
        return "\n".join([line.text for line in self.lines])


@dataclass(slots=True)
class Totals:
    """Static estimates before and after: bytes of code, and the static gas of every instruction counted once."""

    bytes_before: int
    bytes_after: int
    gas_before: int
    gas_after: int

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "bytes": {"before": self.bytes_before, "after": self.bytes_after},
            "gas": {"before": self.gas_before, "after": self.gas_after},
        }


@dataclass(slots=True)
class Made:
    """What the readers of each language hand over: the final code, and the panes as far as they are made early."""

    language: str
    code: bytes
    panes: list[Pane]
    totals: Totals
    objects: list[str] = field(default_factory=list)
    chosen: str = ""
    lines_at: dict[int, tuple[int, ...]] = field(default_factory=dict)  # source lines, by the offset of an opcode
    line_at: dict[int, int] = field(default_factory=dict)  # the one line that the gas of an opcode is counted to
    functions_at: dict[int, str] = field(default_factory=dict)  # names, by where they begin
    notes: list[str] = field(default_factory=list)
    deferred: bool = False  # not optimised, since that takes seconds and was not asked for
    sequence: str | None = None
    steps: list[Any] = field(default_factory=list)
    folds: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    creation: Callable[[], bytes] = bytes  # makes the code that deploys it; nothing where there is none
    is_creation: bool = False  # the code is itself creation code
    size: int = -1  # of the instructions, without the data after them; -1: not known
