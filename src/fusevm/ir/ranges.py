"""Range analysis: the least and the greatest result of an instruction, from the ranges of its operands.

Ranges do not wrap: a result that may overflow can be anything. `RANGES` has one function per opcode; the result of any
other opcode can be anything. What follows from ranges are rules (`rules/families/ranges.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

TOP = (1 << 256) - 1
SIGN = 1 << 255


class Range(NamedTuple):
    """From low to high, both inclusive."""

    low: int = 0
    high: int = TOP

    def __contains__(self, word: object) -> bool:
        return isinstance(word, int) and self.low <= word <= self.high

    @property
    def is_one_word(self) -> bool:
        return self.low == self.high

    def with_(self, other: Range) -> Range:
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Range) -> Range:
        """The intersection; this range if that is empty, which happens only in unreachable code."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high) if low <= high else self


ANYTHING = Range()
BOOLEAN = Range(0, 1)
ADDRESS = Range(0, (1 << 160) - 1)
SIZE = Range(0, (1 << 64) - 1)  # no frame can pay for more


def _add(a: Range, b: Range) -> Range:
    low, high = a.low + b.low, a.high + b.high
    if high <= TOP:
        return Range(low, high)
    return Range(low - TOP - 1, high - TOP - 1) if low > TOP else ANYTHING  # it always wraps, or may


def _sub(a: Range, b: Range) -> Range:
    low, high = a.low - b.high, a.high - b.low
    if low >= 0:
        return Range(low, high)
    return Range(low + TOP + 1, high + TOP + 1) if high < 0 else ANYTHING


def _mul(a: Range, b: Range) -> Range:
    return Range(a.low * b.low, a.high * b.high) if a.high * b.high <= TOP else ANYTHING


def _div(a: Range, b: Range) -> Range:
    return Range(a.low // b.high if b.high and b.low else 0, a.high // max(b.low, 1))


def _mod(a: Range, b: Range) -> Range:
    if b.low and a.high < b.low:
        return a
    return Range(0, min(a.high, max(b.high - 1, 0)))


def _and(a: Range, b: Range) -> Range:
    return Range(0, min(a.high, b.high))


def _or(a: Range, b: Range) -> Range:
    return Range(max(a.low, b.low), _ones(max(a.high, b.high)))


def _xor(a: Range, b: Range) -> Range:
    return Range(0, _ones(max(a.high, b.high)))


def _ones(word: int) -> int:
    return (1 << word.bit_length()) - 1


def _not(a: Range) -> Range:
    return Range(TOP - a.high, TOP - a.low)


def _shl(shift: Range, a: Range) -> Range:
    if shift.high < 256 and a.high << shift.high <= TOP:
        return Range(a.low << shift.low, a.high << shift.high)
    return ANYTHING


def _shr(shift: Range, a: Range) -> Range:
    return Range(a.low >> min(shift.high, 256), a.high >> min(shift.low, 256))


def _sar(shift: Range, a: Range) -> Range:
    return _shr(shift, a) if a.high < SIGN else ANYTHING


def _byte(index: Range, a: Range) -> Range:
    return Range(0, 255)


def _signextend(size: Range, a: Range) -> Range:
    if size.low >= 31 or a.high >> (8 * (size.low + 1) - 1) == 0:
        return a  # no bit from the sign bit on is set
    return ANYTHING


def _addmod(a: Range, b: Range, n: Range) -> Range:
    return Range(0, max(n.high - 1, 0))


def _boolean(*_: Range) -> Range:
    return BOOLEAN


def _always(found: Range) -> Callable[..., Range]:
    return lambda *_: found


RANGES: dict[str, Callable[..., Range]] = {
    "ADD": _add, "SUB": _sub, "MUL": _mul, "DIV": _div, "MOD": _mod, "AND": _and, "OR": _or, "XOR": _xor, "NOT": _not,
    "SHL": _shl, "SHR": _shr, "SAR": _sar, "BYTE": _byte, "SIGNEXTEND": _signextend, "ADDMOD": _addmod,
    "MULMOD": _addmod, "CLZ": _always(Range(0, 256)),
    **dict.fromkeys(("LT", "GT", "SLT", "SGT", "EQ", "ISZERO"), _boolean),
    **dict.fromkeys(("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"), _boolean),
    **dict.fromkeys(("ADDRESS", "CALLER", "ORIGIN", "COINBASE", "CREATE", "CREATE2"), _always(ADDRESS)),
    **dict.fromkeys(
        ("CALLDATASIZE", "CODESIZE", "RETURNDATASIZE", "EXTCODESIZE", "MSIZE", "GAS"), _always(SIZE)
    ),
}  # fmt: skip


def bits_of(op: str, operands: list[int], constants: list[int | None], high: int) -> int:
    """The bits of an instruction's result that may be set, from the bits of its operands and its greatest value."""
    bits = _ones(high)
    if op == "AND":
        return bits & operands[0] & operands[1]
    if op in ("OR", "XOR"):
        return bits & (operands[0] | operands[1])
    if op in ("SHL", "SHR") and constants[0] is not None:
        shift = min(constants[0], 256)
        return bits & (operands[1] << shift & TOP if op == "SHL" else operands[1] >> shift)
    if op == "ADD" and not operands[0] & operands[1]:  # no carry
        return bits & (operands[0] | operands[1])
    if op in ("ADD", "SUB"):
        return bits & _from_lowest(operands[0] | operands[1])
    if op == "MUL":
        return bits & _from_lowest(operands[0]) * _lowest(operands[1]) & TOP
    if op == "SIGNEXTEND" and constants[0] is not None and constants[0] < 31:
        kept = (1 << 8 * constants[0] + 8) - 1
        copies = TOP & ~kept if operands[1] & (kept + 1 >> 1) else 0
        return bits & (operands[1] & kept | copies)
    return bits


def _lowest(bits: int) -> int:
    return bits & -bits


def _from_lowest(bits: int) -> int:
    """The lowest bit and all above it; none if there is none."""
    return -_lowest(bits) & TOP


def range_of(op: str, operands: list[Range]) -> Range:
    """The range of an instruction's result."""
    rule = RANGES.get(op)
    return ANYTHING if rule is None else rule(*operands)


def assumed(op: str, operands: list[Range], holds: bool) -> list[Range]:
    """The operands' ranges, given that a comparison holds or does not."""
    if op == "ISZERO":
        (a,) = operands
        return [a.within(Range(0, 0)) if holds else a.within(Range(1, TOP))]
    if op == "GT":
        b, a = operands
        return assumed("LT", [a, b], holds)[::-1]
    if op == "SGT":
        b, a = operands
        return assumed("SLT", [a, b], holds)[::-1]
    if op not in ("LT", "SLT", "EQ"):
        return operands
    a, b = operands
    if op == "EQ":
        return [a.within(b), b.within(a)] if holds else [_without(a, b), _without(b, a)]
    if op == "SLT" and (a.high >= SIGN or b.high >= SIGN):
        return operands
    if holds:
        return [a.within(Range(0, max(b.high - 1, 0))), b.within(Range(min(a.low + 1, TOP), TOP))]
    return [a.within(Range(b.low, TOP)), b.within(Range(0, a.high))]


def _without(a: Range, b: Range) -> Range:
    """a without b, if b is one word at an end of a."""
    if b.is_one_word and not a.is_one_word:
        if a.low == b.low:
            return Range(a.low + 1, a.high)
        if a.high == b.low:
            return Range(a.low, a.high - 1)
    return a
