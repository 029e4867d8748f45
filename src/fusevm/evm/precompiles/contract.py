"""What a precompiled contract is: a name, an address, a first fork, a price and a function from bytes to bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fusevm.evm.forks import Fork
from fusevm.evm.gas import linear_cost, words_of

Gas = Callable[[Any, Fork], int]  # of bytes, or of a view of them
Reads = Callable[[Any], int]  # likewise
Seconds = Callable[[int, Fork], float]  # of a price
Answers = Callable[[bytes, int], tuple[bytes, int]]  # of input and gas: output and gas used
Pause = Callable[[], None]  # called every few milliseconds; it may raise, to end the run


def no_pause() -> None:
    pass


class PrecompileRun(Protocol):
    def __call__(self, data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes: ...


class PrecompileFailure(Exception):
    """The input is invalid: the call fails and all of its gas is gone. The message names the reason.

    >>> from fusevm import EVM
    >>> def refuse(data: bytes, gas: int) -> bytes:
    ...     raise PrecompileFailure("never")
    >>> evm = EVM()
    >>> evm.precompiles[0x1234] = refuse
    >>> evm.call(0x1234, gas=1_000).gas_used
    1000
    """


def all_of(data: bytes) -> int:
    return len(data)


@dataclass(frozen=True, slots=True)
class First:
    """A contract reads a bounded number of bytes and ignores the rest. One byte more suffices to see a wrong length."""

    size: int

    def __call__(self, data: bytes) -> int:
        return min(len(data), self.size)


@dataclass(frozen=True, slots=True)
class Precompile:
    """`gas` is cheap for any input and must be paid before `run`, whose effort it bounds.

    Both answer the same for the first `reads(data)` bytes of the input, so that nothing is copied that is not paid for.
    `run` calls `pause` every few milliseconds, except where `seconds` estimates how long it goes without.
    """

    name: str
    address: int
    since: Fork
    gas: Gas
    run: PrecompileRun
    reads: Reads = all_of
    seconds: Seconds | None = None
    answers: Answers | None = None  # a user's own, which says what it has used: `gas` and `run` are not asked


def fixed(price: int) -> Gas:
    return lambda data, fork: price


def per_word(base: int, word: int) -> Gas:
    return lambda data, fork: linear_cost(base, word, words_of(len(data)))


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
