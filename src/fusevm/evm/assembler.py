"""Items to bytes: instructions, labels and references whose values are not known yet are laid out to code.

References start with one byte of push data and grow until every value fits: growing only moves values up, so it ends.
The text form is in `assembly.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Opcode

_PUSH0 = BY_NAME["PUSH0"]
_POP, _INVALID, _ADD, _MSTORE, _DUP2 = (BY_NAME[name].byte for name in ("POP", "INVALID", "ADD", "MSTORE", "DUP2"))
STOP, JUMPDEST = (bytes([BY_NAME[name].byte]) for name in ("STOP", "JUMPDEST"))
ADDRESS_BYTES, WORD_BYTES = 20, 32

Source = tuple[int, ...]  # where an instruction comes from, in numbers of its producer: offsets in a text, say
# Compilers write offset, end, one of these, which says what a jump does, and whatever else they know of the place.
NO_CALL, CALLS, RETURNS = 0, 1, 2


class ItemKind(Enum):
    RAW = auto()  # bytes as they are
    LABEL = auto()  # names its own position: a JUMPDEST, or nothing
    LABEL_REFERENCE = auto()  # pushes a label's place
    DATA_SIZE = auto()  # pushes the size of a named object or piece of data
    DATA_OFFSET = auto()  # pushes its place in this object's code
    IMMUTABLE = auto()  # pushes a word that is filled in when the code is deployed
    ASSIGN_IMMUTABLE = auto()  # writes a word to all places of an immutable in a copy of the code
    LIBRARY = auto()  # pushes an address that is filled in by the linker


_REFERENCES = (ItemKind.LABEL_REFERENCE, ItemKind.DATA_SIZE, ItemKind.DATA_OFFSET)  # they are as wide as they must be


@dataclass(slots=True)
class Item:
    kind: ItemKind
    data: bytes = b""
    name: str = ""
    label: int = -1
    width: int | None = None  # bytes of push data of a reference; None: as few as will do
    source: Source | None = None


class EntryLabel(NamedTuple):
    """Where a function begins, and how many words it takes and leaves."""

    label: int
    parameters: int
    results: int


class LayoutError(ValueError):
    """An item that cannot be laid out; says why."""

    def __init__(self, item: Item, problem: str) -> None:
        super().__init__(f"{item.kind.name} {item.name or item.label} {problem}")
        self.item, self.problem = item, problem


def push(value: int, fork: Fork) -> bytes:
    """The shortest PUSH of a constant."""
    least = 0 if fork >= _PUSH0.since else 1
    return push_of_width(value, max((value.bit_length() + 7) // 8, least))


def push_of_width(value: int, width: int) -> bytes:
    return bytes([_PUSH0.byte + width]) + value.to_bytes(width, "big")


# -- writing items ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Assembly:
    """Items in order, and the height of the stack before the next one."""

    fork: Fork
    items: list[Item] = field(default_factory=list)
    height: int = 0
    highest: int = 0
    labels: int = 0
    source: Source | None = None  # of the items that follow
    place: Source = (-1, -1)  # the same, without what a jump does
    entries: dict[str, EntryLabel] = field(default_factory=dict)  # of functions

    def at(self, place: Source | None, jump: int = NO_CALL) -> None:
        """The items that follow come from there; nowhere is part of where the last ones came from."""
        if place is not None and place[0] >= 0:
            self.place = place
        start, end, *more = self.place
        self.source = (start, end, jump, *more)

    def new_label(self) -> int:
        self.labels += 1
        return self.labels - 1

    def raw(self, data: bytes, change: int) -> None:
        if self.items and (last := self.items[-1]).kind is ItemKind.RAW and last.source == self.source:
            last.data += data
        else:
            self.items.append(Item(ItemKind.RAW, data, source=self.source))
        self.height += change
        if self.height > self.highest:
            self.highest = self.height

    def op(self, opcode: Opcode) -> None:
        self.raw(bytes([opcode.byte]), opcode.pushes - opcode.pops)

    def named_op(self, name: str) -> None:
        self.op(BY_NAME[name])

    def pop(self) -> None:
        self.raw(bytes([_POP]), -1)

    def dup(self, depth: int) -> None:
        self.raw(bytes([BY_NAME["DUP1"].byte + depth - 1]), 1)

    def swap(self, depth: int) -> None:
        self.raw(bytes([BY_NAME["SWAP1"].byte + depth - 1]), 0)

    def constant(self, value: int) -> None:
        self.raw(push(value, self.fork), 1)

    def label(self, label: int) -> None:
        """A jump destination."""
        self.items.append(Item(ItemKind.LABEL, JUMPDEST, label=label, source=self.source))

    def label_reference(self, label: int) -> None:
        self.items.append(Item(ItemKind.LABEL_REFERENCE, label=label, source=self.source))
        self.height += 1

    def jump(self, label: int, change: int = 0) -> None:
        """Jump to a label; `change` is what the height is to be for the code that follows here."""
        self.label_reference(label)
        self.named_op("JUMP")
        self.height += change

    def jump_if(self, label: int) -> None:
        self.label_reference(label)
        self.named_op("JUMPI")

    def reference(self, kind: ItemKind, name: str, change: int = 1) -> None:
        self.items.append(Item(kind, name=name, source=self.source))
        self.height += change


# -- laying them out ----------------------------------------------------------------------------------------------


class CodePiece(NamedTuple):
    """Bytes that can be appended to code, with the places in them where library addresses are to be filled in."""

    content: bytes
    libraries: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectReferences:
    """What an object's code may refer to: sizes by name, data to be appended by name, and places of immutables."""

    sizes: Mapping[str, int] = field(default_factory=dict)  # of everything but the object itself
    pieces: Mapping[str, CodePiece] = field(default_factory=dict)  # what DATA_OFFSET may name
    own_name: str = ""
    tail: bytes = b""  # placed at the very end
    immutables: Mapping[str, list[int]] = field(default_factory=dict)  # in the sub-object that this one deploys


