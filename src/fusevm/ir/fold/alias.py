"""Alias analysis: whether two accesses touch the same bytes of memory or the same slot of storage: no, may, must.

An address is a base value plus a constant. Addresses that are accessed are small (no gas limit pays for more than a few
gigabytes), so the difference of two addresses with one base is their distance, without wrapping.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fusevm.ir.values import CONST, WORD, Value


class Alias(Enum):
    NO = "no"
    MAY = "may"
    MUST = "must"  # exactly the same bytes, the same slot


NO, MAY, MUST = Alias.NO, Alias.MAY, Alias.MUST
SIGN = 1 << 255
_DEPTH = 4


def split(address: Value) -> tuple[Value | None, int]:
    """Base and constant offset; a literal has no base."""
    offset = 0
    for _ in range(_DEPTH):
        if address.op == CONST:
            return None, (offset + address.number) & WORD
        if address.op == "ADD" and address.args[1].op == CONST:
            offset += address.args[1].number
        elif address.op == "SUB" and address.args[1].op == CONST:
            offset -= address.args[1].number
        else:
            break
        address = address.args[0]
    return address, offset & WORD


class MemoryRange(NamedTuple):
    """Bytes of memory from `base + offset` on; a size of None is unknown."""

    base: Value | None
    offset: int
    size: int | None

    def distance_to(self, other: MemoryRange) -> int:
        """How far after this one the other begins; both must have the same base."""
        difference = (other.offset - self.offset) & WORD
        return difference - (WORD + 1) if difference & SIGN else difference


def range_of(value: Value, place: tuple[int, int]) -> MemoryRange:
    offset, size = place
    base, start = split(value.args[offset])
    return MemoryRange(base, start, _size(value, size))


def _size(value: Value, size: int) -> int | None:
    if size < 0:
        return -size
    operand = value.args[size]
    return operand.number if operand.op == CONST else None


def relation(one: MemoryRange, other: MemoryRange) -> Alias:
    if one.size == 0 or other.size == 0:
        return NO
    if one.base is not other.base:
        return MAY
    distance = one.distance_to(other)
    if one.size is not None and distance >= one.size:
        return NO
    if other.size is not None and -distance >= other.size:
        return NO
    return MUST if distance == 0 and one.size == other.size and one.size is not None else MAY


def covers(outer: MemoryRange, inner: MemoryRange) -> bool:
    """Whether every byte of the inner range is known to be in the outer."""
    if inner.size == 0:
        return True
    if outer.base is not inner.base or outer.size is None or inner.size is None:
        return False
    distance = outer.distance_to(inner)
    return distance >= 0 and distance + inner.size <= outer.size


def same_slot(one: Value, other: Value) -> Alias:
    """For storage keys, which wrap like any word: x and x + 1 are never equal."""
    if one is other:
        return MUST
    base, offset = split(one)
    other_base, other_offset = split(other)
    if base is not other_base:
        return MAY
    return MUST if offset == other_offset else NO
