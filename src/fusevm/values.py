"""Bytes, addresses, numbers and lists of them as people write them, checked before they reach the machine.

Every reader returns the one form the machine works with, or raises `BadValue`: one line that names the parameter.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, SupportsIndex, TypeAlias

Number: TypeAlias = SupportsIndex | str
Word: TypeAlias = SupportsIndex | bytes | bytearray | memoryview | str
BytesLike: TypeAlias = bytes | bytearray | memoryview | str
AddressLike: TypeAlias = bytes | bytearray | memoryview | str | SupportsIndex
AccessList: TypeAlias = tuple[tuple[bytes, tuple[int, ...]], ...]
AccessListLike: TypeAlias = Iterable[tuple[AddressLike, Iterable[Word]] | Mapping[str, Any]]

WORD_BITS = 256
ADDRESS_SIZE = 20
WORD_SIZE = 32
_ACCESS_KEYS = ("address", "storageKeys")
_NOT_HEX = re.compile("[^0-9a-fA-F]")
_LONGEST = 1e6  # seconds
_SHOWN = 80  # characters of a wrong value that a message repeats


class BadValue(ValueError):
    """One line naming what cannot be read, and why.

    >>> try:
    ...     to_address("0x12")
    ... except BadValue as error:
    ...     print(error)
    address: expected 20 bytes, got 1
    """


# -- single values


def to_bytes(value: BytesLike, what: str = "data") -> bytes:
    """Bytes as they are, or the bytes that hex text spells, with or without 0x."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _raw(value, what)
    if not isinstance(value, str):
        raise BadValue(f"{what}: expected bytes or hex text, got {_kind(value)}")
    text = value.strip()
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    wrong = _NOT_HEX.search(digits)
    if wrong is not None:
        raise BadValue(f"{what}: {wrong[0]!r} at position {wrong.start()} is not a hex digit")
    if len(digits) % 2:
        raise BadValue(f"{what}: an odd number of hex digits ({len(digits)})")
    return bytes.fromhex(digits)


def to_address(value: AddressLike, what: str = "address") -> bytes:
    """20 bytes, hex text of them, or a number below 2^160."""
    if isinstance(value, bytes) and len(value) == ADDRESS_SIZE:
        return value if type(value) is bytes else bytes(value)  # an `Address`, as deployments answer
    if type(value) is str:
        return _address_of(value, what)
    if isinstance(value, bytes | bytearray | memoryview | str):
        return _sized(value, ADDRESS_SIZE, what)
    number = _index(value)
    if number is None:
        raise BadValue(f"{what}: expected 20 bytes, hex text or an int, got {_kind(value)}")
    if number < 0 or number >> 8 * ADDRESS_SIZE:
        raise BadValue(f"{what}: {shown(number)} is not a 20-byte number")
    return number.to_bytes(ADDRESS_SIZE, "big")


@lru_cache(maxsize=4096)
def _address_of(text: str, what: str) -> bytes:
    """The same few addresses are written out again and again."""
    return _sized(text, ADDRESS_SIZE, what)


def to_number(value: Number, what: str, bits: int = WORD_BITS) -> int:
    """An int (or what `operator.index` takes; not a bool), or its hex text, as JSON-RPC gives it."""
    if type(value) is int and value >= 0 and not value >> bits:
        return value
    if isinstance(value, str):
        number = _hex_number(value, what)
    else:
        found = _index(value)
        if found is None:
            raise BadValue(f"{what}: expected an int or 0x hex text, got {_kind(value)}")
        number = found
    if number < 0 or number >> bits:
        raise BadValue(f"{what}: {shown(number)} is not a number of {bits} bits")
    return number


