"""Modular exponentiation (EIP-198), its later prices (EIP-2565, EIP-7883) and its bound of 1,024 bytes (EIP-7823)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import PrecompileFailure, padded

_HEADER = 96
_BOUND = 1_024  # EIP-7823


@dataclass(frozen=True, slots=True)
class Pricing:
    """gas = max(least, complexity(longest of base and modulus) * iterations // divisor)"""

    least: int
    complexity: Callable[[int], int]
    long_exponent_byte: int  # iterations counted for each byte of the exponent past its first 32
    divisor: int


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


EIP_198 = Pricing(0, _complexity_198, 8, 20)
EIP_2565 = Pricing(200, _complexity_2565, 8, 3)
EIP_7883 = Pricing(500, _complexity_7883, 16, 1)


def pricing_of(fork: Fork) -> Pricing:
    if fork >= Fork.OSAKA:
        return EIP_7883
    return EIP_2565 if fork >= Fork.BERLIN else EIP_198


def _lengths(data: bytes) -> tuple[int, int, int]:
    """Of base, exponent and modulus: any numbers up to 2^256 - 1, whatever the input really holds."""
    base, exponent, modulus = (int.from_bytes(padded(data, start, 32), "big") for start in (0, 32, 64))
    return base, exponent, modulus


def _iterations(data: bytes, base_size: int, exponent_size: int, long_exponent_byte: int) -> int:
    head = int.from_bytes(padded(data, _HEADER + base_size, min(exponent_size, 32)), "big")
    highest_bit = max(head.bit_length() - 1, 0)
    return max(long_exponent_byte * max(exponent_size - 32, 0) + highest_bit, 1)


def gas(data: bytes, fork: Fork) -> int:
    """Computed from the lengths and the exponent's first 32 bytes alone, so it is cheap however large it gets."""
    pricing = pricing_of(fork)
    base_size, exponent_size, modulus_size = _lengths(data)
    iterations = _iterations(data, base_size, exponent_size, pricing.long_exponent_byte)
    return max(pricing.least, pricing.complexity(max(base_size, modulus_size)) * iterations // pricing.divisor)


def run(data: bytes, fork: Fork) -> bytes:
    base_size, exponent_size, modulus_size = _lengths(data)
    if fork >= Fork.OSAKA and max(base_size, exponent_size, modulus_size) > _BOUND:
        raise PrecompileFailure(f"a length exceeds {_BOUND} bytes")
    # The price bounds the lengths only where it is not zero: an empty modulus must not read a huge exponent.
    if modulus_size == 0:
        return b""
    base, exponent, modulus = _operands(data, base_size, exponent_size, modulus_size)
    result = pow(base, exponent, modulus) if modulus else 0
    return result.to_bytes(modulus_size, "big")


def _operands(data: bytes, *sizes: int) -> list[int]:
    numbers, start = [], _HEADER
    for size in sizes:
        numbers.append(int.from_bytes(padded(data, start, size), "big"))
        start += size
    return numbers
