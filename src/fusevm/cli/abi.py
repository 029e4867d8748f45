"""Calldata from a signature and arguments as typed in a shell: `transfer(address,uint256)` 0x… 5."""

from __future__ import annotations

import json
import re
from typing import Any

from fusevm.cli.inputs import BadInput
from fusevm.evm.keccak import keccak256
from fusevm.values import BadValue, to_bytes


class Signature:
    def __init__(self, text: str) -> None:
        self.text = text
        name, inputs, outputs = _parts(text)
        self.inputs = _types(inputs, text)
        self.outputs = None if outputs is None else _types(outputs, text)
        self.selector = keccak256(f"{name}({','.join(self.inputs)})".encode())[:4]

    def encode(self, arguments: list[str]) -> bytes:
        from eth_abi.abi import encode
        from eth_abi.exceptions import EncodingError

        if len(arguments) != len(self.inputs):
            raise BadInput(f"{self.text} takes {len(self.inputs)} arguments, {len(arguments)} given")
        values = [
            _value(kind, text, f"argument {index} ({kind})")
            for index, (kind, text) in enumerate(zip(self.inputs, arguments, strict=True), 1)
        ]
        try:
            return self.selector + encode(self.inputs, values)
        except (EncodingError, OverflowError, TypeError) as error:
            raise BadInput(f"arguments do not fit {self.text}: {error}") from None

    def decode(self, output: bytes) -> list[str] | None:
        """The returned values as text, if the signature says what they are and the output is that."""
        from eth_abi.abi import decode
        from eth_abi.exceptions import DecodingError

        if self.outputs is None:
            return None
        try:
            return [_shown(value) for value in decode(self.outputs, output)]
        except (DecodingError, OverflowError, UnicodeDecodeError):
            return None


def _parts(text: str) -> tuple[str, str, str | None]:
    """Splits name(inputs)(outputs), minding tuples inside the brackets."""
    opening = text.find("(")
    name = text[:opening].strip() if opening > 0 else ""
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", name):
        raise BadInput(f"{text!r} is not a signature; expected something like transfer(address,uint256)")
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            rest = text[index + 1 :].strip().removeprefix("returns").strip()
            if rest and not (rest.startswith("(") and rest.endswith(")")):
                raise BadInput(f"{text!r}: {rest!r} after the arguments is not a list of types")
            return name, text[opening : index + 1], rest or None
    raise BadInput(f"{text!r}: a bracket is not closed")


def _types(listed: str, text: str) -> list[str]:
    from eth_abi.exceptions import ABITypeError, ParseError
    from eth_abi.grammar import TupleType, normalize, parse
    from eth_abi.registry import registry

    compact = re.sub(r"\s+", "", listed)
    if compact == "()":
        return []
    try:
        parsed = parse(normalize(compact))  # type: ignore[no-untyped-call]
        parsed.validate()
    except (ParseError, ABITypeError) as error:
        raise BadInput(f"{text!r}: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, TupleType):
        raise BadInput(f"{text!r} is not a list of types")
    types = [component.to_type_str() for component in parsed.components]
    for each in types:
        if not registry.has_encoder(each):
            raise BadInput(f"{text!r}: unknown type {each!r}")
    return types


def _value(kind: str, text: str, what: str) -> Any:
    if kind.endswith("]") or kind.startswith("("):
        try:
            items = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise BadInput(f"{what}: {text!r} is not a JSON list") from None
        if not isinstance(items, list):
            raise BadInput(f"{what}: {text!r} is not a JSON list")
        return _nested(kind, items, what)
    return _scalar(kind, text, what)


def _nested(kind: str, items: Any, what: str) -> Any:
    if kind.endswith((")", "]")) and not isinstance(items, list):
        raise BadInput(f"{what}: {items!r} is not a list")
    if kind.endswith("]"):
        inner = kind[: kind.rindex("[")]
        return [_nested(inner, item, what) for item in items]
    if kind.startswith("("):
        inner_types = _types(kind, kind)
        if len(inner_types) != len(items):
            raise BadInput(f"{what}: {len(inner_types)} members expected, {len(items)} given")
        return tuple(_nested(each, item, what) for each, item in zip(inner_types, items, strict=True))
    return _scalar(kind, str(items).lower() if isinstance(items, bool) else str(items), what)


def _scalar(kind: str, text: str, what: str) -> Any:
    try:
        if kind.startswith(("uint", "int")):
            return int(text, 0)
        if kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if kind == "address":
            raw = to_bytes(text, what)
            if len(raw) != 20:
                raise BadInput(f"{what}: expected 20 bytes, got {len(raw)}")
            return "0x" + raw.hex()
        if kind.startswith("bytes"):
            return to_bytes(text, what)
    except BadValue as error:
        raise BadInput(str(error)) from None
    except (ValueError, KeyError) as error:
        if isinstance(error, BadInput):
            raise
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
