"""Modular exponentiation (EIP-198), its later prices (EIP-2565, EIP-7883) and its bound of 1,024 bytes (EIP-7823)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, padded

HEADER = 96
_BOUND = 1_024  # EIP-7823


@dataclass(frozen=True, slots=True)
class Pricing:
    """gas = max(least, complexity(longest of base and modulus) * iterations // divisor)"""

    least: int
    complexity: Callable[[int], int]
    long_exponent_byte: int  # iterations counted for each byte of the exponent past its first 32
    divisor: int
    nanoseconds: int  # what a unit of gas may take in Python, with a margin


def _complexity_198(size: int) -> int:
    if size <= 64:
        return size * size
    if size <= 1_024:
        return size * size // 4 + 96 * size - 3_072
    return size * size // 16 + 480 * size - 199_680


def _complexity_2565(size: int) -> int:
    words = (size + 7) // 8
    return words * words


def _complexity_7883(size: int) -> int:
    return 2 * _complexity_2565(size) if size > 32 else 16


EIP_198 = Pricing(0, _complexity_198, 8, 20, 50)
EIP_2565 = Pricing(200, _complexity_2565, 8, 3, 200)
EIP_7883 = Pricing(500, _complexity_7883, 16, 1, 60)


def pricing_of(fork: Fork) -> Pricing:
    if fork >= Fork.OSAKA:
        return EIP_7883
    return EIP_2565 if fork >= Fork.BERLIN else EIP_198


def _lengths(data: bytes) -> tuple[int, int, int]:
    """Of base, exponent and modulus: any numbers up to 2^256 - 1, whatever the input really holds."""
    if len(data) < HEADER:
        data = padded(data, 0, HEADER)
    number = int.from_bytes
    return number(data[:32], "big"), number(data[32:64], "big"), number(data[64:96], "big")


def _iterations(data: bytes, base_size: int, exponent_size: int, long_exponent_byte: int) -> int:
    size, start = min(exponent_size, 32), HEADER + base_size
    head = data[start : start + size]
    bits = int.from_bytes(head, "big").bit_length()
    if bits and len(head) < size:  # what lies past the end of the input reads as zero
        bits += 8 * (size - len(head))
    iterations = bits - 1 if bits else 0
    if exponent_size > 32:
        iterations += long_exponent_byte * (exponent_size - 32)
    return iterations or 1


def gas(data: bytes, fork: Fork) -> int:
    """Computed from the lengths and the exponent's first 32 bytes alone, so it is cheap however large it gets."""
    pricing = pricing_of(fork)
    base_size, exponent_size, modulus_size = _lengths(data)
    iterations = _iterations(data, base_size, exponent_size, pricing.long_exponent_byte)
    return max(pricing.least, pricing.complexity(max(base_size, modulus_size)) * iterations // pricing.divisor)


def seconds(price: int, fork: Fork) -> float:
    """Python's `pow` takes no pauses."""
    return price * pricing_of(fork).nanoseconds * 1e-9


def reads(data: bytes) -> int:
    sizes = _lengths(data)
    return min(len(data), HEADER + sum(sizes) if any((sizes[0], sizes[2])) else HEADER + 32)


def lengths(data: bytes, fork: Fork) -> tuple[int, int, int]:
    """Those of an input whose price is paid: they fit into memory, unless modulus and base are empty."""
    sizes = _lengths(data)
    if fork >= Fork.OSAKA and max(sizes) > _BOUND:
        raise PrecompileFailure(f"a length exceeds {_BOUND} bytes")
    return sizes


def run(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    base_size, exponent_size, modulus_size = lengths(data, fork)
    if modulus_size == 0:
        return b""
    base = int.from_bytes(padded(data, HEADER, base_size), "big")
    exponent = padded(data, HEADER + base_size, exponent_size)
    modulus = int.from_bytes(padded(data, HEADER + base_size + exponent_size, modulus_size), "big")
    if 0 < modulus < SMALL:
        result = small_power(base, exponent, modulus, pause)
    else:
        result = pow(base, int.from_bytes(exponent, "big"), modulus) if modulus else 0
    return result.to_bytes(modulus_size, "big")


# EIP-198 asks 0.05 gas for a bit of the exponent where the modulus is one byte, 0.2 where it is two.
SMALL = 1 << 16
_PART = 1 << 20  # bytes of an exponent without a pause


def small_power(base: int, exponent: bytes, modulus: int, pause: Pause = no_pause) -> int:
    """Euler: b^e = b^(e mod φ(m) + φ(m)) for all b and all e >= log2(m), and φ(m) is found soon for a small m."""
    if len(exponent) <= 8:
        return pow(base, int.from_bytes(exponent, "big"), modulus)
    order, rest = _totient(modulus), 0
    for start in range(0, len(exponent), _PART):
        pause()
        part = exponent[start : start + _PART]
        rest = (rest * pow(256, len(part), order) + int.from_bytes(part, "big")) % order
    if exponent.lstrip(b"\0")[8:]:
        rest += order
        return pow(base, rest, modulus)
    return pow(base, int.from_bytes(exponent, "big"), modulus)


@cache
def _totient(number: int) -> int:
    order, rest, factor = number, number, 2
    while factor * factor <= rest:
        if rest % factor == 0:
            order -= order // factor
            while rest % factor == 0:
                rest //= factor
        factor += 1
    return order - order // rest if rest > 1 else order
