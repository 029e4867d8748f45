"""What lies where: the indices over stores answer as looking at every store would."""

from __future__ import annotations

from random import Random

import pytest

from fusevm.yul.analysis.contents import KnownHashes, KnownMemory, KnownStorage
from fusevm.yul.analysis.distances import KnowledgeBase, Offset
from fusevm.yul.analysis.ssa import ssa_values
from fusevm.yul.steps.store_index import MemoryIndex, StorageIndex, StoreOperation, number_of
from fusevm.yul.syntax.parser import parse_block

MASK = (1 << 256) - 1
NUMBERS = (0, 1, 31, 32, 33, 64, 96, 1 << 43, 1 << 44, (1 << 44) + 5, MASK - 31, MASK, 1 << 255)


# -- stores that are not read yet -------------------------------------------------------------------------------------


def distance(one: Offset | None, other: Offset | None) -> int | None:
    if one is None or other is None or one.base != other.base:
        return None
    return (one.distance - other.distance) & MASK


def ends_before(one: StoreOperation, other: StoreOperation) -> bool:
    start, length, limit = number_of(one.start), number_of(one.length), number_of(other.start)
    return start is not None and length is not None and limit is not None and start + length <= min(limit, MASK)


def unrelated(one: StoreOperation, other: StoreOperation) -> bool:
    """The two certainly have no byte in common."""
    lengths = number_of(one.length), number_of(other.length)
    if 0 in lengths or ends_before(one, other) or ends_before(other, one):
        return True
    if None in lengths or max(lengths) > 32:  # type: ignore[type-var]
        return False
    apart = distance(one.start, other.start)
    return apart is not None and 32 <= apart <= MASK + 1 - 32


def covered(store: StoreOperation, write: StoreOperation) -> bool:
    """The write certainly overwrites all of the store."""
    length, covering = number_of(store.length), number_of(write.length)
    if length == 0:
        return True
    if store.start is None or write.start is None or store.length is None or write.length is None:
        return False
    if length is None or covering is None:
        return (store.name, store.length_name) == (write.name, write.length_name) and store.length_name != ""
    if store.name == write.name:
        return length <= covering
    start, from_ = number_of(store.start), number_of(write.start)
    if start is None or from_ is None or from_ + covering > MASK:
        return False
    return from_ <= start and start + length <= from_ + covering


def random_offset(random: Random, bases: tuple[str | None, ...]) -> Offset | None:
    if random.randrange(8) == 0:
        return None
    value = random.choice(NUMBERS) if random.randrange(2) else random.randrange(200)
    return Offset(random.choice(bases), value & MASK)


def random_operation(random: Random, starts: dict[str, Offset | None]) -> StoreOperation:
    length = random.choice((1, 32, 32, 32, 0, 5, 33, 64, 200, 1 << 45, MASK))
    more = random.randrange(2)
    known, length_name = random.choice(
        ((Offset(None, length), ""), (Offset(None, 32), ""), (Offset("n", more), f"n{more}"), (None, ""))
    )
    name = random.choice(list(starts))
    return StoreOperation(starts[name], known, name, length_name)


@pytest.mark.parametrize("seed", range(40))
def test_the_memory_index_finds_what_looking_at_every_store_finds(seed: int) -> None:
    random = Random(seed)
    starts = {f"v{number}": random_offset(random, (None, None, "p", "q")) for number in range(40)}
    stores = [random_operation(random, starts) for _ in range(60)]
    index = MemoryIndex()
    for number, store in enumerate(stores):
        index.add(1 << number, store)
    for _ in range(60):
        access, active = random_operation(random, starts), random.getrandbits(60)
        touched, overwritten = index.touched(active, access), index.covered(active, access)
        for number, store in enumerate(stores):
            is_active = bool(active >> number & 1)
            assert bool(touched >> number & 1) == (is_active and not unrelated(store, access)), (store, access)
            assert bool(overwritten >> number & 1) == (is_active and covered(store, access)), (store, access)


