"""Code as a list of items that name their jump targets, so that a piece can be cut out and the rest still fits.

The text of an item is one line: `ADD`, `PUSH2 0x1234`, `L3:` (a JUMPDEST), `PUSH2 @L3`, `DATA 0x00ff`, and for a part
(code or data carried after the items, such as the init code a CREATE runs) `PUSH2 @part0` and `PUSH2 sizeof part0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from fusevm.evm.opcodes import BY_NAME

LABEL, REF, PART, SIZE, DATA = "LABEL", "REF", "PART", "SIZE", "DATA"
_REFERENCES = (REF, PART, SIZE)
_PUSH2 = BY_NAME["PUSH2"].byte
_JUMPDEST = bytes((BY_NAME["JUMPDEST"].byte,))
_BYTES = {name: bytes((op.byte,)) for name, op in BY_NAME.items()}
_PUSHES = [f"PUSH{width}" for width in range(33)]
_WIDTHS = {name: op.immediate for name, op in BY_NAME.items() if op.immediate}


class CodePart(NamedTuple):
    op: str
    value: int = 0  # what a PUSH pushes, or the number of a label or part
    data: bytes = b""

    def __str__(self) -> str:
        if self.op in _WIDTHS:
            return f"{self.op} {self.value:#x}"
        forms = {LABEL: f"L{self.value}:", REF: f"PUSH2 @L{self.value}", PART: f"PUSH2 @part{self.value}"}
        forms |= {SIZE: f"PUSH2 sizeof part{self.value}", DATA: f"DATA 0x{self.data.hex()}"}
        return forms.get(self.op, self.op)

    def size(self) -> int:
        """In bytes."""
        if self.op in _REFERENCES:
            return 3
        return len(self.data) if self.op == DATA else 1 + _WIDTHS.get(self.op, 0)


@dataclass(slots=True)
class CodeParts:
    items: list[CodePart] = field(default_factory=list)
    parts: list[CodeParts] = field(default_factory=list)

    def encode(self) -> bytes:
        chunks: list[bytes] = []
        labels: dict[int, int] = {}
        holes: list[tuple[int, CodePart]] = []  # references, filled in when all positions are known
        size = 0
        for item in self.items:
            op = item.op
            if op == LABEL:
                labels[item.value] = size
                chunk = _JUMPDEST
            elif op in _WIDTHS:
                width = _WIDTHS[op]
                chunk = _BYTES[op] + item.value.to_bytes(width, "big")
            elif op in _REFERENCES:
                holes.append((len(chunks), item))
                chunk = b"\0\0\0"
            else:
                chunk = item.data if op == DATA else _BYTES[op]
            chunks.append(chunk)
            size += len(chunk)
        parts = [part.encode() for part in self.parts]
        starts = []
        for part in parts:
            starts.append(size)
            size += len(part)
        for place, item in holes:
            chunks[place] = _reference(item, labels, starts, parts)
        return b"".join(chunks + parts)

    def every(self) -> Iterator[CodeParts]:
        """This code and the parts inside it."""
        yield self
        for part in self.parts:
            yield from part.every()

    def size(self) -> int:
        return sum(len(code.items) for code in self.every())

    def copy(self) -> CodeParts:
        return CodeParts(list(self.items), [part.copy() for part in self.parts])

    def as_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"items": [str(item) for item in self.items]}
        if self.parts:
            form["parts"] = [part.as_json() for part in self.parts]
        return form

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> CodeParts:
        return cls(
            [parse_item(line) for line in form["items"]], [cls.from_json(part) for part in form.get("parts", [])]
        )


def misdirected(code: CodeParts, rng: Random) -> CodeParts:
    """The code with one jump to a label retargeted: after itself or another jump, perhaps into an instruction."""
    after = {}  # by index of the reference: where its fall-through is
    place = 0
    for index, (item, following) in enumerate(pairwise(code.items)):
        place += item.size()
        if item.op == REF and following.op in ("JUMP", "JUMPI"):
            after[index] = place + 1
    if not after:
        return code
    index = rng.choice(list(after))
    target = rng.choice((after[index], rng.choice(list(after.values())), rng.choice(list(after.values())) + 1))
    return CodeParts([*code.items[:index], CodePart("PUSH2", target & 0xFFFF), *code.items[index + 1 :]], code.parts)


def raw(data: bytes) -> CodeParts:
    """Bytes that are to stay as they are."""
    return CodeParts([CodePart(DATA, data=data)] if data else [])


def push(value: int, smallest: int = 1) -> CodePart:
    """The shortest PUSH of that word, of at least `smallest` bytes."""
    return CodePart(_PUSHES[max((value.bit_length() + 7) // 8, smallest)], value)


def parse_item(line: str) -> CodePart:
    word, _, operand = line.partition(" ")
    if word.endswith(":"):
        return CodePart(LABEL, int(word[1:-1]))
    if word == DATA:
        return CodePart(DATA, data=bytes.fromhex(operand[2:]))
    for prefix, op in (("@L", REF), ("@part", PART), ("sizeof part", SIZE)):
        if operand.startswith(prefix):
            return CodePart(op, int(operand.removeprefix(prefix)))
    if word not in BY_NAME:
        raise ValueError(f"{line!r} is not an item of code")
    return CodePart(word, int(operand, 16) if operand else 0)


def _reference(item: CodePart, labels: dict[int, int], starts: list[int], parts: list[bytes]) -> bytes:
    """A PUSH2. What has been cut away reads as position 0 or size 0."""
    if item.op == REF:
        value = labels.get(item.value, 0)
    elif item.value >= len(parts):
        value = 0
    else:
        value = starts[item.value] if item.op == PART else len(parts[item.value])
    return bytes((_PUSH2, value >> 8 & 0xFF, value & 0xFF))
