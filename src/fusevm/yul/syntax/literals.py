"""Literals that steps make, spelt as solc spells them."""

from __future__ import annotations

from fusevm.yul.syntax.ast import NOWHERE, Literal, LiteralKind, Location

_LARGEST_DECIMAL = 0x1000000


def number(value: int, location: Location = NOWHERE) -> Literal:
    """Small numbers in decimal, others as hexadecimal in whole bytes."""
    return decimal(value, location) if value <= _LARGEST_DECIMAL else hexadecimal(value, location)


def decimal(value: int, location: Location = NOWHERE) -> Literal:
    return Literal(LiteralKind.NUMBER, value, str(value), location)


def hexadecimal(value: int, location: Location = NOWHERE) -> Literal:
    """At least one byte, and whole bytes: 0x00, 0x80, 0x0100."""
    size = max(1, (value.bit_length() + 7) // 8)
    return Literal(LiteralKind.NUMBER, value, f"0x{value:0{2 * size}x}", location)


def zero(location: Location = NOWHERE) -> Literal:
    return decimal(0, location)


def true(location: Location = NOWHERE) -> Literal:
    return Literal(LiteralKind.BOOLEAN, 1, "true", location)
