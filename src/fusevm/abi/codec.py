"""Lists of values to bytes and back, by eth-abi, which is imported when it is first needed: that takes a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusevm.abi.types import Parameter
from fusevm.values import BadValue


class CannotDecode(BadValue):
    """Bytes that are not what the ABI says they are.

    >>> try:
    ...     decode(["bool"], bytes(31), "the answer")
    ... except CannotDecode as error:
    ...     print(str(error)[:44])
    the answer: Tried to read 32 bytes, only got
    """


def encode(parameters: Sequence[Parameter], arguments: Sequence[Any], what: str) -> bytes:
    """Raises BadValue, naming the argument, where one does not fit."""
    if len(arguments) != len(parameters):
        raise BadValue(f"{what} takes {counted(len(parameters))}, {len(arguments)} given")
    if not parameters:
        return b""
    from eth_abi.abi import encode as encoded
    from eth_abi.exceptions import EncodingError

    values = [
        each.type.read(value, f"{what}: argument {each.name or at} ({each.type.name})")
        for at, (each, value) in enumerate(zip(parameters, arguments, strict=True), 1)
    ]
    try:
        return encoded([each.type.name for each in parameters], values)
    except (EncodingError, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise BadValue(f"{what}: {' '.join(str(error).split())}") from None


def decode(types: Sequence[str], data: bytes, what: str) -> tuple[Any, ...]:
    if not types:
        return ()
    from eth_abi.abi import decode as decoded
    from eth_abi.exceptions import DecodingError

    try:
        return tuple(decoded(types, data))
    except (DecodingError, OverflowError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise CannotDecode(f"{what}: {' '.join(str(error).split())}") from None


def counted(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"
