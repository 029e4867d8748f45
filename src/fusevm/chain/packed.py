"""Many calls as people write them, checked and packed: their data in one piece, what they have in common once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate, islice
from pickle import PickleBuffer
from typing import Any, NamedTuple, Protocol

from fusevm.chain.environment import Block
from fusevm.values import (
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    Word,
    shown,
    to_address,
    to_bytes,
    to_number,
    to_word,
)

GAS_BITS = 64
Data = bytes | memoryview  # one that can be written to: native code is given its address
Place = Callable[[int], memoryview | None]  # memory for so many bytes of data, where there is some
Slots = tuple[tuple[bytes, int, int], ...]  # address, key, value
Reads = tuple[tuple[bytes, int], ...]  # address, key
ReadsLike = Iterable[tuple[AddressLike, Word]]


@dataclass(slots=True)
class Call:
    """One of many calls. What is not given is as it is for all of them.

    `storage` has slots by address that have other values for this call alone, `block` fields of the block.

    >>> Call(to="0x" + "c0" * 20, data="0x01", storage={"0x" + "c0" * 20: {0: 5}}, block={"timestamp": 7}).data
    '0x01'
    """

    to: AddressLike | None = None
    data: BytesLike = b""
    caller: AddressLike | None = None
    value: Number | None = None
    gas: Number | None = None
    storage: Mapping[AddressLike, Mapping[Word, Word]] = field(default_factory=dict)
    block: Mapping[str, Any] = field(default_factory=dict)


_BLOCK_FIELDS = [each.name for each in fields(Block) if each.init]
_NAMES = frozenset(each.name for each in fields(Call))
CallLike = BytesLike | tuple[AddressLike, BytesLike] | Mapping[str, Any] | Call


class BadCall(BadValue):
    """A call that cannot be read; the message names its number.

    >>> from fusevm import EVM
    >>> EVM().simulate_many([b"", "0xzz"], "0x" + "c0" * 20)
    Traceback (most recent call last):
    fusevm.chain.packed.BadCall: call 1: data: 'z' at position 0 is not a hex digit
    """


class CallKind(NamedTuple):
    """What many calls have in common."""

    to: bytes
    caller: bytes
    gas: int


class Special(NamedTuple):
    """What a call has that others do not."""

    value: int = 0
    slots: Slots = ()
    block: tuple[tuple[str, Any], ...] = ()


@dataclass
class PackedCalls:
    """Calls by number: data, of which kind, and what is special."""

    data: Data  # of all of them, one after another
    sizes: array[int] | int  # bytes, of each or of all
    kinds: list[CallKind]
    kind_of: array[int] | None  # by number; None where all are of the first
    special: dict[int, Special]
    count: int
    reads: Reads = ()  # slots that are read after each call

    @cached_property
    def starts(self) -> Sequence[int]:
        """Where the data of each begins, and where the last ends."""
        size = self.sizes
        if isinstance(size, int):
            return range(0, (self.count + 1) * size, size) if size else array("Q", [0]) * (self.count + 1)
        return array("Q", accumulate(size, initial=0))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """The data is a separate buffer, which is sent without a copy (pickle's protocol 5)."""
        data = PickleBuffer(self.data) if protocol >= 5 else bytes(self.data)
        return _received, (data, self.sizes, self.kinds, self.kind_of, self.special, self.count, self.reads)

    def data_of(self, number: int) -> bytes:
        return bytes(self.data[self.starts[number] : self.starts[number + 1]])

    def part(self, first: int, last: int) -> PackedCalls:
        """The calls from one number to before another."""
        return PackedCalls(
            self.data[self.starts[first] : self.starts[last]],
            self.sizes if isinstance(self.sizes, int) else self.sizes[first:last],
            self.kinds,
            None if self.kind_of is None else self.kind_of[first:last],
            {number - first: each for number, each in self.special.items() if first <= number < last},
            last - first,
            self.reads,
        )

    def kind(self, number: int) -> CallKind:
        return self.kinds[0 if self.kind_of is None else self.kind_of[number]]


def _received(data: Any, *rest: Any) -> PackedCalls:
    """Calls that came from elsewhere. Their data may be a view of memory that is shared; it is not copied."""
    is_seen = isinstance(data, memoryview) and not data.readonly
    return PackedCalls(data if is_seen else bytes(data), *rest)


class Common(NamedTuple):
    """What all calls have unless they say otherwise."""

    to: bytes | None
    caller: bytes
    value: int
    gas: int
    reads: Reads = ()

    @staticmethod
    def read(to: AddressLike | None, caller: AddressLike, value: Number, gas: Number, reads: ReadsLike = ()) -> Common:
        return Common(
            None if to is None else to_address(to, "to"),
            to_address(caller, "caller"),
            to_number(value, "value"),
            to_number(gas, "gas", bits=GAS_BITS),
            _reads(reads),
        )


def _reads(given: ReadsLike) -> Reads:
    try:
        pairs = [(address, key) for address, key in given]
    except (TypeError, ValueError):
        raise BadValue("reads: expected pairs of an address and a slot, such as [(address, 0)]") from None
    return tuple((to_address(address, "reads"), to_word(key, "reads")) for address, key in pairs)


NOTHING_SPECIAL = Special()


class Pieces:
    """Calls that are packed as many at a time as are asked for; they may be a matrix of bytes, data row by row."""

    def __init__(self, calls: Iterable[CallLike] | PackedCalls, common: Common) -> None:
        self._common = common
        self._matrix = _matrix(calls)
        self.taken = 0  # calls
        self.total = calls.count if isinstance(calls, PackedCalls) else len(calls) if isinstance(calls, Sized) else None
        self._rest: Iterator[CallLike] = iter(())
        self._packed: PackedCalls | None = None
        self._list: list[Any] | None = None
        if isinstance(calls, PackedCalls):
            self._packed = calls
        elif type(calls) is list:
            self._list = calls
        elif isinstance(calls, str | bytes | bytearray | Mapping | Call):
            raise BadValue(f"calls: expected a list of calls, got one {type(calls).__name__}")
        elif self._matrix is None:
            try:
                self._rest = iter(calls)
            except TypeError:
                raise BadValue(f"calls: expected a list of calls, got {type(calls).__name__}") from None

    def take(self, count: int, place: Place | None = None) -> PackedCalls | None:
        """The next calls, up to a maximum; None if there are no more. Their data may be where `place` says."""
        first = self.taken
        if self._packed is not None:
            whole = self._packed
            found = whole if not first and count >= whole.count else whole.part(first, min(first + count, whole.count))
        elif self._matrix is not None:
            found = _rows(self._matrix, first, count, self._common)
        elif self._list is not None:
            found = _items(self._list, first, count, self._common, place)
        else:
            found = packed(tuple(islice(self._rest, count)), self._common, first)
        self.taken += found.count
        if self._common.reads and not found.reads:
            found = replace(found, reads=self._common.reads)
        return found if found.count else None


Joined = tuple[Data, "array[int] | int"]  # bytes one after another, and how many each has, or all
MANY = 1 << 8  # calls: fewer are joined sooner than native code is called


class NativeJoiner(Protocol):
    """Joins the data of many calls: `native/emit/packing.py`."""

    def join(self, pieces: tuple[Any, ...], /) -> Joined | None:
        """None where not all of them are bytes."""
        ...

    def join_alike(self, calls: list[Any], first: int, count: int, place: Place | None, /) -> Joined | None:
        """So many items of a list; None where they are not bytes of one size."""
        ...


_native: list[NativeJoiner] = []  # at most one


def use_native(joiner: NativeJoiner) -> None:
    """From now on this joins the data of many calls: native code is loaded."""
    _native[:] = [joiner]


def _items(calls: list[Any], first: int, count: int, common: Common, place: Place | None) -> PackedCalls:
    count = max(0, min(count, len(calls) - first))
    if _native and count >= MANY and common.to is not None and not common.value:
        joined = _native[0].join_alike(calls, first, count, place)
        if joined is not None:
            return PackedCalls(*joined, [CallKind(common.to, common.caller, common.gas)], None, {}, count)
    return packed(tuple(calls[first : first + count]), common, first)


def packed(calls: tuple[Any, ...], common: Common, first: int = 0) -> PackedCalls:
    """These calls, which nobody else may have as this tuple; the first has that number."""
    if common.to is not None and not common.value:
        joined = _joined(calls)
        if joined is not None:
            return PackedCalls(*joined, [CallKind(common.to, common.caller, common.gas)], None, {}, len(calls))
    return _packed_one_by_one(calls, common, first)


def _joined(pieces: tuple[Any, ...]) -> Joined | None:
    """None where not all of them are bytes, or like bytes."""
    found = _native[0].join(pieces) if _native and len(pieces) >= MANY else None
    if found is None:
        try:
            found = b"".join(pieces), _sizes(pieces)
        except TypeError:
            return None
    return found


def _sizes(pieces: Sequence[bytes]) -> array[int] | int:
    lengths = set(map(len, pieces))
    return lengths.pop() if len(lengths) == 1 else array("Q", map(len, pieces))


def _packed_one_by_one(calls: tuple[Any, ...], common: Common, first: int) -> PackedCalls:
    numbers: dict[CallKind, int] = {}
    pieces, kind_of, specials = [], array("I"), {}
    for number, each in enumerate(calls):
        try:
            kind, data, special = _read(each, common)
        except BadValue as error:
            raise BadCall(f"call {first + number}: {error}") from None
        pieces.append(data)
        kind_of.append(numbers.setdefault(kind, len(numbers)))
        if special is not NOTHING_SPECIAL:
            specials[number] = special
    one = len(numbers) == 1
    return PackedCalls(b"".join(pieces), _sizes(pieces), list(numbers), None if one else kind_of, specials, len(pieces))


def _read(call: Any, common: Common) -> tuple[CallKind, bytes, Special]:
    if isinstance(call, Mapping):
        unknown = sorted(shown(name) for name in call if name not in _NAMES)
        if unknown:
            raise BadValue(f"{unknown[0]} is not a field of a call; known: {', '.join(sorted(_NAMES))}")
        call = Call(**call)
    if isinstance(call, Call):
        return _read_call(call, common)
    to: bytes | None = common.to
    data = call
    if isinstance(call, tuple | list):
        if len(call) != 2:
            raise BadValue(f"expected a target and data, got {len(call)} things")
        to, data = to_address(call[0], "to"), call[1]
    special = Special(common.value) if common.value else NOTHING_SPECIAL
    return CallKind(_target(to), common.caller, common.gas), to_bytes(data, "data"), special


def _read_call(call: Call, common: Common) -> tuple[CallKind, bytes, Special]:
    to = common.to if call.to is None else to_address(call.to, "to")
    caller = common.caller if call.caller is None else to_address(call.caller, "caller")
    gas = common.gas if call.gas is None else to_number(call.gas, "gas", bits=GAS_BITS)
    value = common.value if call.value is None else to_number(call.value, "value")
    special = NOTHING_SPECIAL
    if value or call.storage or call.block:
        special = Special(value, _slots(call.storage), _block_fields(call.block))
    return CallKind(_target(to), caller, gas), to_bytes(call.data, "data"), special


def _target(to: bytes | None) -> bytes:
    if to is None:
        raise BadValue("no target; give it, or one for all as to=")
    return to


def _slots(storage: Mapping[AddressLike, Mapping[Word, Word]]) -> Slots:
    if not isinstance(storage, Mapping) or not all(isinstance(slots, Mapping) for slots in storage.values()):
        raise BadValue("storage: expected slots by address, such as {address: {0: 5}}")
    return tuple(
        (to_address(address, "storage"), to_word(key, "key"), to_word(value, "value"))
        for address, slots in storage.items()
        for key, value in slots.items()
    )


def _block_fields(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if not given:
        return ()
    if not isinstance(given, Mapping):
        raise BadValue(f"block: expected fields by name, got {shown(given)}")
    for name in given:
        if name not in _BLOCK_FIELDS:
            raise BadValue(f"block: {shown(name)} is not a field; known: {', '.join(_BLOCK_FIELDS)}")
    trial = Block()
    for name, value in given.items():
        setattr(trial, name, value)  # checks it
    return tuple(given.items())


def _matrix(calls: Any) -> memoryview | None:
    """A matrix of bytes, if that is what the calls are: a NumPy array, say."""
    if isinstance(calls, bytes | bytearray | str | list | tuple | dict):
        return None
    try:
        view = memoryview(calls)
    except TypeError:
        return None
    if view.ndim != 2 or view.itemsize != 1:
        raise BadValue(f"calls: expected a matrix of bytes, got {view.ndim} dimensions of {view.itemsize} bytes each")
    return view


def _rows(matrix: memoryview, first: int, count: int, common: Common) -> PackedCalls:
    assert matrix.shape is not None
    rows, size = matrix.shape
    data = matrix[first : first + count].tobytes()
    kind, count = CallKind(_target(common.to), common.caller, common.gas), max(0, min(count, rows - first))
    special = dict.fromkeys(range(count), Special(common.value)) if common.value else {}
    return PackedCalls(data, size, [kind], None, special, count)
