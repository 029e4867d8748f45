"""Assembly of one object: instructions, labels and references to data whose places are not known yet, and its layout.

References start with one byte of push data and grow until every value fits: growing only moves values up, so it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Opcode

_PUSH0 = BY_NAME["PUSH0"]
_PUSH1 = BY_NAME["PUSH1"].byte
_POP, _STOP, _INVALID = (BY_NAME[name].byte for name in ("POP", "STOP", "INVALID"))
_ADD, _MSTORE, _DUP2, _JUMPDEST = (BY_NAME[name].byte for name in ("ADD", "MSTORE", "DUP2", "JUMPDEST"))
ADDRESS_BYTES, WORD_BYTES = 20, 32


class ItemKind(Enum):
    RAW = auto()  # bytes as they are
    LABEL = auto()  # a jump destination
    LABEL_REFERENCE = auto()  # pushes a label's place
    DATA_SIZE = auto()  # pushes the size of a named object or piece of data
    DATA_OFFSET = auto()  # pushes its place in this object's code
    IMMUTABLE = auto()  # pushes a word that is filled in when the code is deployed
    ASSIGN_IMMUTABLE = auto()  # writes a word to all places of an immutable in a copy of the code
    LIBRARY = auto()  # pushes an address that is filled in by the linker


@dataclass(slots=True)
class Item:
    kind: ItemKind
    data: bytes = b""
    name: str = ""
    label: int = -1
    width: int = 0  # bytes of push data, of references


def push(value: int, fork: Fork) -> bytes:
    """The shortest PUSH of a constant."""
    if value == 0 and fork >= _PUSH0.since:
        return bytes([_PUSH0.byte])
    size = max(1, (value.bit_length() + 7) // 8)
    return bytes([_PUSH1 + size - 1]) + value.to_bytes(size, "big")


@dataclass(slots=True)
class Assembly:
    """Items in order, and the height of the stack where the next one will stand."""

    fork: Fork
    items: list[Item] = field(default_factory=list)
    height: int = 0
    highest: int = 0
    labels: int = 0

    def new_label(self) -> int:
        self.labels += 1
        return self.labels - 1

    def raw(self, data: bytes, change: int) -> None:
        if self.items and self.items[-1].kind is ItemKind.RAW:
            self.items[-1].data += data
        else:
            self.items.append(Item(ItemKind.RAW, data))
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
        self.items.append(Item(ItemKind.LABEL, label=label))

    def label_reference(self, label: int) -> None:
        self.items.append(Item(ItemKind.LABEL_REFERENCE, label=label, width=1))
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
        self.items.append(Item(kind, name=name, width=1))
        self.height += change


@dataclass(slots=True)
class Layout:
    """The bytes of one object's code proper and where the things to be filled in stand."""

    code: bytes
    immutables: dict[str, list[int]]
    libraries: dict[str, list[int]]
    places: dict[str, tuple[int, int]]  # offset and size of all that is named; the offset is -1 if it is not embedded


class Piece(NamedTuple):
    """Bytes that can be appended to code, with the places in them where library addresses are to be filled in."""

    content: bytes
    libraries: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an object's code may refer to: sizes by name, data to be appended by name, and places of immutables."""

    sizes: dict[str, int]  # of everything but the object itself
    pieces: dict[str, Piece]  # what DATA_OFFSET may name
    own_name: str
    tail: bytes  # stands at the very end
    immutables: Mapping[str, list[int]]  # in the sub-object that this one deploys


def assemble(assembly: Assembly, around: Surroundings) -> Layout:
    """Lay out code, then the data it points to, and settle how wide every reference must be."""
    offsets_used = {item.name for item in assembly.items if item.kind is ItemKind.DATA_OFFSET} - {around.own_name}
    pieces = list(dict.fromkeys(piece for name, piece in around.pieces.items() if name in offsets_used))
    while True:
        places, code_size = _places(assembly, around)
        starts, total = _piece_starts(pieces, code_size, len(around.tail))
        values = {name: starts[around.pieces[name]] for name in offsets_used} | {around.own_name: 0}
        sizes = around.sizes | {around.own_name: total}
        if not _widen(assembly, places, values, sizes):
            break
    layout = _emit(assembly, places, values, sizes, around)
    separator = bytes([_INVALID]) if pieces or around.tail else b""
    layout.code += separator + b"".join(piece.content for piece in pieces) + around.tail
    for piece in pieces:
        for name, inner in piece.libraries:
            layout.libraries.setdefault(name, []).extend(starts[piece] + place for place in inner)
    return layout