@pytest.mark.parametrize("seed", range(10))
def test_the_storage_index_finds_what_looking_at_every_store_finds(seed: int) -> None:
    random = Random(seed)
    variables = {f"v{number}": random_offset(random, (None, "p", "q")) for number in range(30)}
    slots = [StoreOperation(start, None, name) for name, start in variables.items()]
    stores = random.choices(slots, k=60)
    index = StorageIndex()
    for number, store in enumerate(stores):
        index.add(1 << number, store)
    for access in slots:
        active = random.getrandbits(60)
        for number, store in enumerate(stores):
            is_active = bool(active >> number & 1)
            apart = distance(store.start, access.start)
            touches, covers = apart is None or apart == 0, access.start is not None and store.name == access.name
            assert bool(index.touched(active, access) >> number & 1) == (is_active and touches)
            assert bool(index.covered(active, access) >> number & 1) == (is_active and covers)


# -- what is known to lie somewhere -----------------------------------------------------------------------------------

PLACES = {
    **{f"a{i}": Offset(None, 16 * i) for i in range(8)},
    **{f"p{i}": Offset("p", (16 * i - 32) & MASK) for i in range(8)},
    **{f"u{i}": Offset(f"u{i}", 0) for i in range(3)},
}


class PlainTable:
    """The same by looking at every entry."""

    def __init__(self, is_memory: bool) -> None:
        self.is_memory = is_memory
        self.values: dict[str, str] = {}
        self.before: list[dict[str, str]] = []

    def store(self, place: str, value: str) -> None:
        self.values = {k: v for k, v in self.values.items() if self.stays(place, k, v == value)} | {place: value}

    def stays(self, place: str, other: str, is_same_value: bool) -> bool:
        apart = distance(PLACES[place], PLACES[other])
        if self.is_memory:
            return apart is not None and 32 <= apart <= MASK + 1 - 32
        return is_same_value or (apart is not None and apart != 0)

    def forget(self, names: set[str]) -> None:
        self.values = {k: v for k, v in self.values.items() if k not in names and v not in names}

    def join(self) -> None:
        before = self.before.pop()
        self.values = {k: v for k, v in self.values.items() if before.get(k) == v}


@pytest.mark.parametrize("is_memory", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_known_places_are_what_looking_at_every_entry_leaves(seed: int, is_memory: bool) -> None:
    random = Random(seed)
    known = (KnownMemory if is_memory else KnownStorage)(PLACES.__getitem__)
    plain = PlainTable(is_memory)
    for _ in range(300):
        place, value = random.choice(list(PLACES)), f"v{random.randrange(4)}"
        match random.randrange(12):
            case 0:
                names = {random.choice([place, value])}
                known.forget(names)
                plain.forget(names)
            case 1 if random.randrange(4) == 0:
                known.clear()
                plain.values = {}
            case 2:
                known.begin_branch()
                plain.before.append(dict(plain.values))
            case 3 if plain.before:
                known.join()
                plain.join()
            case 4 | 5:
                known.note(place, value)
                plain.values[place] = value
            case _:
                known.store(place, value)
                plain.store(place, value)
        assert {each: known.get(each) for each in PLACES if known.get(each)} == plain.values


def test_hashes_are_forgotten_with_any_variable_they_mention() -> None:
    for name in ("start", "length", "hash"):
        hashes = KnownHashes()
        hashes.note(("start", "length"), "hash")
        hashes.forget({name})
        assert hashes.get(("start", "length")) is None


def test_only_offsets_that_depend_on_a_variable_are_forgotten_with_it() -> None:
    block = parse_block("{ let a := gas() let b := add(a, 1) let c := add(b, 1) let d := 7 }")
    values = ssa_values(block)
    knowledge = KnowledgeBase(values)
    assert [knowledge.offset(name) for name in "cd"] == [Offset("a", 2), Offset(None, 7)]
    del values["b"]
    assert sorted(knowledge.forget(["b"])) == ["b", "c"]
    assert knowledge.offset("c") == Offset("b", 1)
