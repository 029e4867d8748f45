"""Items to bytes: the assembler that text, Yul and the optimiser share."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from conftest import first
from fusevm.evm.assembler import (
    JUMPDEST,
    Assembly,
    CodePiece,
    Item,
    ItemKind,
    LayoutError,
    ObjectLayout,
    ObjectReferences,
    assemble,
    push_of_width,
)
from fusevm.evm.assembly import items_of
from fusevm.evm.bytecode import decode
from fusevm.evm.forks import LATEST, Fork

SEEDS = range(100)


def reference(label: int, width: int | None = None) -> Item:
    return Item(ItemKind.LABEL_REFERENCE, label=label, width=width)


def label(number: int) -> Item:
    return Item(ItemKind.LABEL, JUMPDEST, label=number)


def raw(data: bytes) -> Item:
    return Item(ItemKind.RAW, data)


def laid_out(*items: Item, around: ObjectReferences | None = None) -> ObjectLayout:
    return assemble(items, LATEST, around or ObjectReferences())


def random_items(seed: int) -> list[Item]:
    """Labels, references to them, and runs of ADDs long enough that widths matter; each item is its own source."""
    dice = random.Random(seed)
    count = dice.randrange(1, 12)
    items = [label(number) for number in range(count)]
    items += [reference(dice.randrange(count)) for _ in range(dice.randrange(100))]
    items += [raw(b"\x01" * dice.choice((1, 5, 100, 250, 30_000))) for _ in range(dice.randrange(12))]
    dice.shuffle(items)
    return [replace(item, source=(index,)) for index, item in enumerate(items)]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_reference_pushes_the_place_of_its_label_in_as_few_bytes_as_hold_it(seed: int) -> None:
    items = random_items(seed)
    layout = assemble(items, LATEST)
    assert all(layout.code[place : place + 1] == JUMPDEST for place in layout.labels.values())
    for start, end, (index,) in layout.spans:
        if items[index].kind is ItemKind.LABEL_REFERENCE:
            value = layout.labels[items[index].label]
            width = max(1, (value.bit_length() + 7) // 8)
            assert layout.code[start:end] == push_of_width(value, width)


@pytest.mark.parametrize("seed", first(25, SEEDS))
def test_every_instruction_is_mapped_to_the_source_of_its_item(seed: int) -> None:
    items = random_items(seed)
    layout = assemble(items, LATEST)
    sources = layout.sources()
    assert list(sources) == [instruction.pc for instruction in decode(layout.code)]
    assert list(dict.fromkeys(sources.values())) == [item.source for item in items]


def test_an_item_without_a_source_is_not_mapped() -> None:
    items = [Item(ItemKind.RAW, b"\x60\x01\x50", source=(7, 9)), raw(b"\x00")]
    assert assemble(items, LATEST).sources() == {0: (7, 9), 2: (7, 9)}


def test_the_writer_gives_its_source_to_what_it_writes() -> None:
    assembly = Assembly(LATEST)
    assembly.source = (1,)
    assembly.constant(5)
    assembly.pop()
    assembly.source = (2,)
    assembly.pop()
    assert assemble(assembly.items, LATEST).sources() == {0: (1,), 2: (1,), 3: (2,)}


def test_the_source_of_text_is_its_line() -> None:
    text = "PUSH @end\nJUMP\n\nend: JUMPDEST"
    assert assemble(items_of(text), LATEST).sources() == {0: (1,), 2: (2,), 3: (4,)}


def test_growing_one_reference_can_make_another_grow() -> None:
    """The second label stands at 255 until the first reference needs two bytes."""
    layout = laid_out(reference(0), reference(1), raw(b"\x01" * 251), label(1), label(0))
    assert layout.labels == {1: 257, 0: 258}
    assert layout.code[:6].hex() == "610102610101"


def test_items_can_be_laid_out_again() -> None:
    items = (reference(0), raw(b"\x01" * 300), label(0))
    assert laid_out(*items) == laid_out(*items)


def test_a_label_can_stand_before_anything() -> None:
    assert laid_out(raw(b"\x01"), Item(ItemKind.LABEL, label=0), reference(0)).code.hex() == "016001"


def test_a_width_that_is_given_is_kept() -> None:
    assert laid_out(reference(0, width=3), label(0)).code.hex() == "620000045b"


def test_what_is_pointed_to_is_appended_once_and_what_is_not_is_left_out() -> None:
    same, other = CodePiece(b"\xaa\xbb"), CodePiece(b"\xcc")
    around = ObjectReferences({"a": 2, "b": 2, "c": 1}, {"a": same, "b": same, "c": other}, "own", b"\xee")
    items = [Item(ItemKind.DATA_OFFSET, name="a"), Item(ItemKind.DATA_OFFSET, name="b")]
    layout = laid_out(*items, Item(ItemKind.DATA_SIZE, name="own"), around=around)
    assert layout.code.hex() == "60076007600a" + "fe" + "aabb" + "ee"
    assert layout.places == {"a": (7, 2), "b": (7, 2), "c": (-1, 1), "own": (0, 10)}


def test_places_to_be_filled_in_are_told() -> None:
    inner = CodePiece(bytes(30), (("lib", (4,)),))
    around = ObjectReferences({"sub": 30}, {"sub": inner}, "own", immutables={"x": [3, 40]})
    items = [Item(ItemKind.IMMUTABLE, name="y"), Item(ItemKind.LIBRARY, name="lib")]
    items += [Item(ItemKind.DATA_OFFSET, name="sub"), Item(ItemKind.ASSIGN_IMMUTABLE, name="x")]
    layout = laid_out(*items, around=around)
    assert layout.immutables == {"y": [1]}
    start = 33 + 21 + 2 + 10 + 1
    assert layout.libraries == {"lib": [34, start + 4]}
    assert layout.code[56:66].hex() == "8181" + "60030152" + "60280152"


def test_before_shanghai_nothing_is_pushed_without_data() -> None:
    around = ObjectReferences(immutables={"x": [0]})
    assert assemble([Item(ItemKind.ASSIGN_IMMUTABLE, name="x")], Fork.PARIS, around).code.hex() == "60000152"


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([reference(4)], "LABEL_REFERENCE 4 names a label that is not declared"),
        ([label(2), label(2)], "LABEL 2 is declared twice"),
        ([Item(ItemKind.DATA_SIZE, name="x")], "DATA_SIZE x names nothing that is there"),
        (
            [reference(0, width=1), raw(bytes(300)), label(0)],
            "LABEL_REFERENCE 0 is at 302, which does not fit PUSH1",
        ),
    ],
)
def test_what_cannot_be_laid_out_is_named(items: list[Item], message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        laid_out(*items)
    assert str(caught.value) == message
