"""The types of the ABI: what users may give for a value of each, and what its decoded form is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from fusevm.abi.records import Values
from fusevm.chain.addresses import Address
from fusevm.values import BadValue, to_address, to_bytes, to_flag, to_list, to_number
from fusevm.values import shown as quoted

ALIASES = {"uint": "uint256", "int": "int256", "byte": "bytes1", "function": "bytes24"}
ALIASES |= {"fixed": "fixed128x18", "ufixed": "ufixed128x18"}
_INTEGER = re.compile(r"(u?)int([1-9]\d{0,2})")
_FIXED = re.compile(r"u?fixed([1-9]\d{0,2})x(\d{1,2})")
_BYTES = re.compile(r"bytes([1-9]\d?)")


class BadAbi(BadValue):
    """An ABI, a signature or an artifact that cannot be read; one line says what and where.

    >>> try:
    ...     scalar("uint7")
    ... except BadAbi as error:
    ...     print(error)
    'uint7' is not a type of the ABI (contracts are address, enums are uint8)
    """


class UnknownType(BadAbi):
    """The name of a type that the ABI does not have."""


@dataclass(frozen=True, slots=True)
class Scalar:
    name: str  # canonical

    def read(self, value: Any, what: str) -> Any:
        """The form that eth-abi encodes. Raises BadValue, naming the parameter, where the value is not of this type."""
        if self.name == "address":
            return to_address(value, what)
        if self.name == "bool":
            return to_flag(value, what)
        if self.name == "string":
            return _text(value, what)
        if self.name == "bytes":
            return to_bytes(value, what)
        if (found := _INTEGER.fullmatch(self.name)) is not None:
            return _integer(value, int(found[2]), not found[1], what)
        if (found := _BYTES.fullmatch(self.name)) is not None:
            return _fixed_bytes(value, int(found[1]), what)
        return _decimal(value, what)

    def made(self, value: Any) -> Any:
        """The decoded form, from what eth-abi decodes."""
        return Address(value) if self.name == "address" else value

    @property
    def dynamic(self) -> bool:
        return self.name in ("bytes", "string")


@dataclass(frozen=True, slots=True)
class Array:
    item: Type
    size: int | None  # None: as many as there are

    @property
    def name(self) -> str:
        return f"{self.item.name}[{'' if self.size is None else self.size}]"

    def read(self, value: Any, what: str) -> Any:
        items = to_list(value, what)
        if self.size is not None and len(items) != self.size:
            raise BadValue(f"{what}: expected {self.size} items, got {len(items)}")
        return [self.item.read(each, f"{what}[{at}]") for at, each in enumerate(items)]

    def made(self, value: Any) -> Any:
        return [self.item.made(each) for each in value]

    @property
    def dynamic(self) -> bool:
        return self.size is None or self.item.dynamic


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Type
    indexed: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, (self.type.name, "indexed" if self.indexed else "", self.name)))


@dataclass(frozen=True, slots=True)
class Tuple:
    members: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        return f"({','.join(each.type.name for each in self.members)})"

    def read(self, value: Any, what: str) -> Any:
        """A mapping by the members' names, or a sequence in their order."""
        if isinstance(value, Mapping):
            value = self._ordered(value, what)
        items = to_list(value, what)
        if len(items) != len(self.members):
            raise BadValue(f"{what}: expected {len(self.members)} members, got {len(items)}")
        return tuple(
            member.type.read(each, f"{what}.{member.name or at}")
            for at, (member, each) in enumerate(zip(self.members, items, strict=True))
        )

    def _ordered(self, value: Mapping[Any, Any], what: str) -> list[Any]:
        names = [each.name for each in self.members]
        for name in names:
            if name not in value:
                raise BadValue(f"{what}: no {name!r}; expected {', '.join(names)}")
        for name in value:
            if name not in names:
                raise BadValue(f"{what}: {quoted(name)} is not a member; expected {', '.join(names)}")
        return [value[name] for name in names]

    def made(self, value: Any) -> Any:
        return named(self.members, value)

    @property
    def dynamic(self) -> bool:
        return any(each.type.dynamic for each in self.members)


Type: TypeAlias = Scalar | Array | Tuple


def named(parameters: tuple[Parameter, ...], values: Any, title: str = "") -> Values:
    made = (each.type.made(value) for each, value in zip(parameters, values, strict=True))
    return Values(made, (each.name for each in parameters), title)


def scalar(text: str) -> Scalar:
    """The type of this name, which is neither a tuple nor an array."""
    name = ALIASES.get(text, text)
    integer, fixed, sized = _INTEGER.fullmatch(name), _FIXED.fullmatch(name), _BYTES.fullmatch(name)
    known = (
        name in ("address", "bool", "string", "bytes")
        or (integer is not None and int(integer[2]) % 8 == 0 and int(integer[2]) <= 256)
        or (fixed is not None and int(fixed[1]) % 8 == 0 and int(fixed[1]) <= 256 and 0 < int(fixed[2]) <= 80)
        or (sized is not None and int(sized[1]) <= 32)
    )
    if not known:
        raise UnknownType(f"{quoted(text)} is not a type of the ABI (contracts are address, enums are uint8)")
    return Scalar(name)


def _integer(value: Any, bits: int, signed: bool, what: str) -> int:
    kind = f"{'' if signed else 'u'}int{bits}"
    negative = isinstance(value, int) and not isinstance(value, bool) and value < 0
    number = value if negative else to_number(value, what, bits=1 << 16)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not least <= number <= most:
        raise BadValue(f"{what}: {quoted(number)} does not fit {kind}")
    return int(number)


def _fixed_bytes(value: Any, size: int, what: str) -> bytes:
    raw = to_bytes(value, what)
    if len(raw) != size:
        raise BadValue(f"{what}: expected {size} bytes, got {len(raw)}")
    return raw


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise BadValue(f"{what}: expected text, got {type(value).__name__}")
    return value


def _decimal(value: Any, what: str) -> Decimal:
    if isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
        return Decimal(value)
    raise BadValue(f"{what}: expected a Decimal or an int, got {type(value).__name__}")
