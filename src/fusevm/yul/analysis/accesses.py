"""Which part of memory or storage a builtin touches, and which of its arguments say so.

The effects table says that an opcode reads or writes memory; where, stands here. Lengths that are only a bound
(the room a call's output may fill) are not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Place(Enum):
    MEMORY = "memory"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Access:
    """`start` and `length` are the numbers of arguments; `size` is a fixed length; None where nothing is known."""

    place: Place
    writes: bool
    start: int | None = None
    length: int | None = None
    size: int | None = None


def _reads(start: int, length: int) -> Access:
    return Access(Place.MEMORY, False, start, length)


def _copies(start: int, length: int) -> Access:
    return Access(Place.MEMORY, True, start, length)


def _call(parameters: int, writes_storage: bool) -> tuple[Access, ...]:
    """Input is read before the output is written."""
    before = (_reads(parameters - 4, parameters - 3), Access(Place.STORAGE, False))
    after = (Access(Place.MEMORY, True, parameters - 2),)
    return before + after + ((Access(Place.STORAGE, True),) if writes_storage else ())


_CREATION = (_reads(1, 2), Access(Place.STORAGE, False), Access(Place.STORAGE, True))

ACCESSES: dict[str, tuple[Access, ...]] = {
    "sload": (Access(Place.STORAGE, False, 0, size=1),),
    "sstore": (Access(Place.STORAGE, True, 0, size=1),),
    "mload": (Access(Place.MEMORY, False, 0, size=32),),
    "mstore": (Access(Place.MEMORY, True, 0, size=32),),
    "mstore8": (Access(Place.MEMORY, True, 0, size=1),),
    "mcopy": (_reads(1, 2), _copies(0, 2)),
    "calldatacopy": (_copies(0, 2),),
    "codecopy": (_copies(0, 2),),
    "returndatacopy": (_copies(0, 2),),
    "extcodecopy": (_copies(1, 3),),
    "keccak256": (_reads(0, 1),),
    "return": (_reads(0, 1),),
    "revert": (_reads(0, 1),),
    **{f"log{n}": (_reads(0, 1),) for n in range(5)},
    "call": _call(7, writes_storage=True),
    "callcode": _call(7, writes_storage=True),
    "delegatecall": _call(6, writes_storage=True),
    "staticcall": _call(6, writes_storage=False),
    "create": _CREATION,
    "create2": _CREATION,
}  # fmt: skip
