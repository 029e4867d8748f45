"""Modular exponentiation (EIP-198), its later prices (EIP-2565, EIP-7883) and its bound of 1,024 bytes (EIP-7823)."""

from __future__ import annotations

from functools import cache

from fusevm.evm.forks import NO_LIMIT, Fork, Rules, rules_of
from fusevm.evm.gas import modexp_cost
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, padded

HEADER = 96


def _nanoseconds(rules: Rules) -> int:
    """What a unit of gas may take in Python, with a margin."""
    return 50 if not rules.modexp_word else 200 if rules.modexp_word == 1 else 60


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
    rules = rules_of(fork)
    base_size, exponent_size, modulus_size = _lengths(data)
    iterations = _iterations(data, base_size, exponent_size, rules.modexp_exponent_byte)
    return modexp_cost(rules, max(base_size, modulus_size), iterations)


def seconds(price: int, fork: Fork) -> float:
    """Python's `pow` takes no pauses."""
    return price * _nanoseconds(rules_of(fork)) * 1e-9


def reads(data: bytes) -> int:
    sizes = _lengths(data)
    return min(len(data), HEADER + sum(sizes) if any((sizes[0], sizes[2])) else HEADER + 32)


def lengths(data: bytes, fork: Fork) -> tuple[int, int, int]:
    """Those of an input whose price is paid: they fit into memory, unless modulus and base are empty."""
    sizes = _lengths(data)
    bound = rules_of(fork).modexp_bound
    if bound != NO_LIMIT and max(sizes) > bound:
        raise PrecompileFailure(f"a length exceeds {bound} bytes")
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
