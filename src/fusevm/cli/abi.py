"""Arguments as typed in a shell, read as the ABI's types say: `--sig 'transfer(address,uint256)' --args 0x… 5`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from fusevm.abi.codec import counted
from fusevm.abi.records import Values
from fusevm.abi.types import Array, Parameter, Scalar, Tuple, Type
from fusevm.cli.inputs import BadInput

_NUMBER = re.compile("u?int")


def arguments_from(texts: Sequence[str], parameters: Sequence[Parameter], what: str) -> list[Any]:
    """The values that the words mean: numbers in decimal or hex, lists and structs as JSON."""
    if len(texts) != len(parameters):
        raise BadInput(f"{what} takes {counted(len(parameters))}, {len(texts)} given")
    return [
        _value(each.type, text, f"argument {at} ({each.type.name})")
        for at, (each, text) in enumerate(zip(parameters, texts, strict=True), 1)
    ]


def shown_values(value: Any) -> list[str]:
    """What a function returned, one text for each value."""
    listed = value if isinstance(value, Values) else [] if value is None else [value]
    return [_shown(each) for each in listed]


def _value(type_: Type, text: str, what: str) -> Any:
    if isinstance(type_, Scalar):
        return _scalar(type_, text, what)
    try:
        items = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        items = None
    if not isinstance(items, list | dict):
        raise BadInput(f"{what}: {text!r} is not a JSON list")
    return _nested(type_, items, what)


def _nested(type_: Type, item: Any, what: str) -> Any:
    if isinstance(type_, Scalar):
        return _scalar(type_, json.dumps(item) if isinstance(item, bool) else str(item), what)
    if isinstance(type_, Tuple) and isinstance(item, dict):
        kinds = {each.name: each.type for each in type_.members}
        return {name: _nested(kinds[name], each, what) if name in kinds else each for name, each in item.items()}
    if not isinstance(item, list):
        raise BadInput(f"{what}: {item!r} is not a list")
    if isinstance(type_, Array):
        return [_nested(type_.item, each, what) for each in item]
    if len(item) != len(type_.members):
        raise BadInput(f"{what}: expected {len(type_.members)} members, got {len(item)}")
    return [_nested(member.type, each, what) for member, each in zip(type_.members, item, strict=True)]


def _scalar(type_: Scalar, text: str, what: str) -> Any:
    """What is not a number or a truth value is read by the type itself."""
    try:
        if _NUMBER.match(type_.name):
            return int(text, 0)
        if type_.name == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except (ValueError, KeyError):
        raise BadInput(f"{what}: {text!r} is not a value of this type") from None
    return text


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    return str(value)