ALONE = ObjectReferences()


@dataclass(slots=True)
class ObjectLayout:
    """The bytes of one object, the offsets of its labels, and those of placeholders."""

    code: bytes
    labels: dict[int, int]
    immutables: dict[str, list[int]]
    libraries: dict[str, list[int]]
    places: dict[str, tuple[int, int]]  # offset and size of all that is named; the offset is -1 if it is not embedded
    spans: list[tuple[int, int, Source]]  # start, end and source of each item that has one
    size: int = 0  # of the instructions, without the data after them

    def sources(self) -> dict[int, Source]:
        """For each instruction whose source is known, by the offset of its opcode."""
        return {
            start + instruction.pc: source
            for start, end, source in self.spans
            for instruction in instructions(self.code[start:end])
        }


def assemble(items: Sequence[Item], fork: Fork, around: ObjectReferences = ALONE) -> ObjectLayout:
    """Lays out code, then the data it points to, with every reference as wide as it must be."""
    return _Placement(items, fork, around).layout()


class _Placement:
    """The offsets of everything, as far as they are settled."""

    def __init__(self, items: Sequence[Item], fork: Fork, around: ObjectReferences) -> None:
        self.items, self.fork, self.around = items, fork, around
        self.references = [index for index, item in enumerate(items) if item.kind in _REFERENCES]
        used = {item.name for item in items if item.kind is ItemKind.DATA_OFFSET} - {around.own_name}
        self.named = {name: piece for name, piece in around.pieces.items() if name in used}
        self.pieces = list(dict.fromkeys(self.named.values()))
        self.separator = bytes([_INVALID]) if self.pieces or around.tail else b""
        self.chunks = [self._chunk(item) for item in items]
        for index in self.references:
            self.chunks[index] = bytes(1 + (items[index].width or 1))
        self.labels: dict[int, int] = {}
        self.offsets: dict[str, int] = {}
        self.sizes: dict[str, int] = {}

    def layout(self) -> ObjectLayout:
        placed = {item.label for item in self._labels()}
        for index in self.references:
            item = self.items[index]
            if item.kind is ItemKind.LABEL_REFERENCE and item.label not in placed:
                raise LayoutError(item, "names a label that is not declared")
        self._place()
        while self._fill():
            self._place()
        return self._laid_out()

    def _labels(self) -> Iterator[Item]:
        seen: set[int] = set()
        for item in self.items:
            if item.kind is ItemKind.LABEL:
                if item.label in seen:
                    raise LayoutError(item, "is declared twice")
                seen.add(item.label)
                yield item

    def _chunk(self, item: Item) -> bytes:
        """The bytes of an item; those of a reference are not known yet."""
        match item.kind:
            case ItemKind.IMMUTABLE:
                return push_of_width(0, WORD_BYTES)
            case ItemKind.LIBRARY:
                return push_of_width(0, ADDRESS_BYTES)
            case ItemKind.ASSIGN_IMMUTABLE:
                return _assignment(self.around.immutables.get(item.name, []), self.fork)
        return item.data

    def _place(self) -> None:
        """Gives labels and pieces the places that follow from the sizes of the chunks."""
        position = 0
        for item, chunk in zip(self.items, self.chunks, strict=True):
            if item.kind is ItemKind.LABEL:
                self.labels[item.label] = position
            position += len(chunk)
        position += len(self.separator)
        starts: dict[CodePiece, int] = {}
        for piece in self.pieces:
            starts[piece] = position
            position += len(piece.content)
        own = self.around.own_name
        self.offsets = {name: starts[piece] for name, piece in self.named.items()} | {own: 0}
        self.sizes = {**self.around.sizes, own: position + len(self.around.tail)}

    def _fill(self) -> bool:
        """Writes the references with the values as they are now; whether any needed more bytes than it had."""
        grew = False
        for index in self.references:
            item, value, width = self.items[index], self._value(self.items[index]), len(self.chunks[index]) - 1
            if value >> 8 * width:
                if item.width is not None:
                    verb = "is" if item.kind is ItemKind.DATA_SIZE else "is at"
                    raise LayoutError(item, f"{verb} {value}, which does not fit PUSH{width}")
                width, grew = (value.bit_length() + 7) // 8, True
            self.chunks[index] = push_of_width(value, width)
        return grew

    def _value(self, item: Item) -> int:
        if item.kind is ItemKind.LABEL_REFERENCE:
            return self.labels[item.label]
        values = self.sizes if item.kind is ItemKind.DATA_SIZE else self.offsets
        if item.name not in values:
            raise LayoutError(item, "names nothing that is there")
        return values[item.name]

    def _laid_out(self) -> ObjectLayout:
        places = {name: (self.offsets.get(name, -1), size) for name, size in self.sizes.items()}
        layout = ObjectLayout(b"", self.labels, {}, {}, places, [])
        position = 0
        for item, chunk in zip(self.items, self.chunks, strict=True):
            if item.kind is ItemKind.IMMUTABLE:
                layout.immutables.setdefault(item.name, []).append(position + 1)
            elif item.kind is ItemKind.LIBRARY:
                layout.libraries.setdefault(item.name, []).append(position + 1)
            if item.source is not None:
                layout.spans.append((position, position + len(chunk), item.source))
            position += len(chunk)
        layout.size = position
        position += len(self.separator)
        for piece in self.pieces:
            for name, inner in piece.libraries:
                layout.libraries.setdefault(name, []).extend(position + place for place in inner)
            position += len(piece.content)
        parts = [*self.chunks, self.separator, *(piece.content for piece in self.pieces), self.around.tail]
        layout.code = b"".join(parts)
        return layout


def _assignment(places: Iterable[int], fork: Fork) -> bytes:
    """With value and offset on the stack (offset on top): store the value at every place after the offset."""
    stores = [push(place, fork) + bytes([_ADD, _MSTORE]) for place in places]
    if not stores:
        return bytes([_POP, _POP])
    keep = bytes([_DUP2, _DUP2])
    return b"".join(keep + store for store in stores[:-1]) + stores[-1]
