"""How a message ended: the one form in which every tier answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from fusevm.chain.environment import Context, Message
from fusevm.chain.state import State
from fusevm.evm.halts import HaltReason


class Status(Enum):
    """How a call ended: what it did is kept, undone by REVERT, or undone with all gas taken.

    >>> Status("halt")
    <Status.HALT: 'halt'>
    """

    SUCCESS = "success"
    REVERT = "revert"
    HALT = "halt"


class Failure(NamedTuple):
    """Why and where a frame halted.

    >>> print(Failure(HaltReason.OUT_OF_GAS, "", 5))
    out of gas at pc 5
    """

    reason: HaltReason
    detail: str
    pc: int

    def __str__(self) -> str:
        return f"{self.reason.value} at pc {self.pc}" + (f" ({self.detail})" if self.detail else "")


@dataclass(slots=True)
class Outcome:
    status: Status
    gas_left: int
    output: bytes = b""
    failure: Failure | None = None
    created: bytes | None = None


class EngineLimit(RuntimeError):
    """A limit of the engine, not of the EVM: memory, storage or time. The call is undone.

    >>> from fusevm import EVM
    >>> evm = EVM(memory_limit=1024)
    >>> evm.set_code("0x" + "c0" * 20, "0x61100051")  # MLOAD at 4,096
    >>> try:
    ...     evm.call("0x" + "c0" * 20)
    ... except EngineLimit:
    ...     print("too much memory")
    too much memory
    """


class TimeLimit(EngineLimit):
    """The time given for a call has run out.

    >>> from fusevm import EVM
    >>> evm = EVM(timeout=0.01)
    >>> evm.set_code("0x" + "c0" * 20, "0x5b5f56")  # a loop without end
    >>> try:
    ...     evm.call("0x" + "c0" * 20, gas=2**63)
    ... except TimeLimit as error:
    ...     print(error)
    the time limit is reached
    """


def check_time(deadline: float | None) -> None:
    """Raises TimeLimit where the deadline, on `time.monotonic`'s clock, has passed."""
    if deadline is not None and time.monotonic() > deadline:
        raise TimeLimit("the time limit is reached")


def check_room(state: State, address: bytes, amount: int) -> None:
    """There is not enough ether to overflow a balance, but a user can set one that does."""
    if (state.account(address).balance + amount) >> 256:
        raise EngineLimit("a balance of more than 256 bits")


class Disagreement(AssertionError):
    """Two tiers differ; the message shows both sides."""


Executor = Callable[[Message, State, Context], Outcome]