def to_word(value: Word, what: str) -> int:
    """As `to_number`, or up to 32 bytes that spell it, the most significant first."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return to_number(value, what)
    raw = _raw(value, what)
    if len(raw) > WORD_SIZE:
        raise BadValue(f"{what}: expected at most 32 bytes, got {len(raw)}")
    return int.from_bytes(raw, "big")


def to_hash(value: Word, what: str) -> bytes:
    """32 bytes, hex text of them, or a number below 2^256."""
    if type(value) is bytes and len(value) == WORD_SIZE:
        return value
    if isinstance(value, bytes | bytearray | memoryview | str):
        return _sized(value, WORD_SIZE, what)
    return to_number(value, what).to_bytes(WORD_SIZE, "big")


def to_flag(value: bool, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{what}: expected True or False, got {_kind(value)}")
    return value


def to_seconds(value: float | None, what: str) -> float | None:
    """A length of time; None for no limit. A million seconds is the most that counts: system calls take no more."""
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise BadValue(f"{what}: expected seconds or None, got {_kind(value)}")
    try:
        seconds = float(value)
    except (OverflowError, TypeError, ValueError):
        raise BadValue(f"{what}: {shown(value)} is not a number of seconds") from None
    if math.isnan(seconds) or seconds < 0:
        raise BadValue(f"{what}: {shown(value)} is not a number of seconds")
    return min(seconds, _LONGEST)


# -- lists


def to_list(value: Iterable[Any], what: str) -> list[Any]:
    """Any iterable, gone through once; text, bytes and mappings are iterable too, but never meant."""
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        raise BadValue(f"{what}: expected a list, got {_kind(value)}")
    try:
        items = iter(value)
    except TypeError:
        raise BadValue(f"{what}: expected a list, got {_kind(value)}") from None
    return list(items)


def to_hashes(value: Iterable[Word], what: str) -> tuple[bytes, ...]:
    return tuple(to_hash(each, f"{what}[{at}]") for at, each in enumerate(to_list(value, what)))


def to_access_list(value: AccessListLike, what: str = "access_list") -> AccessList:
    """EIP-2930: pairs of an address and its storage keys, or JSON-RPC's objects of `address` and `storageKeys`."""
    return tuple(_access(each, f"{what}[{at}]") for at, each in enumerate(to_list(value, what)))


def _access(entry: Any, what: str) -> tuple[bytes, tuple[int, ...]]:
    if isinstance(entry, Mapping):
        address, keys = fields_of(entry, _ACCESS_KEYS, what)
    elif isinstance(entry, tuple | list) and len(entry) == 2:
        address, keys = entry
    else:
        size = f" of {len(entry)}" if isinstance(entry, tuple | list) else ""
        raise BadValue(f"{what}: expected an address and its storage keys, got {_kind(entry)}{size}")
    listed = enumerate(to_list(keys, f"{what}.storageKeys"))
    return to_address(address, f"{what}.address"), tuple(to_word(k, f"{what}.storageKeys[{at}]") for at, k in listed)


def fields_of(entry: Mapping[Any, Any], names: tuple[str, ...], what: str) -> list[Any]:
    """The fields of a JSON object in this order: all of them, and no others."""
    for name in names:
        if name not in entry:
            raise BadValue(f"{what}: no {name!r}; expected {', '.join(names)}")
    for key in entry:
        if key not in names:
            raise BadValue(f"{what}: {shown(key)} is not a field; expected {', '.join(names)}")
    return [entry[name] for name in names]


def to_instance(value: Any, kind: type, what: str, *, optional: bool = False) -> Any:
    if isinstance(value, kind) or (optional and value is None):
        return value
    expected = f"{kind.__name__} or None" if optional else kind.__name__
    raise BadValue(f"{what}: expected {expected}, got {_kind(value)}")


# -- their parts


def _raw(value: bytes | bytearray | memoryview, what: str) -> bytes:
    try:
        return bytes(value)
    except ValueError:
        raise BadValue(f"{what}: a memoryview that has been released") from None


def _sized(value: BytesLike, size: int, what: str) -> bytes:
    raw = to_bytes(value, what)
    if len(raw) != size:
        raise BadValue(f"{what}: expected {size} bytes, got {len(raw)}")
    return raw


def _index(value: object) -> int | None:
    """The int that a value is; None for what is not one, which a bool is not."""
    if isinstance(value, bool):
        return None
    try:
        return int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        return None


def _hex_number(text: str, what: str) -> int:
    """Decimal text is refused: without 0x, 10 and 16 cannot be distinguished."""
    stripped = text.strip()
    digits = stripped[2:]
    if stripped[:2] not in ("0x", "0X") or not digits or _NOT_HEX.search(digits):
        raise BadValue(f"{what}: {shown(text)} is not a number; write an int or 0x hex text")
    return int(digits, 16)


def _kind(value: object) -> str:
    return type(value).__name__


def shown(value: object) -> str:
    """A value in a message: one line, and not a long one."""
    if isinstance(value, int) and value.bit_length() > 2 * WORD_BITS:
        return f"an int of {value.bit_length()} bits"
    if not isinstance(value, str | int | float):
        return f"a {_kind(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN + 20 else text[:_SHOWN] + "…"


def shown_path(path: str) -> str:
    """The name of a file in a message: as it is, where that is one line of text and not a long one."""
    return path if path.isprintable() and len(path) <= 2 * _SHOWN else shown(path)
