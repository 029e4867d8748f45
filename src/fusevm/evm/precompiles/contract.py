"""What a precompiled contract is: a name, an address, a first fork, a price and a function from bytes to bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fusevm.evm.forks import Fork

Gas = Callable[[Any, Fork], int]  # of bytes, or of a view of them
Run = Callable[[bytes, Fork], bytes]


class PrecompileFailure(Exception):
    """The input is invalid: the call fails and all of its gas is gone. The message names the reason."""


@dataclass(frozen=True, slots=True)
class Precompile:
    """`gas` is cheap for any input and must be paid before `run`, whose effort it bounds."""

    name: str
    address: int
    since: Fork
    gas: Gas
    run: Run


def fixed(price: int) -> Gas:
    return lambda data, fork: price


def per_word(base: int, word: int) -> Gas:
    return lambda data, fork: base + word * ((len(data) + 31) // 32)


def padded(data: bytes, start: int, size: int) -> bytes:
    """`size` bytes from `start`; what lies past the end of the input reads as zero."""
    return bytes(data[start : start + size]).ljust(size, b"\0")


def require_length(data: bytes, size: int) -> None:
    if len(data) != size:
        raise PrecompileFailure(f"invalid input length: {len(data)} bytes, not {size}")


def require_multiple(data: bytes, size: int) -> None:
    """For contracts over a list of items, which may not be empty."""
    if not data or len(data) % size:
        raise PrecompileFailure(f"invalid input length: {len(data)} bytes, not a positive multiple of {size}")
