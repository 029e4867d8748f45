"""What is handed to an engine, and what it says came of it: the terms in which engines are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from fusevm.chain.environment import Block
from fusevm.chain.state import Account, Log, State
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256


def block_hash(number: int) -> bytes:
    """The hash of a past block, as state tests and revm's empty database have it."""
    return keccak256(str(number).encode())


@dataclass(slots=True)
class PeerWork:
    """One transaction on a world of accounts."""

    fork: Fork
    accounts: dict[bytes, Account]
    block: Block
    transaction: Transaction

    def with_gas(self, gas: int) -> PeerWork:
        return replace(self, transaction=replace(self.transaction, gas_limit=gas))

    def state(self) -> State:
        """The world as a state of ours, independent of this one."""
        state = State()
        state.accounts = self.accounts
        return state.copy()  # not shared with anything else: tiers may keep copies of it between calls


@dataclass(slots=True)
class Observation:
    """Everything observable of a transaction. None is for what an engine does not report."""

    status: str  # success, revert, halt or rejected
    gas_used: int = 0  # what is paid for, after the refund
    refund: int | None = 0
    output: bytes | None = b""
    logs: list[Log] = field(default_factory=list)
    accounts: dict[bytes, Account] | None = None
    knows_empty: bool = True  # whether `accounts` lists those that exist though they are empty (before EIP-161)
    root: bytes | None = None  # where the accounts cannot be listed
    reason: str = ""  # in the engine's own words; not compared


class Timing(NamedTuple):
    """One timed message call, in the terms of the bench files."""

    seconds: float
    status: str
    gas_used: int  # by the code itself: before refunds, without the intrinsic cost
    refund: int  # what a transaction would be paid back, after the cap
    output: bytes


Stopwatch = Callable[[], Timing]


class PeerEngine(Protocol):
    @property
    def name(self) -> str: ...

    def supports(self, fork: Fork) -> bool: ...

    def fit(self, work: PeerWork) -> PeerWork:
        """The nearest work that this engine can be given."""
        ...

    def excuse(self, work: PeerWork) -> str | None:
        """Why this engine is known to differ from the specification on this work, if it is."""
        ...

    def run(self, work: PeerWork) -> Observation:
        """Runs the transaction; the work is left as it was."""
        ...

    def stopwatch(self, work: PeerWork) -> Stopwatch:
        """A function that times the transaction's message alone, each time on the same state."""
        ...


@contextmanager
def deep_recursion() -> Iterator[None]:
    """For engines that make a call within a call out of a few calls of Python: 1,024 of them fit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 40_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class PeerMissing(RuntimeError):
    def __init__(self, name: str, package: str) -> None:
        super().__init__(name, package)
        self.name, self.package = name, package

    def __str__(self) -> str:
        return f"the peer {self.name!r} needs the package {self.package}: pip install 'fusevm[peers]'"


class UnknownEngine(ValueError):
    pass
