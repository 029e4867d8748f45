"""What the interpreter and the world around it agree on: operations, limits, and how a run ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from fusevm.yul.syntax.dialect import Builtin


class RunEnd(Enum):
    """How a run ended."""

    FINISHED = "finished"  # off the end of the code
    STOP = "stop"
    RETURN = "return"
    REVERT = "revert"
    INVALID = "invalid"  # and every other exceptional halt
    SELFDESTRUCT = "selfdestruct"
    LIMIT = "limit"  # ours, not the EVM's: the run proves nothing


class Ended(Exception):
    """Raised by a host's operation that ends the run."""

    def __init__(self, end: RunEnd, data: bytes = b"") -> None:
        self.end = end
        self.data = data
        super().__init__(end.value)


class LimitReached(Ended):
    def __init__(self, reason: str) -> None:
        super().__init__(RunEnd.LIMIT)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may take; 0 means no limit of that kind."""

    steps: int = 1_000_000  # statements
    nesting: int = 0  # operands and calls in one expression
    calls: int = 1_024  # maximum depth of user functions: the EVM's stack has no room for more labels


class Host(Protocol):
    """The world around the program."""

    def operation(self, builtin: Builtin) -> Callable[..., Any]:
        """What an opcode or memory builtin does, as a function of its arguments."""
        ...

    def named(self, function: str, name: str) -> int:
        """The value of datasize, dataoffset, loadimmutable or linkersymbol for a name."""
        ...

    def set_immutable(self, offset: int, name: str, value: int) -> None: ...


@dataclass(frozen=True, slots=True)
class YulOutcome:
    end: RunEnd
    data: bytes = b""
    reason: str = ""  # of a limit

    @property
    def succeeded(self) -> bool:
        return self.end in (RunEnd.FINISHED, RunEnd.STOP, RunEnd.RETURN, RunEnd.SELFDESTRUCT)