def _piece_starts(pieces: list[Piece], code_size: int, tail: int) -> tuple[dict[Piece, int], int]:
    starts: dict[Piece, int] = {}
    position = code_size + (1 if pieces or tail else 0)
    for piece in pieces:
        starts[piece] = position
        position += len(piece.content)
    return starts, position + tail


def _assignment(places: list[int], fork: Fork) -> bytes:
    """With value and offset on the stack (offset on top): store the value at every place behind the offset."""
    if not places:
        return bytes([_POP, _POP])
    keep = bytes([_DUP2, _DUP2])
    stores = [push(place, fork) + bytes([_ADD, _MSTORE]) for place in places]
    return b"".join(keep + store for store in stores[:-1]) + stores[-1]


def _size(item: Item, around: Surroundings, fork: Fork) -> int:
    if item.kind is ItemKind.RAW:
        return len(item.data)
    if item.kind is ItemKind.LABEL:
        return 1
    if item.kind is ItemKind.IMMUTABLE:
        return 1 + WORD_BYTES
    if item.kind is ItemKind.LIBRARY:
        return 1 + ADDRESS_BYTES
    if item.kind is ItemKind.ASSIGN_IMMUTABLE:
        return len(_assignment(around.immutables.get(item.name, []), fork))
    return 1 + item.width


def _places(assembly: Assembly, around: Surroundings) -> tuple[dict[int, int], int]:
    """Where each label stands, and the size of it all."""
    places: dict[int, int] = {}
    position = 0
    for item in assembly.items:
        if item.kind is ItemKind.LABEL:
            places[item.label] = position
        position += _size(item, around, assembly.fork)
    return places, position


def _value(item: Item, places: dict[int, int], offsets: dict[str, int], sizes: dict[str, int]) -> int | None:
    if item.kind is ItemKind.LABEL_REFERENCE:
        return places[item.label]
    if item.kind is ItemKind.DATA_SIZE:
        return sizes[item.name]
    return offsets[item.name] if item.kind is ItemKind.DATA_OFFSET else None


def _widen(assembly: Assembly, places: dict[int, int], offsets: dict[str, int], sizes: dict[str, int]) -> bool:
    """Give references the width their values need; whether any grew."""
    grew = False
    for item in assembly.items:
        value = _value(item, places, offsets, sizes)
        if value is not None and value >> (8 * item.width):
            item.width = (value.bit_length() + 7) // 8
            grew = True
    return grew


def _emit(
    assembly: Assembly, places: dict[int, int], offsets: dict[str, int], sizes: dict[str, int], around: Surroundings
) -> Layout:
    code = bytearray()
    layout = Layout(b"", {}, {}, {name: (offsets.get(name, -1), size) for name, size in sizes.items()})
    for item in assembly.items:
        value = _value(item, places, offsets, sizes)
        if item.kind is ItemKind.RAW:
            code += item.data
        elif item.kind is ItemKind.LABEL:
            code.append(_JUMPDEST)
        elif value is not None:
            code.append(_PUSH1 + item.width - 1)
            code += value.to_bytes(item.width, "big")
        elif item.kind is ItemKind.ASSIGN_IMMUTABLE:
            code += _assignment(around.immutables.get(item.name, []), assembly.fork)
        else:
            width, found = _PLACEHOLDERS[item.kind]
            getattr(layout, found).setdefault(item.name, []).append(len(code) + 1)
            code.append(_PUSH1 + width - 1)
            code += bytes(width)
    layout.code = bytes(code)
    return layout


_PLACEHOLDERS = {ItemKind.IMMUTABLE: (WORD_BYTES, "immutables"), ItemKind.LIBRARY: (ADDRESS_BYTES, "libraries")}
STOP = bytes([_STOP])
