"""The fields of transactions, headers and withdrawals as RLP has them: each kind reads strictly and writes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from fusevm.chain.rlp import Item, natural
from fusevm.values import AccessList


class Fault(Enum):
    """What can be wrong with one field."""

    NOT_BYTES = "a list where bytes must stand"
    NOT_A_LIST = "bytes where a list must stand"
    LEADING_ZEROS = "a number with leading zeros"
    OVERFLOW = "a number that is too large"
    TOO_SHORT = "too few bytes"
    TOO_LONG = "too many bytes"
    TOO_FEW = "too few items"
    TOO_MANY = "too many items"


class BadField(ValueError):
    """An invalid field, by name, so that the reader of the structure can report it in context."""

    def __init__(self, name: str, fault: Fault, detail: str = "") -> None:
        super().__init__(name, fault, detail)
        self.name = name
        self.fault = fault
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.name}: {self.fault.value}" + (f" ({self.detail})" if self.detail else "")


class FieldKind(NamedTuple):
    """How a field is read from RLP and written to it."""

    read: Callable[[Item, str], Any]
    write: Callable[[Any], Item]


class Field(NamedTuple):
    name: str
    kind: FieldKind


def number(bits: int) -> FieldKind:
    return FieldKind(lambda item, name: to_natural(item, name, bits), natural)


def sized(size: int) -> FieldKind:
    return FieldKind(lambda item, name: to_sized(item, name, size), bytes)


def as_bytes(item: Item, name: str) -> bytes:
    if not isinstance(item, bytes):
        raise BadField(name, Fault.NOT_BYTES)
    return item


def as_list(item: Item, name: str, size: int | None = None) -> Sequence[Item]:
    if isinstance(item, bytes):
        raise BadField(name, Fault.NOT_A_LIST)
    if size is not None and len(item) != size:
        raise BadField(name, Fault.TOO_FEW if len(item) < size else Fault.TOO_MANY, f"{len(item)} of {size}")
    return item


def to_natural(item: Item, name: str, bits: int) -> int:
    raw = as_bytes(item, name)
    if raw[:1] == b"\0":
        raise BadField(name, Fault.LEADING_ZEROS)
    if 8 * len(raw) > bits:
        raise BadField(name, Fault.OVERFLOW, f"{len(raw)} bytes of at most {bits // 8}")
    return int.from_bytes(raw, "big")


def to_sized(item: Item, name: str, size: int) -> bytes:
    raw = as_bytes(item, name)
    if len(raw) != size:
        raise BadField(name, Fault.TOO_SHORT if len(raw) < size else Fault.TOO_LONG, f"{len(raw)} bytes of {size}")
    return raw


def _to_recipient(item: Item, name: str) -> bytes | None:
    return to_sized(item, name, 20) if as_bytes(item, name) else None


def _to_access_list(item: Item, name: str) -> AccessList:
    return tuple(_to_access(each, f"{name}[{at}]") for at, each in enumerate(as_list(item, name)))


def _to_access(item: Item, name: str) -> tuple[bytes, tuple[int, ...]]:
    address, keys = as_list(item, name, 2)
    slots = (to_sized(key, f"{name}.key", 32) for key in as_list(keys, f"{name}.keys"))
    return to_sized(address, f"{name}.address", 20), tuple(int.from_bytes(slot, "big") for slot in slots)


def _access_list_item(listed: AccessList) -> Item:
    return [[address, [key.to_bytes(32, "big") for key in keys]] for address, keys in listed]


def _to_hashes(item: Item, name: str) -> tuple[bytes, ...]:
    return tuple(to_sized(each, f"{name}[{at}]", 32) for at, each in enumerate(as_list(item, name)))


UINT8, UINT64, UINT256 = number(8), number(64), number(256)
ADDRESS, HASH, BLOOM, SEAL = sized(20), sized(32), sized(256), sized(8)
BYTES = FieldKind(as_bytes, bytes)
RECIPIENT = FieldKind(_to_recipient, lambda to: b"" if to is None else to)
ACCESS_LIST = FieldKind(_to_access_list, _access_list_item)
HASHES = FieldKind(_to_hashes, list)


def read_fields(layout: Sequence[Field], item: Item, name: str) -> list[Any]:
    """The values of a list that has exactly these fields."""
    items = as_list(item, name, len(layout))
    return [field.kind.read(each, field.name) for field, each in zip(layout, items, strict=True)]


def write_fields(layout: Sequence[Field], source: Any) -> list[Item]:
    """The fields of an object with attributes of these names."""
    return [field.kind.write(getattr(source, field.name)) for field in layout]
