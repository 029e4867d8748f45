"""EIP-712: the hash of typed structured data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fusevm.evm.keccak import keccak256
from fusevm.values import BadValue, shown, to_address, to_bytes

DOMAIN = "EIP712Domain"
DEEPEST = 64
_ARRAY = re.compile(r"(.+)\[(\d*)\]")
_NUMBER = re.compile(r"(u?)int(\d*)")
_BYTES = re.compile(r"bytes([1-9]\d?)")

Types = Mapping[str, Any]


def typed_hash(document: Any) -> bytes:
    """What is signed: of an object with `types`, `primaryType`, `domain` and `message`."""
    if not isinstance(document, Mapping):
        raise BadValue(f"typed data: expected an object, got {shown(document)}")
    types, primary = document.get("types"), document.get("primaryType")
    if not isinstance(types, Mapping) or not isinstance(primary, str):
        raise BadValue("typed data: no 'types' or no 'primaryType'")
    domain = struct_hash(DOMAIN, document.get("domain") or {}, {DOMAIN: [], **types})
    if primary == DOMAIN:
        return keccak256(b"\x19\x01" + domain)
    return keccak256(b"\x19\x01" + domain + struct_hash(primary, document.get("message"), types))


def struct_hash(name: str, value: Any, types: Types, depth: int = 0) -> bytes:
    if not isinstance(value, Mapping):
        raise BadValue(f"typed data: {name}: expected an object, got {shown(value)}")
    encoded = keccak256(encoded_type(name, types).encode())
    for member, kind in _members(name, types):
        encoded += _encoded(kind, value.get(member), types, f"{name}.{member}", depth + 1)
    return keccak256(encoded)


def encoded_type(name: str, types: Types) -> str:
    """`Mail(Person from,string contents)Person(string name)`: the type, then those it uses, sorted.

    >>> encoded_type("A", {"A": [{"name": "b", "type": "B[]"}], "B": [{"name": "c", "type": "uint256"}]})
    'A(B[] b)B(uint256 c)'
    """
    used: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in used:
            used.add(each)
            waiting += [found for _, kind in _members(each, types) if (found := kind.partition("[")[0]) in types]
    ordered = [name, *sorted(used - {name})]
    return "".join(
        f"{each}({','.join(f'{kind} {member}' for member, kind in _members(each, types))})" for each in ordered
    )


def _members(name: str, types: Types) -> list[tuple[str, str]]:
    listed = types.get(name)
    if not isinstance(listed, list):
        raise BadValue(f"typed data: no type {shown(name)}")
    for each in listed:
        if not isinstance(each, Mapping) or not all(isinstance(each.get(part), str) for part in ("name", "type")):
            raise BadValue(f"typed data: a member of {name} has no 'name' or no 'type'")
    return [(each["name"], each["type"]) for each in listed]


def _encoded(kind: str, value: Any, types: Types, what: str, depth: int) -> bytes:
    """A value in 32 bytes."""
    if depth > DEEPEST:
        raise BadValue(f"typed data: {what}: nested more than {DEEPEST} deep")
    array = _ARRAY.fullmatch(kind)
    if array is not None:
        if not isinstance(value, list) or (array[2] and len(value) != int(array[2])):
            raise BadValue(f"typed data: {what}: expected a list of type {kind}")
        parts = (_encoded(array[1], each, types, f"{what}[{at}]", depth + 1) for at, each in enumerate(value))
        return keccak256(b"".join(parts))
    if kind in types:
        return bytes(32) if value is None else struct_hash(kind, value, types, depth)
    if kind == "string":
        if not isinstance(value, str):
            raise BadValue(f"typed data: {what}: expected text, got {shown(value)}")
        return keccak256(value.encode("utf-8", "surrogatepass"))
    if kind == "bytes":
        return keccak256(to_bytes(value, what))
    return _atom(kind, value, what)


def _atom(kind: str, value: Any, what: str) -> bytes:
    if kind == "bool":
        return int(value in (True, "true")).to_bytes(32, "big")
    if kind == "address":
        return to_address(value, what).rjust(32, b"\0")
    fixed, number = _BYTES.fullmatch(kind), _NUMBER.fullmatch(kind)
    if fixed is not None and int(fixed[1]) <= 32:
        raw = to_bytes(value, what)
        if len(raw) > int(fixed[1]):
            raise BadValue(f"typed data: {what}: {len(raw)} bytes, not {fixed[1]}")
        return raw.ljust(32, b"\0")
    if number is None:
        raise BadValue(f"typed data: {what}: no type {shown(kind)}")
    bits, found = int(number[2] or 256), _integer(value, what)
    low, high = (0, 1 << bits) if number[1] else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= found < high:
        raise BadValue(f"typed data: {what}: {shown(found)} is not a {kind}")
    return (found % (1 << 256)).to_bytes(32, "big")


def _integer(value: Any, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(value, 0) if isinstance(value, str) and len(value) < 100 else int(None)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise BadValue(f"typed data: {what}: {shown(value)} is not a number") from None
