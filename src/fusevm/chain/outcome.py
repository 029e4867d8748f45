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
    SUCCESS = "success"
    REVERT = "revert"
    HALT = "halt"


class Failure(NamedTuple):
    """Why and where a frame halted."""

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
    """A limit of the engine, not of the EVM: memory, storage or time. Nothing of the call is kept."""


class TimeLimit(EngineLimit):
    """The time given for a call has run out."""


def check_time(deadline: float | None) -> None:
    """Raises TimeLimit where the deadline, on `time.monotonic`'s clock, has passed."""
    if deadline is not None and time.monotonic() > deadline:
        raise TimeLimit("the time limit is reached")


def check_room(state: State, address: bytes, amount: int) -> None:
    """There is not so much ether that a balance could leave a word, but a user can set one."""
    if (state.account(address).balance + amount) >> 256:
        raise EngineLimit("a balance of more than 256 bits")


class Disagreement(AssertionError):
    """Two tiers differ; the message shows both sides."""


Executor = Callable[[Message, State, Context], Outcome]
