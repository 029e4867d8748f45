"""Arguments as typed in a shell, read as the ABI's types say: `--sig 'transfer(address,uint256)' --args 0x… 5`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from fusevm.abi.codec import counted
from fusevm.abi.records import Values
from fusevm.abi.types import Array, Parameter, Scalar, Tuple, Type
from fusevm.cli.inputs import BadInput, parse_json
from fusevm.values import shown as quoted

_NUMBER = re.compile("u?int")
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}
_TOKEN = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|[\[\]{}]|\s+|[^\s'"\[\]{}]+""")


def words_of(text: str, what: str) -> list[str]:
    """The words of a call in one argument, as a shell splits them; lists and structs are JSON and stay as they are.

    >>> words_of('airdrop ["0xa1", "b c"] 5 "two words"', "--call")
    ['airdrop', '["0xa1", "b c"]', '5', 'two words']
    """
    words, word, depth, at = list[str](), "", 0, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise BadInput(f"{what}: {quoted(text)}: the quotation mark at position {at} is not closed")
        at = token.end()
        depth += _BRACKETS.get(token[0], 0)
        if depth > 0 or word[:1] in ("[", "{") or token[0] in _BRACKETS or not token[0].isspace():
            word += token[0]
        if depth <= 0 and (token[0].isspace() or at == len(text)) and word:
            words.append(word.strip())
            word = ""
    if depth:
        raise BadInput(f"{what}: {quoted(text)}: brackets that do not match")
    try:
        return [each if each[0] in "[{" else "".join(shlex.split(each)) for each in words]
    except ValueError as error:
        raise BadInput(f"{what}: {quoted(text)}: {str(error).lower()}") from None


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
    items = parse_json(text, what) if text.lstrip()[:1] in ("[", "{") else None
    if not isinstance(items, list | dict):
        raise BadInput(f"{what}: {quoted(text)} is not a JSON list")
    return _nested(type_, items, what)


def _nested(type_: Type, item: Any, what: str) -> Any:
    if isinstance(type_, Scalar):
        return _scalar(type_, str(item).lower() if isinstance(item, bool) else str(item), what)
    if isinstance(type_, Tuple) and isinstance(item, dict):
        kinds = {each.name: each.type for each in type_.members}
        return {name: _nested(kinds[name], each, what) if name in kinds else each for name, each in item.items()}
    if not isinstance(item, list):
        raise BadInput(f"{what}: {quoted(item)} is not a list")
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
        raise BadInput(f"{what}: {quoted(text)} is not a value of this type") from None
    return text


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    return str(value)
